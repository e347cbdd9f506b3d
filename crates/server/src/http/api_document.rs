//! `/api/openapi.json`: the API as an OpenAPI 3.1 document, made of the same table as the router.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::body::{Body, Bytes};
use axum::response::Response;
use bandstand_wire::error::ErrorEnvelope;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use schemars::{Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::http::operation::{Access, Content, Noun, Operation};
use crate::http::operations;

/// Refusals of every operation that asks for a key: no key, the wrong one, what is wrong with a parameter (unknown ones are
/// refused), and what is nobody's fault but the server's.
const OF_KEYED: [u16; 6] = [401, 403, 422, 429, 500, 503];

/// The same of administration, which nobody else learns of.
const OF_ADMINISTRATION: [u16; 6] = [401, 404, 422, 429, 500, 503];

/// Refusals of every operation that takes JSON.
const OF_JSON: [u16; 3] = [400, 413, 415];

/// What each refusal means.
const REFUSALS: [(u16, &str, &str); 12] = [
    (400, "BadRequest", "It cannot be read."),
    (401, "Unauthorized", "No key, or one that opens nothing."),
    (403, "Forbidden", "The wrong kind of key, or not for this caller."),
    (404, "NotFound", "Not there, or nothing that the caller may know of."),
    (409, "Conflict", "It does not go with what is there already."),
    (413, "PayloadTooLarge", "The body is larger than this server takes."),
    (415, "UnsupportedMediaType", "The body is not JSON."),
    (416, "RangeNotSatisfiable", "The range starts beyond the file's end."),
    (422, "Unprocessable", "It can be read and is wrong; `details` names each faulty place by its JSON Pointer."),
    (
        429,
        "TooManyRequests",
        "Too many requests with this key, or unknown keys from this address; `Retry-After` says how long to wait.",
    ),
    (500, "InternalError", "A fault of the server; the request id tells its operator more."),
    (503, "Unavailable", "Nothing was done; the same request may succeed later."),
];

/// The document as it is served.
static SERVED: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(document().to_string()));

/// `GET /api/openapi.json`.
pub(crate) async fn serve() -> Response {
    let mut response = Response::new(Body::from(SERVED.clone()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The whole API as an OpenAPI 3.1 document.
pub fn document() -> Value {
    let operations = operations::all();
    let mut schemas = Schemas::default();
    let mut paths = Map::new();
    let mut tags: Vec<&str> = Vec::new();
    for operation in &operations {
        if !tags.contains(&operation.tag) {
            tags.push(operation.tag);
        }
        let described = describe(operation, &operations, &mut schemas);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.to_lowercase()] = described;
    }
    let error = schemas.of_reply(|generator| generator.subschema_for::<ErrorEnvelope>());
    let responses: Map<String, Value> = REFUSALS
        .iter()
        .map(|(_, name, meaning)| {
            ((*name).to_owned(), json!({"description": meaning, "content": json_content(&error)}))
        })
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Bandstand",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Rooms in which agents and people work together. The real-time API, Phoenix channels at \
                `/api/v1/socket/websocket`, is not part of this document.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": tags.iter().map(|tag| json!({"name": tag})).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "securitySchemes": {
                "AgentKey": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The key of an agent."},
                "UserKey": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The key of a user."},
                "UserToken": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "A token of a user: \
                    one that this server issued for a key, or one of the configured OpenID Connect issuer."},
            },
            "responses": responses,
            "schemas": schemas.finish(),
        },
    })
}

/// Collects the schemas that operations refer to. What is read and what is written differ: a property that may be missing
/// from a request is there, as null, in a reply.
struct Schemas {
    requests: SchemaGenerator,
    replies: SchemaGenerator,
}

impl Default for Schemas {
    fn default() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "#/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            requests: settings().for_deserialize().into_generator(),
            replies: settings().for_serialize().into_generator(),
        }
    }
}

impl Schemas {
    fn of_request(&mut self, of: impl FnOnce(&mut SchemaGenerator) -> Schema) -> Value {
        of(&mut self.requests).to_value()
    }

    fn of_reply(&mut self, of: impl FnOnce(&mut SchemaGenerator) -> Schema) -> Value {
        of(&mut self.replies).to_value()
    }

    /// All of them by name. A test looks that no name means two things.
    fn finish(mut self) -> BTreeMap<String, Value> {
        let requests = self.requests.take_definitions(true);
        requests.into_iter().chain(self.replies.take_definitions(true)).collect()
    }
}

fn json_content(schema: &Value) -> Value {
    json!({"application/json": {"schema": schema}})
}

fn describe(operation: &Operation, all: &[Operation], schemas: &mut Schemas) -> Value {
    let mut described = Map::new();
    let mut set = |key: &str, value: Value| described.insert(key.to_owned(), value);
    set("operationId", json!(operation.id));
    set("tags", json!([operation.tag]));
    set("summary", json!(operation.summary));
    if !operation.description.is_empty() {
        set("description", json!(operation.description));
    }
    match operation.access {
        Access::Anybody => set("security", json!([])),
        Access::Agent => set("security", json!([{"AgentKey": []}])),
        Access::UserKey => set("security", json!([{"UserKey": []}])),
        Access::User | Access::Administrator => set("security", json!([{"UserKey": []}, {"UserToken": []}])),
    };
    let parameters = parameters(operation);
    if !parameters.is_empty() {
        set("parameters", Value::Array(parameters));
    }
    if let Some(body) = &operation.body {
        let content = match body.content {
            Content::Json(of) => json_content(&schemas.of_request(of)),
            Content::Bytes(media_type) => bytes(media_type),
            Content::None => json!({}),
        };
        set("requestBody", json!({"required": body.required, "content": content}));
    }
    set("responses", responses(operation, all, schemas));
    Value::Object(described)
}

fn bytes(media_type: &str) -> Value {
    json!({media_type: {"schema": {"type": "string", "format": "binary"}}})
}

fn parameters(operation: &Operation) -> Vec<Value> {
    let in_path = operation.path_parameters().into_iter().map(|(name, _)| {
        let own = operation.parameters.iter().find(|one| one.place == "path" && one.name == name);
        let schema = own.map_or_else(|| json!({"type": "string", "format": "uuid"}), |one| one.schema.clone());
        let mut parameter = json!({"in": "path", "name": name, "required": true, "schema": schema});
        if let Some(own) = own {
            parameter["description"] = json!(own.description);
        }
        parameter
    });
    let others = operation.parameters.iter().filter(|one| one.place != "path").map(|one| {
        let mut parameter = json!({"in": one.place, "name": one.name, "description": one.description});
        if one.required {
            parameter["required"] = json!(true);
        }
        if one.deprecated {
            parameter["deprecated"] = json!(true);
        }
        parameter["schema"] = one.schema.clone();
        parameter
    });
    in_path.chain(others).collect()
}

fn responses(operation: &Operation, all: &[Operation], schemas: &mut Schemas) -> Value {
    let mut responses: BTreeMap<u16, Value> = BTreeMap::new();
    let common: &[u16] = match operation.access {
        Access::Anybody => &[],
        Access::Agent | Access::User | Access::UserKey => &OF_KEYED,
        Access::Administrator => &OF_ADMINISTRATION,
    };
    let of_body: &[u16] = match operation.body.map(|body| body.content) {
        Some(Content::Json(_)) => &OF_JSON,
        _ => &[],
    };
    for status in common.iter().chain(of_body).chain(operation.errors) {
        if let Some((_, name, _)) = REFUSALS.iter().find(|(known, ..)| known == status) {
            responses.insert(*status, json!({"$ref": format!("#/components/responses/{name}")}));
        }
    }
    let links = links(operation, all);
    for reply in &operation.replies {
        let mut response = json!({"description": meaning(reply.status)});
        match reply.content {
            Content::Json(of) => response["content"] = json_content(&schemas.of_reply(of)),
            Content::Bytes(media_type) => response["content"] = bytes(media_type),
            Content::None => {}
        }
        if matches!(reply.content, Content::Json(_)) && !links.is_empty() {
            response["links"] = Value::Object(links.clone());
        }
        responses.insert(reply.status, response);
    }
    responses.into_iter().map(|(status, response)| (status.to_string(), response)).collect::<Map<_, _>>().into()
}

fn meaning(status: u16) -> &'static str {
    match status {
        201 => "Created.",
        202 => "Accepted.",
        204 => "Nothing.",
        206 => "A part.",
        503 => "Not now.",
        _ => "Done.",
    }
}

/// What can be done with the ids in an operation's reply: every operation of the same callers whose path ends its ids with
/// one of that kind. The ids before it come from the request's own path.
fn links(operation: &Operation, all: &[Operation]) -> Map<String, Value> {
    let mut links = Map::new();
    for (noun, pointer) in &operation.yields {
        for target in all.iter().filter(|target| target.access == operation.access && target.id != operation.id) {
            if let Some(parameters) = filled(operation, target, *noun, pointer) {
                links.insert(target.id.to_owned(), json!({"operationId": target.id, "parameters": parameters}));
            }
        }
    }
    links
}

fn filled(from: &Operation, target: &Operation, noun: Noun, pointer: &str) -> Option<Map<String, Value>> {
    let wanted = target.path_parameters();
    let ((last, last_noun), before) = wanted.split_last()?;
    if *last_noun != Some(noun) {
        return None;
    }
    let own = from.path_parameters();
    let mut parameters = Map::new();
    for (name, noun) in before {
        let (given, _) = own.iter().find(|(_, of)| of.is_some() && of == noun)?;
        parameters.insert(format!("path.{name}"), json!(format!("$request.path.{given}")));
    }
    parameters.insert(format!("path.{last}"), json!(format!("$response.body#{pointer}")));
    Some(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_name_means_two_things() {
        let mut schemas = Schemas::default();
        let operations = operations::all();
        for operation in &operations {
            describe(operation, &operations, &mut schemas);
        }
        let requests = schemas.requests.take_definitions(true);
        let replies = schemas.replies.take_definitions(true);
        for (name, schema) in requests.iter().chain(&replies) {
            assert!(requests.get(name).is_none_or(|other| other == schema), "{name} is two schemas");
            assert!(!name.ends_with(char::is_numeric), "{name} is two types of one name");
        }
    }

    #[test]
    fn every_operation_is_told_of_in_full() {
        let operations = operations::all();
        let ids: BTreeSet<&str> = operations.iter().map(|operation| operation.id).collect();
        assert_eq!(ids.len(), operations.len(), "an id is there twice");
        for operation in &operations {
            let id = operation.id;
            assert!(!operation.summary.is_empty() && !operation.tag.is_empty(), "{id} has no summary");
            assert!(!operation.replies.is_empty(), "{id} has no reply");
            let known = |status: &u16| REFUSALS.iter().any(|(known, ..)| known == status);
            assert!(operation.errors.iter().all(known), "{id} refuses with a status that nobody explains");
            let names: BTreeSet<_> = operation.parameters.iter().map(|one| (one.place, one.name)).collect();
            assert_eq!(names.len(), operation.parameters.len(), "{id} has a parameter twice");
            for one in operation.parameters.iter().filter(|one| one.place == "path") {
                let in_path = operation.path_parameters();
                assert!(in_path.iter().any(|(name, _)| *name == one.name), "{id} has no {} in its path", one.name);
            }
        }
    }
}
