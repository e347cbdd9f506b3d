//! The figures, as a table and as JSON.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

/// One number.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
}

impl Figure {
    pub(crate) fn new(name: &'static str, value: f64, unit: &'static str) -> Self {
        // Digits beyond these are noise.
        Self { name, value: (value * 1000.0).round() / 1000.0, unit }
    }
}

/// What was expected of a row, and whether it came.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Expected {
    expected: String,
    met: bool,
}

impl Expected {
    pub(crate) fn at_most(measured: f64, limit: f64, unit: &str) -> Self {
        Self { expected: format!("at most {} {unit}", number(limit)), met: measured <= limit }
    }

    pub(crate) fn at_least(measured: f64, limit: f64, unit: &str) -> Self {
        Self { expected: format!("at least {} {unit}", number(limit)), met: measured >= limit }
    }

    /// Says where the limit comes from.
    pub(crate) fn because(mut self, why: &str) -> Self {
        self.expected = format!("{} ({why})", self.expected);
        self
    }
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    what: String,
    figures: Vec<Figure>,
    #[serde(flatten)]
    expected: Option<Expected>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Section {
    title: String,
    rows: Vec<Row>,
}

pub(crate) struct Report {
    machine: Vec<(&'static str, String)>,
    notes: Vec<String>,
    sections: Vec<Section>,
}

impl Report {
    pub(crate) fn new(machine: Vec<(&'static str, String)>) -> Self {
        Self { machine, notes: Vec::new(), sections: Vec::new() }
    }

    /// Something to know when reading the figures.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// The rows that follow belong together.
    pub(crate) fn section(&mut self, title: impl Into<String>) {
        self.sections.push(Section { title: title.into(), rows: Vec::new() });
    }

    pub(crate) fn row(&mut self, what: impl Into<String>, figures: Vec<Figure>, expected: Option<Expected>) {
        self.push(Row { what: what.into(), figures, expected, failure: None });
    }

    /// A measurement that could not be made.
    pub(crate) fn failed(&mut self, what: &str, why: &str) {
        let row = Row { what: what.to_owned(), figures: Vec::new(), expected: None, failure: Some(why.to_owned()) };
        self.push(row);
    }

    fn push(&mut self, row: Row) {
        if self.sections.is_empty() {
            self.section("");
        }
        if let Some(section) = self.sections.last_mut() {
            section.rows.push(row);
        }
    }

    /// Prints the table; with `json`, writes JSON there as well, or prints it instead when that is `-`.
    pub(crate) fn print(&self, json: Option<&Path>) -> Result<()> {
        match json {
            None => print!("{}", self.table()),
            Some(path) if path == Path::new("-") => println!("{}", self.json()?),
            Some(path) => {
                print!("{}", self.table());
                std::fs::write(path, self.json()? + "\n")
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        Ok(())
    }

    fn json(&self) -> Result<String> {
        let machine: serde_json::Map<_, _> =
            self.machine.iter().map(|(name, value)| ((*name).to_owned(), value.as_str().into())).collect();
        let whole = serde_json::json!({ "machine": machine, "notes": self.notes, "sections": self.sections });
        Ok(serde_json::to_string_pretty(&whole)?)
    }

    fn table(&self) -> String {
        let rows = || self.sections.iter().flat_map(|section| &section.rows);
        let names = rows().map(|row| row.what.chars().count()).max().unwrap_or(0);
        let measured = rows().map(|row| row.measured().chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (name, value) in &self.machine {
            text += &format!("{name:<10}{value}\n");
        }
        for note in &self.notes {
            text += &format!("{:<10}{note}\n", "note");
        }
        for section in &self.sections {
            text += &format!("\n{}\n", section.title);
            for row in &section.rows {
                let line = match (&row.expected, &row.failure) {
                    (_, Some(why)) => format!("  {:<names$}   NOT MEASURED: {why}", row.what),
                    (Some(Expected { expected, met }), None) => {
                        let verdict = if *met { "met" } else { "MISSED" };
                        format!(
                            "  {:<names$}   {:<measured$}   expected {expected}: {verdict}",
                            row.what,
                            row.measured()
                        )
                    }
                    (None, None) => format!("  {:<names$}   {}", row.what, row.measured()),
                };
                text += line.trim_end();
                text.push('\n');
            }
        }
        text
    }
}

impl Row {
    fn measured(&self) -> String {
        let figure = |Figure { name, value, unit }: &Figure| {
            let value = number(*value);
            if name.is_empty() { format!("{value:>7} {unit}") } else { format!("{name} {value:>5} {unit}") }
        };
        self.figures.iter().map(figure).collect::<Vec<_>>().join("   ")
    }
}

/// With as many digits as mean something.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => thousands(value),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_exact_enough() {
        let written = [0.0, 0.25, 3.0, 12.34, 123.4, 1234.5, 1_234_567.0].map(number);
        assert_eq!(written, ["0", "0.25", "3", "12.3", "123", "1,234", "1,234,567"]);
    }

    #[test]
    fn a_missed_expectation_is_said_aloud() {
        let mut report = Report::new(vec![("cores", "2".to_owned())]);
        report.section("Things");
        report.row("a thing", vec![Figure::new("p99", 3.5, "ms")], Some(Expected::at_most(3.5, 3.0, "ms")));
        report.failed("another", "no server");
        let table = report.table();
        assert!(table.contains("a thing   p99   3.5 ms   expected at most 3 ms: MISSED"), "{table}");
        assert!(table.contains("another   NOT MEASURED: no server"), "{table}");
        assert!(report.json().unwrap().contains(r#""met": false"#));
    }
}
