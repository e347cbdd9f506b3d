//! What is wrong with a history, in JSON and in a line.

use bandstand_transcript::lint::Section;
use bandstand_transcript::{Finding, Severity};
use serde_json::{Value, json};

use super::paint::Paint;
use crate::people::text::harmless;

pub(super) fn json(finding: &Finding) -> Value {
    json!({
        "code": finding.code.code(),
        "severity": finding.severity.name(),
        "section": finding.section.name(),
        "index": finding.index,
        "block": finding.block,
        "ids": finding.ids,
        "field": finding.field,
        "says": finding.says,
        "fix": finding.fix,
    })
}

/// One line. `place` is where it is, where that is not the index.
pub(super) fn line(finding: &Finding, place: Option<&str>, paint: &Paint) -> String {
    let severity = match finding.severity {
        Severity::Error => paint.error(finding.severity.name()),
        Severity::Warning => paint.warning(finding.severity.name()),
    };
    let at = match (place, finding.section) {
        (Some(place), _) => harmless(place),
        (None, Section::Messages) => format!("message {}", finding.index),
        (None, Section::Tools) => format!("tool {}", finding.index),
        (None, Section::ToolChoice) => "tool_choice".to_owned(),
    };
    let block = finding.block.filter(|_| place.is_none()).map(|block| format!(", block {block}")).unwrap_or_default();
    let ids = match finding.ids.as_slice() {
        [] => String::new(),
        ids => {
            let ids: Vec<String> = ids.iter().map(|id| paint.id(&harmless(id))).collect();
            format!(" [{}]", ids.join(", "))
        }
    };
    let field = finding.field.as_ref().filter(|_| finding.section != Section::Messages);
    let field = field.map(|field| format!(" ({})", harmless(field))).unwrap_or_default();
    format!(
        "{severity} {} at {at}{block}{ids}{field}: {}. {}",
        paint.bold(finding.code.code()),
        harmless(finding.says.trim_end_matches('.')),
        paint.dim(&format!("Fix: {}", harmless(&finding.fix))),
    )
}
