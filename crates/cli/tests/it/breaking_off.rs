//! Backups and restores that are broken off in their midst: nothing is left of them, and the next one works.
//!
//! What holds them there is a pipe in the place of a file: reading it waits, as on a disk that hangs.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::backup::upload;
use crate::crash::{Door, prepare, start};
use crate::program::{Background, Installation, http_client, until};

/// A server that ran: with a room and a file in it, where the file lies.
async fn furnish(installation: &Installation) -> PathBuf {
    let server = start(installation);
    let door = Door { client: http_client(), address: server.address.clone() };
    let story = prepare(&door).await;
    let file = upload(&door, &story.room).await;
    server.stop();
    installation.data().join("files").join(story.room).join(file)
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Both ends of a pipe: who reads it waits as long as this is there, and then finds its end.
fn open_pipe(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

/// Waits for a reader of a pipe, and gives it this. It waits for more until what is returned is dropped.
fn feed(path: &Path, bytes: Vec<u8>) -> File {
    let path = path.to_owned();
    let feeding = thread::spawn(move || {
        let mut pipe = File::options().write(true).open(path)?;
        pipe.write_all(&bytes).map(|()| pipe)
    });
    until("somebody reads the pipe", || feeding.is_finished());
    feeding.join().unwrap().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

async fn a_backup_that_is_broken_off_leaves_nothing(from: Installation, with_server: bool, signal: &str) {
    let file = furnish(&from).await;
    let kept = from.path("kept");
    fs::rename(&file, &kept).unwrap();
    make_pipe(&file);
    let server = with_server.then(|| start(&from));
    let folder = from.path("backups");
    fs::create_dir(&folder).unwrap();
    let target = folder.join("the.backup");
    let backup = Background::start(from.command(&["backup", target.to_str().unwrap()]));
    let written = |name: &String| fs::metadata(folder.join(name)).is_ok_and(|of| of.len() > 0);
    until("a part of a backup", || names(&folder).iter().any(written));
    assert!(!target.exists(), "half a backup has no name");
    backup.signal(signal);
    let said = backup.said();
    assert_eq!((said.code, said.err.as_str()), (Some(130), "error: broken off; nothing was written\n"), "{}", said.out);
    assert_eq!(names(&folder), [] as [String; 0]);

    // The disk is back; so is the server's part of it, if there is one.
    let pipe = open_pipe(&file);
    fs::rename(&kept, &file).unwrap();
    let taken = from.json(&["backup", target.to_str().unwrap()]);
    assert_eq!(taken["files"]["count"], 1, "{taken}");
    assert_eq!(names(&folder), ["the.backup"]);
    server.map(|server| server.stop());
    drop(pipe);
}

#[tokio::test]
async fn a_backup_by_the_server() {
    a_backup_that_is_broken_off_leaves_nothing(Installation::new(), true, "INT").await;
}

#[tokio::test]
async fn a_backup_by_the_server_on_postgres() {
    a_backup_that_is_broken_off_leaves_nothing(Installation::on_postgres().await, true, "TERM").await;
}

#[tokio::test]
async fn a_backup_without_a_server() {
    a_backup_that_is_broken_off_leaves_nothing(Installation::new(), false, "INT").await;
}

#[tokio::test]
async fn a_backup_without_a_server_on_postgres() {
    a_backup_that_is_broken_off_leaves_nothing(Installation::on_postgres().await, false, "INT").await;
}

/// Nothing of it is there, neither for `up` nor for the next restore.
fn assert_untouched(place: &Installation, folder_before: &[&str]) {
    let without_lock: Vec<String> = names(&place.data()).into_iter().filter(|name| name != "bandstand.lock").collect();
    assert_eq!(without_lock, folder_before);
    assert_eq!(place.data().exists(), !folder_before.is_empty(), "what it made it takes away");
    // A session ends a moment after its program.
    let others = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    until("the end of the session", || place.query(others).is_empty());
    let tables = "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'";
    assert_eq!(place.query(tables), [] as [Vec<String>; 0]);
}

/// With `wait`, the disk comes back after the first signal; else a second signal does not wait for it.
async fn a_restore_that_is_broken_off_leaves_nothing(to: Installation, wait: bool, signal: &str, before: &[&str]) {
    let from = Installation::new();
    furnish(&from).await;
    let path = from.path("the.backup");
    from.json(&["backup", path.to_str().unwrap()]);
    let whole = fs::read(&path).unwrap();
    for name in before {
        fs::create_dir_all(to.data()).unwrap();
        fs::write(to.data().join(name), "").unwrap();
    }

    let from_pipe = to.path("pipe");
    make_pipe(&from_pipe);
    let mut restore = Background::start(to.command(&["restore", from_pipe.to_str().unwrap()]));
    // First it reads all of it, to check it; then again, to restore it. That goes no further than half.
    drop(feed(&from_pipe, whole.clone()));
    until("the beginning of the restore", || to.data().join("restoring.tmp").exists());
    let pipe = feed(&from_pipe, whole[..whole.len().min(1 << 16) / 2].to_vec());
    restore.signal(signal);
    restore.err.wait_for("breaking off");
    let hanging = if wait {
        drop(pipe);
        None
    } else {
        restore.signal(signal);
        Some(pipe)
    };
    let said = restore.said();
    assert_eq!(said.code, Some(130), "{}{}", said.out, said.err);
    let part = if wait { "nothing was restored" } else { "broken off; " };
    assert!(said.err.contains(part), "{}", said.err);
    assert_untouched(&to, before);

    to.json(&["restore", path.to_str().unwrap()]);
    let doctor = to.run(&["doctor", "--json", "--listen", "127.0.0.1:0"]);
    assert_eq!(doctor.code, Some(0), "{}{}", doctor.out, doctor.err);
    assert_eq!(to.json(&["user", "list"]), from.json(&["user", "list"]));
    drop(hanging);
}

#[tokio::test]
async fn a_restore() {
    a_restore_that_is_broken_off_leaves_nothing(Installation::new(), true, "INT", &[]).await;
}

#[tokio::test]
async fn a_restore_beside_settings() {
    a_restore_that_is_broken_off_leaves_nothing(Installation::new(), true, "TERM", &["bandstand.toml"]).await;
}

#[tokio::test]
async fn a_restore_whose_disk_hangs() {
    a_restore_that_is_broken_off_leaves_nothing(Installation::new(), false, "INT", &[]).await;
}

#[tokio::test]
async fn a_restore_on_postgres() {
    a_restore_that_is_broken_off_leaves_nothing(Installation::on_postgres().await, true, "INT", &[]).await;
}

#[tokio::test]
async fn a_restore_whose_disk_hangs_on_postgres() {
    a_restore_that_is_broken_off_leaves_nothing(Installation::on_postgres().await, false, "INT", &[]).await;
}
