//! Differences in words.

use super::DifferenceCode as Code;
use crate::format::WarningCode as Warning;

/// Characters shown of each side.
const SHOWN: usize = 100;
/// Characters shown in front of what differs.
const BEFORE: usize = 24;

/// Whether it says the same in another way.
pub(super) fn is_form(code: Code) -> bool {
    matches!(
        code,
        Code::CallIdRenamed
            | Code::ResultsReordered
            | Code::TextRegrouped
            | Code::ReasoningIdDiffers
            | Code::MessagesJoined
            | Code::MessageSplit
    )
}

pub(super) fn words(code: Code) -> &'static str {
    match code {
        Code::CallLost => "call lost",
        Code::CallAdded => "call added",
        Code::ToolNameDiffers => "another tool is called",
        Code::ArgumentsDiffer => "arguments differ",
        Code::CallIdRenamed => "call renamed",
        Code::ResultLost => "result lost",
        Code::ResultAdded => "result added",
        Code::ResultMoved => "result moved",
        Code::ResultsReordered => "results reordered",
        Code::ResultChanged => "result changed",
        Code::ErrorFlagLost => "error flag lost",
        Code::ErrorFlagAdded => "error flag added",
        Code::TextLost => "text lost",
        Code::TextAdded => "text added",
        Code::TextChanged => "text changed",
        Code::TextRegrouped => "text in other parts",
        Code::ReasoningLost => "reasoning lost",
        Code::ReasoningAdded => "reasoning added",
        Code::ReasoningChanged => "reasoning changed",
        Code::ReasoningIdDiffers => "id of reasoning differs",
        Code::SignatureLost => "signature lost",
        Code::SignatureChanged => "signature changed",
        Code::RefusalLost => "refusal lost",
        Code::RefusalAdded => "refusal added",
        Code::RefusalChanged => "refusal changed",
        Code::RefusalAsText => "refusal became text",
        Code::ImageLost => "image lost",
        Code::ImageAdded => "image added",
        Code::ImageChanged => "image changed",
        Code::ImageMoved => "image moved",
        Code::BlockLost => "block lost",
        Code::BlockAdded => "block added",
        Code::BlockChanged => "block changed",
        Code::OrderChanged => "order changed",
        Code::RoleChanged => "role changed",
        Code::NameDiffers => "participant's name differs",
        Code::MessagesJoined => "messages joined",
        Code::MessageSplit => "message split",
        Code::TurnsJoined => "turns joined",
        Code::TurnSplit => "turn split",
        Code::StopReasonDiffers => "stop reason differs",
    }
}

/// What a conversion may say where this could not be avoided.
pub(super) fn reasons(code: Code) -> &'static [Warning] {
    match code {
        Code::ToolNameDiffers => &[Warning::ToolNameRenamed],
        Code::ArgumentsDiffer => &[Warning::ArgumentsReplaced],
        Code::TextLost | Code::TextChanged => &[Warning::SystemTextMoved],
        Code::TextAdded => &[Warning::ImageMovedToUser, Warning::MessageInserted],
        Code::RefusalAsText | Code::RefusalLost => &[Warning::RefusalAsText],
        Code::ReasoningLost | Code::ReasoningChanged => &[Warning::ReasoningDropped, Warning::SignatureDropped],
        Code::SignatureLost | Code::SignatureChanged => &[Warning::SignatureDropped],
        Code::ImageLost | Code::ImageMoved => &[Warning::ImageMovedToUser],
        Code::BlockLost => &[Warning::ForeignBlock],
        Code::OrderChanged => &[Warning::OrderChanged, Warning::SystemTextMoved],
        Code::RoleChanged => &[Warning::SystemTextMoved],
        Code::NameDiffers => &[Warning::NameDropped],
        _ => &[],
    }
}

/// Both sides in one line each, cut around the first character that differs.
pub(super) fn excerpts(before: Option<&str>, after: Option<&str>) -> (Option<String>, Option<String>) {
    let same = match (before, after) {
        (Some(before), Some(after)) => before.chars().zip(after.chars()).take_while(|(a, b)| a == b).count(),
        _ => 0,
    };
    (before.map(|text| excerpt(text, same)), after.map(|text| excerpt(text, same)))
}

fn excerpt(text: &str, same: usize) -> String {
    let start = same.saturating_sub(BEFORE);
    let mut characters = text.chars().skip(start);
    let shown: String = characters.by_ref().take(SHOWN).collect();
    let more = characters.next().is_some();
    let (front, end) = (if start > 0 { "…" } else { "" }, if more { "…" } else { "" });
    format!("{:?}", format!("{front}{shown}{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_in_sight() {
        let long = "x".repeat(500);
        let (before, after) = excerpts(Some(&format!("{long}cat")), Some(&format!("{long}dog\n")));
        assert_eq!(before.as_deref(), Some(format!("{:?}", format!("…{}cat", "x".repeat(24))).as_str()));
        assert!(after.is_some_and(|after| after.ends_with("dog\\n\"")));
        assert_eq!(excerpts(Some(&long), None).0.map(|text| text.chars().count()), Some(SHOWN + 3));
    }
}
