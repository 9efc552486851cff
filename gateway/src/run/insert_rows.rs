//! Inserts of rows that the gateway keeps.

use super::first::no_relation;
use super::identities::advance_identity;
use crate::backend::{Backend, Completed, Parameter, Rows, Source};
use crate::client::{Client, GatheredSet};
use crate::interrupt::{Failure, Interrupt};
use crate::program::{refusal, Filled};
use std::borrow::Cow;
use std::collections::BTreeSet;
use tsql::schema::Schema;

/// The numbers of rows inserted by one statement of PostgreSQL: only four, since each is prepared.
pub const ROWS: [usize; 4] = [256, 32, 4, 1];
/// The most parameters of one statement, within PostgreSQL's 16-bit count.
const MOST_PARAMETERS: usize = 30_000;

/// The target with its columns, as the table has them now. Error 213: the rows have more or fewer values.
pub async fn present(
    backend: &mut Backend,
    client: &mut Client,
    target: &Filled,
    sets: &[GatheredSet],
) -> Result<Filled, Interrupt> {
    let number = |set: &GatheredSet| set.types.len();
    if let Some(columns) = &target.columns {
        return match sets.iter().all(|set| number(set) == columns.len()) {
            true => Ok(target.clone()),
            false => Err(refusal(&tsql::schema::other_number(1)).into()),
        };
    }
    let declared = backend.know(&BTreeSet::from([target.table.clone()])).await;
    let declared = backend.checked(client, declared)?;
    let declared = declared.table(&target.table).ok_or_else(|| Failure::from(&no_relation(&target.table)))?;
    for set in sets {
        declared.demand_values(&target.table, number(set), 1).map_err(|error| refusal(&error))?;
    }
    let columns = declared.filled().map(|column| column.name.clone()).collect();
    Ok(Filled { columns: Some(columns), ..target.clone() })
}

pub async fn insert_sets(
    backend: &mut Backend,
    client: &mut Client,
    target: &Filled,
    sets: &[GatheredSet],
) -> Result<u64, Interrupt> {
    let dialect = client.dialect().of_texts();
    let mut inserted = 0;
    for set in sets {
        let width = set.types.len();
        let mut rest = set.rows.as_slice();
        while !rest.is_empty() {
            let fits = |rows: &&usize| **rows <= rest.len() && **rows * width <= MOST_PARAMETERS;
            let (rows, tail) = rest.split_at(ROWS.iter().find(fits).copied().unwrap_or(1));
            rest = tail;
            let sql = tsql::insert_of_rows(target, width, rows.len(), dialect);
            let values = rows.iter().flat_map(|row| row.iter().zip(&set.types));
            let parameters: Vec<Parameter<'_>> = values
                .zip(&sql.variables)
                .map(|((value, sql_type), name)| Parameter {
                    name,
                    sql_type: *sql_type,
                    value: Cow::Borrowed(value),
                })
                .collect();
            let source = Source::Query { sql: &sql, parameters: &parameters, only_reads: false };
            let Completed { outcome, .. } = backend.run(client, source, Rows::Kept).await?;
            inserted += outcome.count.unwrap_or(0);
        }
    }
    if target.with_identity {
        advance_identity(backend, client, &target.table).await?;
    }
    Ok(inserted)
}
