//! Takes a backup: reads one snapshot, which nobody waits for, and hands the archive over piece by piece.

use std::collections::BTreeMap;

use bandstand_domain::audit::Head;
use bandstand_store::{Reader, StoreError, archive, audit, params};
use bandstand_wire::time::Timestamp;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::format::{FILES, FORM, FilesInManifest, MANIFEST, MANIFEST_HASH, Manifest, NAME_MAX, Part, TABLES, hex};
use crate::service::files::FileError;
use crate::state::Services;

/// A part with rows ends at the first page that makes it this long.
const PART_BYTES: usize = 4 << 20;

/// Pieces that wait for whoever takes them.
const WAITING: usize = 4;

/// The block of a tar archive.
const BLOCK: usize = 512;

/// Why a backup cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Whoever took the archive went away.
    #[error("whoever took the backup went away")]
    Abandoned,
    /// A part cannot be written into the archive.
    #[error("the part {0} cannot be written: {1}")]
    Part(String, String),
    /// The files of rooms cannot be read.
    #[error(transparent)]
    Files(#[from] FileError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A piece of the archive, or why there is no more of it.
pub type Chunk = Result<Bytes, std::io::Error>;

/// Takes a backup and notes it in the audit log; the archive comes piece by piece. If it is dropped, the backup ends.
///
/// # Errors
/// When the store cannot be written.
pub async fn stream(services: &Services) -> Result<impl Stream<Item = Chunk> + Send + use<>, StoreError> {
    services.note_act("backup.take", "", serde_json::json!({})).await?;
    let (sender, receiver) = channel::<Chunk>(WAITING);
    let services = services.clone();
    // It ends when its receiver is dropped, at the next piece.
    tokio::spawn(async move {
        let taken_at = services.clock.now();
        let (store, out) = (services.store.clone(), Out { sender: sender.clone(), parts: Vec::new() });
        let taken = store.snapshot(move |tx| Box::pin(async move { take(&services, tx, out, taken_at).await })).await;
        if let Err(why) = taken {
            tracing::error!(error = %why, "a backup was broken off");
            let _ = sender.send(Err(std::io::Error::other(why.to_string()))).await;
        }
    });
    Ok(stream::unfold(receiver, |mut receiver: Receiver<Chunk>| async move {
        receiver.recv().await.map(|chunk| (chunk, receiver))
    }))
}

async fn take(services: &Services, tx: &mut Reader, mut out: Out, taken_at: Timestamp) -> Result<(), BackupError> {
    const VERSION: &str = "SELECT COALESCE(MAX(number), 0) FROM schema_migrations";
    let schema_version = tx.query_one(VERSION, params![]).await?.int(0)?;
    let audit_head: Head = audit::head(tx).await?;
    let mut tables = BTreeMap::new();
    for table in archive::tables(tx).await? {
        let rows = take_table(tx, &table, &mut out).await?;
        tables.insert(table.name, rows);
    }
    let files = take_files(services, tx, &mut out, taken_at).await?;
    let manifest = Manifest {
        form: FORM,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        schema_version,
        engine: tx.dialect().pick("sqlite", "postgres").to_owned(),
        taken_at,
        audit_head,
        tables,
        files,
        parts: std::mem::take(&mut out.parts),
    };
    let manifest =
        serde_json::to_vec_pretty(&manifest).map_err(|why| BackupError::Part(MANIFEST.to_owned(), why.to_string()))?;
    let hash = hex(&Sha256::digest(&manifest));
    out.part(MANIFEST, manifest.into()).await?;
    out.part(MANIFEST_HASH, format!("{hash}\n").into()).await?;
    // Two empty blocks end a tar archive.
    out.send(Bytes::from_static(&[0; 2 * BLOCK])).await
}

/// Each part begins with the names of the columns, so it can be read by itself.
async fn take_table(tx: &mut Reader, table: &archive::Table, out: &mut Out) -> Result<u64, BackupError> {
    let columns = serde_json::json!(table.column_names()).to_string();
    let mut last = None;
    let (mut rows, mut parts) = (0_u64, 0_u64);
    loop {
        let mut body = BytesMut::from(columns.as_str());
        body.put_u8(b'\n');
        let mut ended = false;
        while body.len() < PART_BYTES {
            let page = archive::page(tx, table, last.as_deref()).await?;
            for row in &page {
                body.put_slice(archive::line(row).as_bytes());
                body.put_u8(b'\n');
            }
            rows += page.len() as u64;
            ended = i64::try_from(page.len()).is_ok_and(|rows| rows < archive::PAGE_ROWS);
            last = page.into_iter().next_back().or(last);
            if ended {
                break;
            }
        }
        parts += 1;
        out.part(&format!("{TABLES}{}/{parts:06}.jsonl", table.name), body.freeze()).await?;
        if ended {
            return Ok(rows);
        }
    }
}

async fn take_files(
    services: &Services,
    tx: &mut Reader,
    out: &mut Out,
    now: Timestamp,
) -> Result<FilesInManifest, BackupError> {
    const SQL: &str = "SELECT f.key, r.id, f.id FROM files f JOIN rooms r ON r.key = f.room_key \
                       WHERE f.key > ?1 AND r.deleted_at IS NULL AND (f.expires_at IS NULL OR f.expires_at > ?2) \
                       ORDER BY f.key LIMIT ?3";
    let mut taken = FilesInManifest { bucket: services.files.bucket(), ..FilesInManifest::default() };
    taken.included = taken.bucket.is_none();
    let mut last = 0;
    while taken.included {
        let page = tx.query(SQL, params![last, now.as_micros(), archive::PAGE_ROWS]).await?;
        for row in &page {
            last = row.int(0)?;
            let name = format!("{}/{}", row.id(1)?, row.id(2)?);
            match services.files.open_kept(&name).await {
                Ok((bytes, content)) => {
                    out.file(&format!("{FILES}{name}"), bytes, content).await?;
                    taken.count += 1;
                    taken.bytes += bytes;
                }
                Err(FileError::NotFound) => taken.missing.push(name),
                Err(why) => return Err(why.into()),
            }
        }
        if page.is_empty() {
            break;
        }
    }
    Ok(taken)
}

/// The archive on its way.
struct Out {
    sender: Sender<Chunk>,
    parts: Vec<Part>,
}

impl Out {
    async fn send(&self, piece: Bytes) -> Result<(), BackupError> {
        self.sender.send(Ok(piece)).await.map_err(|_| BackupError::Abandoned)
    }

    async fn part(&mut self, name: &str, body: Bytes) -> Result<(), BackupError> {
        let (bytes, sha256) = (body.len() as u64, hex(&Sha256::digest(&body)));
        self.send(header(name, bytes)?).await?;
        self.send(body).await?;
        self.pad(bytes).await?;
        self.parts.push(Part { name: name.to_owned(), bytes, sha256 });
        Ok(())
    }

    async fn file(
        &mut self,
        name: &str,
        bytes: u64,
        mut content: impl Stream<Item = Result<Bytes, FileError>> + Unpin,
    ) -> Result<(), BackupError> {
        self.send(header(name, bytes)?).await?;
        let (mut hasher, mut sent) = (Sha256::new(), 0_u64);
        while let Some(piece) = content.next().await {
            let piece = piece?;
            hasher.update(&piece);
            sent += piece.len() as u64;
            self.send(piece).await?;
        }
        if sent != bytes {
            return Err(BackupError::Part(name.to_owned(), format!("{sent} bytes came of {bytes}")));
        }
        self.pad(bytes).await?;
        self.parts.push(Part { name: name.to_owned(), bytes, sha256: hex(&hasher.finalize()) });
        Ok(())
    }

    /// A part fills its last block.
    async fn pad(&self, bytes: u64) -> Result<(), BackupError> {
        let over = usize::try_from(bytes % BLOCK as u64).unwrap_or_default();
        if over == 0 { Ok(()) } else { self.send(Bytes::from(vec![0; BLOCK - over])).await }
    }
}

fn header(name: &str, bytes: u64) -> Result<Bytes, BackupError> {
    let cannot = |why: String| BackupError::Part(name.to_owned(), why);
    if name.len() > NAME_MAX {
        return Err(cannot("its name is too long".to_owned()));
    }
    let mut header = tar::Header::new_ustar();
    header.set_path(name).map_err(|why| cannot(why.to_string()))?;
    header.set_entry_type(tar::EntryType::Regular);
    header.set_size(bytes);
    header.set_mode(0o600);
    header.set_cksum();
    Ok(Bytes::copy_from_slice(header.as_bytes()))
}
