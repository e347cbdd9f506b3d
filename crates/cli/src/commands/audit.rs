//! `bandstand audit`.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use bandstand_domain::audit::{Broken, Entry, Hash, Head, Verifier, canonical};
use bandstand_server::admin::{AUDIT_MAX, AuditRows, Operation, Outcome};
use serde_json::json;

use super::{administer, unexpected};
use crate::cli::{AuditCommand, Place};
use crate::output::{Failure, columns, say, say_json};

pub(crate) fn run(command: AuditCommand) -> Result<ExitCode, Failure> {
    match command {
        AuditCommand::List { place } => list(&place),
        AuditCommand::Export { file, place } => export(&place, file.as_deref()),
        AuditCommand::Verify { file, head, place } => {
            let wanted = head.as_deref().map(|text| {
                Hash::parse(text).ok_or_else(|| Failure::Usage("--head takes the 64 digits of a hash".to_owned()))
            });
            let wanted = wanted.transpose()?;
            match file {
                Some(file) => told(&place, verify_file(&file, wanted)?),
                None => told(&place, verify_log(&place, wanted)?),
            }
        }
    }
}

/// Hands over the log, page by page; answers how far the database says it reaches.
fn read(place: &Place, mut take: impl FnMut(Entry) -> Result<bool, Failure>) -> Result<Head, Failure> {
    let mut after = 0;
    loop {
        let (performed, _) = administer(place, Operation::Audit { after, limit: AUDIT_MAX })?;
        let Outcome::Audit(AuditRows { entries, head }) = performed.outcome else { return Err(unexpected()) };
        let Some(last) = entries.last().map(|entry| entry.sequence) else { return Ok(head) };
        for entry in entries {
            if !take(entry)? {
                return Ok(head);
            }
        }
        if last >= head.sequence {
            return Ok(head);
        }
        after = last;
    }
}

fn list(place: &Place) -> Result<ExitCode, Failure> {
    let mut entries = Vec::new();
    let head = read(place, |entry| {
        entries.push(entry);
        Ok(true)
    })?;
    if place.json {
        say_json(&json!({ "entries": entries, "head": head }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = entries
        .into_iter()
        .map(|entry| {
            let Entry { sequence, at, actor, door, act, target, details, .. } = entry;
            [sequence.to_string(), at.to_string(), actor, door.as_str().to_owned(), act, target, canonical(&details)]
        })
        .collect();
    say(&columns(["NUMBER", "TIME", "WHO", "DOOR", "ACT", "TARGET", "DETAILS"], &rows));
    Ok(ExitCode::SUCCESS)
}

fn export(place: &Place, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let mut out: Box<dyn Write> = match file {
        None => Box::new(std::io::stdout().lock()),
        Some(path) => {
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            Box::new(BufWriter::new(made.with_context(|| format!("cannot make {}", path.display()))?))
        }
    };
    let head = read(place, |entry| {
        let line = serde_json::to_string(&entry).map_err(anyhow::Error::from)?;
        writeln!(out, "{line}").context("cannot write the log")?;
        Ok(true)
    })?;
    out.flush().context("cannot write the log")?;
    if let Some(path) = file {
        say(&format!("Wrote {} entries to {}. Head: {}", head.sequence, path.display(), head.hash));
    }
    Ok(ExitCode::SUCCESS)
}

fn verify_log(place: &Place, wanted: Option<Hash>) -> Result<Result<Head, Broken>, Failure> {
    let mut verifier = Verifier::new(wanted);
    let mut broken = None;
    let written = read(place, |entry| {
        broken = verifier.take(&entry).err();
        Ok(broken.is_none())
    })?;
    Ok(match broken {
        Some(broken) => Err(broken),
        None => verifier.finish(Some(written)),
    })
}

fn verify_file(path: &Path, wanted: Option<Hash>) -> anyhow::Result<Result<Head, Broken>> {
    let shown = path.display();
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {shown}"))?;
    let mut verifier = Verifier::new(wanted);
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let line = line.with_context(|| format!("cannot read {shown}"))?;
        let entry: Entry =
            serde_json::from_str(&line).map_err(|why| anyhow!("{shown}, line {number} is no entry: {why}"))?;
        if let Err(broken) = verifier.take(&entry) {
            return Ok(Err(broken));
        }
    }
    Ok(verifier.finish(None))
}

fn told(place: &Place, found: Result<Head, Broken>) -> Result<ExitCode, Failure> {
    match found {
        Ok(head) if place.json => say_json(&json!({ "ok": true, "head": head }))?,
        Ok(head) => say(&format!("The log is whole: {} entries. Head: {}", head.sequence, head.hash)),
        Err(broken) => return Err(Failure::Failed(anyhow!("{broken}"))),
    }
    Ok(ExitCode::SUCCESS)
}
