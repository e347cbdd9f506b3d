//! Writes files on a thread of its own, and removes the oldest steps.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::TraceLimits;

/// Files that may wait; whoever has more to write waits for the disk.
const QUEUE: usize = 256;

/// A step, by age.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StepKey {
    /// Begins with the time at which the turn began.
    pub(super) turn: String,
    pub(super) room: String,
    pub(super) step: u32,
}

impl StepKey {
    fn path(&self) -> PathBuf {
        Path::new(&self.room).join(&self.turn).join(format!("{:04}", self.step))
    }
}

enum Job {
    Write { step: StepKey, file: &'static str, content: Vec<u8> },
    Tell(oneshot::Sender<()>),
}

/// The thread, and the way to it.
pub(super) struct Writer {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(folder: PathBuf, limits: TraceLimits, secrets: Vec<String>) -> io::Result<Self> {
        make_folder(&folder)?;
        let steps = scan(&folder)?;
        let mut kept = Kept { folder, limits, secrets, bytes: steps.values().sum(), steps, failing: false };
        kept.prune();
        let (jobs, waiting) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new().name("trace".to_owned()).spawn(move || kept.work(&waiting))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    pub(super) fn write(&self, step: StepKey, file: &'static str, content: Vec<u8>) {
        if let Some(jobs) = &self.jobs {
            // The thread ends only after this side.
            let _ = jobs.send(Job::Write { step, file, content });
        }
    }

    pub(super) async fn written(&self) {
        let (told, done) = oneshot::channel();
        if let Some(jobs) = &self.jobs
            && jobs.send(Job::Tell(told)).is_ok()
        {
            // The thread ends only after this side.
            let _ = done.await;
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic there was told there.
            let _ = thread.join();
        }
    }
}

/// What is on disk.
struct Kept {
    folder: PathBuf,
    limits: TraceLimits,
    secrets: Vec<String>,
    /// The bytes of each step.
    steps: BTreeMap<StepKey, u64>,
    bytes: u64,
    failing: bool,
}

impl Kept {
    fn work(&mut self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            match job {
                Job::Write { step, file, content } => match self.write(step, file, content) {
                    Ok(()) => self.failing = false,
                    Err(error) if !self.failing => {
                        self.failing = true;
                        tracing::warn!(%error, folder = %self.folder.display(), "the trace cannot be written");
                    }
                    Err(_) => {}
                },
                Job::Tell(told) => {
                    // Whoever asked may have gone.
                    let _ = told.send(());
                }
            }
        }
    }

    fn write(&mut self, step: StepKey, file: &'static str, content: Vec<u8>) -> io::Result<()> {
        let content = self.clean(content);
        let folder = self.folder.join(step.path());
        make_folder(&folder)?;
        let path = folder.join(file);
        let before = std::fs::symlink_metadata(&path).map_or(0, |known| known.len());
        let written = open(&path).and_then(|mut opened| opened.write_all(&content));
        let now = std::fs::symlink_metadata(&path).map_or(0, |known| known.len());
        let bytes = self.steps.entry(step).or_default();
        *bytes = (*bytes + now).saturating_sub(before);
        self.bytes = (self.bytes + now).saturating_sub(before);
        self.prune();
        written
    }

    fn clean(&self, content: Vec<u8>) -> Vec<u8> {
        // What is no text is kept as it is: it can hold no key that anybody could read out of it.
        match String::from_utf8(content) {
            Ok(mut text) => {
                for secret in self.secrets.iter().filter(|secret| text.contains(*secret)).cloned().collect::<Vec<_>>() {
                    text = text.replace(&secret, "[REDACTED]");
                }
                text.into_bytes()
            }
            Err(error) => error.into_bytes(),
        }
    }

    /// Removes the oldest steps until the limits hold, and the folders that are empty then.
    fn prune(&mut self) {
        while self.steps.len() > 1 && (self.steps.len() > self.limits.steps || self.bytes > self.limits.bytes) {
            let Some((step, bytes)) = self.steps.pop_first() else { return };
            self.bytes = self.bytes.saturating_sub(bytes);
            let path = self.folder.join(step.path());
            if let Err(error) = std::fs::remove_dir_all(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%error, path = %path.display(), "an old step of the trace cannot be removed");
            }
            for folder in path.ancestors().skip(1).take(2) {
                // One that is not empty stays.
                if std::fs::remove_dir(folder).is_err() {
                    break;
                }
            }
        }
    }
}

/// The steps that are there. Whatever has another form is not ours.
fn scan(folder: &Path) -> io::Result<BTreeMap<StepKey, u64>> {
    let mut steps = BTreeMap::new();
    for (room, rooms) in folders(folder)? {
        if uuid::Uuid::try_parse(&room).is_err() {
            continue;
        }
        for (turn, turns) in folders(&rooms)? {
            if !is_turn(&turn) {
                continue;
            }
            for (step, files) in folders(&turns)? {
                let Ok(number) = step.parse() else { continue };
                let mut bytes = 0;
                for file in std::fs::read_dir(files)? {
                    let known = file?.metadata()?;
                    bytes += if known.is_file() { known.len() } else { 0 };
                }
                steps.insert(StepKey { turn: turn.clone(), room: room.clone(), step: number }, bytes);
            }
        }
    }
    Ok(steps)
}

/// `20261130T022335.123456Z_<message>`.
fn is_turn(name: &str) -> bool {
    name.split_once("Z_").is_some_and(|(time, message)| {
        time.len() >= 15 && time.as_bytes()[8] == b'T' && uuid::Uuid::try_parse(message).is_ok()
    })
}

fn folders(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // A link is not followed.
        if entry.file_type()?.is_dir()
            && let Ok(name) = entry.file_name().into_string()
        {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(turn: u32, step: u32) -> StepKey {
        let message = format!("00000000-0000-7000-8000-{turn:012}");
        StepKey {
            turn: format!("20260101T{turn:06}.000000Z_{message}"),
            room: "00000000-0000-7000-8000-00000000000a".to_owned(),
            step,
        }
    }

    fn there(folder: &Path) -> Vec<StepKey> {
        scan(folder).unwrap().into_keys().collect()
    }

    #[test]
    fn the_oldest_steps_go_first_and_strangers_stay() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("mine/0001")).unwrap();
        let start = |steps, bytes| {
            Writer::start(folder.path().to_owned(), TraceLimits { steps, bytes }, vec!["sk-secret".to_owned()]).unwrap()
        };
        let writer = start(3, 1_000);
        for (turn, step) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            writer.write(key(turn, step), "a.json", b"an sk-secret".to_vec());
        }
        drop(writer);
        assert_eq!(there(folder.path()), [key(1, 2), key(2, 1), key(2, 2)]);
        let text = std::fs::read_to_string(folder.path().join(key(2, 2).path()).join("a.json")).unwrap();
        assert_eq!(text, "an [REDACTED]");
        // What is there counts in the next life, and one step stays whatever it takes.
        let writer = start(3, 30);
        assert_eq!(there(folder.path()), [key(2, 1), key(2, 2)]);
        writer.write(key(3, 1), "a.json", vec![b'x'; 100]);
        writer.write(key(3, 1), "a.json", vec![b'x'; 90]);
        drop(writer);
        assert_eq!(scan(folder.path()).unwrap(), BTreeMap::from([(key(3, 1), 90)]));
        assert!(folder.path().join("mine/0001").is_dir());
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_reads_it() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("trace");
        let writer = Writer::start(root.clone(), TraceLimits::default(), Vec::new()).unwrap();
        writer.write(key(1, 1), "a.json", b"{}".to_vec());
        drop(writer);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let step = root.join(key(1, 1).path());
        assert!(step.ancestors().take(4).all(|folder| mode(folder) == 0o700));
        assert_eq!(mode(&step.join("a.json")), 0o600);
    }
}
