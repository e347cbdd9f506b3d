//! What servers refuse and bend, as one table. A profile shapes the copy that is sent; the stored transcript stays.

use crate::format::Format;
use crate::ids::IdRule;
use crate::tools::ToolRules;

/// How reasoning text without a signature goes back to a server of the chat format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningField {
    /// Left out.
    Omit,
    /// As `reasoning_content`, in turns that used tools.
    ContentInToolTurns,
    /// As `reasoning_content`, wherever it was.
    Content,
    /// As `reasoning`.
    Reasoning,
}

/// What an assistant message without text has as `content` beside its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyContent {
    /// `null`.
    Null,
    /// `""`.
    Empty,
}

/// One server. Look it up by name with [`Profile::named`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What it is called, as in `--profile`.
    pub name: &'static str,
    /// The formats that it speaks.
    pub formats: &'static [Format],
    /// Chat: the shape of call ids, where it is not the format's own.
    pub chat_ids: Option<IdRule>,
    /// Chat: whether fields that OpenAI does not document are refused in assistant messages.
    pub refuses_unknown_fields: bool,
    /// Chat: what becomes of plain reasoning.
    pub reasoning: ReasoningField,
    /// Chat: what stands for no text beside calls.
    pub empty_content: EmptyContent,
    /// Chat: whether a user message may stand directly behind results.
    pub user_after_tool: bool,
    /// Chat: whether results carry the tool's name where it is known.
    pub result_name: bool,
    /// Chat: the role that system text has.
    pub system_role: &'static str,
    /// Chat: whether a signature goes back in the call (`extra_content.google.thought_signature`).
    pub google_signatures: bool,
    /// Chat: whether a signature goes back packed into the call's id, as this gateway gave it.
    pub signature_in_id: bool,
    /// Anthropic: whether the last message may be the assistant's (a prefill).
    pub prefill: bool,
    /// Anthropic: value of `anthropic_version` in the body, where the model stands in the URL.
    pub body_version: Option<&'static str>,
    /// What it knows of tools.
    pub tools: ToolRules,
    /// What it is known to do to streams; assemblers always read with all of these in mind.
    pub stream_notes: &'static str,
}

use Format::{Anthropic, OpenAiChat, OpenAiResponses};

const BASE: Profile = Profile {
    name: "none",
    formats: &[OpenAiChat, OpenAiResponses, Anthropic],
    chat_ids: None,
    refuses_unknown_fields: false,
    reasoning: ReasoningField::Omit,
    empty_content: EmptyContent::Null,
    user_after_tool: true,
    result_name: false,
    system_role: "system",
    google_signatures: false,
    signature_in_id: false,
    prefill: false,
    body_version: None,
    tools: ToolRules::OWN,
    stream_notes: "",
};

/// Chat servers other than OpenAI: an empty string is what none of them refuses.
const COMPATIBLE: Profile = Profile {
    formats: &[OpenAiChat],
    empty_content: EmptyContent::Empty,
    result_name: true,
    tools: ToolRules::COMPATIBLE,
    ..BASE
};

/// Every profile.
pub static PROFILES: &[Profile] = &[
    BASE,
    Profile { name: "openai", formats: &[OpenAiChat, OpenAiResponses], refuses_unknown_fields: true, ..BASE },
    Profile {
        name: "azure",
        formats: &[OpenAiChat, OpenAiResponses],
        stream_notes: "a first chunk without choices, a late choice without delta, empty ids",
        ..BASE
    },
    Profile { name: "anthropic", formats: &[Anthropic], ..BASE },
    Profile { name: "prefill", formats: &[Anthropic], prefill: true, ..BASE },
    Profile {
        name: "bedrock",
        formats: &[Anthropic],
        body_version: Some("bedrock-2023-05-31"),
        tools: ToolRules::BEDROCK,
        ..BASE
    },
    Profile { name: "vertex", formats: &[Anthropic], body_version: Some("vertex-2023-10-16"), ..BASE },
    Profile {
        name: "vllm",
        reasoning: ReasoningField::Content,
        stream_notes: "arguments sent twice at the end, id and name repeated, a lost brace, finish stop with calls",
        ..COMPATIBLE
    },
    Profile {
        name: "ollama",
        stream_notes: "a whole call in one chunk, index always 0 or missing, finish stop with calls",
        ..COMPATIBLE
    },
    Profile {
        name: "llama.cpp",
        reasoning: ReasoningField::Content,
        stream_notes: "the full name in every delta",
        ..COMPATIBLE
    },
    Profile { name: "lmstudio", stream_notes: "empty ids, whole arguments in one chunk", ..COMPATIBLE },
    Profile {
        name: "litellm",
        // Its proxy offers all three, whatever stands behind it.
        formats: &[OpenAiChat, OpenAiResponses, Anthropic],
        // An empty text it replaces by words of its own before an Anthropic model.
        empty_content: EmptyContent::Null,
        signature_in_id: true,
        stream_notes: "the id on every chunk, block numbers as indexes, a closing summary chunk",
        ..COMPATIBLE
    },
    Profile {
        name: "openrouter",
        reasoning: ReasoningField::Reasoning,
        stream_notes: "comment lines, finish error, reasoning_details",
        ..COMPATIBLE
    },
    Profile {
        name: "gemini",
        google_signatures: true,
        stream_notes: "finish stop with calls, a name in pieces",
        ..COMPATIBLE
    },
    Profile { name: "groq", refuses_unknown_fields: true, ..COMPATIBLE },
    Profile { name: "mistral", chat_ids: Some(IdRule::Exactly(9)), user_after_tool: false, ..COMPATIBLE },
    Profile { name: "deepseek", reasoning: ReasoningField::ContentInToolTurns, ..COMPATIBLE },
    Profile { name: "compatible", ..COMPATIBLE },
];

impl Profile {
    /// The format as its owner documents it.
    pub fn none() -> &'static Self {
        &PROFILES[0]
    }

    /// The profile of that name; `llamacpp` and `lm-studio` are understood too.
    pub fn named(name: &str) -> Option<&'static Self> {
        let name = match name {
            "llamacpp" | "llama-cpp" => "llama.cpp",
            "lm-studio" | "lm_studio" => "lmstudio",
            "azure-openai" => "azure",
            "openai-strict" => "openai",
            "gemini-compat" => "gemini",
            other => other,
        };
        PROFILES.iter().find(|profile| profile.name == name)
    }

    /// The shape of call ids in this format on this server.
    pub fn id_rule(&self, format: Format) -> IdRule {
        match format {
            Format::OpenAiChat => self.chat_ids.unwrap_or(IdRule::UpTo(40)),
            Format::OpenAiResponses => IdRule::UpTo(64),
            Format::Anthropic => IdRule::Word,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for profile in PROFILES {
            assert_eq!(Profile::named(profile.name).map(|found| found.name), Some(profile.name));
        }
    }
}
