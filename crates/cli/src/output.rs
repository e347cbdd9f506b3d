//! What people and programs get to see, and with which exit code.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;

use crate::settings::SettingErrors;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong use or settings: exit 2.
    Usage(String),
    /// It did not work: exit 1.
    Failed(anyhow::Error),
    /// It was broken off from the keyboard, or told to end; what became of it: exit 130.
    BrokenOff(&'static str),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<SettingErrors> for Failure {
    fn from(errors: SettingErrors) -> Self {
        Self::Usage(errors.to_string())
    }
}

/// Says what went wrong, and gives the exit code.
pub(crate) fn report(failure: &Failure, json: bool) -> ExitCode {
    let (text, code) = match failure {
        Failure::Usage(text) => (text.clone(), 2),
        Failure::Failed(error) => (format!("{error:#}"), 1),
        Failure::BrokenOff(what) => (format!("broken off; {what}"), 130),
    };
    if json {
        say(&json!({ "error": { "message": text } }).to_string());
    } else {
        let _ = writeln!(io::stderr(), "error: {text}");
    }
    ExitCode::from(code)
}

/// Prints a line. A reader that went away is not our failure.
pub(crate) fn say(text: &str) {
    let _ = try_to_say(text);
}

/// Prints a line, and tells whether it could.
pub(crate) fn try_to_say(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Prints a value for programs.
pub(crate) fn say_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(anyhow::Error::from)?;
    say(&text);
    Ok(())
}

/// Aligns rows into columns under a heading.
pub(crate) fn columns<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = heading.map(|title| title.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in std::iter::once(&heading.map(str::to_owned)).chain(rows) {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            // Writing to a String cannot fail.
            let _ = write!(line, "{cell:<width$}  ");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["ünï".to_owned(), "x".to_owned()], ["a".to_owned(), "y".to_owned()]];
        assert_eq!(columns(["A", "LONG"], &rows), "A    LONG\nünï  x\na    y");
    }
}
