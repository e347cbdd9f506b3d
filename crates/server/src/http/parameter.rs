//! Parameters of operations, as the API document tells of them.

use bandstand_wire::rest::words::Words;
use serde_json::{Map, Value, json};

use crate::http::extract::page::MAX;

/// A parameter of a query, a header or a path.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    /// `query`, `header` or `path`.
    pub(crate) place: &'static str,
    /// Its name.
    pub(crate) name: &'static str,
    /// What it is for.
    pub(crate) description: &'static str,
    /// Whether it may not be left out.
    pub(crate) required: bool,
    /// Whether something better took its place.
    pub(crate) deprecated: bool,
    /// What it may be.
    pub(crate) schema: Value,
}

fn query(name: &'static str, description: &'static str, schema: Value) -> Parameter {
    Parameter { place: "query", name, description, required: false, deprecated: false, schema }
}

impl Parameter {
    /// It may not be left out.
    pub(crate) fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// What counts when it is left out.
    pub(crate) fn default(mut self, value: impl Into<Value>) -> Self {
        if let Value::Object(schema) = &mut self.schema {
            schema.insert("default".to_owned(), value.into());
        }
        self
    }
}

/// Any text.
pub(crate) fn text(name: &'static str, description: &'static str) -> Parameter {
    query(name, description, json!({"type": "string"}))
}

/// A UUID.
pub(crate) fn uuid(name: &'static str, description: &'static str) -> Parameter {
    query(name, description, json!({"type": "string", "format": "uuid"}))
}

/// A moment.
pub(crate) fn moment(name: &'static str, description: &'static str) -> Parameter {
    query(name, description, json!({"type": "string", "format": "date-time"}))
}

/// `true` or `false`.
pub(crate) fn flag(name: &'static str, description: &'static str) -> Parameter {
    query(name, description, json!({"type": "boolean"}))
}

/// A word of a list.
pub(crate) fn word<W: Words>(name: &'static str, description: &'static str) -> Parameter {
    query(name, description, json!({"type": "string", "enum": W::WORDS}))
}

/// Some words of a list; comma-separated or repeated.
pub(crate) fn words(name: &'static str, description: &'static str, of: &[&str]) -> Parameter {
    query(name, description, json!({"type": "array", "items": {"type": "string", "enum": of}}))
}

fn count(name: &'static str, description: &'static str, max: Option<i64>, default: i64) -> Parameter {
    let mut schema = Map::from_iter([
        ("type".to_owned(), json!("integer")),
        ("minimum".to_owned(), json!(1)),
        ("default".to_owned(), json!(default)),
    ]);
    if let Some(max) = max {
        schema.insert("maximum".to_owned(), json!(max));
    }
    query(name, description, Value::Object(schema))
}

/// A list in numbered pages.
pub(crate) fn numbered(rows: i64) -> Vec<Parameter> {
    numbered_up_to(rows, MAX)
}

fn numbered_up_to(rows: i64, max: i64) -> Vec<Parameter> {
    vec![
        count("page", "Which page.", None, 1),
        count("page_size", "Rows a page; more than the maximum is brought down to it.", Some(max), rows),
    ]
}

/// A list that is walked by cursors.
pub(crate) fn cursor(rows: i64) -> Vec<Parameter> {
    vec![
        text("cursor", "Where the page before ended: its `next_cursor`. It belongs to a list with the same filters."),
        count("limit", "Rows a page; more than the maximum is brought down to it.", Some(MAX), rows),
    ]
}

/// A list that is walked by cursors, and has numbered pages for older clients.
pub(crate) fn cursor_or_numbered(rows: i64) -> Vec<Parameter> {
    cursor_or_numbered_up_to(rows, MAX)
}

/// The same where numbered pages are shorter.
pub(crate) fn cursor_or_numbered_up_to(rows: i64, max: i64) -> Vec<Parameter> {
    let numbered = numbered_up_to(rows, max).into_iter().map(|one| Parameter { deprecated: true, ..one });
    cursor(rows).into_iter().chain(numbered).collect()
}

/// A header.
pub(crate) fn header(name: &'static str, description: &'static str, required: bool, schema: Value) -> Parameter {
    Parameter { place: "header", name, description, required, deprecated: false, schema }
}

/// A part of the path that is no plain UUID.
pub(crate) fn path(name: &'static str, description: &'static str) -> Parameter {
    let schema = json!({"type": "string"});
    Parameter { place: "path", name, description, required: true, deprecated: false, schema }
}

/// The key of a request that is to happen once.
pub(crate) fn idempotency_key() -> Parameter {
    let description = "Sent again with the same key and body, the request happens once and is answered as the first time, \
                       with `Idempotent-Replayed: true`. With another body: 422 `idempotency_key_reused`.";
    let schema = json!({"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[\\x21-\\x7e]+$"});
    header("Idempotency-Key", description, false, schema)
}
