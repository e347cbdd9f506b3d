//! Every case of `tests/cases`, or of the folder that `TRANSCRIPT_CASES` names: one line `PASS id` or `FAIL id: why`
//! each. A case says what a conversion, a stream, a lint or a tool loop makes of a payload that once broke somebody's
//! agent; `tests/cases/README.md` describes the files.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use serde_json::Value;
use support::cases;

#[test]
fn cases() {
    let folder = std::env::var_os("TRANSCRIPT_CASES")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases"), PathBuf::from);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no case in {}", folder.display());
    let mut failed = Vec::new();
    for file in &files {
        let id = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let outcome = std::fs::read(file)
            .map_err(|error| error.to_string())
            .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).map_err(|error| error.to_string()))
            .and_then(|case| {
                catch_unwind(AssertUnwindSafe(|| cases::run(&id, &case)))
                    .unwrap_or_else(|_| Err("it panicked".to_owned()))
            });
        match outcome {
            Ok(()) => say(&format!("PASS {id}")),
            Err(why) => {
                say(&format!("FAIL {id}: {why}"));
                failed.push(id);
            }
        }
    }
    assert!(failed.is_empty(), "{} of {} cases failed: {}", failed.len(), files.len(), failed.join(", "));
}

/// Past the capture of the test harness: the lines are there whether the test passes or fails.
fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("a writable standard output");
}
