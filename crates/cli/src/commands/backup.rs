//! `bandstand backup` and `bandstand restore`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use bandstand_domain::clock::Clock;
use bandstand_server::backup::{Archive, Manifest, RestoreError, RestoreOptions, Restored, restore, stream, sweep};
use bandstand_server::start::services_only;
use bandstand_server::system::SystemClock;
use bandstand_store::DataLock;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::admin::{AdminSocket, app_options, explain};
use crate::cli::{BackupArguments, RestoreArguments};
use crate::commands::up::create_data_folder;
use crate::environment;
use crate::output::{Failure, say, say_json};
use crate::settings::{Settings, load};

/// What a backup is called that is written into a folder.
const EXTENSION: &str = "backup";

const MIB: u64 = 1 << 20;

pub(crate) fn back_up(arguments: &BackupArguments) -> Result<ExitCode, Failure> {
    let settings = load(&arguments.flags.0, &environment)?.settings;
    let to = target(&arguments.to)?;
    let part = aside(&to);
    let runtime = runtime()?;
    let written = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        tokio::select! {
            written = write(&settings, &part) => written.map(Some),
            () = signals.next() => Ok(None),
        }
    });
    runtime.shutdown_background();
    let finished = match written {
        Ok(Some(archive)) => place(&part, &to).map(|()| archive).map_err(Failure::Failed),
        Ok(None) => Err(Failure::BrokenOff("nothing was written")),
        Err(why) => Err(Failure::Failed(why)),
    };
    // Half a backup looks like one.
    let _ = fs::remove_file(&part);
    let archive = finished?;
    told_backup(arguments, &to, archive.manifest(), archive.hash())?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn restore_backup(arguments: &RestoreArguments) -> Result<ExitCode, Failure> {
    let settings = load(&arguments.flags.0, &environment)?.settings;
    let meter = Arc::new(Meter::new());
    let archive = Archive::open(&arguments.from, &|what, done, total| meter.show(what, done, total));
    let archive = archive.map_err(|why| anyhow!("{}: {why}", arguments.from.display()))?;
    let runtime = runtime()?;
    // Before there is anything: who breaks it off from now on finds nothing left.
    let signals = runtime.block_on(async { Signals::listen() })?;
    let is_new = !settings.data.exists();
    create_data_folder(&settings.data)?;
    let restored = {
        let locked = "stop that server first, or name an empty folder with --data";
        let lock = DataLock::acquire(&settings.data).map_err(|why| explain(&why.into(), &settings, locked))?;
        let done = runtime.block_on(restore_into(&settings, archive, Arc::clone(&meter), signals));
        runtime.shutdown_background();
        meter.end();
        drop(lock);
        done
    };
    if let Some(Ok(restored)) = restored {
        told_restore(arguments, &settings, &restored)?;
        return Ok(ExitCode::SUCCESS);
    }
    sweep(&settings.data);
    if is_new {
        // Only what this command made: a folder that is not empty stays.
        let _ = fs::remove_file(settings.data.join("bandstand.lock"));
        let _ = fs::remove_dir(&settings.data);
    }
    match restored {
        Some(Err(why)) if !matches!(why, RestoreError::BrokenOff) => Err(Failure::Failed(why.into())),
        // It was perhaps at its last step; nobody waited to hear.
        None if settings.database.is_some() => Err(Failure::BrokenOff("the database was not waited for: look into it")),
        _ => Err(Failure::BrokenOff("nothing was restored")),
    }
}

/// `None` when somebody would not wait for its end.
async fn restore_into(
    settings: &Settings,
    archive: Archive,
    meter: Arc<Meter>,
    mut signals: Signals,
) -> Option<Result<Restored, RestoreError>> {
    let (now, stop) = (SystemClock.now(), CancellationToken::new());
    let options = RestoreOptions {
        database: settings.store_options(now.as_micros()).database,
        data: settings.data.clone(),
        files: settings.files_bucket.is_none().then(|| settings.data.join("files")),
        now,
        stop: stop.clone(),
    };
    let told = move |what: &str, done: u64, total: u64| meter.show(what, done, total);
    let mut work = pin!(restore(archive, options, Arc::new(told)));
    tokio::select! {
        done = &mut work => return Some(done),
        () = signals.next() => stop.cancel(),
    }
    // A disk or a database that hangs need not be waited for.
    let _ = writeln!(io::stderr(), "breaking off; a second signal does not wait");
    tokio::select! {
        done = work => Some(done),
        () = signals.next() => None,
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// What breaks a command off: Ctrl-C and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Listens from now on: neither ends the process by itself any more.
    fn listen() -> anyhow::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Where the backup goes: a new file, or a new file inside of a folder.
fn target(to: &Path) -> anyhow::Result<PathBuf> {
    let to = if to.is_dir() {
        let now: String = SystemClock.now().to_string().chars().take(19).filter(|c| !matches!(c, '-' | ':')).collect();
        to.join(format!("bandstand-{now}Z.{EXTENSION}"))
    } else {
        to.to_owned()
    };
    if to.exists() {
        bail!("{} exists already; a backup never takes the place of another file", to.display());
    }
    Ok(to)
}

/// Beside its place, so that it takes its place in one step.
fn aside(to: &Path) -> PathBuf {
    let name = to.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    to.with_file_name(format!(".{name}.part-{}", std::process::id()))
}

/// Writes it aside, and reads back what was written.
async fn write(settings: &Settings, part: &Path) -> anyhow::Result<Archive> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(part);
    let mut file = made.with_context(|| format!("cannot write beside {}", part.display()))?;
    let meter = Meter::new();
    match AdminSocket::connect(settings).await? {
        Some(mut socket) => {
            let pieces = socket.backup().await?;
            copy(Box::pin(pieces), &mut file, &meter).await?;
        }
        None => {
            if settings.database.is_none() && !settings.database_file().is_file() {
                bail!("there is no Bandstand data in {}", settings.data.display());
            }
            let locked =
                "it does not answer on its admin socket: when it is starting or stopping, try again in a moment";
            let services = services_only(app_options(settings)).await;
            let services = services.map_err(|error| explain(&error, settings, locked))?;
            let copied = async {
                let pieces = stream(&services).await?;
                copy(Box::pin(pieces), &mut file, &meter).await
            };
            let copied = copied.await;
            services.store.close().await;
            copied?;
        }
    }
    file.sync_all().context("cannot sync the backup")?;
    let part = part.to_owned();
    let checking = tokio::task::spawn_blocking(move || {
        let archive = Archive::open(&part, &|what, done, total| meter.show(what, done, total));
        meter.end();
        archive
    });
    checking.await?.context("the backup cannot be read back")
}

async fn copy<E>(
    mut pieces: impl Stream<Item = Result<Bytes, E>> + Unpin,
    file: &mut File,
    meter: &Meter,
) -> anyhow::Result<()>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let mut written = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece.context("the backup was broken off")?;
        file.write_all(&piece).context("cannot write the backup")?;
        written += piece.len() as u64;
        meter.show("writing", written, 0);
    }
    Ok(())
}

/// Gives it its name.
fn place(part: &Path, to: &Path) -> anyhow::Result<()> {
    // A link, unlike a renaming, takes the place of nothing.
    fs::hard_link(part, to)
        .or_else(|why| match why.kind() {
            io::ErrorKind::AlreadyExists => Err(why),
            // Some file systems have no links.
            _ => fs::rename(part, to),
        })
        .with_context(|| format!("cannot write {}", to.display()))?;
    let _ = fs::remove_file(part);
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).context("cannot sync the folder of the backup")
}

fn told_backup(arguments: &BackupArguments, to: &Path, manifest: &Manifest, hash: &str) -> Result<(), Failure> {
    if arguments.json {
        let mut short = serde_json::to_value(manifest).map_err(anyhow::Error::from)?;
        if let Some(fields) = short.as_object_mut() {
            fields.remove("parts");
            fields.insert("file".to_owned(), json!(to.display().to_string()));
            fields.insert("manifest_sha256".to_owned(), json!(hash));
        }
        return say_json(&short);
    }
    let rows: u64 = manifest.tables.values().sum();
    let messages = manifest.tables.get("messages").copied().unwrap_or_default();
    say(&format!(
        "Wrote {}: {rows} rows, {messages} of them messages, {}.\nIts manifest's SHA-256: {hash}",
        to.display(),
        about_files(manifest)
    ));
    Ok(())
}

fn about_files(manifest: &Manifest) -> String {
    let files = &manifest.files;
    let mut text = match &files.bucket {
        Some(bucket) => format!("without the files, which are in the bucket {bucket}: back that up as well"),
        None => format!("{} files of {} MiB", files.count, files.bytes / MIB),
    };
    if !files.missing.is_empty() {
        text.push_str(&format!("; {} files were not there (`bandstand doctor` names them)", files.missing.len()));
    }
    text
}

fn told_restore(arguments: &RestoreArguments, settings: &Settings, restored: &Restored) -> Result<(), Failure> {
    let manifest = &restored.manifest;
    let rows: u64 = manifest.tables.values().sum();
    if arguments.json {
        return say_json(&json!({
            "rows": rows,
            "taken_at": manifest.taken_at,
            "files": manifest.files,
            "manifest_sha256": restored.hash,
        }));
    }
    let data = settings.data.display();
    say(&format!(
        "Restored the backup of {}: {rows} rows, {}.\nCheck it with `bandstand doctor --data {data}`, start it with \
         `bandstand up --data {data}`.",
        manifest.taken_at,
        about_files(manifest)
    ));
    Ok(())
}

/// Tells on a terminal how far something is, a few times a second.
struct Meter {
    terminal: bool,
    told: Mutex<Option<Instant>>,
}

impl Meter {
    const EVERY: Duration = Duration::from_millis(200);

    fn new() -> Self {
        Self { terminal: io::stderr().is_terminal(), told: Mutex::new(None) }
    }

    /// `total` is 0 where nobody knows it.
    fn show(&self, what: &str, done: u64, total: u64) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.terminal || told.is_some_and(|at| at.elapsed() < Self::EVERY) {
            return;
        }
        *told = Some(Instant::now());
        let text = match total {
            0 => format!("{what}: {} MiB", done / MIB),
            total => format!("{what}: {} %", done.saturating_mul(100) / total),
        };
        let _ = write!(io::stderr(), "\r{text:<40}");
    }

    /// Clears its line.
    fn end(&self) {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_some() {
            let _ = write!(io::stderr(), "\r{:<40}\r", "");
        }
    }
}
