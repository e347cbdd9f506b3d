//! What providers say of each fault, and what is done about it. Shortened: the exact wording changes.

use super::FindingCode as Code;
use crate::format::Format;

pub(super) fn says(code: Code, format: Format) -> &'static str {
    use Format::{Anthropic, OpenAiChat, OpenAiResponses};
    match (code, format) {
        (Code::MissingToolResult, Anthropic) => {
            "400: `tool_use` ids were found without `tool_result` blocks immediately after"
        }
        (Code::MissingToolResult, OpenAiChat) => {
            "400: an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'"
        }
        (Code::MissingToolResult, OpenAiResponses) => "400: no tool output found for function call",
        (Code::OrphanToolResult, Anthropic) => {
            "400: unexpected `tool_use_id` found in `tool_result` blocks; there must be a `tool_use` block in the previous message"
        }
        (Code::OrphanToolResult, OpenAiChat) => {
            "400: messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
        }
        (Code::OrphanToolResult, OpenAiResponses) => "400: no tool call found for function call output",
        (Code::DuplicateToolResult, Anthropic) => {
            "400: each tool_use must have a single result; found multiple `tool_result` blocks"
        }
        (Code::DuplicateToolResult, _) => "refused or mispaired: one call has two results",
        (Code::ResultNotAdjacent, Anthropic) => {
            "400: `tool_use` ids were found without `tool_result` blocks immediately after"
        }
        (Code::ResultNotAdjacent, OpenAiChat) => {
            "400: tool messages must directly follow the assistant message with their 'tool_calls'"
        }
        (Code::ResultNotAdjacent, OpenAiResponses) => "400: the output stands before its call",
        (Code::ResultAfterContent, _) => "400: `tool_result` blocks must come first in the user message",
        (Code::DuplicateToolCallId, Anthropic) => "400: `tool_use` ids must be unique",
        (Code::DuplicateToolCallId, _) => "accepted, and results are paired with the wrong call",
        (Code::BadToolCallId, Anthropic) => "400: id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        (Code::BadToolCallId, OpenAiChat) => "400: string too long (or not in the shape that this server wants)",
        (Code::BadToolCallId, OpenAiResponses) => "400: 'call_id': string too long, maximum length 64",
        (Code::BadToolName, _) => "400: name: string does not match pattern '^[a-zA-Z0-9_-]{1,64}$'",
        (Code::ArgumentsInvalid, Anthropic) => "400: tool_use.input: Input should be a valid dictionary",
        (Code::ArgumentsInvalid, _) => "400 or 500: arguments are not the JSON text of an object",
        (Code::EmptyToolCallsArray, _) => "400: [] is too short - 'messages.tool_calls', minimum length 1",
        (Code::EmptyTextBlock, Anthropic) => "400: text content blocks must be non-empty",
        (Code::EmptyTextBlock, _) => "400: invalid value for 'content': expected a string, got null",
        (Code::TrailingWhitespace, _) => "400: final assistant content cannot end with trailing whitespace",
        (Code::TrailingAssistant, _) => {
            "400 from newer models: the conversation must end with a user message (no prefill)"
        }
        (Code::RoleOrder, Anthropic) => {
            "400: first message must use the \"user\" role, system messages only behind a user turn"
        }
        (Code::RoleOrder, _) => "400: unexpected role 'user' after role 'tool'",
        (Code::UnsupportedField, _) => "400: the property is unsupported",
        (Code::LoneSurrogate, _) => "400: the request body is not valid JSON: no low surrogate in string",
        (Code::ItemIdWithoutReasoning, _) => "400: item was provided without its required 'reasoning' item",
        (Code::ReasoningWithoutFollowingItem, _) => {
            "400: item of type 'reasoning' was provided without its required following item"
        }
        (Code::WrongItemIdPrefix, _) => "400: invalid 'id': expected an ID that begins with the item's own prefix",
        (Code::MissingSignature, _) => "400: thinking.signature: field required",
        (Code::TooManyCacheMarks, _) => "400: a maximum of 4 blocks with cache_control may be provided",
        (Code::BadMessage, _) => "400: the message has no valid role",
        (Code::BrokenJson, _) => "400: the request body is not valid JSON",
        (Code::MixedFormats, _) => "400: the message is in the form of another API",
        (Code::BadToolDefinition, _) => "400: the tool is not in the form of this API",
        (Code::EmptyToolsArray, _) => "400: invalid 'tools': empty array, expected an array with minimum length 1",
        (Code::DuplicateTool, Anthropic) => "400: tools: Tool names must be unique",
        (Code::DuplicateTool, _) => "accepted, and which of the two is meant is not known",
        (Code::BadToolSchema, Anthropic) => {
            "400: input_schema.type: input should be 'object'; oneOf, allOf and anyOf are not supported at the top level"
        }
        (Code::BadToolSchema, _) => {
            "400: invalid schema for function: it must have type 'object' and not have 'oneOf', 'anyOf', 'allOf', 'enum' or 'not' at the top level"
        }
        (Code::BadPropertyKey, _) => "400: property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'",
        (Code::StrictSchema, Anthropic) => {
            "400: for 'object' type, 'additionalProperties' must be explicitly set to false (or a keyword is not supported)"
        }
        (Code::StrictSchema, _) => {
            "400: invalid schema for function: 'additionalProperties' must be false and 'required' must include every key (or a keyword is not permitted)"
        }
        (Code::UnknownToolChoice, _) => "400: the tool of the choice is not among the tools",
        (Code::ChoiceWithoutTools, _) => "400: 'tool_choice' is only allowed when 'tools' are specified",
        (Code::ForcedChoiceWithThinking, _) => "400: thinking may not be enabled when tool_choice forces tool use",
        (Code::ToolsMissing, _) => {
            "400 from the Converse API: the toolConfig field must be defined when using toolUse and toolResult content blocks"
        }
        (Code::UnreadableEvent, _) => "nothing: whoever reads the room leaves the event out",
    }
}

pub(super) fn fix(code: Code) -> &'static str {
    match code {
        Code::MissingToolResult => "add a failed result that says that the call was interrupted",
        Code::OrphanToolResult => "drop the result",
        Code::DuplicateToolResult => "keep the first result",
        Code::ResultNotAdjacent => "move the result up behind its call",
        Code::ResultAfterContent => "put the results first",
        Code::DuplicateToolCallId => "rename the later call and its results",
        Code::BadToolCallId => "rename the id at the call and its results",
        Code::BadToolName => "replace the characters that are refused",
        Code::ArgumentsInvalid => "write the object in the format's form; `{}` where it cannot be read",
        Code::EmptyToolCallsArray => "leave the key out",
        Code::EmptyTextBlock => "drop the block, and the message when it is empty then",
        Code::TrailingWhitespace => "cut the white space off",
        Code::TrailingAssistant => "none: send it to a model that takes a prefill, or add a user message",
        Code::RoleOrder => "put a short message in between",
        Code::UnsupportedField => "leave the field out",
        Code::LoneSurrogate => "replace the half pair with U+FFFD",
        Code::ItemIdWithoutReasoning => "leave id and status out",
        Code::ReasoningWithoutFollowingItem => "drop the reasoning",
        Code::WrongItemIdPrefix => "leave the id out",
        Code::MissingSignature => "drop the thinking block",
        Code::TooManyCacheMarks => "keep the last four",
        Code::BadMessage => "drop the message",
        Code::BrokenJson => "write out what could be read",
        Code::MixedFormats => "convert the whole history to one format",
        Code::BadToolDefinition => "drop the tool, or convert the request",
        Code::EmptyToolsArray => "leave the key out",
        Code::DuplicateTool => "keep the first",
        Code::BadToolSchema => "describe one object, with the properties of all alternatives",
        Code::BadPropertyKey => "replace the characters that are refused, and tell the tool",
        Code::StrictSchema => "leave strict off",
        Code::UnknownToolChoice => "let the model choose",
        Code::ChoiceWithoutTools => "leave the choice out",
        Code::ForcedChoiceWithThinking => "let the model choose",
        Code::ToolsMissing => "none: offer the tools that the history calls",
        Code::UnreadableEvent => "none: the event stays in the room; its call or result is lost",
    }
}
