//! The API document: what it says, that it says it of every route, and where it differs from the contract.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use bandstand_server::http::api_document;
use reqwest::Method;
use serde_json::Value;

use crate::support::{TestApp, stories};

stories!(every_route_is_in_the_document, the_document_and_its_page_are_served_to_anybody,);

/// The committed document: a change of the API is a change of this file, for a reviewer to see.
const COMMITTED: &str = "docs/openapi.json";

/// With this in the environment, the committed document is written anew.
const WRITE: &str = "BANDSTAND_WRITE_API_DOCUMENT";

fn file(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

#[test]
fn the_committed_document_is_the_one_that_is_served() {
    let text = serde_json::to_string_pretty(&api_document()).unwrap() + "\n";
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(file(COMMITTED), &text).unwrap();
    }
    let committed = std::fs::read_to_string(file(COMMITTED)).unwrap_or_default();
    let differs = text.lines().zip(committed.lines()).position(|(ours, theirs)| ours != theirs);
    assert!(
        committed == text,
        "{COMMITTED} is not what the server tells of itself, from line {:?}; if the change is meant, run\n  \
         {WRITE}=1 cargo test -p bandstand-server --test it the_committed_document",
        differs.map(|line| line + 1)
    );
}

/// The paths that the router knows and the document does not tell of: the socket is no REST.
const SOCKETS: [&str; 2] = ["/api/v1/socket", "/api/v1/socket/websocket"];

/// Where the router keeps what answers to everything else.
const FALLBACK: [&str; 2] = ["/", "/{*__private__axum_fallback}"];

async fn every_route_is_in_the_document(app: TestApp) {
    let document = api_document();
    let paths = document["paths"].as_object().unwrap();
    let documented: BTreeSet<&str> = paths.keys().map(String::as_str).chain(SOCKETS).collect();
    // The only way to ask a router what it knows is to print it.
    let printed = format!("{:?}", bandstand_server::http::router(app.state().clone()));
    let routes: BTreeSet<&str> =
        printed.split('"').filter(|text| text.starts_with('/') && !FALLBACK.contains(text)).collect();
    assert_eq!(routes, documented, "a route without documentation, or a documented one without a route");
    for (path, methods) in paths {
        let concrete: Vec<&str> = path
            .split('/')
            .map(|part| if part.starts_with('{') { "00000000-0000-4000-8000-000000000000" } else { part })
            .collect();
        let reply = app.request(Method::TRACE, &concrete.join("/"), &[], None).await;
        let reply = reply.assert_error(405, "method_not_allowed");
        let allowed: BTreeSet<&str> =
            reply.header("allow").unwrap().split(',').filter(|word| *word != "HEAD").collect();
        let documented: Vec<String> = methods.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        assert_eq!(allowed, documented.iter().map(String::as_str).collect(), "{path}");
    }
}

async fn the_document_and_its_page_are_served_to_anybody(app: TestApp) {
    let reply = app.request(Method::GET, "/api/openapi.json", &[], None).await;
    assert_eq!(reply.assert_status(200).body.as_ref(), Some(&api_document()));
    let page = app.http.get(format!("http://{}/api/docs", app.address)).send().await.unwrap();
    assert_eq!(page.status(), 200);
    assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
    let policy = page.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("script"), "{policy}");
}

/// Where ours differs from the contract on purpose, each with the reason.
const DIFFERENCES: &str = "compat/differences.txt";

#[test]
fn every_difference_from_the_contract_is_listed_with_its_reason() {
    let contract: Value = serde_json::from_str(&read("compat/openapi.json")).unwrap();
    let found = differences(&contract, &api_document());
    let listed = listed(&read(DIFFERENCES));
    let unlisted: Vec<&String> = found.iter().filter(|one| !listed.iter().any(|glob| fits(glob, one))).collect();
    let gone: Vec<&String> = listed.iter().filter(|glob| !found.iter().any(|one| fits(glob, one))).collect();
    assert!(unlisted.is_empty(), "not in {DIFFERENCES}, so not intended:\n{}", lines(&unlisted));
    assert!(gone.is_empty(), "in {DIFFERENCES}, and no longer true:\n{}", lines(&gone));
}

fn lines(of: &[&String]) -> String {
    of.iter().map(|line| line.as_str()).collect::<Vec<_>>().join("\n")
}

/// The lines of the file, each of which stands under a reason.
fn listed(text: &str) -> Vec<String> {
    let mut reason = false;
    let mut listed = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(words) = line.strip_prefix("= ") {
            reason = words.len() > 10;
        } else {
            assert!(reason, "without a reason: {line}");
            listed.push(line.to_owned());
        }
    }
    listed
}

/// Whether a line fits, where `*` stands for anything.
fn fits(glob: &str, line: &str) -> bool {
    let mut parts = glob.split('*');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut open = false;
    for part in parts {
        match rest.find(part) {
            Some(at) if !part.is_empty() => rest = &rest[at + part.len()..],
            None => return false,
            Some(_) => rest = "",
        }
        open = true;
    }
    rest.is_empty() || (open && glob.ends_with('*'))
}

#[test]
fn a_star_stands_for_anything() {
    assert!(fits("GET /a: x", "GET /a: x") && !fits("GET /a: x", "GET /a: x y") && !fits("GET /a", "GET /ab"));
    assert!(fits("* /a/*: x", "GET /a/b/c: x") && fits("GET *", "GET /a: x") && !fits("* /a/*: x", "GET /b/c: x"));
}

/// What differs, a line each. Promising more in a reply, or taking null where the contract takes none, is no difference.
fn differences(contract: &Value, ours: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut note = |line: String| {
        found.insert(line);
    };
    let (theirs, own) = (operations(contract), operations(ours));
    let any: BTreeSet<String> =
        contract["x-any-operation"].as_array().unwrap().iter().map(ToString::to_string).collect();
    for name in theirs.keys().chain(own.keys()).collect::<BTreeSet<_>>() {
        match (theirs.get(name), own.get(name)) {
            (Some(_), None) => note(format!("{name}: only in the contract")),
            (None, Some(_)) => note(format!("{name}: only here")),
            (Some(theirs), Some(own)) => {
                let mut say = |what: String| note(format!("{name}: {what}"));
                compare_parameters(theirs, own, &mut say);
                compare_bodies((contract, theirs), (ours, own), &mut say);
                compare_replies((contract, theirs), (ours, own), &any, &mut say);
            }
            (None, None) => {}
        }
    }
    found
}

fn operations(document: &Value) -> BTreeMap<String, &Value> {
    let paths = document["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, methods)| {
        methods.as_object().unwrap().iter().map(move |(method, of)| (format!("{} {path}", method.to_uppercase()), of))
    });
    all.collect()
}

fn sorted(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let words: BTreeSet<String> =
                items.iter().filter(|item| !item.is_null()).map(ToString::to_string).collect();
            words.into_iter().collect::<Vec<_>>().join(" ")
        }
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

fn compare_parameters(theirs: &Value, own: &Value, say: &mut impl FnMut(String)) {
    let all = |of: &Value| -> BTreeMap<String, Value> {
        let given = of["parameters"].as_array().cloned().unwrap_or_default();
        given
            .into_iter()
            .map(|one| (format!("{} parameter {}", one["in"], one["name"]).replace('"', ""), one))
            .collect()
    };
    let (theirs, own) = (all(theirs), all(own));
    for name in theirs.keys().chain(own.keys()).collect::<BTreeSet<_>>() {
        match (theirs.get(name), own.get(name)) {
            (Some(_), None) => say(format!("{name}: only in the contract")),
            (None, Some(_)) => say(format!("{name}: only here")),
            (Some(theirs), Some(own)) => {
                if (theirs["required"] == true) != (own["required"] == true) {
                    say(format!("{name}: required {} in the contract, {} here", theirs["required"], own["required"]));
                }
                let (theirs, own) = (&theirs["schema"], &own["schema"]);
                for place in
                    ["/type", "/enum", "/default", "/minimum", "/maximum", "/pattern", "/items/type", "/items/enum"]
                {
                    let at = |of: &Value| sorted(of.pointer(place).unwrap_or(&Value::Null));
                    if at(theirs) != at(own) {
                        say(format!("{name}: {place} {} in the contract, {} here", at(theirs), at(own)));
                    }
                }
            }
            (None, None) => {}
        }
    }
}

/// A property at its place in a body.
#[derive(Clone, Debug, Default)]
struct Property {
    required: bool,
    types: BTreeSet<String>,
    words: Option<BTreeSet<String>>,
}

type Properties = BTreeMap<String, Property>;

fn resolved<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    match schema["$ref"].as_str() {
        Some(at) => resolved(document, document.pointer(at.trim_start_matches('#')).unwrap()),
        None => schema,
    }
}

/// All properties below a place; where an object has none, anything may stand there, and its place ends with `/*`.
fn collect(document: &Value, schema: &Value, place: &str, into: &mut Properties) {
    let schema = resolved(document, schema);
    for option in ["anyOf", "oneOf", "allOf"].iter().filter_map(|name| schema[*name].as_array()).flatten() {
        collect(document, option, place, into);
    }
    let own = into.entry(place.to_owned()).or_default();
    match &schema["type"] {
        Value::String(one) => own.types.extend([one.clone()]),
        Value::Array(several) => own.types.extend(several.iter().map(|one| one.as_str().unwrap().to_owned())),
        _ => {}
    }
    own.types.remove("null");
    let words = schema["enum"].as_array().cloned().or_else(|| Some(vec![schema.get("const")?.clone()]));
    if let Some(words) = words {
        let words = words.iter().filter(|word| !word.is_null()).map(|word| word.as_str().unwrap().to_owned());
        own.words.get_or_insert_default().extend(words);
    }
    if schema["items"].is_object() {
        collect(document, &schema["items"], &format!("{place}/0"), into);
    }
    if schema["additionalProperties"].is_object() {
        collect(document, &schema["additionalProperties"], &format!("{place}/{{key}}"), into);
    }
    match schema["properties"].as_object() {
        Some(properties) => {
            let required: BTreeSet<&str> =
                schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            for (name, property) in properties {
                let place = format!("{place}/{name}");
                collect(document, property, &place, into);
                into.get_mut(&place).unwrap().required = required.contains(name.as_str());
            }
        }
        None if schema["type"] == "object" && !schema["additionalProperties"].is_object() => {
            into.entry(format!("{place}/*")).or_default();
        }
        None => {}
    }
}

/// Whether anything may stand at a place, because a place above says so.
fn is_open(place: &str, of: &Properties) -> bool {
    let above = place.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| &place[..at]);
    above.into_iter().any(|above| of.contains_key(&format!("{above}/*")))
}

fn compare_bodies((contract, theirs): (&Value, &Value), (ours, own): (&Value, &Value), say: &mut impl FnMut(String)) {
    let (theirs, own) = (&theirs["requestBody"], &own["requestBody"]);
    if theirs.is_null() && own.is_null() {
        return;
    }
    if theirs["required"] != own["required"] {
        say(format!("body: required {} in the contract, {} here", theirs["required"], own["required"]));
    }
    let schema = |of: &Value| of["content"]["application/json"]["schema"].clone();
    let (mut wanted, mut given) = (Properties::new(), Properties::new());
    collect(contract, &schema(theirs), "", &mut wanted);
    collect(ours, &schema(own), "", &mut given);
    for place in wanted.keys().chain(given.keys()).filter(|place| !place.ends_with('*')).collect::<BTreeSet<_>>() {
        match (wanted.get(place), given.get(place)) {
            (Some(_), None) if !is_open(place, &given) => say(format!("body {place}: only in the contract")),
            (None, Some(_)) if !is_open(place, &wanted) => say(format!("body {place}: only here")),
            (Some(theirs), Some(own)) => {
                if theirs.required != own.required {
                    say(format!("body {place}: required {} in the contract, {} here", theirs.required, own.required));
                }
                if theirs.words != own.words {
                    say(format!("body {place}: {:?} in the contract, {:?} here", theirs.words, own.words));
                }
                if theirs.types != own.types {
                    say(format!("body {place}: {:?} in the contract, {:?} here", theirs.types, own.types));
                }
            }
            _ => {}
        }
    }
}

fn compare_replies(
    (contract, theirs): (&Value, &Value),
    (ours, own): (&Value, &Value),
    any: &BTreeSet<String>,
    say: &mut impl FnMut(String),
) {
    let statuses = |of: &Value| -> BTreeSet<String> { of["responses"].as_object().unwrap().keys().cloned().collect() };
    let (wanted, given) = (statuses(theirs), statuses(own));
    for status in wanted.difference(&given) {
        say(format!("status {status}: only in the contract"));
    }
    for status in given.difference(&wanted).filter(|status| !any.contains(*status)) {
        say(format!("status {status}: only here"));
    }
    for status in wanted.intersection(&given).filter(|status| status.as_str() < "400") {
        let schema = |of: &Value| of["responses"][status]["content"]["application/json"]["schema"].clone();
        let (mut wanted, mut given) = (Properties::new(), Properties::new());
        collect(contract, &schema(theirs), "", &mut wanted);
        collect(ours, &schema(own), "", &mut given);
        for place in wanted.keys().chain(given.keys()).filter(|place| !place.ends_with('*')).collect::<BTreeSet<_>>() {
            match (wanted.get(place), given.get(place)) {
                (Some(_), None) if !is_open(place, &given) => say(format!("{status} {place}: only in the contract")),
                (None, Some(_)) if !is_open(place, &wanted) => say(format!("{status} {place}: only here")),
                (Some(theirs), Some(own)) => {
                    if theirs.required && !own.required {
                        say(format!("{status} {place}: may be left out here"));
                    }
                    let more = own.words.as_ref().zip(theirs.words.as_ref());
                    for word in more.into_iter().flat_map(|(own, theirs)| own.difference(theirs)) {
                        say(format!("{status} {place}: the word {word} only here"));
                    }
                    if !own.types.is_empty() && !theirs.types.is_empty() && own.types != theirs.types {
                        say(format!("{status} {place}: {:?} in the contract, {:?} here", theirs.types, own.types));
                    }
                }
                _ => {}
            }
        }
    }
}
