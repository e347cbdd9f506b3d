//! What the machine offers: clock, files, folder, certificate.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bandstand_domain::clock::Clock;
use bandstand_server::system::SystemClock;
use bandstand_server::tls;
use bandstand_wire::time::Timestamp;

use super::Findings;
use crate::settings::Settings;
use crate::sys;

const MIB: u64 = 1024 * 1024;
const DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// 2025-01-01: earlier than this program.
const EARLIEST_MICROS: i64 = 1_735_689_600_000_000;

/// Below this, new messages are about to be refused.
const SPACE_FAIL: u64 = 64 * MIB;
const SPACE_WARN: u64 = 1024 * MIB;

/// Fewer files than this, and not many clients can connect.
const FILES_WARN: u64 = 4096;

pub(super) fn check_clock(settings: &Settings, findings: &mut Findings) {
    let now = SystemClock.now();
    let remedy = "set the machine's clock, and let NTP keep it right";
    if now.as_micros() < EARLIEST_MICROS {
        return findings.fail("clock", format!("the machine says it is {now}"), remedy);
    }
    let written = fs::metadata(settings.database_file()).and_then(|file| file.modified()).ok();
    let written = written.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let written = written.and_then(|since| i64::try_from(since.as_micros()).ok()).map(Timestamp::from_micros);
    match written {
        Some(written) if written > now.plus_micros(DAY / 24) => findings.warn(
            "clock",
            format!("the machine says it is {now}, but the database was written at {written}"),
            remedy,
        ),
        _ => findings.ok("clock", format!("the machine says it is {now}")),
    }
}

pub(super) fn check_open_files(findings: &mut Findings) {
    match sys::raise_open_files() {
        Ok(files) if files < FILES_WARN => findings.warn(
            "files",
            format!("this user may open {files} files, and each client is one"),
            "raise it: `ulimit -Hn`, or LimitNOFILE= in the systemd unit",
        ),
        Ok(files) => findings.ok("files", format!("this user may open {files} files")),
        Err(error) => {
            findings.warn("files", format!("cannot ask for the number of open files: {error}"), "see ulimit(1)")
        }
    }
}

pub(super) fn check_tls(settings: &Settings, findings: &mut Findings) {
    let (Some(certificate), Some(key)) = (&settings.tls_cert, &settings.tls_key) else { return };
    if let Err(error) = tls::load(certificate, key) {
        return findings.fail("tls", error.to_string(), "check --tls-cert and --tls-key: both are PEM files");
    }
    let now = SystemClock.now();
    match tls::expiry(certificate) {
        Ok(Some(end)) if end <= now => {
            findings.fail(
                "tls",
                format!("the certificate is out of date since {end}"),
                "renew it and restart the server",
            );
        }
        Ok(Some(end)) if end <= now.plus_micros(14 * DAY) => {
            findings.warn("tls", format!("the certificate ends on {end}"), "renew it soon and restart the server");
        }
        Ok(Some(end)) => findings.ok("tls", format!("certificate and key fit; valid until {end}")),
        Ok(None) | Err(_) => findings.ok("tls", "certificate and key fit"),
    }
}

pub(super) fn check_data_folder(settings: &Settings, findings: &mut Findings) {
    let folder = &settings.data;
    let shown = folder.display();
    let about = match fs::metadata(folder) {
        Ok(about) if about.is_dir() => about,
        Ok(_) => return findings.fail("folder", format!("{shown} is no folder"), "name a folder with --data"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return findings.warn(
                "folder",
                format!("there is no data folder {shown} yet"),
                "`bandstand up` creates it; or name an existing one with --data",
            );
        }
        Err(error) => {
            return findings.fail(
                "folder",
                format!("cannot look at {shown}: {error}"),
                "run this as the server's user",
            );
        }
    };
    let before = findings.0.len();
    let mode = about.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        findings.warn("folder", format!("others may look into {shown} (mode {mode:o})"), format!("chmod 700 {shown}"));
    }
    if let Err(error) = try_to_write(folder) {
        findings.fail(
            "folder",
            format!("cannot write to {shown}: {error}"),
            "give the folder to the server's user, or run this as that user",
        );
    }
    match sys::free_bytes(folder) {
        Ok(free) if free < SPACE_FAIL => findings.fail(
            "folder",
            format!("only {} MiB are free in {shown}; new messages are refused when it is full", free / MIB),
            "free some space",
        ),
        Ok(free) if free < SPACE_WARN => {
            findings.warn("folder", format!("only {} MiB are free in {shown}", free / MIB), "free some space");
        }
        Ok(_) => {}
        Err(error) => {
            findings.warn("folder", format!("cannot tell the free space of {shown}: {error}"), "look with df")
        }
    }
    if findings.0.len() == before {
        findings.ok("folder", format!("{shown} is writable, private and has space"));
    }
}

fn try_to_write(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(format!(".doctor-{}", std::process::id()));
    fs::write(&path, "x")?;
    fs::remove_file(&path)
}
