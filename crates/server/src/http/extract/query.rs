//! Query parameters: read with all their faults named at once. Unknown ones are refused, as the platform does.

use std::borrow::Cow;

use axum::extract::FromRequestParts;
use hyper::http::request::Parts;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::http::ApiError;

/// The parameters of one request.
pub(crate) struct Query<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    problems: Map<String, Value>,
}

impl<'a> Query<'a> {
    /// Takes the raw query apart; whatever is not in `allowed` is a problem.
    pub(crate) fn new(raw: Option<&'a str>, allowed: &[&str]) -> Self {
        let pairs: Vec<_> = form_urlencoded::parse(raw.unwrap_or_default().as_bytes()).collect();
        let mut query = Self { pairs, problems: Map::new() };
        let unknown: Vec<String> =
            query.pairs.iter().map(|(key, _)| key.to_string()).filter(|key| !known(key, allowed)).collect();
        for key in unknown {
            query.problem(&pointer(&key), format!("Unexpected field: {key}"));
        }
        query
    }

    /// Notes what is wrong at a place.
    pub(crate) fn problem(&mut self, place: &str, what: impl Into<String>) {
        let texts = self.problems.entry(place.to_owned()).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(texts) = texts {
            texts.push(Value::String(what.into()));
        }
    }

    /// A parameter as text; the last one where it is repeated.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.pairs.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_ref())
    }

    /// A parameter as text that may not be left out.
    pub(crate) fn required_text(&mut self, name: &str) -> String {
        let text = self.text(name).unwrap_or_default().to_owned();
        if text.is_empty() {
            self.problem(&format!("/{name}"), "can't be blank");
        }
        text
    }

    /// Whether a parameter is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.text(name).is_some()
    }

    /// A parameter read by `read`, which knows what it must be.
    pub(crate) fn parsed<T>(&mut self, name: &str, must: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.text(name)?;
        let value = read(text);
        if value.is_none() {
            self.problem(&format!("/{name}"), must);
        }
        value
    }

    /// A UUID.
    pub(crate) fn uuid(&mut self, name: &str) -> Option<Uuid> {
        self.parsed(name, "must be a UUID", |text| text.parse().ok())
    }

    /// `true` or `false`.
    pub(crate) fn flag(&mut self, name: &str) -> Option<bool> {
        self.parsed(name, "must be true or false", |text| text.parse().ok())
    }

    /// A whole number of 1 or more; above `max` it is brought down to it.
    pub(crate) fn count(&mut self, name: &str, max: i64) -> Option<i64> {
        let count = self.parsed(name, "must be a whole number of 1 or more", |text| {
            // A number too large for the machine is above the maximum all the same.
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = if digits { text.parse().unwrap_or(i64::MAX) } else { 0 };
            (number >= 1).then_some(number)
        })?;
        Some(count.min(max))
    }

    /// A list: comma-separated without spaces, repeated, or both (also with `name[]`). Each item is read by `read`; a bad one is
    /// named by its place in the list.
    pub(crate) fn list<T>(&mut self, name: &str, must: &str, read: impl Fn(&str) -> Option<T>) -> Vec<T> {
        let bracketed = format!("{name}[]");
        let items: Vec<String> = self
            .pairs
            .iter()
            .filter(|(key, _)| key == name || *key == bracketed)
            .flat_map(|(_, value)| value.split(',').map(str::to_owned).collect::<Vec<_>>())
            .filter(|item| !item.is_empty())
            .collect();
        let mut values = Vec::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            match read(item) {
                Some(value) => values.push(value),
                None => self.problem(&format!("/{name}/{place}"), must),
            }
        }
        values
    }

    /// Ends the reading: the problems, if there are any.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        if self.problems.is_empty() { Ok(()) } else { Err(ApiError::invalid(self.problems)) }
    }
}

/// A request without query parameters. It stands behind the caller, so that a stranger learns of no parameter.
pub(crate) struct NoQuery;

impl<S: Sync> FromRequestParts<S> for NoQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Query::new(parts.uri.query(), &[]).finish().map(|()| Self)
    }
}

fn known(key: &str, allowed: &[&str]) -> bool {
    allowed.contains(&key) || key.strip_suffix("[]").is_some_and(|bare| allowed.contains(&bare))
}

/// A name as a JSON Pointer.
fn pointer(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_fault_is_named_with_its_place() {
        let mut query = Query::new(Some("page=0&who=x&include=participants,nope&include=last"), &["page", "include"]);
        assert_eq!(query.count("page", 100), None);
        let known = query.list("include", "is unknown", |item| (item == "participants").then_some(()));
        assert_eq!(known.len(), 1);
        let places: Vec<&String> = query.problems.keys().collect();
        assert_eq!(places, ["/who", "/page", "/include/1", "/include/2"]);
        assert!(query.finish().is_err());
    }

    #[test]
    fn a_count_above_the_maximum_comes_down_to_it() {
        let mut query = Query::new(Some("limit=99999999999999999999999&page=7"), &["limit", "page"]);
        assert_eq!(query.count("limit", 100), Some(100));
        assert_eq!(query.count("page", 100), Some(7));
        assert!(query.finish().is_ok());
    }

    proptest! {
        #[test]
        fn any_query_is_answered_without_a_panic(raw in ".{0,60}") {
            let mut query = Query::new(Some(&raw), &["a"]);
            query.count("a", 10);
            query.uuid("a");
            query.list("a", "no", |_| None::<()>);
            let _ = query.finish();
        }
    }
}
