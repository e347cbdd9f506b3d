//! Whether the database is sound and safe, without changing it.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use rusqlite::{Connection, OpenFlags};

use super::Findings;
use crate::settings::Settings;

const CHECK: &str = "database";

/// A PostgreSQL server that has not answered by then is as good as away.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

const VERSION: &str = "SELECT COALESCE(MAX(number), 0) FROM schema_migrations";

pub(super) async fn check_database(settings: &Settings, findings: &mut Findings) {
    match &settings.database {
        None => check_file(&settings.database_file(), findings),
        Some(url) => match tokio::time::timeout(CONNECT_TIMEOUT, ask_postgres(url.reveal())).await {
            Ok(Ok(answer)) => judge_postgres(&answer, findings),
            Ok(Err(error)) => {
                findings.fail(
                    CHECK,
                    format!("cannot use {url}: {error:#}"),
                    "check the address, the password and that PostgreSQL runs",
                );
            }
            Err(_) => {
                findings.fail(CHECK, format!("{url} does not answer"), "check the address and that PostgreSQL runs")
            }
        },
    }
}

fn check_file(path: &Path, findings: &mut Findings) {
    let shown = path.display();
    if !path.exists() {
        return findings.warn(CHECK, format!("there is no database {shown} yet"), "`bandstand up` creates it");
    }
    match examine_file(path) {
        Ok((version, damage)) if damage.is_empty() => judge_version(version, &shown.to_string(), findings),
        Ok((_, damage)) => findings.fail(
            CHECK,
            format!("{shown} is damaged: {}", damage.join("; ")),
            "stop the server, keep a copy of the data folder, and restore a backup",
        ),
        Err(error) => findings.fail(
            CHECK,
            format!("cannot read {shown}: {error:#}"),
            "if it is no database of Bandstand, name another folder with --data; if it is damaged, restore a backup",
        ),
    }
}

/// The schema's version, and what is damaged.
fn examine_file(path: &Path) -> anyhow::Result<(i64, Vec<String>)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags)?;
    database.busy_timeout(CONNECT_TIMEOUT)?;
    let mut statement = database.prepare("PRAGMA quick_check(5)")?;
    let lines: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let damage = lines.into_iter().filter(|line| line != "ok").collect();
    let version = database.query_row(VERSION, [], |row| row.get(0)).context("it has no schema of Bandstand")?;
    Ok((version, damage))
}

fn judge_version(found: i64, database: &str, findings: &mut Findings) {
    let newest = bandstand_store::MIGRATIONS.last().map_or(0, |migration| migration.number);
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

struct PostgresAnswer {
    database: String,
    settings: Vec<(&'static str, String)>,
    version: Option<i64>,
}

async fn ask_postgres(url: &str) -> anyhow::Result<PostgresAnswer> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    // It ends when the client is dropped.
    tokio::spawn(connection);
    let database = client.query_one("SELECT current_database()::text", &[]).await?.get(0);
    let row = client
        .query_one(
            "SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes')",
            &[],
        )
        .await?;
    let settings = vec![("fsync", row.get(0)), ("synchronous_commit", row.get(1)), ("full_page_writes", row.get(2))];
    let has_schema = client.query_one("SELECT to_regclass('schema_migrations') IS NOT NULL", &[]).await?;
    let version = if has_schema.get::<_, bool>(0) { Some(client.query_one(VERSION, &[]).await?.get(0)) } else { None };
    Ok(PostgresAnswer { database, settings, version })
}

fn judge_postgres(answer: &PostgresAnswer, findings: &mut Findings) {
    for (name, value) in answer.settings.iter().filter(|(_, value)| value == "off") {
        findings.fail(
            CHECK,
            format!("PostgreSQL runs with {name} = {value}: a power cut could lose acknowledged messages"),
            format!("set {name} = on in postgresql.conf (or for this role and database) and reload PostgreSQL"),
        );
    }
    let database = format!("PostgreSQL database {}", answer.database);
    match answer.version {
        Some(version) => judge_version(version, &database, findings),
        None => findings.warn(CHECK, format!("{database} is empty"), "`bandstand up` fills it"),
    }
}
