//! A history in a file: bytes, what was read of them, and in which format.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::Context as _;
use bandstand_transcript::convert::Decoded;
use bandstand_transcript::read::{Document, read};
use bandstand_transcript::{Format, Profile, Transcript, Warnings, decode_history};
use serde_json::Value;

use crate::output::Failure;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 256 * 1024 * 1024;

/// A history that was read.
pub(super) struct History {
    pub(super) bytes: Vec<u8>,
    pub(super) document: Document,
    /// Nothing for a canonical transcript.
    pub(super) format: Option<Format>,
}

/// Reads a file, or standard input for `-`. Without a format, it is found out.
pub(super) fn open(file: Option<&Path>, from: Option<&str>) -> Result<History, Failure> {
    let canonical = from == Some("canonical");
    let format = from.filter(|_| !canonical).map(format_named).transpose()?;
    let file = file.ok_or_else(|| Failure::Usage("which file?".into()))?;
    let bytes = bytes_of(file).map_err(|why| Failure::Usage(format!("{why:#}")))?;
    let document = read(&bytes);
    let format = if canonical || (format.is_none() && is_canonical(&document.payload)) {
        None
    } else {
        Some(format.or(document.format).unwrap_or(Format::OpenAiChat))
    };
    Ok(History { bytes, document, format })
}

/// Only canonical messages have parts.
fn is_canonical(payload: &Value) -> bool {
    let messages = payload.get("messages").and_then(Value::as_array);
    messages.is_some_and(|messages| {
        !messages.is_empty() && messages.iter().all(|message| message.get("parts").is_some_and(Value::is_array))
    })
}

impl History {
    /// The format's name.
    pub(super) fn name(&self) -> &'static str {
        self.format.map_or("canonical", Format::name)
    }

    /// The conversation in it.
    pub(super) fn transcript(&self) -> Result<Decoded, Failure> {
        let payload = &self.document.payload;
        let read = match self.format {
            Some(format) => decode_history(payload, format).map_err(|why| why.to_string()),
            None => Transcript::from_canonical(payload)
                .map(|transcript| Decoded { transcript, warnings: Warnings::default() })
                .map_err(|why| why.to_string()),
        };
        read.map_err(|why| Failure::Usage(format!("it is no history in the format {}: {why}", self.name())))
    }
}

pub(super) fn format_named(name: &str) -> Result<Format, Failure> {
    Format::from_name(name).ok_or_else(|| {
        Failure::Usage(format!("{name:?} is no format; there are openai.chat, openai.responses and anthropic"))
    })
}

/// The server of that name; the format as its owner documents it without one.
pub(super) fn profile_named(name: Option<&str>) -> Result<&'static Profile, Failure> {
    match name {
        None => Ok(Profile::none()),
        Some(name) => Profile::named(name)
            .ok_or_else(|| Failure::Usage(format!("no server is called {name:?}; docs/models.md has the names"))),
    }
}

fn bytes_of(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file.as_os_str() == "-" {
        io::stdin().lock().take(LARGEST).read_to_end(&mut bytes).context("standard input cannot be read")?;
    } else {
        let name = file.display();
        let opened = fs::File::open(file).with_context(|| format!("{name} cannot be read"))?;
        opened.take(LARGEST).read_to_end(&mut bytes).with_context(|| format!("{name} cannot be read"))?;
    }
    Ok(bytes)
}
