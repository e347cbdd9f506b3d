//! What a request offers to the model beside the history: tools, the choice among them, and whether it may call several
//! at once; for all three formats, both ways.
//!
//! ```
//! use bandstand_transcript::Format;
//! use bandstand_transcript::tools::{OfferOptions, decode_offer, encode_offer};
//! use serde_json::json;
//!
//! let request = json!({
//!     "tools": [{ "type": "function", "function": { "name": "fs.read", "parameters": { "type": "object",
//!         "properties": { "path": { "type": "string" } }, "required": ["path"] } } }],
//!     "tool_choice": "required", "parallel_tool_calls": false,
//! });
//! let offer = decode_offer(&request, Format::OpenAiChat).offer;
//! let sent = encode_offer(&offer, Format::Anthropic, &OfferOptions::default());
//! // A dot is refused in a name; the table leads back.
//! assert_eq!(sent.fields["tools"][0]["name"], "fs_read");
//! assert_eq!(sent.names.tool("fs_read").as_str(), "fs.read");
//! assert_eq!(sent.fields["tool_choice"], json!({ "type": "any", "disable_parallel_tool_use": true }));
//! ```

mod decode;
mod encode;
pub(crate) mod keys;
pub(crate) mod schema;

use serde_json::Value;

pub use decode::decode_offer;
pub use encode::{encode_offer, encode_tool};
pub use keys::WireNames;

use crate::format::{Format, Warnings};
use crate::ids::ToolName;
use crate::model::Carried;
use crate::profile::Profile;
use serde_json::Map;

/// The one property of a tool that takes free text, where a format has no such tools.
pub const FREE_TEXT: &str = "input";

/// What a tool takes.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolKind {
    /// Arguments by name: a JSON Schema of an object; nothing when it takes none.
    Function(Option<Value>),
    /// Text as it is, perhaps of a grammar (as Responses writes it: `{type, syntax, definition}`).
    FreeText(Option<Value>),
    /// A tool of a provider's own kind (web search, a remote MCP server). Kept whole for the way back.
    Foreign {
        /// Whose it is.
        format: Format,
        /// The entry as it was.
        entry: Value,
    },
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Its name in the registry.
    pub name: ToolName,
    /// What it is for.
    pub description: Option<String>,
    /// What it takes.
    pub kind: ToolKind,
    /// Whether the provider is to hold the model to the schema; nothing leaves it to the provider.
    pub strict: Option<bool>,
    /// What else the provider knows of it (cache marks, examples).
    pub carried: Carried,
}

impl ToolDefinition {
    /// A function of this name.
    pub fn function(name: impl Into<String>, description: impl Into<String>, schema: Value) -> Self {
        Self {
            name: ToolName::new(name),
            description: Some(description.into()),
            kind: ToolKind::Function(Some(schema)),
            strict: None,
            carried: Carried::default(),
        }
    }
}

/// Which tools the model calls.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolChoice {
    /// It decides.
    Auto,
    /// One at least, whichever.
    Required,
    /// This one.
    One(ToolName),
    /// None.
    None,
    /// Some of those that are offered.
    Allowed {
        /// Whether it has to call one.
        required: bool,
        /// Which.
        names: Vec<ToolName>,
    },
    /// A choice of a provider's own kind.
    Foreign {
        /// Whose it is.
        format: Format,
        /// The choice as it was.
        choice: Value,
    },
}

/// What a request offers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Offer {
    /// In order.
    pub tools: Vec<ToolDefinition>,
    /// Nothing leaves it to the provider, which lets the model decide.
    pub choice: Option<ToolChoice>,
    /// Whether several calls may be made at once; nothing leaves it to the provider.
    pub parallel: Option<bool>,
}

impl Offer {
    /// Names of the tools that are called by name.
    pub fn names(&self) -> impl Iterator<Item = &ToolName> {
        let called = |tool: &&ToolDefinition| !matches!(tool.kind, ToolKind::Foreign { .. });
        self.tools.iter().filter(called).map(|tool| &tool.name)
    }
}

/// What a server knows of tools beside the plain function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolRules {
    /// Whether the choice may name a subset; else fewer tools are sent.
    pub subset: bool,
    /// OpenAI's formats: whether there are tools that take free text; else they are wrapped.
    pub free_text: bool,
    /// Whether it knows `strict`.
    pub strict: bool,
    /// Whether a function without parameters has to have an empty schema all the same.
    pub empty_schema: bool,
    /// Whether tools have to be offered as long as the history holds calls.
    pub wanted_with_history: bool,
}

impl ToolRules {
    /// As the formats' owners document them.
    pub const OWN: Self =
        Self { subset: true, free_text: true, strict: true, empty_schema: false, wanted_with_history: false };
    /// What all servers of the chat format take.
    pub const COMPATIBLE: Self =
        Self { subset: false, free_text: false, strict: false, empty_schema: true, ..Self::OWN };
    /// Bedrock, whose Converse API stands behind many gateways.
    pub const BEDROCK: Self = Self { wanted_with_history: true, ..Self::OWN };
}

/// How to write an offer.
#[derive(Debug, Clone, Copy)]
pub struct OfferOptions {
    /// For which server.
    pub profile: &'static Profile,
    /// Anthropic: whether thinking is on, with which a forced choice is refused.
    pub thinking: bool,
}

impl Default for OfferOptions {
    fn default() -> Self {
        Self { profile: Profile::none(), thinking: false }
    }
}

/// An offer as read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DecodedOffer {
    /// The offer.
    pub offer: Offer,
    /// What had to be guessed.
    pub warnings: Warnings,
}

/// An offer for the wire.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedOffer {
    /// Fields of the request's body: `tools`, `tool_choice`, `parallel_tool_calls`; those that say nothing are left out.
    pub fields: Map<String, Value>,
    /// What was changed or lost.
    pub warnings: Warnings,
    /// Leads from names and argument keys on the wire back to the registry's.
    pub names: WireNames,
}

/// Whether thinking is on in an Anthropic request.
pub fn thinks(request: &Value) -> bool {
    let kind = request.pointer("/thinking/type").and_then(Value::as_str);
    kind.is_some_and(|kind| kind != "disabled")
}
