//! Calls of the system procedures that are functions of PostgreSQL (schemas sys and sybsystemprocs).

use super::call::CallEnd;
use super::{Session, SessionError};
use crate::catalogue::Function;
use crate::tds::call::Param;
use crate::tds::types::Value;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite};

/// Names before a system procedure that are no database of their own.
const ANYWHERE: [&str; 4] = ["sys", "sybsystemprocs", "tempdb", "model"];
/// The procedure whose report the gateway has a part in, and the function that tells that part.
const MONITOR: &str = "sp_sysmon";
const MONITOR_OF_GATEWAY: &str = "sp_sysmon_gateway";

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// Runs it in the database it is qualified by: `log..sp_help` tells of the objects of log.
    pub(super) async fn call_system(
        &mut self,
        qualifier: Option<&str>,
        function: &Arc<Function>,
        params: &[Param<'_>],
    ) -> Result<CallEnd, SessionError> {
        let elsewhere = qualifier.filter(|name| {
            !ANYWHERE.iter().any(|known| known.eq_ignore_ascii_case(name))
                && !self.gateway.is_default_database(name)
        });
        let outside = elsewhere.map(|name| std::mem::replace(&mut self.database, name.to_owned()));
        let end = if function.name == MONITOR {
            self.monitor(function, params).await
        } else {
            self.call_function(function.clone(), params).await
        };
        if let Some(outside) = outside {
            self.database = outside;
        }
        end
    }

    /// sp_sysmon: PostgreSQL waits for the interval and tells what it has counted; what the gateway has counted
    /// meanwhile follows.
    async fn monitor(
        &mut self,
        function: &Arc<Function>,
        params: &[Param<'_>],
    ) -> Result<CallEnd, SessionError> {
        let (before, start) = (self.gateway.metrics.text(), Instant::now());
        let end = self.call_function(function.clone(), params).await?;
        if !matches!(end, CallEnd::Returned { .. }) {
            return Ok(end);
        }
        let (after, seconds) = (self.gateway.metrics.text(), start.elapsed().as_secs_f64());
        let mut values =
            vec![Value::Text(Cow::Owned(before)), Value::Text(Cow::Owned(after)), Value::Float(seconds)];
        let section = params.iter().enumerate().find(|(place, param)| param.is("section") || *place == 1);
        let section = section.and_then(|(_, param)| param.value(&self.client.dialect).ok());
        values.extend(section.map(Value::into_owned));
        let values: Vec<_> =
            values.into_iter().map(|value| Param::of_text(String::new(), value, false)).collect();
        let dialect = self.client.dialect;
        let found = self.catalogue().find(None, MONITOR_OF_GATEWAY, &self.database, &dialect, |_| true);
        match found {
            Ok(function) => self.call_function(function, &values).await,
            Err(_) => Ok(end),
        }
    }
}
