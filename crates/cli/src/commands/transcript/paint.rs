//! Colours, where a terminal is there to show them.

use std::io;

use anstream::stream::AsLockedWrite;
use anstream::{AutoStream, stream::RawStream};
use anstyle::{AnsiColor, Color, Effects, Style};
use clap::ColorChoice;

/// Colours of calls, in turn: a call and its result have the same.
const IDS: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Yellow,
    AnsiColor::Magenta,
    AnsiColor::Green,
    AnsiColor::BrightBlue,
    AnsiColor::BrightCyan,
];

/// Colours, or none.
pub(super) struct Paint {
    on: bool,
}

impl Paint {
    /// For standard output.
    pub(super) fn for_output(when: ColorChoice) -> Self {
        Self::on(when, &io::stdout())
    }

    /// For standard error.
    pub(super) fn for_errors(when: ColorChoice) -> Self {
        Self::on(when, &io::stderr())
    }

    /// What was asked for; else what NO_COLOR, CLICOLOR and CLICOLOR_FORCE say, and whether it is a terminal.
    fn on(when: ColorChoice, stream: &(impl RawStream + AsLockedWrite)) -> Self {
        let on = match when {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => AutoStream::choice(stream) != anstream::ColorChoice::Never,
        };
        Self { on }
    }

    fn with(&self, style: Style, text: &str) -> String {
        if self.on && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    fn colour(colour: AnsiColor) -> Style {
        Style::new().fg_color(Some(Color::Ansi(colour)))
    }

    /// What is beside the point.
    pub(super) fn dim(&self, text: &str) -> String {
        self.with(Style::new().effects(Effects::DIMMED), text)
    }

    pub(super) fn bold(&self, text: &str) -> String {
        self.with(Style::new().effects(Effects::BOLD), text)
    }

    /// What failed.
    pub(super) fn error(&self, text: &str) -> String {
        self.with(Self::colour(AnsiColor::Red), text)
    }

    /// What failed, to be seen at once.
    pub(super) fn alarm(&self, text: &str) -> String {
        self.with(Self::colour(AnsiColor::Red).effects(Effects::BOLD | Effects::INVERT), text)
    }

    pub(super) fn warning(&self, text: &str) -> String {
        self.with(Self::colour(AnsiColor::Yellow), text)
    }

    pub(super) fn good(&self, text: &str) -> String {
        self.with(Self::colour(AnsiColor::Green), text)
    }

    /// The call of a number.
    pub(super) fn call(&self, number: usize, text: &str) -> String {
        self.with(Self::colour(IDS[number % IDS.len()]).effects(Effects::BOLD), text)
    }

    /// A call's id where calls have no numbers: the same id has the same colour.
    pub(super) fn id(&self, id: &str) -> String {
        let sum = id.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        self.call(sum, id)
    }

    /// Whoever speaks.
    pub(super) fn role(&self, role: bandstand_transcript::Role, text: &str) -> String {
        use bandstand_transcript::Role;
        match role {
            Role::User => self.with(Self::colour(AnsiColor::Green).effects(Effects::BOLD), text),
            Role::Assistant => self.with(Self::colour(AnsiColor::Blue).effects(Effects::BOLD), text),
            Role::System | Role::Tool => self.bold(text),
        }
    }
}
