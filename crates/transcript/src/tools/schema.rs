//! What providers take as the schema of a tool's arguments, and a schema that they take in place of one that they don't.

use serde_json::{Map, Value, json};

use crate::format::Format;

/// Keywords that no provider takes at the top of a schema, and those that OpenAI does not take either.
const COMBINING: [&str; 3] = ["oneOf", "anyOf", "allOf"];
const OPENAI_TOO: [&str; 2] = ["enum", "not"];
/// What OpenAI's strict mode does not know.
const STRICT_OPENAI: [&str; 7] = ["allOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else"];
/// What Anthropic's strict mode does not know.
const STRICT_ANTHROPIC: [&str; 9] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
];
/// Keywords whose children are schemas by name.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// Keywords whose values only look like schemas.
const VALUES: [&str; 5] = ["default", "examples", "enum", "const", "required"];

fn refused_at_top(format: Format) -> impl Iterator<Item = &'static str> {
    let more: &[&str] = if format == Format::Anthropic { &[] } else { &OPENAI_TOO };
    COMBINING.iter().chain(more).copied()
}

/// Why the top of a schema is refused: the keyword concerned.
pub(crate) fn fault_at_top(schema: &Value, format: Format) -> Option<&'static str> {
    let Some(object) = schema.as_object() else { return Some("type") };
    if object.get("type").and_then(Value::as_str) != Some("object") {
        return Some("type");
    }
    refused_at_top(format).find(|keyword| object.contains_key(*keyword))
}

/// A schema that is taken in place of one that is not. What several alternatives said is said by the union of their
/// properties: arguments that fitted before still fit.
pub(crate) fn settled(schema: &Value, format: Format) -> Value {
    let Some(object) = schema.as_object() else { return empty() };
    if let Some(kind) = object.get("type") {
        let is_object = kind == "object" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("object")));
        if !is_object {
            return empty();
        }
    }
    let mut settled = object.clone();
    settled.insert("type".to_owned(), json!("object"));
    let mut properties = settled.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut required = strings(settled.get("required"));
    for keyword in COMBINING {
        let Some(Value::Array(variants)) = settled.remove(keyword) else { continue };
        let variants: Vec<Map<String, Value>> =
            variants.iter().filter_map(|variant| resolved(variant, schema).as_object().cloned()).collect();
        for variant in &variants {
            for (key, property) in variant.get("properties").and_then(Value::as_object).into_iter().flatten() {
                properties.entry(key.clone()).or_insert_with(|| property.clone());
            }
        }
        // What all parts want, or what all alternatives want.
        let wanted = |key: &String| match keyword {
            "allOf" => true,
            _ => variants.iter().all(|variant| strings(variant.get("required")).contains(key)),
        };
        let more: Vec<String> = variants.iter().flat_map(|variant| strings(variant.get("required"))).collect();
        for key in more.into_iter().filter(wanted) {
            if !required.contains(&key) {
                required.push(key);
            }
        }
        if keyword != "allOf" {
            // One alternative's closed set of properties is not the union's.
            settled.remove("unevaluatedProperties");
        }
    }
    for keyword in refused_at_top(format) {
        settled.remove(keyword);
    }
    settled.insert("properties".to_owned(), Value::Object(properties));
    if required.is_empty() {
        settled.remove("required");
    } else {
        settled.insert("required".to_owned(), json!(required));
    }
    Value::Object(settled)
}

/// The schema of a function without arguments.
pub(crate) fn empty() -> Value {
    json!({ "type": "object", "properties": {} })
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let texts = value.and_then(Value::as_array).into_iter().flatten();
    texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// What a reference to a definition of the same schema stands for.
fn resolved<'a>(variant: &'a Value, root: &'a Value) -> &'a Value {
    let place = variant.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    place.and_then(|place| root.pointer(place)).unwrap_or(variant)
}

/// Why the strict mode of a format refuses a schema: where, as a path, and which keyword.
pub(crate) fn strict_fault(schema: &Value, format: Format) -> Option<(String, &'static str)> {
    if let Some(keyword) = fault_at_top(schema, format) {
        return Some((String::new(), keyword));
    }
    strict_fault_at(schema, "", format, 0)
}

/// Deeper schemas are not followed.
const MAX_DEPTH: usize = 64;

fn strict_fault_at(node: &Value, at: &str, format: Format, depth: usize) -> Option<(String, &'static str)> {
    if depth > MAX_DEPTH {
        return None;
    }
    let object = match node {
        Value::Array(items) => {
            let fault = |(index, item)| strict_fault_at(item, &format!("{at}/{index}"), format, depth + 1);
            return items.iter().enumerate().find_map(fault);
        }
        Value::Object(object) => object,
        _ => return None,
    };
    let refused: &[&'static str] = if format == Format::Anthropic { &STRICT_ANTHROPIC } else { &STRICT_OPENAI };
    if let Some(keyword) = refused.iter().find(|keyword| object.contains_key(**keyword)) {
        return Some((at.to_owned(), keyword));
    }
    let kind = object.get("type");
    let is_object = kind
        .is_some_and(|kind| kind == "object" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("object"))));
    if is_object || object.contains_key("properties") {
        if object.get("additionalProperties") != Some(&json!(false)) {
            return Some((at.to_owned(), "additionalProperties"));
        }
        let required = strings(object.get("required"));
        let properties = object.get("properties").and_then(Value::as_object);
        if format != Format::Anthropic && properties.into_iter().flatten().any(|(key, _)| !required.contains(key)) {
            return Some((at.to_owned(), "required"));
        }
    }
    object.iter().find_map(|(keyword, child)| match child {
        Value::Object(names) if NAMED.contains(&keyword.as_str()) => names
            .iter()
            .find_map(|(name, child)| strict_fault_at(child, &format!("{at}/{keyword}/{name}"), format, depth + 1)),
        _ if VALUES.contains(&keyword.as_str()) => None,
        child => strict_fault_at(child, &format!("{at}/{keyword}"), format, depth + 1),
    })
}
