//! `bandstand config print`.

use std::fmt::Write;

use super::{CONFIG, Environment, FILE_NAME, Loaded, OWNER_KEY, Origin, Setting, Settings, TABLE};

/// The settings file with every default and what each setting is for.
pub(crate) fn print_defaults() -> String {
    let mut out = format!(
        "# Bandstand's settings, each with its default.\n\
         #\n\
         # Save it as {FILE_NAME} in the data folder, or anywhere and name it by --config or {CONFIG}.\n\
         # A flag wins over the environment, the environment over this file, this file over the default.\n\
         # The setting socket_idle is the flag --socket-idle and the variable BANDSTAND_SOCKET_IDLE.\n\
         # Durations: 250ms, 30s, 5m, 1h. Sizes: bytes, or 64KiB, 4MiB, 1GiB. Paths: from the current folder.\n\
         #\n\
         # {OWNER_KEY} (environment only) presets the owner's key for the first start: band_u_ and at least\n\
         # 32 characters of A-Z, a-z, 0-9, _ and -.\n"
    );
    let defaults = Settings::default();
    let mut group = "";
    for setting in TABLE {
        if setting.group != group {
            group = setting.group;
            // Writing to a String cannot fail.
            let _ = write!(out, "\n\n## {group}\n");
        }
        out.push('\n');
        for line in wrap(setting.doc, 118) {
            let _ = writeln!(out, "# {line}");
        }
        let _ = match setting.toml(&defaults) {
            Some(value) => writeln!(out, "{} = {value}", setting.name),
            None => writeln!(out, "# {} = \"{}\"", setting.name, setting.form()),
        };
    }
    out
}

/// The values in force and where each came from, passwords cut out.
pub(crate) fn print_effective(loaded: &Loaded, environment: Environment<'_>) -> String {
    let mut out = match &loaded.file {
        Some(path) => format!("# Settings file: {}\n", path.display()),
        None => "# No settings file\n".to_owned(),
    };
    for setting in TABLE {
        let line = match setting.toml(&loaded.settings) {
            Some(value) => format!("{} = {value}", setting.name),
            None => format!("# {} is not set", setting.name),
        };
        let _ = match loaded.origin(setting) {
            Origin::Default if line.starts_with('#') => writeln!(out, "{line}"),
            origin => writeln!(out, "{line:<40} # {}", from(origin, setting)),
        };
    }
    if environment(OWNER_KEY).is_some_and(|key| !key.is_empty()) {
        let _ = writeln!(out, "# {OWNER_KEY} = [REDACTED]");
    }
    out
}

fn from(origin: &Origin, setting: &Setting) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::File { line, .. } => format!("settings file, line {line}"),
        Origin::Environment => format!("environment, {}", setting.environment()),
        Origin::Flag => format!("flag, {}", setting.flag()),
    }
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
