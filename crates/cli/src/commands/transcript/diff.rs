//! `bandstand transcript diff`.

use std::process::ExitCode;

use bandstand_transcript::EncodeOptions;
use bandstand_transcript::diff::{Difference, Weight, diff, diff_in};
use serde_json::json;

use super::file::{open, profile_named};
use super::paint::Paint;
use super::steps;
use crate::cli::DiffArguments;
use crate::output::{Failure, say, say_json};
use crate::people::text::harmless;

pub(super) fn run(arguments: &DiffArguments) -> Result<ExitCode, Failure> {
    match &arguments.second {
        Some(second) => two_files(arguments, second),
        None if arguments.first.is_dir() => steps::diff_folder(arguments),
        None => Err(Failure::Usage(format!(
            "what became of {}? `bandstand transcript diff FIRST SECOND` compares two files, and a folder of \
             `bandstand run --trace` is compared with itself",
            arguments.first.display()
        ))),
    }
}

fn two_files(arguments: &DiffArguments, second: &std::path::Path) -> Result<ExitCode, Failure> {
    let options = EncodeOptions::for_profile(profile_named(arguments.profile.as_deref())?);
    let first = open(Some(&arguments.first), arguments.from.as_deref())?;
    let second = open(Some(second), arguments.from_b.as_deref())?;
    let (was, is) = (first.transcript()?.transcript, second.transcript()?.transcript);
    let found = match second.format {
        Some(format) => diff_in(&was, &is, format, &options),
        None => diff(&was, &is),
    };
    let same = !found.iter().any(|difference| counts(difference, arguments.strict));
    if arguments.json {
        say_json(&json!({ "from": first.name(), "to": second.name(), "same": same, "differences": found }))?;
    } else {
        say(&told(&found, same, &format!("{} → {}", first.name(), second.name()), &Paint::for_output(arguments.color)));
    }
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(super) fn counts(difference: &Difference, strict: bool) -> bool {
    difference.weight == Weight::Fault || (strict && difference.weight != Weight::Form)
}

/// The differences in lines, under what was compared.
pub(super) fn told(found: &[Difference], same: bool, compared: &str, paint: &Paint) -> String {
    let verdict = match (found.is_empty(), same) {
        (true, _) => paint.good("the same"),
        (false, true) => paint.good("the same meaning"),
        (false, false) => paint.error("the meaning differs"),
    };
    let mut lines = vec![format!("{compared}: {verdict}")];
    lines.extend(found.iter().map(|difference| {
        let weight = format!("{:<11}", difference.weight.name());
        let line = with_id(&harmless(&difference.words()), difference.id.as_deref(), paint);
        let because = difference.because.map(|code| paint.dim(&format!(" ({code})"))).unwrap_or_default();
        match difference.weight {
            Weight::Fault => format!("{} {line}", paint.error(&weight)),
            Weight::Unavoidable | Weight::Repair => format!("{} {line}{because}", paint.warning(&weight)),
            Weight::Form => paint.dim(&format!("{weight} {}", harmless(&difference.words()))),
        }
    }));
    lines.join("\n")
}

/// The call's id in its colour.
fn with_id(line: &str, id: Option<&str>, paint: &Paint) -> String {
    let Some(id) = id.map(harmless) else { return line.to_owned() };
    line.replacen(&format!("[{id}]"), &format!("[{}]", paint.id(&id)), 1)
}
