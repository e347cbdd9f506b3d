//! `bandstand doctor`: what is wrong with this installation, and what to do about it.

mod database;
mod machine;
mod server;

use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;

use crate::cli::DoctorArguments;
use crate::environment;
use crate::output::{Failure, say, say_json};
use crate::settings::{CONFIG, Loaded, OWNER_KEY, REMOTE, TABLE, load};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Warn,
    Fail,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        }
    }
}

/// What one check found.
#[derive(Clone, Debug, Serialize)]
struct Finding {
    check: &'static str,
    level: Level,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

/// All findings, in the order of the checks.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, check: &'static str, message: impl Into<String>) {
        self.0.push(Finding { check, level: Level::Ok, message: message.into(), remedy: None });
    }

    fn warn(&mut self, check: &'static str, message: impl Into<String>, remedy: impl Into<String>) {
        self.0.push(Finding { check, level: Level::Warn, message: message.into(), remedy: Some(remedy.into()) });
    }

    fn fail(&mut self, check: &'static str, message: impl Into<String>, remedy: impl Into<String>) {
        self.0.push(Finding { check, level: Level::Fail, message: message.into(), remedy: Some(remedy.into()) });
    }

    fn is_ok(&self, check: &str) -> bool {
        self.0.iter().filter(|finding| finding.check == check).all(|finding| finding.level == Level::Ok)
    }

    fn worst(&self) -> Level {
        let is = |level| self.0.iter().any(|finding| finding.level == level);
        if is(Level::Fail) {
            Level::Fail
        } else if is(Level::Warn) {
            Level::Warn
        } else {
            Level::Ok
        }
    }
}

pub(crate) fn run(arguments: &DoctorArguments) -> Result<ExitCode, Failure> {
    let mut findings = Findings::default();
    match load(&arguments.flags.0, &environment) {
        Ok(loaded) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(anyhow::Error::from)?;
            runtime.block_on(examine(&loaded, &mut findings));
        }
        Err(errors) => {
            for error in errors.0 {
                findings.fail("settings", error.to_string(), "mend this setting; the other checks need valid settings");
            }
        }
    }
    if arguments.json {
        say_json(&json!({ "ok": findings.worst() != Level::Fail, "findings": findings.0 }))?;
    } else {
        say(&text(&findings));
    }
    Ok(if findings.worst() == Level::Fail { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn examine(loaded: &Loaded, findings: &mut Findings) {
    let settings = &loaded.settings;
    check_settings(loaded, findings);
    machine::check_clock(settings, findings);
    machine::check_open_files(findings);
    machine::check_tls(settings, findings);
    machine::check_data_folder(settings, findings);
    let about = server::check_server(settings, findings).await;
    if about.is_none() {
        server::check_listen(settings, findings);
    }
    database::check_database(settings, findings).await;
    // Opening a damaged, older or empty database would do more than look.
    if findings.is_ok("database") && findings.is_ok("server") {
        server::check_owner(settings, about.is_some(), findings).await;
        database::check_rows(settings, findings).await;
    }
}

fn check_settings(loaded: &Loaded, findings: &mut Findings) {
    match loaded.settings.check() {
        Ok(()) => findings.ok(
            "settings",
            loaded.file.as_ref().map_or_else(
                || "valid; no settings file".to_owned(),
                |path| format!("valid; read from {}", path.display()),
            ),
        ),
        Err(problem) => findings.fail("settings", problem, "`bandstand up` would refuse to start with these settings"),
    }
    let known = |name: &str| {
        name == OWNER_KEY
            || name == CONFIG
            || REMOTE.contains(&name)
            || TABLE.iter().any(|setting| setting.environment() == name)
    };
    let mut unknown: Vec<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| name.starts_with("BANDSTAND_") && !known(name))
        .collect();
    unknown.sort();
    for name in unknown {
        findings.warn(
            "settings",
            format!("the variable {name} is no setting, so it has no effect"),
            "`bandstand config print` shows all settings; correct the name or remove the variable",
        );
    }
}

fn text(findings: &Findings) -> String {
    let width = findings.0.iter().map(|finding| finding.check.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for finding in &findings.0 {
        let indent = " ".repeat(8 + width);
        let message = finding.message.replace('\n', &format!("\n{indent}"));
        lines.push(format!("{:<4}  {:<width$}  {message}", finding.level.word(), finding.check));
        if let Some(remedy) = &finding.remedy {
            lines.push(format!("{indent}→ {remedy}"));
        }
    }
    lines.push(String::new());
    lines.push(
        match findings.worst() {
            Level::Ok => "All is well.",
            Level::Warn => "It works; look at the warnings.",
            Level::Fail => "Something must be mended.",
        }
        .to_owned(),
    );
    lines.join("\n")
}
