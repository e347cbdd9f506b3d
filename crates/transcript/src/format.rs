//! The three provider formats, and what a conversion has to say about itself.

/// A provider's way of writing a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// OpenAI Chat Completions: `messages` with `tool_calls`.
    OpenAiChat,
    /// OpenAI Responses: `input` items.
    OpenAiResponses,
    /// Anthropic Messages: `messages` made of blocks.
    Anthropic,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic];

    /// Its name: `openai.chat`, `openai.responses` or `anthropic`.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai.chat",
            Self::OpenAiResponses => "openai.responses",
            Self::Anthropic => "anthropic",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

macro_rules! codes {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its code.
            pub fn code(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.code())
            }
        }
    };
}
pub(crate) use codes;

codes! {
    /// What a converter or an assembler changed, guessed or lost.
    WarningCode {
        /// A failure went out as text, because the format has no flag for it.
        ErrorFlagAsText = "error_flag_as_text",
        /// An image in a result went out in a user message.
        ImageMovedToUser = "image_moved_to_user",
        /// A gateway had packed a signature into the call's id.
        SignatureSplitFromId = "signature_split_from_id",
        /// A signature was left out: the receiver did not mint it.
        SignatureDropped = "signature_dropped",
        /// A block that only another provider knows was left out.
        ForeignBlock = "foreign_block",
        /// Arguments were encoded as JSON twice.
        ArgumentsDoubleEncoded = "arguments_double_encoded",
        /// The receiver does not take a call's id, or it was there twice.
        ToolCallIdRenamed = "tool_call_id_renamed",
        /// A stream gave one index to several calls.
        IndexReused = "index_reused",
        /// The indexes of a stream's calls have gaps.
        IndexSparse = "index_sparse",
        /// A stream repeated a call's id.
        IdRepeated = "id_repeated",
        /// A stream repeated a call's name.
        NameRepeated = "name_repeated",
        /// A stream repeated a call's arguments.
        ArgumentsRepeated = "arguments_repeated",
        /// The label said that the model was done, but there are calls.
        FinishReasonPromoted = "finish_reason_promoted",
        /// The last event had no output; it was put together from the items before.
        OutputRebuiltFromItems = "output_rebuilt_from_items",
        /// The token limit cut a call.
        TruncatedToolCall = "truncated_tool_call",
        /// The label announced calls, but there are none.
        StopLabelWithoutCalls = "stop_label_without_calls",
        /// Reasoning without a signature was left out: the receiver does not take it.
        ReasoningDropped = "reasoning_dropped",
        /// A refusal went out as text.
        RefusalAsText = "refusal_as_text",
        /// Text and calls of a message changed places.
        OrderChanged = "order_changed",
        /// Later system text moved to the front, or became a user's.
        SystemTextMoved = "system_text_moved",
        /// A participant's name was left out.
        NameDropped = "name_dropped",
        /// Cache marks, citations, annotations or other fields of one provider were left out.
        FieldsDropped = "fields_dropped",
        /// A tool's name went out with other characters; the table of names leads back.
        ToolNameRenamed = "tool_name_renamed",
        /// A call came without an id and was given one.
        ToolCallIdMade = "tool_call_id_made",
        /// Arguments that are no JSON object went out as `{}`.
        ArgumentsReplaced = "arguments_replaced",
        /// A message was put between, because the server wants the roles in another order.
        MessageInserted = "message_inserted",
        /// A reply had several choices; the first counts.
        ChoicesDropped = "choices_dropped",
        /// A row or a message could not be read and was left out.
        Unreadable = "unreadable",
        /// A tool is not in the choice and was not offered, because the server knows no such choice.
        ToolNotOffered = "tool_not_offered",
        /// A tool that takes free text went out as one with a single argument.
        ToolWrapped = "tool_wrapped",
        /// A tool's schema was changed: the receiver does not take it as it is.
        SchemaChanged = "schema_changed",
        /// A tool is not strict any more: the receiver's rules for that are others.
        StrictDropped = "strict_dropped",
        /// A choice of tools was left to the model.
        ChoiceWeakened = "choice_weakened",
    }
}

/// Something that a conversion changed, guessed or lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What.
    pub code: WarningCode,
    /// Of which, in words: an id, a field, a kind of block.
    pub detail: String,
}

/// The warnings of one conversion, in order of appearance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Warnings(Vec<Warning>);

impl Warnings {
    /// Adds one.
    pub fn add(&mut self, code: WarningCode, detail: impl Into<String>) {
        self.0.push(Warning { code, detail: detail.into() });
    }

    /// Adds one unless the same is there.
    pub fn add_once(&mut self, code: WarningCode, detail: impl Into<String>) {
        let warning = Warning { code, detail: detail.into() };
        if !self.0.contains(&warning) {
            self.0.push(warning);
        }
    }

    /// Adds those of another conversion.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = &Warning> {
        self.0.iter()
    }

    /// Whether one of this code is there.
    pub fn has(&self, code: WarningCode) -> bool {
        self.0.iter().any(|warning| warning.code == code)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
