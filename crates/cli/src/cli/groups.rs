//! The help of the program itself: its commands by what somebody is about to do, not in one long list.

use std::fmt::Write as _;

use clap::Command;

/// Every command that is shown, in the order in which it is.
const GROUPS: &[(&str, &[&str])] = &[
    ("Start here", &["demo", "up", "status", "doctor"]),
    ("In rooms, on any server", &["login", "logout", "profiles", "room", "chat", "send", "tail", "why"]),
    ("Agents", &["agent", "run", "mcp", "transcript"]),
    ("Administration", &["user", "organization", "key", "quota", "audit", "config", "backup", "restore"]),
    ("This program", &["completions", "manual", "help"]),
];

/// Shows the commands in groups. One that is in no group follows in a last one.
pub(super) fn grouped(program: Command) -> Command {
    // Only then it has the command `help`.
    let mut built = program.clone();
    built.build();
    let styles = program.get_styles();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let width = shown(&built).map(|(name, _)| name.len()).max().unwrap_or_default();
    let forgotten = forgotten(&built);
    let other = ("Other", forgotten.as_slice());
    let groups = GROUPS.iter().copied().chain((!forgotten.is_empty()).then_some(other));

    let mut listed = String::new();
    for (title, names) in groups {
        // Writing to a String cannot fail.
        let _ = writeln!(listed, "{header}{title}:{header:#}");
        for (name, about) in names.iter().filter_map(|wanted| shown(&built).find(|(name, _)| name == wanted)) {
            let space = " ".repeat(width - name.len());
            let _ = writeln!(listed, "  {literal}{name}{literal:#}{space}  {about}");
        }
        listed.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{listed}{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    program.help_template(template)
}

/// The commands that are not hidden, each with its line.
fn shown(program: &Command) -> impl Iterator<Item = (&str, String)> {
    let visible = program.get_subcommands().filter(|command| !command.is_hide_set());
    visible.map(|command| {
        let about = match command.get_name() {
            "help" => "Print the help of a command".to_owned(),
            _ => command.get_about().map(ToString::to_string).unwrap_or_default(),
        };
        (command.get_name(), about)
    })
}

fn forgotten(program: &Command) -> Vec<&str> {
    let named = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    shown(program).map(|(name, _)| name).filter(|name| !named(name)).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn built() -> Command {
        let mut program = super::super::Cli::command();
        program.build();
        program
    }

    #[test]
    fn every_command_is_in_one_group() {
        let program = built();
        assert_eq!(forgotten(&program), Vec::<&str>::new());
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let mut all: Vec<&str> = shown(&program).map(|(name, _)| name).collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn each_has_one_line_on_a_common_terminal() {
        let program = built();
        let width = shown(&program).map(|(name, _)| name.len()).max().unwrap();
        for (name, about) in shown(&program) {
            assert!(!about.is_empty() && 2 + width + 2 + about.chars().count() <= 80, "{name}: {about}");
        }
    }
}
