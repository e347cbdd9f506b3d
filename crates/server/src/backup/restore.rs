//! Restores a backup into an empty place. What is being restored lies aside until it is whole, and takes its place in one
//! step: whoever breaks it off leaves nothing that looks like data.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use bandstand_domain::audit::{Act, Door};
use bandstand_store::archive::{self, Importer, PAGE_ROWS};
use bandstand_store::{Database, StoreError, audit};
use bandstand_wire::time::Timestamp;
use tokio::sync::mpsc::{Receiver, channel};
use tokio_util::sync::CancellationToken;

use super::archive::{Archive, ArchiveError};
use super::format::{FILES, FilesInManifest, Manifest, TABLES};
use super::{Progress, SharedProgress};
use crate::service::audit::Actor;

/// What is being restored, inside of the data folder.
const ASIDE: &str = "restoring.tmp";

/// What may be in the data folder: the lock that the caller holds, and settings.
const ALLOWED: [&str; 3] = ["bandstand.lock", "bandstand.toml", ASIDE];

/// Why a backup is not restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backup is damaged.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// There is something already.
    #[error("the data folder {} is not empty: there is {found}; restore into an empty one", folder.display())]
    NotEmpty {
        /// Which folder.
        folder: PathBuf,
        /// What is there.
        found: String,
    },
    /// The files of the backup have no place in these settings.
    #[error(
        "the backup holds {0} files of rooms, and these settings keep files in a bucket: restore without the bucket"
    )]
    NoPlaceForFiles(u64),
    /// A part is not what its name says.
    #[error("the part {0} is none of a backup: {1}")]
    Part(String, String),
    /// The folder cannot be written.
    #[error("cannot write to {}: {why}", path.display())]
    Folder {
        /// Where.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// The database cannot be filled.
    #[error("the database cannot be filled: {0}")]
    Store(#[from] StoreError),
    /// It was told to stop.
    #[error("it was broken off; nothing was restored")]
    BrokenOff,
}

/// Where to.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// The database: a file inside of the data folder, or PostgreSQL.
    pub database: Database,
    /// The data folder, which the caller has locked. Missing folders are made.
    pub data: PathBuf,
    /// Where the files of rooms go, inside of the data folder; none when they are kept in a bucket.
    pub files: Option<PathBuf>,
    /// When.
    pub now: Timestamp,
    /// Breaks it off. From the moment on at which everything is in its place, it counts no longer.
    pub stop: CancellationToken,
}

/// What was restored.
#[derive(Clone, Debug)]
pub struct Restored {
    /// What the backup says of itself.
    pub manifest: Manifest,
    /// The hash of its manifest.
    pub hash: String,
}

/// Removes what a restore left that was broken off.
pub fn sweep(data: &Path) {
    // What cannot be removed now is removed by the next restore.
    let _ = fs::remove_dir_all(data.join(ASIDE));
}

/// Restores a backup that was checked.
///
/// # Errors
/// [`RestoreError`]; then nothing was restored.
pub async fn restore(
    archive: Archive,
    options: RestoreOptions,
    progress: SharedProgress,
) -> Result<Restored, RestoreError> {
    let RestoreOptions { database, data, files, now, stop } = options;
    let FilesInManifest { count, .. } = archive.manifest().files;
    if files.is_none() && count > 0 {
        return Err(RestoreError::NoPlaceForFiles(count));
    }
    check_empty(&data)?;
    sweep(&data);
    let aside = data.join(ASIDE);
    fs::create_dir_all(&aside).map_err(|why| folder(&aside, why))?;
    let filling = Filling::new(archive, &aside, now, stop, progress);
    let restored = restore_aside(filling, database, &aside, files.clone()).await;
    sweep(&data);
    if let (Err(_), Some(files)) = (&restored, files) {
        // There were none before: they took their place, and the database then did not.
        let _ = fs::remove_dir_all(files);
    }
    if restored.is_ok() {
        sync_folder(&data)?;
    }
    restored
}

async fn restore_aside(
    filling: Filling,
    database: Database,
    aside: &Path,
    files: Option<PathBuf>,
) -> Result<Restored, RestoreError> {
    let restored = Restored { manifest: filling.archive.manifest().clone(), hash: filling.archive.hash().to_owned() };
    let place_files = {
        let (from, has_files) = (filling.files.clone(), restored.manifest.files.count > 0);
        move || match files.filter(|_| has_files) {
            Some(to) => fs::rename(&from, &to).map_err(|why| folder(&to, why)),
            None => Ok(()),
        }
    };
    match database {
        Database::Sqlite { path } => {
            let file = aside.join("bandstand.db");
            let into = Database::Sqlite { path: file.clone() };
            archive::import(into, filling.note.at.as_micros(), |importer| Box::pin(filling.fill(importer))).await?;
            place_files()?;
            // The last step: with the database in its place the data is there, and not before.
            fs::rename(&file, &path).map_err(|why| folder(&path, why))?;
        }
        database @ Database::Postgres { .. } => {
            archive::import(database, filling.note.at.as_micros(), |importer| {
                Box::pin(async move {
                    filling.fill(importer).await?;
                    place_files()
                })
            })
            .await?;
        }
    }
    Ok(restored)
}

struct Filling {
    archive: Archive,
    files: PathBuf,
    note: Act,
    stop: CancellationToken,
    progress: SharedProgress,
}

/// A part with rows.
struct Rows {
    table: String,
    text: String,
}

impl Filling {
    fn new(archive: Archive, aside: &Path, now: Timestamp, stop: CancellationToken, progress: SharedProgress) -> Self {
        let manifest = archive.manifest();
        let note = Act {
            at: now,
            actor_id: None,
            actor: Actor::local(Door::Restore).name,
            door: Door::Restore,
            act: "backup.restore".to_owned(),
            target: archive.hash().to_owned(),
            details: serde_json::json!({
                "taken_at": manifest.taken_at,
                "version": manifest.version,
                "schema_version": manifest.schema_version,
                "engine": manifest.engine,
            }),
        };
        Self { files: aside.join("files"), archive, note, stop, progress }
    }

    async fn fill(self, importer: &mut Importer) -> Result<(), RestoreError> {
        let Self { archive, files, note, stop, progress } = self;
        let manifest = archive.manifest().clone();
        importer.make_schema(manifest.schema_version).await?;
        if stop.is_cancelled() {
            return Err(RestoreError::BrokenOff);
        }
        let total: u64 = manifest.tables.values().sum();
        let (sender, receiver) = channel::<Rows>(2);
        // The archive is read on a thread of its own: reading it waits for the disk.
        let stopped = stop.clone();
        let reading = tokio::task::spawn_blocking(move || {
            archive.parts::<RestoreError>(|name, content| {
                let mut content = Stoppable { content, stop: &stopped };
                if let Some(rest) = name.strip_prefix(TABLES) {
                    let table = rest.split('/').next().unwrap_or_default().to_owned();
                    let mut text = String::new();
                    let read = content.read_to_string(&mut text);
                    read.map_err(|why| RestoreError::Part(name.to_owned(), why.to_string()))?;
                    // Nobody takes it any more when the other side failed, whose error is the one to tell.
                    sender.blocking_send(Rows { table, text }).map_err(|_| RestoreError::BrokenOff)
                } else if let Some(rest) = name.strip_prefix(FILES) {
                    write_file(&files, name, rest, &mut content)
                } else {
                    Err(RestoreError::Part(name.to_owned(), "it has no known kind".to_owned()))
                }
            })
        });
        let inserted = insert(importer, receiver, total, &stop, &*progress).await;
        let read = reading.await.map_err(|why| StoreError::Bug(format!("reading the backup failed: {why}")))?;
        if stop.is_cancelled() {
            // Whatever else either side complains of comes of that.
            return Err(RestoreError::BrokenOff);
        }
        let inserted = inserted?;
        read?;
        if inserted != total {
            return Err(StoreError::Decode(format!("{inserted} rows came of {total}")).into());
        }
        importer.complete().await?;
        audit::append(importer.writer(), note).await?;
        // The last moment: what follows puts everything into its place.
        if stop.is_cancelled() { Err(RestoreError::BrokenOff) } else { Ok(()) }
    }
}

/// Content that ends with an error as soon as nobody wants it any more.
struct Stoppable<'c> {
    content: &'c mut dyn Read,
    stop: &'c CancellationToken,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() { Err(io::Error::other("broken off")) } else { self.content.read(buffer) }
    }
}

async fn insert(
    importer: &mut Importer,
    mut parts: Receiver<Rows>,
    total: u64,
    stop: &CancellationToken,
    progress: Progress<'_>,
) -> Result<u64, RestoreError> {
    let mut inserted = 0_u64;
    loop {
        let Some(part) = stop.run_until_cancelled(parts.recv()).await else { return Err(RestoreError::BrokenOff) };
        let Some(Rows { table, text }) = part else { return Ok(inserted) };
        let mut lines = text.lines();
        let columns: Vec<String> = serde_json::from_str(lines.next().unwrap_or_default())
            .map_err(|why| RestoreError::Part(format!("{TABLES}{table}"), format!("its columns: {why}")))?;
        let lines: Vec<&str> = lines.collect();
        for chunk in lines.chunks(usize::try_from(PAGE_ROWS).unwrap_or(1)) {
            if stop.is_cancelled() {
                return Err(RestoreError::BrokenOff);
            }
            importer.insert(&table, &columns, chunk).await?;
            inserted += chunk.len() as u64;
        }
        progress(&table, inserted, total);
    }
}

/// Writes `<room>/<file>` below a folder; nothing else, whatever the archive says.
fn write_file(into: &Path, name: &str, rest: &str, content: &mut dyn Read) -> Result<(), RestoreError> {
    let path = Path::new(rest);
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    if !plain || path.components().count() != 2 {
        return Err(RestoreError::Part(name.to_owned(), "it would lie elsewhere".to_owned()));
    }
    let path = into.join(path);
    let mut written = || {
        fs::create_dir_all(path.parent().unwrap_or(into))?;
        let mut file = File::create_new(&path)?;
        io::copy(content, &mut file)?;
        file.sync_all()?;
        File::open(path.parent().unwrap_or(into))?.sync_all()
    };
    written().map_err(|why| folder(&path, why))
}

fn check_empty(data: &Path) -> Result<(), RestoreError> {
    let entries = match fs::read_dir(data) {
        Ok(entries) => entries,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(folder(data, why)),
    };
    for entry in entries {
        let name = entry.map_err(|why| folder(data, why))?.file_name();
        if !ALLOWED.iter().any(|allowed| name == *allowed) {
            let found = name.to_string_lossy().into_owned();
            return Err(RestoreError::NotEmpty { folder: data.to_owned(), found });
        }
    }
    Ok(())
}

fn sync_folder(path: &Path) -> Result<(), RestoreError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(|why| folder(path, why))
}

fn folder(path: &Path, why: io::Error) -> RestoreError {
    RestoreError::Folder { path: path.to_owned(), why }
}
