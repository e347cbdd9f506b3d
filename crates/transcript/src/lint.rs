//! Finds what a provider would refuse in a history, before it does.

mod anthropic;
mod chat;
pub(crate) mod pairs;
mod responses;
mod tools;
mod words;

/// What the linter and the repair must agree on.
pub(crate) mod fields {
    pub(crate) use super::anthropic::{MAX_CACHE_MARKS, MESSAGE_FIELDS, system_run, unanswered_server_call};
    pub(crate) use super::chat::ASSISTANT_FIELDS;
    pub(crate) use super::responses::{followed, id_prefix};
}

use serde_json::Value;

use crate::format::{Format, codes};
use crate::ids::is_legal_tool_name;
use crate::profile::Profile;
use crate::read::{self, Document};

codes! {
    /// What is wrong.
    FindingCode {
        /// A call that nothing answers.
        MissingToolResult = "missing_tool_result",
        /// A result that nothing asked for.
        OrphanToolResult = "orphan_tool_result",
        /// A second result of one call.
        DuplicateToolResult = "duplicate_tool_result",
        /// A result that is not where the format wants it.
        ResultNotAdjacent = "result_not_adjacent",
        /// A result behind other content of its turn.
        ResultAfterContent = "result_after_content",
        /// A call with the id of an earlier one.
        DuplicateToolCallId = "duplicate_tool_call_id",
        /// A call's id in a shape that the server does not take.
        BadToolCallId = "bad_tool_call_id",
        /// A tool's name that providers do not take.
        BadToolName = "bad_tool_name",
        /// Arguments that are no JSON object, or not in the format's form.
        ArgumentsInvalid = "arguments_invalid",
        /// `tool_calls` without an entry.
        EmptyToolCallsArray = "empty_tool_calls_array",
        /// Empty or blank text, or a message without content.
        EmptyTextBlock = "empty_text_block",
        /// The last assistant text ends in white space.
        TrailingWhitespace = "trailing_whitespace",
        /// The history ends with the assistant.
        TrailingAssistant = "trailing_assistant",
        /// Roles in an order that the server refuses.
        RoleOrder = "role_order",
        /// A field or part that does not belong there.
        UnsupportedField = "unsupported_field",
        /// Half of a UTF-16 pair.
        LoneSurrogate = "lone_surrogate",
        /// An item's id without the reasoning that it was made with.
        ItemIdWithoutReasoning = "item_id_without_reasoning",
        /// Reasoning that nothing follows.
        ReasoningWithoutFollowingItem = "reasoning_without_following_item",
        /// An item's id of another kind of item.
        WrongItemIdPrefix = "wrong_item_id_prefix",
        /// Thinking without the signature that proves it.
        MissingSignature = "missing_signature",
        /// More than four cache marks.
        TooManyCacheMarks = "too_many_cache_marks",
        /// A message that is no object, or has no role that the format knows.
        BadMessage = "bad_message",
        /// JSON that had to be mended to be read.
        BrokenJson = "broken_json",
        /// Parts of another format in between.
        MixedFormats = "mixed_formats",
        /// A tool's definition that is not in the format's form.
        BadToolDefinition = "bad_tool_definition",
        /// `tools` without an entry.
        EmptyToolsArray = "empty_tools_array",
        /// Two tools of one name.
        DuplicateTool = "duplicate_tool",
        /// A schema whose top is refused: no object, or alternatives.
        BadToolSchema = "bad_tool_schema",
        /// A key of a schema's properties that is refused.
        BadPropertyKey = "bad_property_key",
        /// A strict tool whose schema breaks the rules for that.
        StrictSchema = "strict_schema",
        /// The choice names a tool that is not offered.
        UnknownToolChoice = "unknown_tool_choice",
        /// A choice without tools.
        ChoiceWithoutTools = "choice_without_tools",
        /// A forced choice while thinking is on.
        ForcedChoiceWithThinking = "forced_choice_with_thinking",
        /// The history holds calls, and no tools are offered.
        ToolsMissing = "tools_missing",
        /// An event of a room that cannot be read, so that a call or a result is missing.
        UnreadableEvent = "unreadable_event",
    }
}

/// Whether the request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Some models or servers refuse it.
    Warning,
    /// It will be refused.
    Error,
}

impl Severity {
    /// `warning` or `error`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Which part of a request a fault is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Section {
    /// `messages`, or `input`.
    #[default]
    Messages,
    /// `tools`.
    Tools,
    /// `tool_choice`.
    ToolChoice,
}

impl Section {
    /// `messages`, `tools` or `tool_choice`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Tools => "tools",
            Self::ToolChoice => "tool_choice",
        }
    }
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub code: FindingCode,
    /// How bad it is.
    pub severity: Severity,
    /// Where in the request.
    pub section: Section,
    /// Which message or input item, or which tool, from 0.
    pub index: usize,
    /// Which content block of it, from 0.
    pub block: Option<usize>,
    /// The ids concerned.
    pub ids: Vec<String>,
    /// The field concerned.
    pub field: Option<String>,
    /// What the provider would say, in short.
    pub says: String,
    /// What [`repair`](crate::repair::repair) does about it.
    pub fix: String,
}

/// How to lint.
#[derive(Debug, Clone, Copy)]
pub struct LintOptions {
    /// In which format the history is.
    pub format: Format,
    /// For which server.
    pub profile: &'static Profile,
    /// Responses: whether the model reasons, so that item ids must come with their reasoning.
    pub reasoning_model: bool,
}

impl LintOptions {
    /// The format as its owner documents it.
    pub fn new(format: Format) -> Self {
        Self { format, profile: Profile::none(), reasoning_model: false }
    }
}

/// A lint of bytes: what they hold and what is wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The document as it could be read.
    pub document: Document,
    /// The format that was linted.
    pub format: Format,
    /// In order of message and block.
    pub findings: Vec<Finding>,
}

/// Checks a history (`messages`, or `input`), and the tools that the request offers. Never fails: what is no history has findings, or none.
pub fn lint(payload: &Value, options: &LintOptions) -> Vec<Finding> {
    let mut sink = Sink { format: options.format, findings: Vec::new() };
    match options.format {
        Format::OpenAiChat => chat::lint(payload, options, &mut sink),
        Format::OpenAiResponses => responses::lint(payload, options, &mut sink),
        Format::Anthropic => anthropic::lint(payload, options, &mut sink),
    }
    tools::lint(payload, options, &mut sink);
    sorted(sink.findings)
}

/// Reads bytes whatever state they are in, detects the format unless it is given, and checks the history.
pub fn lint_bytes(bytes: &[u8], format: Option<Format>, options: impl Fn(Format) -> LintOptions) -> Report {
    let document = read::read(bytes);
    let format = format.or(document.format).unwrap_or(Format::OpenAiChat);
    let options = options(format);
    let mut findings = lint(&document.payload, &options);
    let mut sink = Sink { format, findings: Vec::new() };
    for place in &document.lone_surrogates {
        let (index, block, field) = read::place_in_history(place);
        // Several halves in one text are one fault.
        if sink.findings.iter().any(|known| (known.index, known.block, &known.field) == (index, block, &field)) {
            continue;
        }
        let finding = sink.add(FindingCode::LoneSurrogate, index, block);
        finding.field = field;
    }
    for fault in &document.faults {
        sink.add(FindingCode::BrokenJson, 0, None).says = fault.to_string();
    }
    for (index, other) in &document.mixed {
        if *other != format {
            sink.add(FindingCode::MixedFormats, *index, None).field = Some(other.name().to_owned());
        }
    }
    findings.extend(sink.findings);
    Report { document, format, findings: sorted(findings) }
}

/// Whether there is a fault for which the provider would refuse the request.
pub fn has_errors(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

fn sorted(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|finding| (finding.section, finding.index, finding.block.map_or(0, |block| block + 1)));
    findings
}

/// A finding of its own, for what is no fault of a payload.
pub(crate) fn finding(code: FindingCode, format: Format, index: usize) -> Finding {
    Sink { format, findings: Vec::new() }.add(code, index, None).clone()
}

pub(crate) struct Sink {
    format: Format,
    findings: Vec<Finding>,
}

impl Sink {
    fn add(&mut self, code: FindingCode, index: usize, block: Option<usize>) -> &mut Finding {
        let severity = match code {
            FindingCode::TrailingAssistant | FindingCode::MixedFormats | FindingCode::ToolsMissing => Severity::Warning,
            _ => Severity::Error,
        };
        let at = self.findings.len();
        self.findings.push(Finding {
            code,
            severity,
            section: Section::Messages,
            index,
            block,
            ids: Vec::new(),
            field: None,
            says: words::says(code, self.format).to_owned(),
            fix: words::fix(code).to_owned(),
        });
        &mut self.findings[at]
    }

    fn with_id(&mut self, code: FindingCode, index: usize, block: Option<usize>, id: &str) {
        self.add(code, index, block).ids.push(id.to_owned());
    }

    fn with_field(&mut self, code: FindingCode, index: usize, block: Option<usize>, field: &str) {
        self.add(code, index, block).field = Some(field.to_owned());
    }

    /// Calls, results, ids and names, for all three formats.
    fn pairs(&mut self, history: &pairs::Pairs<'_>, options: &LintOptions) {
        let rule = options.profile.id_rule(options.format);
        let judged = history.judge();
        let mut seen = std::collections::HashSet::new();
        for (call, answered) in history.calls.iter().zip(&judged.answered) {
            let id = call.id;
            let new = seen.insert(id);
            if !pairs::id_allowed(id, rule, options.profile) {
                self.with_id(FindingCode::BadToolCallId, call.index, call.block, id);
            } else if !new {
                self.with_id(FindingCode::DuplicateToolCallId, call.index, call.block, id);
            }
            if !is_legal_tool_name(call.name) {
                let finding = self.add(FindingCode::BadToolName, call.index, call.block);
                finding.ids.push(id.to_owned());
                finding.field = Some("name".to_owned());
            }
            if call.bad_arguments {
                self.with_id(FindingCode::ArgumentsInvalid, call.index, call.block, id);
            }
            if answered.is_none() {
                self.with_id(FindingCode::MissingToolResult, call.index, call.block, id);
            }
        }
        for (result, fate) in history.results.iter().zip(&judged.fates) {
            let code = match fate {
                pairs::Fate::Answers(_) => continue,
                pairs::Fate::Misplaced(_) => FindingCode::ResultNotAdjacent,
                pairs::Fate::Again => FindingCode::DuplicateToolResult,
                pairs::Fate::Orphan => FindingCode::OrphanToolResult,
            };
            self.with_id(code, result.index, result.block, result.id);
        }
    }
}
