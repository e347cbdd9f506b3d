//! The API document's requests against the code that reads them by hand: what is declared is taken, and nothing else is.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use bandstand_server::http::api_document;
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::support::{Caller, Reply, TestApp, stories};

stories!(bodies_are_read_as_declared, parameters_are_read_as_declared);

static DOCUMENT: LazyLock<Value> = LazyLock::new(api_document);

/// An operation that takes parameters or a body.
struct Declared {
    method: Method,
    path: String,
    operation: Value,
    caller: Caller,
}

/// Names nobody's thing: what is wrong with a request is told before anything is looked up.
const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

async fn declared(app: &TestApp) -> Vec<Declared> {
    let (user, agent) = (app.owner(), app.agent("reader").await);
    let mut all = Vec::new();
    for (path, methods) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let caller =
                match operation["security"][0].as_object().and_then(|key| key.keys().next()).map(String::as_str) {
                    Some("AgentKey") => agent.clone(),
                    Some("UserKey") => user.clone(),
                    _ => continue,
                };
            let parts = path.split('/').map(|part| if part.starts_with('{') { NOBODY } else { part });
            all.push(Declared {
                method: method.to_uppercase().parse().unwrap(),
                path: parts.collect::<Vec<_>>().join("/"),
                operation: operation.clone(),
                caller,
            });
        }
    }
    all
}

impl Declared {
    async fn send(&self, query: &str, body: Option<&Value>) -> Reply {
        let headers = [("x-api-key", self.caller.key.as_str()), ("content-type", "application/json")];
        let body = body.map(|body| body.to_string().into_bytes());
        self.caller.app.request(self.method.clone(), &format!("{}{query}", self.path), &headers, body).await
    }

    fn name(&self) -> &str {
        self.operation["operationId"].as_str().unwrap()
    }
}

/// Every name of a property or parameter that either document knows, and one that none does.
fn vocabulary() -> BTreeSet<String> {
    fn names(value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                into.extend(map.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned());
                into.extend(map.get("in").and(map.get("name")).and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|value| names(value, into));
            }
            Value::Array(items) => items.iter().for_each(|value| names(value, into)),
            _ => {}
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../compat/openapi.json");
    let contract: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut all = BTreeSet::from(["nobody_knows_this".to_owned()]);
    names(&contract, &mut all);
    names(&DOCUMENT, &mut all);
    all
}

/// The places that a reply complains of; empty unless it says that the request is wrong.
fn complaints(reply: &Reply) -> BTreeSet<String> {
    let details = reply.body.as_ref().and_then(|body| body["error"]["details"].as_object());
    let refused = matches!(reply.status, 400 | 422);
    details.filter(|_| refused).into_iter().flat_map(Map::keys).cloned().collect()
}

fn resolved(schema: &Value) -> Value {
    let mut schema = schema.clone();
    while let Some(at) = schema["$ref"].as_str() {
        schema = DOCUMENT.pointer(at.trim_start_matches('#')).unwrap().clone();
    }
    // A thing or null is that thing, for what follows.
    let options = schema["anyOf"].as_array().cloned().unwrap_or_default();
    if !schema["properties"].is_object()
        && let Some(option) = options.iter().find(|option| option["type"] != "null")
    {
        let mut option = resolved(option);
        option["x-null"] = json!(options.iter().any(|option| option["type"] == "null"));
        return option;
    }
    schema
}

fn types(schema: &Value) -> Vec<String> {
    let mut types: Vec<String> = match &schema["type"] {
        Value::String(one) => vec![one.clone()],
        Value::Array(several) => several.iter().map(|one| one.as_str().unwrap().to_owned()).collect(),
        _ => Vec::new(),
    };
    if schema["x-null"] == true {
        types.push("null".to_owned());
    }
    types
}

/// A value that a schema allows, with all that may be there.
fn example(schema: &Value) -> Value {
    let schema = resolved(schema);
    if let Some(words) = schema["enum"].as_array() {
        return words[0].clone();
    }
    match types(&schema).first().map(String::as_str) {
        Some("object") => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            Value::Object(properties.map(|(name, schema)| (name.clone(), example(schema))).collect())
        }
        Some("array") => json!([example(&schema["items"])]),
        Some("boolean") => json!(true),
        Some("integer") => json!(1),
        Some("string") if schema["format"] == "uuid" => json!(NOBODY),
        Some("string") => json!("some words"),
        _ => json!("anything"),
    }
}

/// All objects and values of a schema, with their places in [`example`].
fn places(schema: &Value, place: &str, into: &mut Vec<(String, Value)>) {
    let schema = resolved(schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        places(property, &format!("{place}/{name}"), into);
    }
    if schema["items"].is_object() {
        places(&schema["items"], &format!("{place}/0"), into);
    }
    into.push((place.to_owned(), schema));
}

fn with(body: &Value, place: &str, value: Value) -> Value {
    let mut body = body.clone();
    *body.pointer_mut(place).unwrap() = value;
    body
}

/// What no example can know: these need a value of their own to be right.
fn corrected(operation: &str, mut body: Value) -> Value {
    match operation {
        // A tool's name goes with a tool.
        "reportAgentChatActivity" => body["activity"]["kind"] = json!("tool_call"),
        "createAgentMemory" => body["memory"]["type"] = json!("iconic"),
        "addUser" => body["user"]["handle"] = json!("somebody-new"),
        "addAgent" => {
            body["agent"] =
                json!({"name": "Another", "description": "A second one", "owner": "olga", "is_global": true})
        }
        "createChatTask" => body["supersedes_id"] = json!("1"),
        "sendMyChatMessage" | "createAgentChatMessage" => body["message"]["mentions"][0]["kind"] = json!("mention"),
        _ => {}
    }
    for place in ["/handle", "/contact_request/recipient_handle"] {
        if let Some(handle) = body.pointer_mut(place) {
            *handle = json!("nobody-has-this");
        }
    }
    body
}

async fn bodies_are_read_as_declared(app: TestApp) {
    let vocabulary = vocabulary();
    let mut checked = 0;
    for one in declared(&app).await {
        let declared = &one.operation["requestBody"];
        let schema = &declared["content"]["application/json"]["schema"];
        if !schema.is_object() {
            continue;
        }
        checked += 1;
        let good = corrected(one.name(), example(schema));
        let reply = one.send("", Some(&good)).await;
        assert!(complaints(&reply).is_empty(), "what is declared is refused: {good} {reply:?}");
        let left_out = one.send("", None).await;
        assert_eq!(left_out.status == 400, declared["required"] == true, "the body is left out: {left_out:?}");
        let mut all = Vec::new();
        places(schema, "", &mut all);
        for (place, schema) in all {
            check_place(&one, &good, &place, &schema, &vocabulary).await;
        }
    }
    assert!(checked > 15, "only {checked} operations take a body");
}

/// Properties that may be missing, but not beside what the example says: a tool call names its tool.
const NEEDED_BESIDE: [(&str, &str); 1] = [("reportAgentChatActivity", "/activity/name")];

async fn check_place(one: &Declared, good: &Value, place: &str, schema: &Value, vocabulary: &BTreeSet<String>) {
    let refused = async |value: Value, why: &str| {
        let body = if place.is_empty() { value } else { with(good, place, value) };
        let reply = one.send("", Some(&body)).await;
        assert!(matches!(reply.status, 400 | 422), "{place} {why} is taken: {body} {reply:?}");
        complaints(&reply)
    };
    // What has no type takes anything.
    let types = types(schema);
    let wrong = [
        ("object", json!({})),
        ("array", json!([])),
        ("string", json!("x")),
        ("boolean", json!(true)),
        ("number", json!(5)),
    ];
    let fits = |kind: &str| types.iter().any(|of| of == kind || (of == "integer" && kind == "number"));
    for (kind, value) in wrong.into_iter().filter(|(kind, _)| !types.is_empty() && !fits(kind)) {
        let named = refused(value, kind).await;
        let at = if place.is_empty() { "/" } else { place };
        assert!(named.contains(at), "{}: {place} as {kind} is not named: {named:?}", one.name());
    }
    if !place.is_empty() && !types.is_empty() && !NEEDED_BESIDE.contains(&(one.name(), place)) {
        let reply = one.send("", Some(&with(good, place, Value::Null))).await;
        let said = complaints(&reply).contains(place);
        assert_eq!(said, !types.contains(&"null".to_owned()), "{}: {place} as null: {reply:?}", one.name());
    }
    if schema["enum"].is_array() {
        let named = refused(json!("no-such-word"), "with a word of its own").await;
        assert!(named.contains(place), "{}: {place}: {named:?}", one.name());
    }
    if let Some(most) = schema["maxLength"].as_u64() {
        let fits = with(good, place, json!("x".repeat(most as usize)));
        assert!(!complaints(&one.send("", Some(&fits)).await).contains(place), "{}: {place} of {most}", one.name());
        refused(json!("x".repeat(most as usize + 1)), "too long").await;
    }
    if schema["minLength"] == 1 {
        refused(json!(""), "as nothing").await;
    }
    if schema["minItems"] == 1 {
        refused(json!([]), "without items").await;
    }
    if let Some(most) = schema["maxItems"].as_u64() {
        let items = (0..=most).map(|number| json!(format!("00000000-0000-4000-8000-{number:012}")));
        refused(items.collect(), "with too many items").await;
    }
    if schema["minProperties"] == 1 {
        refused(json!({}), "as an empty object").await;
    }
    let Some(properties) = schema["properties"].as_object() else { return };
    // Every other name that could be meant, all at once: each must be refused by its place.
    let strange: BTreeSet<&String> = vocabulary.iter().filter(|name| !properties.contains_key(*name)).collect();
    let mut body = good.clone();
    let object = body.pointer_mut(place).unwrap().as_object_mut().unwrap();
    object.extend(strange.iter().map(|name| ((*name).clone(), json!("x"))));
    let named = complaints(&one.send("", Some(&body)).await);
    for name in strange {
        let said = named.contains(&format!("{place}/{name}"));
        assert_eq!(said, schema["additionalProperties"] == false, "{}: {place}/{name}", one.name());
    }
    let required: BTreeSet<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for name in properties.keys() {
        if NEEDED_BESIDE.contains(&(one.name(), &format!("{place}/{name}"))) {
            continue;
        }
        let mut body = good.clone();
        body.pointer_mut(place).unwrap().as_object_mut().unwrap().remove(name);
        let reply = one.send("", Some(&body)).await;
        let said = complaints(&reply).contains(&format!("{place}/{name}"));
        assert_eq!(said, required.contains(name.as_str()), "{}: {place}/{name} is left out: {reply:?}", one.name());
    }
}

async fn parameters_are_read_as_declared(app: TestApp) {
    let vocabulary = vocabulary();
    for one in declared(&app).await {
        let none = Vec::new();
        let parameters: Vec<&Value> = one.operation["parameters"].as_array().unwrap_or(&none).iter().collect();
        let of_query: Vec<&Value> = parameters.iter().copied().filter(|one| one["in"] == "query").collect();
        let names: BTreeSet<&str> = of_query.iter().map(|one| one["name"].as_str().unwrap()).collect();
        let strange: BTreeSet<&String> = vocabulary.iter().filter(|name| !names.contains(name.as_str())).collect();
        let query = strange.iter().map(|name| format!("{name}=x")).collect::<Vec<_>>().join("&");
        // A body that can be read, so that the query is looked at.
        let body = one.operation["requestBody"].is_object().then(|| json!({}));
        let named = complaints(&one.send(&format!("?{query}"), body.as_ref()).await);
        for name in strange {
            assert!(named.contains(&format!("/{name}")), "{}: {name} is taken", one.name());
        }
        for parameter in of_query {
            check_parameter(&one, parameter).await;
        }
        let needed = |one: &&Value| one["in"] != "path" && one["required"] == true;
        for parameter in parameters.into_iter().filter(needed) {
            let named = complaints(&one.send("", Some(&json!("bytes"))).await);
            assert!(named.contains(&format!("/{}", parameter["name"].as_str().unwrap())), "{}: {named:?}", one.name());
        }
    }
}

async fn check_parameter(one: &Declared, parameter: &Value) {
    let name = parameter["name"].as_str().unwrap();
    let schema = &parameter["schema"];
    let items = if schema["type"] == "array" { &schema["items"] } else { schema };
    let (good, bad): (Vec<String>, Option<&str>) = if let Some(words) = items["enum"].as_array() {
        (words.iter().map(|word| word.as_str().unwrap().to_owned()).collect(), Some("no-such-word"))
    } else {
        match (items["type"].as_str(), items["format"].as_str()) {
            (Some("string"), Some("uuid")) => (vec![NOBODY.to_owned()], Some("no-uuid")),
            (Some("string"), Some("date-time")) => (vec!["2025-01-01T00:00:00Z".to_owned()], Some("yesterday")),
            (Some("boolean"), _) => (vec!["true".to_owned(), "false".to_owned()], Some("maybe")),
            (Some("integer"), _) => (vec!["1".to_owned(), "100000".to_owned()], Some("0")),
            // A cursor is refused as such, which says that it is read.
            (Some("string"), None) if name == "cursor" => (Vec::new(), Some("no-cursor")),
            (Some("string"), None) => (vec!["words".to_owned()], None),
            other => panic!("{}: {name} is {other:?}", one.name()),
        }
    };
    let says = |named: &BTreeSet<String>| named.iter().any(|place| place.split('/').nth(1) == Some(name));
    for good in good {
        let named = complaints(&one.send(&format!("?{name}={good}"), None).await);
        assert!(!says(&named), "{}: {name}={good} is refused: {named:?}", one.name());
    }
    if let Some(bad) = bad {
        let named = complaints(&one.send(&format!("?{name}={bad}"), None).await);
        assert!(says(&named), "{}: {name}={bad} is taken: {named:?}", one.name());
    }
}
