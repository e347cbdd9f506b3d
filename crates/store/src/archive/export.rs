//! Rows on their way out: a walk along the primary key.

use super::catalogue::Table;
use super::kept;
use crate::{Param, Reader, StoreError, Value};

/// Rows of a page: few enough to hold a page of the longest messages.
pub const PAGE_ROWS: i64 = 250;

/// The rows of a table that follow one of it (none: from the first), in the order of its primary key.
pub async fn page(tx: &mut Reader, table: &Table, after: Option<&[Value]>) -> Result<Vec<Vec<Value>>, StoreError> {
    let columns = table.column_names();
    let key: Vec<&str> = table.key.iter().filter_map(|at| columns.get(*at)).map(String::as_str).collect();
    let place = match after {
        None => String::new(),
        Some(_) => {
            let placeholders: Vec<String> = (2..).take(key.len()).map(|number| format!("?{number}")).collect();
            format!("WHERE ({}) > ({})", key.join(", "), placeholders.join(", "))
        }
    };
    let (columns, key, name) = (columns.join(", "), key.join(", "), &table.name);
    let sql = kept(format!("SELECT {columns} FROM {name} {place} ORDER BY {key} LIMIT ?1"));
    let mut values = vec![Param::Int(PAGE_ROWS)];
    if let Some(last) = after {
        values.extend(table.key.iter().filter_map(|at| last.get(*at)).map(Value::as_param));
    }
    let rows = tx.query(sql, &values).await?;
    Ok(rows.into_iter().map(crate::Row::into_values).collect())
}
