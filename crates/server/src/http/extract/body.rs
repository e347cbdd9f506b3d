//! JSON bodies: read with all their faults named by JSON Pointers. Unknown properties are refused; an explicit null
//! counts as absent where the contract says so.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::header::CONTENT_TYPE;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::http::ApiError;
use crate::http::idempotency::Attempt;
use crate::state::AppState;

/// A request's JSON.
pub(crate) struct JsonBody(pub(crate) Value);

/// The same for a body that may be missing altogether.
pub(crate) struct OptionalJsonBody(pub(crate) Option<Value>);

impl FromRequest<AppState> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, ApiError> {
        let OptionalJsonBody(value) = OptionalJsonBody::from_request(request, app).await?;
        value.map(Self).ok_or_else(|| ApiError::bad_request("the request needs a JSON body"))
    }
}

impl FromRequest<AppState> for OptionalJsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, ApiError> {
        let limit = app.limits.body_bytes;
        let attempt = request.extensions().get::<Arc<Attempt>>().cloned();
        let media_type = request.headers().get(CONTENT_TYPE).map(|value| value.as_bytes().to_ascii_lowercase());
        let body = Limited::new(request.into_body(), limit).collect().await.map_err(|why| {
            if why.downcast_ref::<LengthLimitError>().is_some() {
                ApiError::too_large(limit)
            } else {
                ApiError::bad_request("the request body could not be read to its end")
            }
        })?;
        let bytes = body.to_bytes();
        if let Some(attempt) = attempt {
            attempt.note_body(&[&bytes]);
        }
        if bytes.is_empty() {
            return Ok(Self(None));
        }
        let is_json = media_type.is_none_or(|text| {
            let essence = text.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
            essence == b"application/json" || essence.ends_with(b"+json")
        });
        if !is_json {
            return Err(ApiError::unsupported_media_type());
        }
        serde_json::from_slice(&bytes)
            .map(|value| Self(Some(value)))
            .map_err(|why| ApiError::bad_request(format!("the request body is not JSON: {why}")))
    }
}

/// What is wrong with a body, by place.
#[derive(Default)]
pub(crate) struct Problems(Map<String, Value>);

impl Problems {
    /// Notes what is wrong at a place.
    pub(crate) fn add(&mut self, place: &str, what: impl Into<String>) {
        let texts = self.0.entry(place.to_owned()).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(texts) = texts {
            texts.push(Value::String(what.into()));
        }
    }

    /// Ends the reading: the problems, if there are any.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        if self.0.is_empty() { Ok(()) } else { Err(ApiError::invalid(self.0)) }
    }
}

const BLANK: &str = "can't be blank";

/// A JSON object being read, with its place in the body.
#[derive(Clone)]
pub(crate) struct Object<'v> {
    place: String,
    /// `None` when the place held no object; reading on then finds nothing, without noting it again.
    map: Option<&'v Map<String, Value>>,
}

impl<'v> Object<'v> {
    /// The body itself.
    pub(crate) fn root(value: &'v Value, problems: &mut Problems) -> Self {
        Self::at(String::new(), value, problems)
    }

    /// The body's one property: an object with no other properties than these.
    pub(crate) fn wrapped(value: &'v Value, name: &str, allowed: &[&str], problems: &mut Problems) -> Self {
        let root = Self::root(value, problems);
        root.only(&[name], problems);
        let object = root.object(name, problems);
        object.only(allowed, problems);
        object
    }

    /// A value that must be an object.
    pub(crate) fn at(place: String, value: &'v Value, problems: &mut Problems) -> Self {
        let map = value.as_object();
        if map.is_none() {
            problems.add(if place.is_empty() { "/" } else { &place }, "must be an object");
        }
        Self { place, map }
    }

    /// The place of a property.
    pub(crate) fn place(&self, name: &str) -> String {
        format!("{}/{}", self.place, name.replace('~', "~0").replace('/', "~1"))
    }

    /// Refuses every property that is not listed.
    pub(crate) fn only(&self, allowed: &[&str], problems: &mut Problems) {
        for name in self.map.into_iter().flat_map(Map::keys).filter(|name| !allowed.contains(&name.as_str())) {
            problems.add(&self.place(name), format!("Unexpected field: {name}"));
        }
    }

    /// A property; an explicit null counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&'v Value> {
        self.map?.get(name).filter(|value| !value.is_null())
    }

    /// Whether a property is there, be it null.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.map.is_some_and(|map| map.contains_key(name))
    }

    fn required(&self, name: &str, problems: &mut Problems) -> Option<&'v Value> {
        let value = self.get(name);
        if value.is_none() && self.map.is_some() {
            problems.add(&self.place(name), BLANK);
        }
        value
    }

    /// A required object.
    pub(crate) fn object(&self, name: &str, problems: &mut Problems) -> Object<'v> {
        match self.required(name, problems) {
            Some(value) => Self::at(self.place(name), value, problems),
            None => Self { place: self.place(name), map: None },
        }
    }

    /// An object that may be missing.
    pub(crate) fn optional_object(&self, name: &str, problems: &mut Problems) -> Option<Object<'v>> {
        self.get(name).map(|value| Self::at(self.place(name), value, problems))
    }

    /// A required text.
    pub(crate) fn text(&self, name: &str, problems: &mut Problems) -> String {
        self.required(name, problems);
        self.optional_text(name, problems).unwrap_or_default()
    }

    /// A text that may be missing.
    pub(crate) fn optional_text(&self, name: &str, problems: &mut Problems) -> Option<String> {
        let value = self.get(name)?;
        let text = value.as_str().map(str::to_owned);
        if text.is_none() {
            problems.add(&self.place(name), "must be a string");
        }
        text
    }

    /// A UUID that may be missing.
    pub(crate) fn optional_uuid(&self, name: &str, problems: &mut Problems) -> Option<Uuid> {
        let value = self.get(name)?;
        let id = value.as_str().and_then(|text| text.parse().ok());
        if id.is_none() {
            problems.add(&self.place(name), "must be a UUID");
        }
        id
    }

    /// A required UUID.
    pub(crate) fn uuid(&self, name: &str, problems: &mut Problems) -> Uuid {
        self.required(name, problems);
        self.optional_uuid(name, problems).unwrap_or_default()
    }

    /// A required flag.
    pub(crate) fn flag(&self, name: &str, problems: &mut Problems) -> bool {
        let value = self.required(name, problems);
        let flag = value.and_then(Value::as_bool);
        if value.is_some() && flag.is_none() {
            problems.add(&self.place(name), "must be true or false");
        }
        flag.unwrap_or_default()
    }

    /// A flag that may be missing, and is false then.
    pub(crate) fn optional_flag(&self, name: &str, problems: &mut Problems) -> bool {
        self.get(name).is_some() && self.flag(name, problems)
    }

    /// A list that may be missing; its items with their places.
    pub(crate) fn list(&self, name: &str, problems: &mut Problems) -> Vec<(String, &'v Value)> {
        let Some(value) = self.get(name) else { return Vec::new() };
        let place = self.place(name);
        match value.as_array() {
            Some(items) => items.iter().enumerate().map(|(index, item)| (format!("{place}/{index}"), item)).collect(),
            None => {
                problems.add(&place, "must be a list");
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn every_fault_is_named_with_its_place() {
        let body = json!({"message": {"content": 5, "extra": 1, "mentions": "x"}, "more": true});
        let mut problems = Problems::default();
        let message = Object::wrapped(&body, "message", &["content", "mentions", "id"], &mut problems);
        message.text("content", &mut problems);
        message.list("mentions", &mut problems);
        message.uuid("id", &mut problems);
        let places: Vec<&String> = problems.0.keys().collect();
        assert_eq!(places, ["/more", "/message/extra", "/message/content", "/message/mentions", "/message/id"]);
    }

    #[test]
    fn null_counts_as_absent() {
        let body = json!({"title": null});
        let mut problems = Problems::default();
        let root = Object::root(&body, &mut problems);
        assert_eq!(root.optional_text("title", &mut problems), None);
        assert!(problems.finish().is_ok());
    }

    /// JSON of any shape, mostly with names that are asked for.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 48, 6, |inner| {
            let name = prop_oneof!["a", "b~/c", ".{0,6}"];
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::vec((name, inner), 0..6)
                    .prop_map(|properties| Value::Object(properties.into_iter().collect())),
            ]
        })
    }

    fn read_all(object: &Object<'_>, depth: usize, problems: &mut Problems) {
        object.only(&["a", "b~/c"], problems);
        for name in ["a", "b~/c"] {
            object.text(name, problems);
            object.uuid(name, problems);
            object.flag(name, problems);
            object.optional_text(name, problems);
            for (place, item) in object.list(name, problems) {
                read_all(&Object::at(place, item, problems), 0, problems);
            }
            if depth > 0 {
                read_all(&object.object(name, problems), depth - 1, problems);
            }
        }
    }

    proptest! {
        #[test]
        fn any_body_is_answered_without_a_panic(body in any_json()) {
            let mut problems = Problems::default();
            let root = Object::root(&body, &mut problems);
            read_all(&root, 3, &mut problems);
            for place in problems.0.keys() {
                prop_assert!(place.starts_with('/'), "{place}");
            }
            let _ = problems.finish();
        }
    }
}
