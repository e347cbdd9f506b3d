//! Files of rooms: uploads that are spooled, checked and kept once per room; downloads; and the job that removes what
//! has expired.
//!
//! An upload is first written to the spool folder while its hash is taken, then put into the object store, then noted in
//! the database. If the server dies in between, an object is left that nothing points at: it costs space and nothing else.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bandstand_domain::file::{self, Attachment};
use bandstand_domain::room::RoomStatus;
use bandstand_store::files::{self, Doomed};
use bandstand_store::{StoreError, participants, rooms};
use bandstand_wire::ids::{FileId, RoomId};
use bandstand_wire::time::Timestamp;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use object_store::buffered::BufWriter;
use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, GetRange, GetResult, ObjectStore, ObjectStoreExt};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::auth::Caller;
use crate::service::sniff;
use crate::state::Services;

/// Where files are kept.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// Where uploads are written while they arrive; what is left there from an earlier run is removed at start.
    pub spool: PathBuf,
    /// Where they are kept.
    pub place: FilePlace,
}

/// Where files are kept.
#[derive(Clone, Debug)]
pub enum FilePlace {
    /// A folder of this machine.
    Folder(PathBuf),
    /// A bucket of an S3-compatible store.
    S3(S3Options),
}

/// How to reach an S3-compatible store.
#[derive(Clone)]
pub struct S3Options {
    /// The bucket.
    pub bucket: String,
    /// `https://…`; the one of AWS for the region when absent. Plain `http` is taken only when it says so here.
    pub endpoint: Option<String>,
    /// The region.
    pub region: String,
    /// The access key's id.
    pub access_key_id: String,
    /// The access key itself.
    pub secret_access_key: String,
}

impl std::fmt::Debug for S3Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("S3Options")
            .field("bucket", &self.bucket)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// Where files are kept, opened; cheap to clone.
#[derive(Clone)]
pub struct FileStore {
    objects: Arc<dyn ObjectStore>,
    /// The bucket, when it is one.
    bucket: Option<Arc<str>>,
    spool: Arc<Path>,
}

/// Why the place of files cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum FilePlaceError {
    /// A folder cannot be made or read.
    #[error("the folder {} cannot be used: {why}", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// The object store refuses.
    #[error("the place of files cannot be used: {0}")]
    Objects(#[from] object_store::Error),
}

/// Why a file is refused or cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// No such room, or the caller may not know of it.
    #[error("room not found")]
    RoomNotFound,
    /// No such file in this room, or it has expired.
    #[error("file not found")]
    NotFound,
    /// The room is archived or closed.
    #[error("the room is {}: it can be read but not written to", .0.as_str())]
    NotActive(RoomStatus),
    /// Longer than a file may be.
    #[error("a file may have at most {0} bytes")]
    TooLarge(u64),
    /// The bytes are not those that were announced.
    #[error("does not match the bytes that arrived")]
    HashMismatch,
    /// A type that this server does not take.
    #[error("this server does not take files of type {0}")]
    TypeNotTaken(String),
    /// The client went away, or broke the transfer off.
    #[error("the request body could not be read to its end")]
    Interrupted,
    /// The disk or the object store failed.
    #[error("the file store failed: {0}")]
    Unavailable(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<std::io::Error> for FileError {
    fn from(why: std::io::Error) -> Self {
        Self::Unavailable(why.to_string())
    }
}

impl From<object_store::Error> for FileError {
    fn from(why: object_store::Error) -> Self {
        match why {
            object_store::Error::NotFound { .. } => Self::NotFound,
            other => Self::Unavailable(other.to_string()),
        }
    }
}

/// A file as it is announced.
#[derive(Clone, Debug)]
pub struct Upload {
    /// Where to.
    pub room: RoomId,
    /// Who.
    pub caller: Caller,
    /// Its name, checked.
    pub name: String,
    /// The hash of its bytes.
    pub hash: [u8; 32],
}

/// How many bytes decide what a file is.
const SNIFFED: u64 = 8 * 1024;

impl FileStore {
    /// Opens the place of files and empties the spool.
    ///
    /// # Errors
    /// [`FilePlaceError`].
    pub fn open(options: &FileOptions) -> Result<Self, FilePlaceError> {
        let folder_error = |folder: &Path| {
            let folder = folder.to_owned();
            move |why| FilePlaceError::Folder { folder, why }
        };
        std::fs::create_dir_all(&options.spool).map_err(folder_error(&options.spool))?;
        for left in std::fs::read_dir(&options.spool).map_err(folder_error(&options.spool))? {
            let path = left.map_err(folder_error(&options.spool))?.path();
            if path.extension().is_some_and(|extension| extension == PART) {
                std::fs::remove_file(&path).map_err(folder_error(&path))?;
            }
        }
        let bucket = match &options.place {
            FilePlace::Folder(_) => None,
            FilePlace::S3(s3) => Some(s3.bucket.as_str().into()),
        };
        let objects: Arc<dyn ObjectStore> = match &options.place {
            FilePlace::Folder(folder) => {
                std::fs::create_dir_all(folder).map_err(folder_error(folder))?;
                Arc::new(object_store::local::LocalFileSystem::new_with_prefix(folder)?.with_fsync(true))
            }
            FilePlace::S3(s3) => {
                // Fails only when one is installed already, which then serves.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let mut builder = object_store::aws::AmazonS3Builder::new()
                    .with_bucket_name(&s3.bucket)
                    .with_region(&s3.region)
                    .with_access_key_id(&s3.access_key_id)
                    .with_secret_access_key(&s3.secret_access_key);
                if let Some(endpoint) = &s3.endpoint {
                    builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
                }
                Arc::new(builder.build()?)
            }
        };
        Ok(Self { objects, bucket, spool: options.spool.as_path().into() })
    }

    /// The bucket that holds the files, unless they are in a folder of this machine.
    pub fn bucket(&self) -> Option<String> {
        self.bucket.as_deref().map(str::to_owned)
    }

    /// The length and the bytes of a kept file, named `<room>/<file>`.
    ///
    /// # Errors
    /// [`FileError::NotFound`] when it is not there.
    pub async fn open_kept(
        &self,
        name: &str,
    ) -> Result<(u64, impl Stream<Item = Result<Bytes, FileError>> + Unpin + Send + use<>), FileError> {
        let found = self.objects.get_opts(&ObjectPath::from(name), GetOptions::default()).await?;
        Ok((found.meta.size, found.into_stream().map(|piece| piece.map_err(FileError::from))))
    }

    /// Named by its own id, never by its content or name: removing one cannot touch the same bytes uploaded again.
    fn object(room: RoomId, file: FileId) -> ObjectPath {
        ObjectPath::from_iter([room.to_string(), file.to_string()])
    }

    async fn remove(&self, room: RoomId, file: FileId) -> Result<(), FileError> {
        match self.objects.delete(&Self::object(room, file)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(why) => Err(why.into()),
        }
    }

    /// Moves a spooled file into the object store.
    async fn put(&self, spooled: &Spooled, object: ObjectPath) -> Result<(), FileError> {
        let mut from = tokio::fs::File::open(&spooled.path).await?;
        let mut to = BufWriter::new(Arc::clone(&self.objects), object);
        tokio::io::copy(&mut from, &mut to).await?;
        to.shutdown().await?;
        Ok(())
    }
}

/// The extension of a file that is still arriving.
const PART: &str = "part";

/// An upload on its way; it leaves the spool when this goes, however that comes about.
struct Spooled {
    path: PathBuf,
    bytes: u64,
    hash: [u8; 32],
}

impl Drop for Spooled {
    fn drop(&mut self) {
        // What cannot be removed now is removed at the next start.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Writes what arrives into the spool; stops at the first byte too many.
async fn spool<S, E>(folder: &Path, id: Uuid, mut body: S, max: u64) -> Result<Spooled, FileError>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    let mut spooled = Spooled { path: folder.join(format!("{id}.{PART}")), bytes: 0, hash: [0; 32] };
    let mut file = tokio::fs::File::create(&spooled.path).await?;
    let mut hasher = Sha256::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|_| FileError::Interrupted)?;
        spooled.bytes += chunk.len() as u64;
        if spooled.bytes > max {
            return Err(FileError::TooLarge(max));
        }
        hasher.update(&chunk);
        file.write_all(&chunk).await?;
    }
    file.flush().await?;
    spooled.hash = hasher.finalize().into();
    Ok(spooled)
}

impl Services {
    /// Takes a file into a room. The same bytes twice are one file; then the second of the answer is false.
    ///
    /// # Errors
    /// [`FileError`]; then the room has no new file.
    pub async fn upload<S, E>(&self, upload: Upload, body: S) -> Result<(Attachment, bool), FileError>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin,
    {
        let Upload { room, caller, name, hash } = upload;
        // Asked before the first byte is read: a stranger does not fill the disk.
        self.store
            .read("may_upload", move |tx| {
                Box::pin(async move {
                    let access = participants::access(tx, caller.identity, caller.kind, room).await?;
                    may_write(access.as_ref())
                })
            })
            .await?;
        let spooled = spool(&self.files.spool, self.ids.uuid(), body, self.limits.file_bytes as u64).await?;
        if spooled.hash != hash {
            return Err(FileError::HashMismatch);
        }
        let content_type = spooled_type(&spooled).await?;
        let taken = self.limits.file_types.as_deref();
        let takes = |list: &str| list.split(',').any(|prefix| content_type.starts_with(prefix.trim()));
        if !taken.is_none_or(takes) {
            return Err(FileError::TypeNotTaken(content_type));
        }
        let id = FileId(self.ids.uuid());
        self.files.put(&spooled, FileStore::object(room, id)).await?;
        let now = self.clock.now();
        let keep = self.limits.file_retention;
        let expires_at = keep.map(|keep| now.plus_micros(i64::try_from(keep.as_micros()).unwrap_or(i64::MAX)));
        let file = Attachment {
            id,
            name,
            content_type,
            bytes: i64::try_from(spooled.bytes).unwrap_or(i64::MAX),
            sha256: file::hex(&hash),
            expires_at,
        };
        drop(spooled);
        let noted = self.note_upload(room, caller, file, hash, now).await;
        if !matches!(noted, Ok((_, true))) {
            // Refused meanwhile, or the room has these bytes already: what was just put is nobody's.
            self.files.remove(room, id).await?;
        }
        noted
    }

    /// Notes a file in the database unless the room has one of the same bytes.
    async fn note_upload(
        &self,
        room: RoomId,
        caller: Caller,
        file: Attachment,
        hash: [u8; 32],
        now: Timestamp,
    ) -> Result<(Attachment, bool), FileError> {
        self.store
            .write("upload", move |tx| {
                Box::pin(async move {
                    rooms::advance(tx, room).await?.ok_or(FileError::RoomNotFound)?;
                    let access = participants::access(tx, caller.identity, caller.kind, room).await?;
                    may_write(access.as_ref())?;
                    let access = access.ok_or(FileError::RoomNotFound)?;
                    if files::insert(tx, access.room_key, access.member_key, &file, hash, now).await? {
                        return Ok((file, true));
                    }
                    let known = files::by_content(tx, access.room_key, hash).await?.ok_or(FileError::NotFound)?;
                    files::prolong(tx, known.id, file.expires_at).await?;
                    Ok((Attachment { expires_at: file.expires_at, ..known }, false))
                })
            })
            .await
    }

    /// A file that the caller may read.
    ///
    /// # Errors
    /// [`FileError`].
    pub async fn file(&self, caller: Caller, room: RoomId, id: FileId) -> Result<Attachment, FileError> {
        let now = self.clock.now();
        self.store
            .read("file", move |tx| {
                Box::pin(async move {
                    let access = participants::access(tx, caller.identity, caller.kind, room).await?;
                    let access = access.ok_or(FileError::RoomNotFound)?;
                    files::one(tx, access.room_key, id, now).await?.ok_or(FileError::NotFound)
                })
            })
            .await
    }

    /// The bytes of a file, or a part of them.
    ///
    /// # Errors
    /// [`FileError`].
    pub async fn download(
        &self,
        room: RoomId,
        file: &Attachment,
        range: Option<Range<u64>>,
    ) -> Result<GetResult, FileError> {
        let options = GetOptions { range: range.map(GetRange::Bounded), ..GetOptions::default() };
        Ok(self.files.objects.get_opts(&FileStore::object(room, file.id), options).await?)
    }

    /// Removes files that have expired or whose room is deleted; how many. The background job calls it.
    ///
    /// # Errors
    /// [`FileError`]; what was not removed is found again.
    pub async fn remove_doomed_files(&self) -> Result<usize, FileError> {
        const AT_ONCE: i64 = 100;
        let now = self.clock.now();
        let doomed: Vec<Doomed> =
            self.store.read("doomed_files", move |tx| Box::pin(files::doomed(tx, now, AT_ONCE))).await?;
        for one in &doomed {
            let row = one.clone();
            let gone: bool = self
                .store
                .write("forget_file", move |tx| Box::pin(async move { files::forget(tx, &row).await }))
                .await?;
            if gone {
                self.files.remove(one.room, one.file.id).await?;
            }
        }
        Ok(doomed.len())
    }
}

fn may_write(access: Option<&participants::Access>) -> Result<(), FileError> {
    let access = access.filter(|access| access.membership.is_some()).ok_or(FileError::RoomNotFound)?;
    match access.room.status {
        RoomStatus::Active => Ok(()),
        status @ (RoomStatus::Archived | RoomStatus::Closed) => Err(FileError::NotActive(status)),
    }
}

async fn spooled_type(spooled: &Spooled) -> Result<String, FileError> {
    let mut head = Vec::new();
    tokio::fs::File::open(&spooled.path).await?.take(SNIFFED).read_to_end(&mut head).await?;
    Ok(sniff::content_type(&head, spooled.bytes > SNIFFED).to_owned())
}

/// Starts the job that removes expired files.
pub fn start(services: Services, stop: CancellationToken) -> JoinHandle<()> {
    const EVERY: Duration = Duration::from_secs(60);
    tokio::spawn(async move {
        loop {
            match services.remove_doomed_files().await {
                // More may be waiting.
                Ok(removed) if removed > 0 && !stop.is_cancelled() => continue,
                Ok(_) => {}
                Err(why) => tracing::warn!(error = %why, "expired files were not removed; trying again later"),
            }
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = stop.cancelled() => return,
            }
        }
    })
}
