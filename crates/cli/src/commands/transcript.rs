//! `bandstand transcript`: histories of any provider, checked, repaired, converted and shown.

use std::fs;
use std::io::{self, Read as _};
use std::process::ExitCode;

use anyhow::Context as _;
use bandstand_transcript::lint::{self, Report};
use bandstand_transcript::repair::repair;
use bandstand_transcript::{
    EncodeOptions, Finding, Format, LintOptions, Part, Profile, Transcript, Warnings, decode_history, encode_history,
};
use serde_json::{Value, json};

use crate::cli::{HistoryArguments, TranscriptCommand};
use crate::output::{Failure, say, say_json};
use crate::people::text::harmless;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 256 * 1024 * 1024;

pub(crate) fn run(command: &TranscriptCommand) -> Result<ExitCode, Failure> {
    match command {
        TranscriptCommand::Lint(history) => lint_file(history),
        TranscriptCommand::Repair(history) => repair_file(history),
        TranscriptCommand::Convert { history, to } => convert(history, to),
        TranscriptCommand::Show(history) => show(history),
    }
}

/// A file as it could be read, and how it was checked.
struct Opened {
    report: Report,
    options: LintOptions,
}

fn open(history: &HistoryArguments) -> Result<Opened, Failure> {
    let format = history.from.as_deref().map(format_named).transpose()?;
    let profile = match &history.profile {
        None => Profile::none(),
        Some(name) => Profile::named(name)
            .ok_or_else(|| Failure::Usage(format!("no server is called {name:?}; docs/models.md has the names")))?,
    };
    let bytes = bytes_of(history).map_err(|why| Failure::Usage(format!("{why:#}")))?;
    let options = |format| LintOptions { profile, ..LintOptions::new(format) };
    let report = lint::lint_bytes(&bytes, format, options);
    let options = options(report.format);
    Ok(Opened { report, options })
}

fn format_named(name: &str) -> Result<Format, Failure> {
    Format::from_name(name).ok_or_else(|| {
        Failure::Usage(format!("{name:?} is no format; there are openai.chat, openai.responses and anthropic"))
    })
}

fn bytes_of(history: &HistoryArguments) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if history.file.as_os_str() == "-" {
        io::stdin().lock().take(LARGEST).read_to_end(&mut bytes).context("standard input cannot be read")?;
    } else {
        let name = history.file.display();
        let file = fs::File::open(&history.file).with_context(|| format!("{name} cannot be read"))?;
        file.take(LARGEST).read_to_end(&mut bytes).with_context(|| format!("{name} cannot be read"))?;
    }
    Ok(bytes)
}

fn finding_json(finding: &Finding) -> Value {
    json!({
        "code": finding.code.code(),
        "severity": finding.severity.name(),
        "index": finding.index,
        "block": finding.block,
        "ids": finding.ids,
        "field": finding.field,
        "says": finding.says,
        "fix": finding.fix,
    })
}

fn finding_line(finding: &Finding) -> String {
    let block = finding.block.map(|block| format!(", block {block}")).unwrap_or_default();
    let ids = match finding.ids.as_slice() {
        [] => String::new(),
        ids => format!(" [{}]", ids.join(", ")),
    };
    let line = format!(
        "{} {} at message {}{block}{ids}: {}. Fix: {}",
        finding.severity.name(),
        finding.code.code(),
        finding.index,
        finding.says.trim_end_matches('.'),
        finding.fix,
    );
    harmless(&line)
}

fn lint_file(history: &HistoryArguments) -> Result<ExitCode, Failure> {
    let Opened { report, .. } = open(history)?;
    let refused = lint::has_errors(&report.findings);
    if history.json {
        let findings: Vec<Value> = report.findings.iter().map(finding_json).collect();
        say_json(&json!({ "format": report.format.name(), "refused": refused, "findings": findings }))?;
    } else if report.findings.is_empty() {
        say(&format!("{}: nothing is wrong with it.", report.format.name()));
    } else {
        let lines: Vec<String> = report.findings.iter().map(finding_line).collect();
        say(&format!("{}:\n{}", report.format.name(), lines.join("\n")));
    }
    Ok(if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn repair_file(history: &HistoryArguments) -> Result<ExitCode, Failure> {
    let Opened { report, options } = open(history)?;
    let repaired = repair(&report.document.payload, &options);
    // What was wrong with the bytes is mended by having read them.
    for finding in &report.findings {
        eprintln!("{}", finding_line(finding));
    }
    say_json(&repaired.payload)?;
    for finding in &repaired.left {
        eprintln!("left: {}", finding_line(finding));
    }
    Ok(if repaired.left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn transcript_of(opened: &Opened) -> Result<Transcript, Failure> {
    let decoded = decode_history(&opened.report.document.payload, opened.report.format).map_err(|why| {
        Failure::Usage(format!("it is no history in the format {}: {why}", opened.report.format.name()))
    })?;
    warn(&decoded.warnings);
    Ok(decoded.transcript)
}

fn warn(warnings: &Warnings) {
    for warning in warnings.iter() {
        eprintln!("{}", harmless(&format!("{}: {}", warning.code.code(), warning.detail)));
    }
}

fn convert(history: &HistoryArguments, to: &str) -> Result<ExitCode, Failure> {
    let target = if to == "canonical" { None } else { Some(format_named(to)?) };
    let opened = open(history)?;
    let transcript = transcript_of(&opened)?;
    match target {
        None => say_json(&transcript.to_canonical())?,
        Some(format) => {
            let encoded = encode_history(&transcript, format, &EncodeOptions::for_profile(opened.options.profile));
            warn(&encoded.warnings);
            say_json(&encoded.payload)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(history: &HistoryArguments) -> Result<ExitCode, Failure> {
    let opened = open(history)?;
    let transcript = transcript_of(&opened)?;
    if history.json {
        say_json(&transcript.to_canonical())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = vec![opened.report.format.name().to_owned()];
    for (number, message) in transcript.messages.iter().enumerate() {
        lines.push(format!("{number} {}", message.role.name()));
        lines.extend(message.parts.iter().map(|part| format!("    {}", part_line(part))));
    }
    say(&harmless(&lines.join("\n")));
    Ok(ExitCode::SUCCESS)
}

/// A part in one line; a call and its result have the same id.
fn part_line(part: &Part) -> String {
    let text = match part {
        Part::Text(text) => text.text.clone(),
        Part::Image(_) => "(an image)".to_owned(),
        Part::ToolCall(call) => format!("call {} {} {}", call.id.as_str(), call.name.as_str(), call.input.wire_text()),
        Part::ToolResult(result) => {
            let failed = if result.output.is_error { " (error)" } else { "" };
            format!("result {}{failed} {}", result.call_id.as_str(), result.output.all_text())
        }
        Part::Reasoning(reasoning) => format!("(reasoning) {}", reasoning.text),
        Part::Refusal(refusal) => format!("(refusal) {}", refusal.text),
        Part::Foreign(foreign) => format!("({} of {})", foreign.kind(), foreign.format.name()),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
