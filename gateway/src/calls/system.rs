//! Calls of system procedures, which are functions in PostgreSQL (schemas sys and sybsystemprocs).

use super::procedures::Procedures;
use super::returned::Returned;
use crate::catalogue::Function;
use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::tds::call::Param;
use crate::tds::types::Value;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

/// Qualifiers of a system procedure that do not name a database of ringlog.
const ANYWHERE: [&str; 4] = ["sys", "sybsystemprocs", "tempdb", "model"];
/// The procedure whose report has a part from the gateway, and the function that returns this part.
const MONITOR: &str = "sp_sysmon";
const MONITOR_OF_GATEWAY: &str = "sp_sysmon_gateway";

impl Procedures {
    /// Runs the procedure in the database of its qualifier: `log..sp_help` shows the objects of log.
    pub(super) async fn call_system(
        &mut self,
        client: &mut Client,
        qualifier: Option<&str>,
        function: &Arc<Function>,
        params: &[Param<'_>],
        in_try: bool,
    ) -> Result<Returned, Interrupt> {
        let elsewhere = qualifier.filter(|name| {
            !ANYWHERE.iter().any(|known| known.eq_ignore_ascii_case(name))
                && !self.gateway.is_default_database(name)
        });
        let outside = elsewhere.map(|name| std::mem::replace(&mut self.backend.database, name.to_owned()));
        let called = if function.name == MONITOR {
            self.monitor(client, function, params, in_try).await
        } else {
            self.call_function(client, function.clone(), params, in_try).await
        };
        if !function.only_reads {
            // it may have created or dropped a user type
            self.backend.forget_tables();
        }
        if let Some(outside) = outside {
            self.backend.database = outside;
        }
        called
    }

    /// sp_sysmon: PostgreSQL waits for the interval and returns its counts; the gateway's counts of the
    /// interval follow.
    async fn monitor(
        &mut self,
        client: &mut Client,
        function: &Arc<Function>,
        params: &[Param<'_>],
        in_try: bool,
    ) -> Result<Returned, Interrupt> {
        let (before, start) = (self.gateway.metrics.text(), Instant::now());
        let returned = self.call_function(client, function.clone(), params, in_try).await?;
        let (after, seconds) = (self.gateway.metrics.text(), start.elapsed().as_secs_f64());
        let mut values =
            vec![Value::Text(Cow::Owned(before)), Value::Text(Cow::Owned(after)), Value::Float(seconds)];
        let section = params.iter().enumerate().find(|(index, param)| param.is("section") || *index == 1);
        let section = section.and_then(|(_, param)| param.value(&client.dialect()).ok());
        values.extend(section.map(Value::into_owned));
        let values: Vec<_> =
            values.into_iter().map(|value| Param::of_text(String::new(), value, false)).collect();
        match self.find(client, None, MONITOR_OF_GATEWAY, &values) {
            Ok(function) => self.call_function(client, function, &values, in_try).await,
            Err(_) => Ok(returned),
        }
    }
}
