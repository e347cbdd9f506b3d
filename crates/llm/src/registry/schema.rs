//! Input schemas: made from a Rust type or given, brought into the one shape that all providers take.

use std::fmt;

use jsonschema::{Draft, Validator};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::InvalidArguments;
use super::arguments::{coerce, faults_of};

/// A schema that no tool can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the input schema cannot be used: {reason}")]
pub struct InvalidSchema {
    /// Why.
    pub reason: String,
}

/// What a tool takes: a JSON Schema of an object, with a validator made once.
///
/// Whatever wrote it, it has one shape: no `title` at the top and one for each property, `enum` instead of `const`, an
/// optional argument as `anyOf` of its type and null. Several providers refuse the other ways of saying the same.
pub struct InputSchema {
    value: Value,
    validator: Option<Validator>,
}

impl fmt::Debug for InputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl InputSchema {
    /// From a Rust type. A type that is not an object is taken as one without arguments; reading it then fails.
    pub fn of<T: JsonSchema>() -> Self {
        let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
        let mut value = schema.to_value();
        settle_root(&mut value);
        // What schemars writes compiles; if it did not, reading the arguments into the type would still check them.
        let validator = compile(&value).ok();
        Self { value, validator }
    }

    /// From a schema that somebody else wrote.
    ///
    /// # Errors
    /// [`InvalidSchema`] when it is no schema, or not one of an object.
    pub fn from_value(mut value: Value) -> Result<Self, InvalidSchema> {
        if !value.is_object() {
            return Err(InvalidSchema { reason: "it is no object".into() });
        }
        if value.get("type").is_some_and(|kind| kind != "object") {
            return Err(InvalidSchema { reason: "it does not describe an object".into() });
        }
        settle_root(&mut value);
        let validator = compile(&value)?;
        Ok(Self { value, validator: Some(validator) })
    }

    /// The schema, with numeric bounds.
    pub fn as_value(&self) -> &Value {
        &self.value
    }

    pub(super) fn description(&self) -> Option<&str> {
        self.value.get("description")?.as_str()
    }

    /// Checks arguments, and reads `"5"` as 5 where a number is wanted: models write that.
    pub(super) fn validate(&self, arguments: Value) -> Result<Value, InvalidArguments> {
        let mut arguments = match arguments {
            // A call without arguments.
            Value::Null => Value::Object(Map::new()),
            other => other,
        };
        coerce(&self.value, &self.value, &mut arguments, 0);
        if let Some(validator) = &self.validator {
            faults_of(&self.value, validator, &arguments)?;
        }
        Ok(arguments)
    }
}

fn compile(value: &Value) -> Result<Validator, InvalidSchema> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .build(value)
        .map_err(|error| InvalidSchema { reason: error.to_string() })
}

/// The top of a schema, and everything below it.
fn settle_root(value: &mut Value) {
    if let Value::Object(root) = value {
        root.remove("$schema");
        root.remove("title");
        root.insert("type".into(), json!("object"));
        if !root.get("properties").is_some_and(Value::is_object) {
            root.insert("properties".into(), json!({}));
        }
        if root.get("required").is_some_and(|required| required.as_array().is_some_and(Vec::is_empty)) {
            root.remove("required");
        }
        if let Some(Value::Object(definitions)) = root.get_mut("$defs") {
            for (name, definition) in definitions {
                if let Value::Object(definition) = definition {
                    definition.entry("title").or_insert_with(|| json!(name));
                }
            }
        }
    }
    settle(value);
}

/// Keywords whose children are names, not keywords.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "dependentSchemas"];

fn settle(node: &mut Value) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::Object(map) => {
            if let Some(value) = map.remove("const") {
                map.insert("enum".into(), json!([value]));
            }
            merge_constants(map);
            let number = matches!(map.get("type"), Some(Value::Array(kinds)) if kinds.iter().any(is_number))
                || map.get("type").is_some_and(is_number);
            if number {
                // `int64` and the like say nothing to a model, and some providers refuse them.
                map.remove("format");
            }
            split_nullable(map);
            settle_properties(map);
            for (keyword, child) in map.iter_mut() {
                match child {
                    Value::Object(names) if NAMED.contains(&keyword.as_str()) => names.values_mut().for_each(settle),
                    // Not schemas: a value in them may look like one.
                    _ if matches!(keyword.as_str(), "default" | "examples" | "enum" | "required" | "type") => {}
                    child => settle(child),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_number(kind: &Value) -> bool {
    kind == "integer" || kind == "number"
}

/// `oneOf` of constants, which is how an enum with documented variants is written, is an `enum`.
fn merge_constants(map: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = map.get("oneOf") else { return };
    let constants: Option<Vec<Value>> = choices
        .iter()
        .map(|choice| match (choice.get("const"), choice.get("enum")) {
            (Some(value), _) => Some(vec![value.clone()]),
            (None, Some(Value::Array(values))) => Some(values.clone()),
            _ => None,
        })
        .collect::<Option<Vec<_>>>()
        .map(|values| values.concat());
    let Some(constants) = constants else { return };
    if constants.iter().all(Value::is_string) {
        map.remove("oneOf");
        map.insert("type".into(), json!("string"));
        map.insert("enum".into(), Value::Array(constants));
    }
}

/// `"type": ["string", "null"]` becomes `anyOf` of the two; what describes the argument stays outside.
fn split_nullable(map: &mut Map<String, Value>) {
    let Some(Value::Array(kinds)) = map.get("type") else { return };
    let kinds: Vec<Value> = kinds.iter().filter(|kind| *kind != "null").cloned().collect();
    let nullable = matches!(map.get("type"), Some(Value::Array(all)) if all.len() > kinds.len());
    let [kind] = kinds.as_slice() else { return };
    let kind = kind.clone();
    if !nullable {
        map.insert("type".into(), kind);
        return;
    }
    let outside = ["title", "description", "default", "examples", "deprecated"];
    let mut inner = Map::new();
    for keyword in map.keys().cloned().collect::<Vec<_>>() {
        if !outside.contains(&keyword.as_str())
            && let Some(value) = map.remove(&keyword)
        {
            inner.insert(keyword, value);
        }
    }
    inner.insert("type".into(), kind);
    if let Some(Value::Array(values)) = inner.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    map.insert("anyOf".into(), json!([inner, {"type": "null"}]));
}

/// Titles, and the default of what may be null.
fn settle_properties(map: &mut Map<String, Value>) {
    let required: Vec<String> = match map.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let Some(Value::Object(properties)) = map.get_mut("properties") else { return };
    for (name, property) in properties {
        let Value::Object(property) = property else { continue };
        let split =
            matches!(property.get("type"), Some(Value::Array(kinds)) if kinds.iter().any(|kind| kind == "null"));
        let choices = property.get("anyOf").and_then(Value::as_array);
        let either =
            choices.is_some_and(|choices| choices.iter().any(|choice| choice.get("type") == Some(&json!("null"))));
        if (split || either) && !required.contains(name) {
            property.entry("default").or_insert(Value::Null);
        }
        // A reference has the title of what it names.
        let refers = property.contains_key("$ref")
            || choices_of(property).is_some_and(|choices| choices.iter().any(|choice| choice.get("$ref").is_some()));
        if !refers {
            property.entry("title").or_insert_with(|| json!(title(name)));
        }
    }
}

fn choices_of(property: &Map<String, Value>) -> Option<&Vec<Value>> {
    property.get("anyOf").and_then(Value::as_array)
}

/// `page_size` is titled `Page Size`.
fn title(name: &str) -> String {
    let word = |word: &str| {
        let mut characters = word.chars();
        characters.next().map(|first| first.to_uppercase().chain(characters).collect::<String>()).unwrap_or_default()
    };
    name.split('_').map(word).collect::<Vec<_>>().join(" ")
}

/// The schema without what bounds numbers: for providers that refuse such keywords.
pub(super) fn without_bounds(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(without_bounds).collect(),
        Value::Object(map) => {
            let bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
            let keep = |(keyword, child): (&String, &Value)| {
                if bounds.contains(&keyword.as_str()) {
                    return None;
                }
                let child = match child {
                    Value::Object(names) if NAMED.contains(&keyword.as_str()) => {
                        names.iter().map(|(name, child)| (name.clone(), without_bounds(child))).collect()
                    }
                    other if matches!(keyword.as_str(), "default" | "examples" | "enum") => other.clone(),
                    other => without_bounds(other),
                };
                Some((keyword.clone(), child))
            };
            Value::Object(map.iter().filter_map(keep).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(schemars::JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Colour {
        Red,
        /// As the sky.
        Blue,
    }

    #[derive(schemars::JsonSchema)]
    #[schemars(inline)]
    #[serde(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Inline {
        History,
    }

    /// Paints.
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Paint {
        /// What.
        the_wall: String,
        colour: Option<Colour>,
        #[schemars(range(min = 1, max = 9))]
        #[serde(default)]
        maximum: i64,
        include: Option<Inline>,
        extra: Option<Map<String, Value>>,
        list: Vec<String>,
    }

    #[test]
    fn a_rust_type_has_the_shape_that_providers_take() {
        let schema = InputSchema::of::<Paint>();
        assert_eq!(
            *schema.as_value(),
            json!({
                "description": "Paints.",
                "type": "object",
                "properties": {
                    "the_wall": {"description": "What.", "type": "string", "title": "The Wall"},
                    "colour": {"anyOf": [{"$ref": "#/$defs/Colour"}, {"type": "null"}], "default": null},
                    "maximum": {"type": "integer", "minimum": 1, "maximum": 9, "default": 0, "title": "Maximum"},
                    "include": {
                        "anyOf": [{"type": "string", "enum": ["history"]}, {"type": "null"}],
                        "default": null,
                        "title": "Include",
                    },
                    "extra": {
                        "anyOf": [{"type": "object", "additionalProperties": true}, {"type": "null"}],
                        "default": null,
                        "title": "Extra",
                    },
                    "list": {"type": "array", "items": {"type": "string"}, "title": "List"},
                },
                "required": ["the_wall", "list"],
                "$defs": {"Colour": {"type": "string", "enum": ["red", "blue"], "title": "Colour"}},
            })
        );
        let bare = without_bounds(schema.as_value());
        assert_eq!(bare["properties"]["maximum"], json!({"type": "integer", "default": 0, "title": "Maximum"}));
    }

    #[test]
    fn a_schema_from_elsewhere_must_be_one_of_an_object() {
        for bad in [json!(7), json!({"type": "string"}), json!({"type": "object", "properties": {"a": {"type": 7}}})] {
            assert!(InputSchema::from_value(bad.clone()).is_err(), "{bad}");
        }
        let schema = InputSchema::from_value(json!({"$schema": "x:y", "title": "T"})).unwrap();
        assert_eq!(*schema.as_value(), json!({"type": "object", "properties": {}}));
    }
}
