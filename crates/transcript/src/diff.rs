//! What became of a conversation: two transcripts, compared by what they mean.
//!
//! A call is known by its id, else by what it asks for; a result belongs to its call wherever it stands. What servers
//! and formats may write in several ways without saying anything else (ids of calls, one text in two parts, the order of
//! the results of one turn) is [`Weight::Form`]. Cache marks, citations and other fields that are carried along for one
//! provider are not compared.
//!
//! ```
//! use bandstand_transcript::diff::{Weight, diff, diff_in};
//! use bandstand_transcript::model::RefusalPart;
//! use bandstand_transcript::{EncodeOptions, Format, Message, Part, Role, Transcript};
//!
//! let refusal = Part::Refusal(RefusalPart { text: "I can't.".to_owned(), carried: Default::default() });
//! let first = Transcript::new(vec![Message::text(Role::User, "Hm?"), Message::new(Role::Assistant, vec![refusal])]);
//! let second = Transcript::new(vec![Message::text(Role::User, "Hm?"), Message::text(Role::Assistant, "I can't.")]);
//! let found = diff(&first, &second);
//! assert_eq!((found[0].code.code(), found[0].weight), ("refusal_as_text", Weight::Fault));
//! // Anthropic has no refusal parts: there is no other way.
//! let found = diff_in(&first, &second, Format::Anthropic, &EncodeOptions::default());
//! assert_eq!(found[0].weight, Weight::Unavoidable);
//! ```

mod atoms;
mod compare;
mod matching;
mod results;
mod words;

use std::collections::HashMap;
use std::fmt;

use serde::{Serialize, Serializer};

pub use crate::answers::Place;
use crate::convert::EncodeOptions;
use crate::format::{Format, WarningCode, codes};
use crate::histories::ProviderHistory;
use crate::model::Transcript;
use crate::project::project;

codes! {
    /// What differs.
    DifferenceCode {
        /// A call is gone.
        CallLost = "call_lost",
        /// There is a call that was not there.
        CallAdded = "call_added",
        /// A call asks for another tool.
        ToolNameDiffers = "tool_name_differs",
        /// A call has other arguments.
        ArgumentsDiffer = "arguments_differ",
        /// A call and its results have another id.
        CallIdRenamed = "call_id_renamed",
        /// A result is gone.
        ResultLost = "result_lost",
        /// There is a result that was not there.
        ResultAdded = "result_added",
        /// A result stands elsewhere.
        ResultMoved = "result_moved",
        /// The results of one turn stand in another order.
        ResultsReordered = "results_reordered",
        /// A result says something else.
        ResultChanged = "result_changed",
        /// A failed result no longer says that it failed.
        ErrorFlagLost = "error_flag_lost",
        /// A result says that it failed, which it did not.
        ErrorFlagAdded = "error_flag_added",
        /// Text is gone.
        TextLost = "text_lost",
        /// There is text that was not there.
        TextAdded = "text_added",
        /// Text reads differently.
        TextChanged = "text_changed",
        /// The same text in more or fewer parts.
        TextRegrouped = "text_regrouped",
        /// Reasoning is gone.
        ReasoningLost = "reasoning_lost",
        /// There is reasoning that was not there.
        ReasoningAdded = "reasoning_added",
        /// Reasoning reads differently, or claims another maker.
        ReasoningChanged = "reasoning_changed",
        /// The provider's id of reasoning is gone or another one.
        ReasoningIdDiffers = "reasoning_id_differs",
        /// The signature of reasoning or of a call is gone.
        SignatureLost = "signature_lost",
        /// The signature of reasoning or of a call is another one.
        SignatureChanged = "signature_changed",
        /// A refusal is gone.
        RefusalLost = "refusal_lost",
        /// There is a refusal that was not there.
        RefusalAdded = "refusal_added",
        /// A refusal reads differently.
        RefusalChanged = "refusal_changed",
        /// A refusal is ordinary text.
        RefusalAsText = "refusal_as_text",
        /// An image is gone.
        ImageLost = "image_lost",
        /// There is an image that was not there.
        ImageAdded = "image_added",
        /// An image is another one.
        ImageChanged = "image_changed",
        /// An image stands elsewhere.
        ImageMoved = "image_moved",
        /// A block of a provider's own kind is gone.
        BlockLost = "block_lost",
        /// There is a block of a provider's own kind that was not there.
        BlockAdded = "block_added",
        /// A block of a provider's own kind is another one.
        BlockChanged = "block_changed",
        /// Something stands before or behind what it stood behind or before.
        OrderChanged = "order_changed",
        /// Somebody else says it.
        RoleChanged = "role_changed",
        /// A participant has another name, or none.
        NameDiffers = "name_differs",
        /// Two messages of one role are one.
        MessagesJoined = "messages_joined",
        /// One message is two of one role.
        MessageSplit = "message_split",
        /// Two turns of the model are one: what it asked for one after the other it asks for at once.
        TurnsJoined = "turns_joined",
        /// One turn of the model is two: what it asked for at once it asks for one after the other.
        TurnSplit = "turn_split",
        /// The last turn ended for another reason.
        StopReasonDiffers = "stop_reason_differs",
    }
}

impl Serialize for DifferenceCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

/// What a difference means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// The same, written in another way.
    Form,
    /// The second one's format cannot say it otherwise.
    Unavoidable,
    /// What the provider would refuse was repaired.
    Repair,
    /// The meaning changed.
    Fault,
}

impl Weight {
    /// `form`, `unavoidable`, `repair` or `fault`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Unavoidable => "unavoidable",
            Self::Repair => "repair",
            Self::Fault => "fault",
        }
    }
}

/// One thing that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What.
    pub code: DifferenceCode,
    /// What it means.
    pub weight: Weight,
    /// Where it is in the first transcript; nothing where it is only in the second.
    pub first: Option<Place>,
    /// Where it is in the second transcript; nothing where it is only in the first.
    pub second: Option<Place>,
    /// The call concerned: its id in the first transcript, else in the second.
    pub id: Option<String>,
    /// What the first one has, shortened around what differs.
    pub before: Option<String>,
    /// What the second one has, shortened around what differs.
    pub after: Option<String>,
    /// What the conversion says of it, where that makes it unavoidable.
    #[serde(serialize_with = "code_of")]
    pub because: Option<WarningCode>,
}

fn code_of<S: Serializer>(because: &Option<WarningCode>, serializer: S) -> Result<S::Ok, S::Error> {
    because.map(WarningCode::code).serialize(serializer)
}

impl Difference {
    fn new(code: DifferenceCode, first: Option<Place>, second: Option<Place>) -> Self {
        let weight = if words::is_form(code) { Weight::Form } else { Weight::Fault };
        Self { code, weight, first, second, id: None, before: None, after: None, because: None }
    }

    fn id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// Both sides, each shortened around the first character that differs.
    fn showing(mut self, before: Option<&str>, after: Option<&str>) -> Self {
        (self.before, self.after) = words::excerpts(before, after);
        self
    }

    /// What is the same in two differences of one conversation to two others.
    fn signature(&self) -> Signature {
        // Something new stands where it stands because of what else is new.
        (self.code, self.first, self.id.clone(), self.before.clone(), self.after.clone())
    }
}

type Signature = (DifferenceCode, Option<Place>, Option<String>, Option<String>, Option<String>);

/// In words, in one line, with what it means; what it shows of the transcripts is as it is there.
impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.words())?;
        match (self.weight, self.because) {
            (Weight::Unavoidable, Some(code)) => write!(formatter, " (unavoidable: {code})"),
            (Weight::Unavoidable, None) => formatter.write_str(" (unavoidable)"),
            (Weight::Repair, _) => formatter.write_str(" (repaired)"),
            (Weight::Form | Weight::Fault, _) => Ok(()),
        }
    }
}

impl Difference {
    /// What it is and where, without what it means.
    pub fn words(&self) -> String {
        let mut words = words::words(self.code).to_owned();
        let place = |place: Place| format!("message {}, part {}", place.index, place.part);
        match (self.first, self.second) {
            (Some(first), Some(second)) if first == second => words.push_str(&format!(" at {}", place(first))),
            (Some(first), Some(second)) => {
                words.push_str(&format!(" at {} (now {})", place(first), place(second)));
            }
            (Some(first), None) => words.push_str(&format!(" at {}", place(first))),
            (None, Some(second)) => words.push_str(&format!(" at {} of the second", place(second))),
            (None, None) => {}
        }
        if let Some(id) = &self.id {
            words.push_str(&format!(" [{id}]"));
        }
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => words.push_str(&format!(": {before} → {after}")),
            (Some(only), None) | (None, Some(only)) => words.push_str(&format!(": {only}")),
            (None, None) => {}
        }
        words
    }
}

/// What differs, in the order of the first transcript. Nothing where both say the same in the same way.
pub fn diff(first: &Transcript, second: &Transcript) -> Vec<Difference> {
    compare::differences(first, second)
}

/// What differs where the second transcript was read from `format`: losses that the format cannot avoid
/// ([`project`](mod@crate::project)), and repairs without which the server of `options` would refuse it, are marked as such.
pub fn diff_in(first: &Transcript, second: &Transcript, format: Format, options: &EncodeOptions) -> Vec<Difference> {
    let mut found = diff(first, second);
    if !has_faults(&found) {
        return found;
    }
    let projected = project(first, format, options);
    explain(&mut found, first, second, &projected.transcript, Weight::Unavoidable);
    for difference in found.iter_mut().filter(|difference| difference.weight == Weight::Unavoidable) {
        difference.because = words::reasons(difference.code).iter().copied().find(|code| projected.warnings.has(*code));
    }
    if has_faults(&found) {
        let sent = ProviderHistory::prepare(first, format, options);
        if let Ok(sent) = crate::decode_history(sent.payload(), format) {
            explain(&mut found, first, second, &sent.transcript, Weight::Repair);
        }
    }
    found
}

/// Gives faults that `expected` has as well, or all of them where the second says what was to be expected, a weight.
fn explain(found: &mut [Difference], first: &Transcript, second: &Transcript, expected: &Transcript, weight: Weight) {
    let all = !has_faults(&diff(expected, second));
    let would_be = if all { Vec::new() } else { diff(first, expected) };
    let mut known: HashMap<Signature, usize> = HashMap::new();
    for difference in &would_be {
        *known.entry(difference.signature()).or_default() += 1;
    }
    let mut explained = |difference: &Difference| {
        let left = known.get_mut(&difference.signature());
        all || left.is_some_and(|left| {
            let one = *left > 0;
            *left = left.saturating_sub(1);
            one
        })
    };
    for difference in found.iter_mut().filter(|difference| difference.weight == Weight::Fault) {
        if explained(difference) {
            difference.weight = weight;
        }
    }
}

/// Whether the meaning changed in a way that nothing explains.
pub fn has_faults(differences: &[Difference]) -> bool {
    differences.iter().any(|difference| difference.weight == Weight::Fault)
}
