//! The contract as an oracle: every reply of every test is held against `openapi.json`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::{Draft, Validator};
use serde_json::{Value, json};

use super::Reply;

/// The one copy, which the clients' suite reads as well.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../compat/openapi.json");
    let text = std::fs::read_to_string(path).unwrap_or_else(|why| panic!("{path}: {why}"));
    serde_json::from_str(&text).expect("the contract is JSON")
});

/// Routes of ours that the contract does not have. Their errors look like all others.
const OWN: [(&str, &str); 7] = [
    ("GET", "/api/v1/agent/chats/{chat_id}/messages/{id}/deliveries"),
    ("GET", "/api/v1/me/chats/{chat_id}/messages/{id}/deliveries"),
    ("POST", "/api/v1/me/chats/{id}/archive"),
    ("POST", "/api/v1/me/chats/{id}/unarchive"),
    ("GET", "/api/v1/test"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
];

/// For the machine, not for clients: no request id.
const HEALTH: [&str; 2] = ["/healthz", "/readyz"];

/// Refusals of the upgrade have a form of their own; the stories about sockets look at them.
const SOCKET: &str = "/api/v1/socket";

/// Administration is ours alone.
const ADMIN: &str = "/api/v1/admin";

/// Panics unless the contract allows this reply.
pub(crate) fn check(reply: &Reply) {
    let path = reply.path.split('?').next().unwrap_or_default();
    if path.starts_with(SOCKET) || HEALTH.contains(&path) {
        return;
    }
    check_request_id(reply);
    if path.starts_with(ADMIN)
        || OWN.iter().any(|(method, template)| *method == reply.method && matches(template, path).is_some())
    {
        if reply.status >= 400 {
            validate(reply, "an error", &json!({"$ref": "#/components/schemas/Error"}));
        }
        return;
    }
    let Some(template) = template(path) else {
        assert!(matches!(reply.status, 404 | 405), "a path that the contract does not have is served: {reply:?}");
        return validate(reply, "an error", &json!({"$ref": "#/components/schemas/Error"}));
    };
    let operation = &DOCUMENT["paths"][template][reply.method.to_lowercase()];
    if operation.is_null() {
        assert_eq!(reply.status, 405, "a method that the contract does not have is served: {reply:?}");
        return validate(reply, "an error", &json!({"$ref": "#/components/schemas/Error"}));
    }
    match &operation["responses"][reply.status.to_string()] {
        Value::Null => {
            let any = DOCUMENT["x-any-operation"].as_array().expect("the statuses that any operation may answer");
            assert!(any.contains(&json!(reply.status)), "the status is not declared: {reply:?}");
            validate(reply, "an error", &json!({"$ref": "#/components/schemas/Error"}));
        }
        declared => {
            let declared = match declared["$ref"].as_str() {
                Some(at) => DOCUMENT.pointer(at.trim_start_matches('#')).expect("a declared response"),
                None => declared,
            };
            match &declared["content"]["application/json"]["schema"] {
                Value::Null => assert!(reply.body.is_none(), "a body where none is declared: {reply:?}"),
                schema => validate(reply, &format!("{} {template} {}", reply.method, reply.status), schema),
            }
        }
    }
}

/// Every reply has an id; every error has a body, with the same id.
fn check_request_id(reply: &Reply) {
    let header = reply.header("x-request-id").unwrap_or_else(|| panic!("no request id: {reply:?}"));
    if reply.status >= 400 {
        let body = reply.body.as_ref().unwrap_or_else(|| panic!("an error without a body: {reply:?}"));
        assert_eq!(body["error"]["request_id"], header, "two request ids: {reply:?}");
    }
}

/// The contract's path that this is.
fn template(path: &str) -> Option<&'static str> {
    let paths = DOCUMENT["paths"].as_object().expect("paths");
    // The one with the fewest parameters wins: `/next` is no message id.
    paths
        .keys()
        .filter_map(|template| Some((matches(template, path)?, template.as_str())))
        .min()
        .map(|(_, found)| found)
}

/// How many parameters of the template the path fills in, if it fits.
fn matches(template: &str, path: &str) -> Option<usize> {
    let (mut wanted, mut given) = (template.split('/'), path.split('/'));
    let mut parameters = 0;
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(parameters),
            (Some(wanted), Some(given)) if wanted.starts_with('{') && !given.is_empty() => parameters += 1,
            (Some(wanted), Some(given)) if wanted == given => {}
            _ => return None,
        }
    }
}

fn validate(reply: &Reply, name: &str, schema: &Value) {
    let media_type = reply.header("content-type").unwrap_or_default();
    assert_eq!(media_type, "application/json", "{reply:?}");
    let body = reply.body.as_ref().unwrap_or_else(|| panic!("no body: {reply:?}"));
    let faults: Vec<String> =
        validator(name, schema).iter_errors(body).map(|fault| format!("{} {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "the reply is not what the contract says ({name}):\n{}\n{reply:?}", faults.join("\n"));
}

/// The compiled schema; each is compiled once.
fn validator(name: &str, schema: &Value) -> Arc<Validator> {
    static COMPILED: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap();
    Arc::clone(compiled.entry(name.to_owned()).or_insert_with(|| {
        let whole = json!({"allOf": [schema], "components": DOCUMENT["components"]});
        let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
        Arc::new(options.build(&whole).unwrap_or_else(|why| panic!("{name}: {why}")))
    }))
}
