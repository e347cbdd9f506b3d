//! Two oracles: every reply of every test is held against the contract, and against our own document. The latter is
//! taken strictly: a property that it does not name may not be there.

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

/// What the server tells of itself.
static OWN: LazyLock<Value> = LazyLock::new(|| {
    let mut document = bandstand_server::http::api_document();
    close(&mut document);
    document
});

/// Refuses in every schema what it does not name.
fn close(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(close);
            if map.get("properties").is_some_and(Value::is_object) && !map.contains_key("additionalProperties") {
                map.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// For the machine, not for clients: no request id.
const HEALTH: [&str; 2] = ["/healthz", "/readyz"];

/// Refusals of the upgrade have a form of their own; the stories about sockets look at them.
const SOCKET: &str = "/api/v1/socket";

/// Panics unless the contract and our own document allow this reply.
pub(crate) fn check(reply: &Reply) {
    let path = reply.path.split('?').next().unwrap_or_default();
    if path.starts_with(SOCKET) {
        return;
    }
    if !HEALTH.contains(&path) {
        check_request_id(reply);
    }
    let Some((operation, name)) = called(&OWN, reply, path) else {
        assert!(matches!(reply.status, 404 | 405), "what the API document does not have is served: {reply:?}");
        return validate(&DOCUMENT, reply, "an error", &json!({"$ref": "#/components/schemas/Error"}));
    };
    let declared = &operation["responses"][reply.status.to_string()];
    assert!(declared.is_object(), "the status is not in the API document: {reply:?}");
    check_body(&OWN, reply, &format!("own {name}"), declared);
    // Routes of our own are not in the contract; `api_document.rs` compares the two documents and knows them all.
    let Some((operation, name)) = called(&DOCUMENT, reply, path) else { return };
    match &operation["responses"][reply.status.to_string()] {
        Value::Null => {
            let any = DOCUMENT["x-any-operation"].as_array().expect("the statuses that any operation may answer");
            assert!(any.contains(&json!(reply.status)), "the status is not declared: {reply:?}");
            validate(&DOCUMENT, reply, "an error", &json!({"$ref": "#/components/schemas/Error"}));
        }
        declared => check_body(&DOCUMENT, reply, &name, declared),
    }
}

/// The operation that was called, and how it is named with the reply's status; `None` when the document has none such.
fn called<'d>(document: &'d Value, reply: &Reply, path: &str) -> Option<(&'d Value, String)> {
    let template = template(document, path)?;
    let operation = &document["paths"][template][reply.method.to_lowercase()];
    operation.is_object().then(|| (operation, format!("{} {template} {}", reply.method, reply.status)))
}

fn check_body(document: &'static Value, reply: &Reply, name: &str, declared: &Value) {
    let declared = match declared["$ref"].as_str() {
        Some(at) => document.pointer(at.trim_start_matches('#')).expect("a declared response"),
        None => declared,
    };
    match &declared["content"]["application/json"]["schema"] {
        Value::Null => assert!(reply.body.is_none(), "a body where none is declared: {reply:?}"),
        schema => validate(document, reply, name, schema),
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

/// The document's path that this is.
fn template<'d>(document: &'d Value, path: &str) -> Option<&'d str> {
    let paths = document["paths"].as_object().expect("paths");
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

fn validate(document: &Value, reply: &Reply, name: &str, schema: &Value) {
    let media_type = reply.header("content-type").unwrap_or_default();
    assert_eq!(media_type, "application/json", "{reply:?}");
    let body = reply.body.as_ref().unwrap_or_else(|| panic!("no body: {reply:?}"));
    let faults: Vec<String> = validator(document, name, schema)
        .iter_errors(body)
        .map(|fault| format!("{} {fault}", fault.instance_path()))
        .collect();
    assert!(faults.is_empty(), "the reply is not what the contract says ({name}):\n{}\n{reply:?}", faults.join("\n"));
}

/// The compiled schema; each is compiled once.
fn validator(document: &Value, name: &str, schema: &Value) -> Arc<Validator> {
    static COMPILED: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap();
    Arc::clone(compiled.entry(name.to_owned()).or_insert_with(|| {
        let whole = json!({"allOf": [schema], "components": document["components"]});
        let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
        Arc::new(options.build(&whole).unwrap_or_else(|why| panic!("{name}: {why}")))
    }))
}
