//! `bandstand completions` and `bandstand manual`: made of the same definitions that read the command line.

use std::process::ExitCode;

use anyhow::Context;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli::{Cli, CompletionsArguments};
use crate::output::{Failure, say};

/// Prints completions.
pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::definition(), "bandstand", &mut text);
    tell(text)
}

/// Prints the manual page: the program's own, then each command.
pub(crate) fn manual() -> Result<ExitCode, Failure> {
    let mut program = Cli::definition();
    program.build();
    let mut text = Vec::new();
    Man::new(program.clone()).render(&mut text).map_err(anyhow::Error::from)?;
    // Commands have no pages of their own: they follow in this one.
    let mut own = String::from_utf8(text).context("what was generated is not UTF-8")?;
    for command in program.get_subcommands() {
        let name = command.get_name();
        own = own.replace(&format!("bandstand\\-{}(1)", name.replace('-', "\\-")), &format!("bandstand {name}"));
    }
    let mut text = own.into_bytes();
    for command in program.get_subcommands() {
        describe(command, "bandstand", &mut text).map_err(anyhow::Error::from)?;
    }
    tell(text)
}

/// A command and those below it, each as a section.
fn describe(command: &clap::Command, above: &str, text: &mut Vec<u8>) -> std::io::Result<()> {
    if command.is_hide_set() || command.get_name() == "help" {
        return Ok(());
    }
    let name = format!("{above} {}", command.get_name());
    let mut heading = Roff::new();
    heading.control("SH", [name.to_uppercase().as_str()]);
    if let Some(about) = command.get_long_about().or_else(|| command.get_about()) {
        heading.text([bold(name.as_str()), roman(format!(" - {about}"))]);
    }
    heading.to_writer(text)?;
    let page = Man::new(command.clone());
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        let mut options = Vec::new();
        page.render_options_section(&mut options)?;
        // A section of a page of its own becomes a part of this one.
        text.extend(String::from_utf8_lossy(&options).replace(".SH OPTIONS", ".SS Options").into_bytes());
    }
    if let Some(more) = command.get_after_help() {
        let mut after = Roff::new();
        after.control("PP", []);
        after.text([roman(more.to_string())]);
        after.to_writer(text)?;
    }
    command.get_subcommands().try_for_each(|below| describe(below, &name, text))
}

fn tell(text: Vec<u8>) -> Result<ExitCode, Failure> {
    let text = String::from_utf8(text).context("what was generated is not UTF-8")?;
    say(text.trim_end());
    Ok(ExitCode::SUCCESS)
}
