//! The settings file: flat TOML, each key with its line.

use toml::de::{DeTable, DeValue};

/// One line of the file.
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: usize,
    /// The value as flags and environment would write it, or why it cannot be one.
    pub(super) text: Result<String, String>,
}

/// Where the file is no TOML.
pub(super) struct SyntaxError {
    pub(super) line: usize,
    pub(super) problem: String,
}

/// Reads the file's entries in the order of their lines.
pub(super) fn parse(text: &str) -> Result<Vec<Entry>, SyntaxError> {
    let table = DeTable::parse(text).map_err(|error| SyntaxError {
        line: error.span().map_or(1, |span| line_of(text, span.start)),
        problem: error.message().to_owned(),
    })?;
    let mut entries: Vec<Entry> = table
        .into_inner()
        .into_iter()
        .map(|(key, value)| Entry {
            line: line_of(text, key.span().start),
            key: key.into_inner().into_owned(),
            text: text_of(value.into_inner()),
        })
        .collect();
    entries.sort_by_key(|entry| entry.line);
    Ok(entries)
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

fn text_of(value: DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.into_owned()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        DeValue::Boolean(value) => Ok(value.to_string()),
        DeValue::Table(_) => Err("is a section; settings stand at the top level, without sections".to_owned()),
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Array(_) => {
            Err("must be a text, a whole number, true or false".to_owned())
        }
    }
}
