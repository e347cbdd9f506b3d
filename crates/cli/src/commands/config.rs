//! `bandstand config print`.

use std::process::ExitCode;

use crate::cli::ConfigPrintArguments;
use crate::environment;
use crate::output::{Failure, say};
use crate::settings::{load, print_defaults, print_effective};

pub(crate) fn print(arguments: &ConfigPrintArguments) -> Result<ExitCode, Failure> {
    let text = if arguments.effective {
        print_effective(&load(&arguments.flags.0, &environment)?, &environment)
    } else {
        print_defaults()
    };
    say(text.trim_end());
    Ok(ExitCode::SUCCESS)
}
