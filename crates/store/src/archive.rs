//! The data as portable rows: out of one database in one snapshot, into an empty one of either engine.
//!
//! Which tables and columns there are is asked of the database itself, so a new migration needs nothing here. Numbers are
//! JSON numbers, texts JSON strings, ids and bytes hexadecimal: what SQLite cannot tell apart looks alike.

mod catalogue;
mod export;
mod import;

pub use catalogue::{Column, Kind, Table, tables};
pub use export::{PAGE_ROWS, page};
pub use import::{Importer, import};

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::Value as Json;

use crate::{StoreError, Value};

/// Keeps a statement for the life of the program: there are a few for each table.
fn kept(sql: String) -> &'static str {
    static KEPT: LazyLock<Mutex<HashMap<String, &'static str>>> = LazyLock::new(Mutex::default);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.get(&sql) {
        return known;
    }
    let leaked: &'static str = Box::leak(sql.clone().into_boxed_str());
    kept.insert(sql, leaked);
    leaked
}

/// A row as a line of JSON, without the end of the line.
pub fn line(row: &[Value]) -> String {
    let values = row.iter().map(|value| match value {
        Value::Null => Json::Null,
        Value::Int(number) => Json::from(*number),
        Value::Text(text) => Json::from(text.as_str()),
        Value::Bytes(bytes) => Json::from(hex(bytes)),
        Value::Id(id) => Json::from(hex(id.as_bytes())),
    });
    Json::Array(values.collect()).to_string()
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    digits.map(char::from).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(high)? * 16 + digit(low)?)).collect()
}

/// Reads [`line()`] for columns of these kinds.
///
/// # Errors
/// When it is not such a row.
pub fn read_line(text: &str, kinds: &[Kind]) -> Result<Vec<Value>, StoreError> {
    let wrong = |what: String| StoreError::Decode(format!("a row of the archive: {what}"));
    let values: Vec<Json> = serde_json::from_str(text).map_err(|why| wrong(why.to_string()))?;
    if values.len() != kinds.len() {
        return Err(wrong(format!("{} values for {} columns", values.len(), kinds.len())));
    }
    let read = |(value, kind): (Json, &Kind)| {
        let read = match (value, kind) {
            (Json::Null, _) => Some(Value::Null),
            (Json::Number(number), Kind::Int) => number.as_i64().map(Value::Int),
            (Json::String(text), Kind::Text) => Some(Value::Text(text)),
            (Json::String(text), Kind::Bytes) => unhex(&text).map(Value::Bytes),
            (Json::String(text), Kind::Id) => {
                unhex(&text).and_then(|bytes| uuid::Uuid::from_slice(&bytes).ok()).map(Value::Id)
            }
            (Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_), _) => None,
        };
        read.ok_or_else(|| wrong(format!("a value that is not {kind:?}")))
    };
    values.into_iter().zip(kinds).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_read_back(number in any::<i64>(), text in ".*", bytes in any::<Vec<u8>>(), id in any::<u128>()) {
            let row = vec![
                Value::Int(number), Value::Text(text), Value::Bytes(bytes), Value::Id(uuid::Uuid::from_u128(id)), Value::Null,
            ];
            let kinds = [Kind::Int, Kind::Text, Kind::Bytes, Kind::Id, Kind::Text];
            let line = line(&row);
            prop_assert!(!line.contains('\n'));
            prop_assert_eq!(read_line(&line, &kinds).unwrap(), row);
        }

        #[test]
        fn anything_else_is_refused_without_a_panic(text in ".{0,40}") {
            prop_assert!(read_line(&text, &[Kind::Id, Kind::Bytes]).is_err());
        }
    }
}
