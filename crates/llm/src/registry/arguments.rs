//! Checks what a model passes to a tool, and says every fault in words that it can act on.

use std::fmt;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One fault: where, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where, with dots: `mentions.0`. Empty for a fault of the arguments as a whole.
    pub place: String,
    /// What.
    pub text: String,
}

/// Arguments that do not fit a tool's input: every fault, in the order of the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidArguments {
    tool: String,
    faults: Vec<Fault>,
    platform: bool,
}

impl InvalidArguments {
    fn new(faults: Vec<Fault>) -> Self {
        Self { tool: String::new(), faults, platform: false }
    }

    pub(super) fn of(mut self, tool: &str, platform: bool) -> Self {
        tool.clone_into(&mut self.tool);
        self.platform = platform;
        self
    }

    /// The faults.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for InvalidArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The platform's own tools and custom ones differ in small ways that clients may compare.
        let (separator, whole) = if self.platform { (", ", "") } else { ("; ", "unknown") };
        let place = |fault: &Fault| if fault.place.is_empty() { whole.to_owned() } else { fault.place.clone() };
        let faults: Vec<String> = self.faults.iter().map(|fault| format!("{}: {}", place(fault), fault.text)).collect();
        write!(f, "Invalid arguments for {}: {}", self.tool, faults.join(separator))
    }
}

impl std::error::Error for InvalidArguments {}

/// Collects the faults that a [`ToolInput`] finds.
#[derive(Debug, Default)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// A fault in one argument.
    pub fn at(&mut self, argument: &str, text: impl fmt::Display) {
        self.0.push(Fault { place: argument.into(), text: format!("Value error, {text}") });
    }

    /// A fault of the arguments together.
    pub fn whole(&mut self, text: impl fmt::Display) {
        self.at("", text);
    }
}

/// An input with rules that no schema can say.
pub trait ToolInput: Sized {
    /// Names every fault.
    fn check(&self, faults: &mut Faults);
}

/// What [`super::Tool::checked`] keeps of a [`ToolInput`].
pub(super) type Check = fn(&Value) -> Result<(), InvalidArguments>;

/// Reads the input and asks it.
pub(super) fn check<I: ToolInput + DeserializeOwned>(arguments: &Value) -> Result<(), InvalidArguments> {
    let input: I = read(arguments.clone())?;
    let mut faults = Faults::default();
    input.check(&mut faults);
    if faults.0.is_empty() { Ok(()) } else { Err(InvalidArguments::new(faults.0)) }
}

/// Reads arguments into a type. The schema was checked before, so this finds only what a schema cannot say.
pub(super) fn read<I: DeserializeOwned>(arguments: Value) -> Result<I, InvalidArguments> {
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { path };
        InvalidArguments::new(vec![Fault { place, text: error.into_inner().to_string() }])
    })
}

/// Models write numbers as texts, and whole numbers with a fraction of zero; where a number is wanted, both are read as
/// what they mean. Deeper than eight levels nothing is looked at.
pub(super) fn coerce(root: &Value, schema: &Value, value: &mut Value, depth: u8) {
    if depth > 8 {
        return;
    }
    let schema = resolve(root, schema);
    if let Some(Value::Array(choices)) = schema.get("anyOf") {
        let mut real = choices.iter().filter(|choice| choice.get("type") != Some(&Value::from("null")));
        // With several choices nobody knows which is meant.
        if let (Some(choice), None) = (real.next(), real.next()) {
            coerce(root, choice, value, depth + 1);
        }
        return;
    }
    match (schema.get("type").and_then(Value::as_str), &mut *value) {
        (Some("object"), Value::Object(map)) => {
            let Some(Value::Object(properties)) = schema.get("properties") else { return };
            for (name, child) in map.iter_mut() {
                if let Some(property) = properties.get(name) {
                    coerce(root, property, child, depth + 1);
                }
            }
        }
        (Some("array"), Value::Array(items)) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| coerce(root, schema, item, depth + 1));
            }
        }
        (Some("integer"), Value::String(text)) => {
            if let Ok(number) = text.trim().parse::<i64>() {
                *value = number.into();
            }
        }
        (Some("integer"), Value::Number(number)) => {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "only whole numbers within the range that f64 holds exactly"
            )]
            if let Some(float) = number.as_f64()
                && !number.is_i64()
                && !number.is_u64()
                && float.fract() == 0.0
                && float.abs() < 9_007_199_254_740_992.0
            {
                *value = (float as i64).into();
            }
        }
        (Some("number"), Value::String(text)) => {
            if let Some(number) = text.trim().parse::<f64>().ok().and_then(serde_json::Number::from_f64) {
                *value = Value::Number(number);
            }
        }
        (Some("boolean"), Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => *value = true.into(),
            "false" => *value = false.into(),
            _ => {}
        },
        _ => {}
    }
}

fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return schema };
    reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

/// Every fault that the schema finds, in the order in which it lists the arguments.
pub(super) fn faults_of(schema: &Value, validator: &Validator, arguments: &Value) -> Result<(), InvalidArguments> {
    let mut faults = Vec::new();
    for error in validator.iter_errors(arguments) {
        describe(&error, &mut faults);
    }
    if faults.is_empty() {
        return Ok(());
    }
    let order: Vec<&str> = match schema.get("properties") {
        Some(Value::Object(properties)) => properties.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    let rank = |fault: &Fault| {
        let first = fault.place.split('.').next().unwrap_or_default();
        order.iter().position(|name| *name == first).unwrap_or(order.len())
    };
    // Stable: faults of one argument stay as they are.
    faults.sort_by_key(rank);
    faults.dedup();
    Err(InvalidArguments::new(faults))
}

fn describe(error: &ValidationError<'_>, faults: &mut Vec<Fault>) {
    let pointer = error.instance_path().as_str();
    let mut place = pointer.trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~");
    let text = match error.kind() {
        ValidationErrorKind::Required { property } => {
            if !place.is_empty() {
                place.push('.');
            }
            place.push_str(property.as_str().unwrap_or_default());
            "Field required".to_owned()
        }
        ValidationErrorKind::Type { kind } => format!("Input should be {}", kind_text(kind)),
        ValidationErrorKind::Enum { options } => {
            let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
            let options: Vec<String> = options.iter().map(plain).collect();
            format!("Input should be {}", either(&options))
        }
        ValidationErrorKind::Minimum { limit } => format!("Input should be greater than or equal to {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("Input should be less than or equal to {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("Input should be greater than {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("Input should be less than {limit}"),
        ValidationErrorKind::MinLength { limit } => format!("String should have at least {limit} characters"),
        ValidationErrorKind::MaxLength { limit } => format!("String should have at most {limit} characters"),
        ValidationErrorKind::MinItems { limit } => format!("List should have at least {limit} items"),
        ValidationErrorKind::MaxItems { limit } => format!("List should have at most {limit} items"),
        ValidationErrorKind::Pattern { pattern } => format!("String should match pattern '{pattern}'"),
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            format!("Unknown arguments are not permitted: {}", unexpected.join(", "))
        }
        // An optional argument: what is wrong is what is wrong with its type.
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let optional = context.len() == 2
                && context.iter().any(|branch| matches!(branch.as_slice(), [only] if wants_null(only)));
            let real = context.iter().find(|branch| !matches!(branch.as_slice(), [only] if wants_null(only)));
            if let (true, Some(branch)) = (optional, real) {
                branch.iter().for_each(|error| describe(error, faults));
                return;
            }
            "Input does not fit any of the choices".to_owned()
        }
        // The text must not repeat the value: it may be long, and the model knows it.
        other => format!("Input does not satisfy `{}`", other.keyword()),
    };
    faults.push(Fault { place, text });
}

fn wants_null(error: &ValidationError<'_>) -> bool {
    matches!(error.kind(), ValidationErrorKind::Type { kind: TypeKind::Single(kind) } if kind.as_str() == "null")
}

fn kind_text(kind: &TypeKind) -> String {
    let one = |kind: &str| {
        match kind {
            "array" => "a valid list",
            "object" => "a valid dictionary",
            "string" => "a valid string",
            "integer" => "a valid integer",
            "number" => "a valid number",
            "boolean" => "a valid boolean",
            "null" => "None",
            other => return other.to_owned(),
        }
        .to_owned()
    };
    match kind {
        TypeKind::Single(kind) => one(kind.as_str()),
        TypeKind::Multiple(kinds) => {
            let kinds: Vec<String> = kinds.iter().map(|kind| one(kind.as_str())).collect();
            either(&kinds)
        }
    }
}

/// A choice as people read it, in single quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{text}'"),
        other => other.to_string(),
    }
}

/// `a`, `a or b`, `a, b or c`.
fn either(choices: &[String]) -> String {
    match choices {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Effect, Registry, Tool, ToolError, ToolInput};
    use super::*;
    use serde_json::json;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[schemars(inline)]
    #[serde(rename_all = "lowercase")]
    enum Role {
        Owner,
        Admin,
        Member,
    }

    fn one() -> i64 {
        1
    }

    /// Adds.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Add {
        identifier: String,
        mentions: Vec<String>,
        role: Option<Role>,
        #[schemars(range(min = 1, max = 100))]
        #[serde(default = "one")]
        page: i64,
        #[schemars(range(min = 1, max = 100))]
        limit: Option<i64>,
    }

    impl ToolInput for Add {
        fn check(&self, faults: &mut Faults) {
            if self.identifier.is_empty() {
                faults.at("identifier", "can't be blank");
            }
            if self.page == 13 {
                faults.whole("no thirteenth page");
            }
        }
    }

    fn registry() -> Registry<()> {
        let mut registry = Registry::default();
        let tool = Tool::new("add", |(), add: Add| async move {
            Ok::<_, ToolError>(json!([add.identifier, add.mentions, add.role.is_some(), add.page, add.limit]))
        });
        registry.add(tool.effect(Effect::Act).alias("name", "identifier").checked::<Add>().platform()).unwrap();
        registry
    }

    async fn call(arguments: Value) -> String {
        registry().call((), "add", arguments).await.unwrap().text()
    }

    #[tokio::test]
    async fn every_fault_is_named_in_plain_words() {
        let faults = "Invalid arguments for add: ";
        for (arguments, expected) in [
            (json!({}), "identifier: Field required, mentions: Field required"),
            (Value::Null, "identifier: Field required, mentions: Field required"),
            (json!({"identifier": "a", "mentions": "b"}), "mentions: Input should be a valid list"),
            (json!({"identifier": "a", "mentions": [1]}), "mentions.0: Input should be a valid string"),
            (
                json!({"identifier": 7, "mentions": [], "role": "boss", "page": 0, "limit": 101}),
                "identifier: Input should be a valid string, role: Input should be 'owner', 'admin' or 'member', \
                 page: Input should be greater than or equal to 1, limit: Input should be less than or equal to 100",
            ),
            (json!({"identifier": "a", "mentions": [], "page": "x"}), "page: Input should be a valid integer"),
            (json!({"identifier": "a", "mentions": [], "page": null}), "page: Input should be a valid integer"),
            (json!({"identifier": "", "mentions": []}), "identifier: Value error, can't be blank"),
            (json!({"identifier": "a", "mentions": [], "page": 13}), ": Value error, no thirteenth page"),
            (json!("text"), ": Input should be a valid dictionary"),
        ] {
            assert_eq!(call(arguments).await, format!("{faults}{expected}"));
        }
    }

    #[tokio::test]
    async fn a_custom_tool_separates_its_faults_otherwise() {
        let mut registry = Registry::default();
        let tool = Tool::new("add", |(), _: Add| async move { Ok::<_, ToolError>(()) }).checked::<Add>();
        registry.add(tool).unwrap();
        let text = |arguments| async { registry.call((), "add", arguments).await.unwrap().text() };
        let required = "Invalid arguments for add: identifier: Field required; mentions: Field required";
        assert_eq!(text(json!({})).await, required);
        let whole = text(json!({"identifier": "a", "mentions": [], "page": 13})).await;
        assert_eq!(whole, "Invalid arguments for add: unknown: Value error, no thirteenth page");
    }

    #[tokio::test]
    async fn what_is_meant_is_understood() {
        let expected = json!(["a", ["b"], false, 2, null]).to_string();
        assert_eq!(call(json!({"identifier": "a", "mentions": ["b"], "page": "2", "extra": 1})).await, expected);
        assert_eq!(call(json!({"name": "a", "mentions": ["b"], "page": 2.0, "limit": null})).await, expected);
        assert_eq!(call(json!({"identifier": "a", "mentions": ["b"], "page": 2, "role": null})).await, expected);
    }
}
