//! Whether the database can be used: its durability, its schema, its health, and whether its rows fit together.

use std::path::Path;
use std::time::Duration;

use bandstand_domain::clock::Clock;
use bandstand_server::system::SystemClock;
use bandstand_store::examine::{self, Examination, KeptFile, newest_version};
use bandstand_store::{Database, StoreError};

use super::Findings;
use crate::settings::Settings;

const CHECK: &str = "database";
const ROWS: &str = "rows";
const AUDIT: &str = "audit";
const FILES: &str = "files of rooms";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Files that are named when they are missing.
const NAMED: usize = 5;

pub(super) async fn check_database(settings: &Settings, findings: &mut Findings) {
    let database = settings.store_options(0).database;
    match &settings.database {
        None => check_file(database, &settings.database_file(), findings).await,
        Some(url) => match tokio::time::timeout(CONNECT_TIMEOUT, examine::examine(database)).await {
            Ok(Ok(examination)) => judge_postgres(&examination, findings),
            Ok(Err(error)) => findings.fail(
                CHECK,
                format!("cannot use {url}: {error}"),
                "check the address, the password and that PostgreSQL runs",
            ),
            Err(_) => {
                findings.fail(CHECK, format!("{url} does not answer"), "check the address and that PostgreSQL runs");
            }
        },
    }
}

async fn check_file(database: Database, path: &Path, findings: &mut Findings) {
    let shown = path.display();
    if !path.exists() {
        return findings.warn(CHECK, format!("there is no database {shown} yet"), "`bandstand up` creates it");
    }
    let cannot = |findings: &mut Findings, why: &str| {
        findings.fail(
            CHECK,
            format!("cannot read {shown}: {why}"),
            "if it is no database of Bandstand, name another folder with --data; if it is damaged, restore a backup",
        );
    };
    match examine::examine(database).await {
        Ok(Examination { damage, .. }) if !damage.is_empty() => findings.fail(
            CHECK,
            format!("{shown} is damaged: {}", damage.join("; ")),
            "stop the server, keep a copy of the data folder, and restore a backup",
        ),
        Ok(Examination { version: Some(version), .. }) => judge_version(version, &shown.to_string(), findings),
        Ok(Examination { version: None, .. }) => cannot(findings, "it has no schema of Bandstand"),
        Err(error) => cannot(findings, &error.to_string()),
    }
}

fn judge_version(found: i64, database: &str, findings: &mut Findings) {
    let newest = newest_version();
    if found > newest {
        findings.fail(
            CHECK,
            format!("{database} is at schema version {found}, and this program knows only {newest}"),
            "install the newest version of bandstand",
        );
    } else if found < newest {
        findings.warn(
            CHECK,
            format!("{database} is at schema version {found} of {newest}"),
            "the next start of the server brings it up to date; back it up before",
        );
    } else {
        findings.ok(CHECK, format!("{database} is sound, at schema version {found}"));
    }
}

fn judge_postgres(examination: &Examination, findings: &mut Findings) {
    for (name, value) in examination.settings.iter().filter(|(_, value)| value == "off") {
        findings.fail(
            CHECK,
            format!("PostgreSQL runs with {name} = {value}: a power cut could lose acknowledged messages"),
            format!("set {name} = on in postgresql.conf (or for this role and database) and reload PostgreSQL"),
        );
    }
    let database = format!("PostgreSQL database {}", examination.name);
    match examination.version {
        Some(version) => judge_version(version, &database, findings),
        None => findings.warn(CHECK, format!("{database} is empty"), "`bandstand up` fills it"),
    }
}

/// Whether what is stored fits together: every row is read, in one snapshot.
pub(super) async fn check_rows(settings: &Settings, findings: &mut Findings) {
    let now = SystemClock.now().as_micros();
    match examine::examine_rows(settings.store_options(now).database, now).await {
        Ok(found) => {
            let remedy = "keep a copy of the data, restore a backup, and report this";
            for fault in &found.faults {
                findings.fail(ROWS, format!("{} {}", fault.rows, fault.what), remedy);
            }
            if found.faults.is_empty() {
                findings.ok(ROWS, "messages, deliveries, attempts and tallies fit together");
            }
            match found.audit {
                Ok(head) => {
                    findings.ok(AUDIT, format!("the log is whole: {} entries, head {}", head.sequence, head.hash));
                }
                Err(broken) => findings.fail(
                    AUDIT,
                    format!("the log is not what it was: {broken}"),
                    "somebody changed the database itself: compare with an exported log or a backup",
                ),
            }
            check_files(settings, &found.files, findings);
        }
        Err(error @ StoreError::Decode(_)) => findings.fail(
            ROWS,
            format!("a stored value cannot be read: {error}"),
            "somebody changed the database itself: restore a backup",
        ),
        Err(error) => findings.fail(ROWS, format!("cannot read the rows: {error}"), "mend what the other checks found"),
    }
}

fn check_files(settings: &Settings, files: &[KeptFile], findings: &mut Findings) {
    if let Some(bucket) = &settings.files_bucket {
        return findings.ok(FILES, format!("{} files, kept in the bucket {bucket}; not looked at", files.len()));
    }
    let folder = settings.data.join("files");
    let wrong = |file: &&KeptFile| {
        let length = std::fs::metadata(folder.join(file.room.to_string()).join(file.id.to_string()));
        length.map_or(true, |found| i64::try_from(found.len()) != Ok(file.bytes))
    };
    let wrong: Vec<String> = files.iter().filter(wrong).map(|file| format!("{}/{}", file.room, file.id)).collect();
    if wrong.is_empty() {
        return findings.ok(FILES, format!("all {} are there", files.len()));
    }
    let named: Vec<&str> = wrong.iter().map(String::as_str).take(NAMED).collect();
    findings.fail(
        FILES,
        format!("{} of {} are missing or cut short: {}", wrong.len(), files.len(), named.join(", ")),
        format!("put them back into {} from a backup", folder.display()),
    );
}
