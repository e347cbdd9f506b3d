//! `bandstand transcript`: histories of any provider and of rooms, checked, repaired, converted, shown and compared.

mod diff;
mod file;
mod findings;
mod paint;
mod room;
mod steps;
mod view;

use std::process::ExitCode;

use bandstand_transcript::lint::{self, Report};
use bandstand_transcript::repair::repair;
use bandstand_transcript::tools::{OfferOptions, decode_offer, encode_offer, thinks};
use bandstand_transcript::{
    EncodeOptions, Format, LintOptions, Profile, Warnings, encode_history, encode_history_with,
};
use serde_json::{Value, json};

use self::file::{History, format_named, open, profile_named};
use self::paint::Paint;
use crate::cli::{HistoryArguments, ReadArguments, TranscriptCommand};
use crate::output::{Failure, say, say_json};
use crate::people::text::harmless;

pub(crate) fn run(command: &TranscriptCommand) -> Result<ExitCode, Failure> {
    match command {
        TranscriptCommand::Lint(read) if read.room.room.is_some() => room::lint(read),
        TranscriptCommand::Lint(read) => lint_file(read),
        TranscriptCommand::Repair(history) => repair_file(history),
        TranscriptCommand::Convert { history, to } => convert(history, to),
        TranscriptCommand::Show(read) if read.room.room.is_some() => room::show(read),
        TranscriptCommand::Show(read) => show(read),
        TranscriptCommand::Diff(arguments) => diff::run(arguments),
    }
}

/// A file as it could be read, and how it was checked.
struct Checked {
    report: Report,
    options: LintOptions,
}

fn check(history: &History, profile: Option<&str>) -> Result<Checked, Failure> {
    let profile = profile_named(profile)?;
    let Some(format) = history.format else {
        return Err(Failure::Usage(
            "it is a canonical transcript, which no provider gets; convert it, or name its format with --from".into(),
        ));
    };
    let options = |format| LintOptions { profile, ..LintOptions::new(format) };
    let report = lint::lint_bytes(&history.bytes, Some(format), options);
    Ok(Checked { options: options(report.format), report })
}

fn lint_file(read: &ReadArguments) -> Result<ExitCode, Failure> {
    let history = open(read.file.as_deref(), read.from.as_deref())?;
    let Checked { report, .. } = check(&history, read.profile.as_deref())?;
    let refused = lint::has_errors(&report.findings);
    if read.json {
        let findings: Vec<Value> = report.findings.iter().map(findings::json).collect();
        say_json(&json!({ "format": report.format.name(), "refused": refused, "findings": findings }))?;
    } else if report.findings.is_empty() {
        say(&format!("{}: nothing is wrong with it.", report.format.name()));
    } else {
        let paint = Paint::for_output(read.color);
        let lines: Vec<String> = report.findings.iter().map(|finding| findings::line(finding, None, &paint)).collect();
        say(&format!("{}:\n{}", report.format.name(), lines.join("\n")));
    }
    Ok(if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn repair_file(arguments: &HistoryArguments) -> Result<ExitCode, Failure> {
    let history = open(Some(&arguments.file), arguments.from.as_deref())?;
    let Checked { report, options } = check(&history, arguments.profile.as_deref())?;
    let repaired = repair(&report.document.payload, &options);
    let paint = Paint::for_errors(arguments.color);
    // What was wrong with the bytes is mended by having read them.
    for finding in &report.findings {
        eprintln!("{}", findings::line(finding, None, &paint));
    }
    say_json(&repaired.payload)?;
    for finding in &repaired.left {
        eprintln!("left: {}", findings::line(finding, None, &paint));
    }
    Ok(if repaired.left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn warn(warnings: &Warnings) {
    for warning in warnings.iter() {
        eprintln!("{}", harmless(&format!("{}: {}", warning.code.code(), warning.detail)));
    }
}

fn convert(arguments: &HistoryArguments, to: &str) -> Result<ExitCode, Failure> {
    let target = if to == "canonical" { None } else { Some(format_named(to)?) };
    let profile = profile_named(arguments.profile.as_deref())?;
    let history = open(Some(&arguments.file), arguments.from.as_deref())?;
    let decoded = history.transcript()?;
    warn(&decoded.warnings);
    match target {
        None => say_json(&decoded.transcript.to_canonical())?,
        Some(format) => say_json(&converted(&history, &decoded.transcript, format, profile))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The history, and what the request offered beside it, in a format.
fn converted(
    history: &History,
    transcript: &bandstand_transcript::Transcript,
    format: Format,
    profile: &'static Profile,
) -> Value {
    let options = EncodeOptions::for_profile(profile);
    let offer = history.format.map(|from| decode_offer(&history.document.payload, from)).unwrap_or_default();
    warn(&offer.warnings);
    if offer.offer.tools.is_empty() {
        let encoded = encode_history(transcript, format, &options);
        warn(&encoded.warnings);
        return encoded.payload;
    }
    let thinking = thinks(&history.document.payload);
    let offered = encode_offer(&offer.offer, format, &OfferOptions { profile, thinking });
    let sent = encode_history_with(transcript, format, &options, &offered.names.tools);
    warn(&offered.warnings);
    warn(&sent.warnings);
    let mut payload = sent.payload;
    if let Some(fields) = payload.as_object_mut() {
        fields.extend(offered.fields);
    }
    payload
}

fn show(read: &ReadArguments) -> Result<ExitCode, Failure> {
    profile_named(read.profile.as_deref())?;
    let history = open(read.file.as_deref(), read.from.as_deref())?;
    let decoded = history.transcript()?;
    warn(&decoded.warnings);
    if read.json {
        say_json(&decoded.transcript.to_canonical())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = vec![history.name().to_owned()];
    let offer = history.format.map(|from| decode_offer(&history.document.payload, from).offer).unwrap_or_default();
    let paint = Paint::for_output(read.color);
    if !offer.tools.is_empty() {
        let names: Vec<String> = offer.tools.iter().map(|tool| harmless(tool.name.as_str())).collect();
        lines.push(paint.dim(&format!("tools: {}", names.join(", "))));
    }
    lines.extend(view::lines(&decoded.transcript, &paint, |_| None));
    say(&lines.join("\n"));
    Ok(ExitCode::SUCCESS)
}
