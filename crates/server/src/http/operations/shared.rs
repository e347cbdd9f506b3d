//! What the operations of both APIs have in common.

use bandstand_wire::page::CursorMetadata;
use bandstand_wire::rest::delivery::MessageDelivery;
use bandstand_wire::rest::{Page, words};
use serde_json::json;

use crate::http::operation::{Noun, Operation};
use crate::http::parameter::{Parameter, cursor, header, text, word};

/// The filters of both lists of memories.
pub(super) fn memory_filters() -> [Parameter; 5] {
    [
        word::<words::MemorySystem>("system", "Only of this memory."),
        word::<words::MemoryType>("type", "Only of this kind."),
        word::<words::MemorySegment>("segment", "Only what tells about this."),
        text("content_query", "Only what has all of these words."),
        word::<words::MemoryStatusFilter>("status", "Only these.").default("active"),
    ]
}

/// The ledger of one message.
pub(super) fn deliveries(operation: Operation) -> Operation {
    operation
        .summary("What became of a message, for each participant, and why?")
        .with([text("participant", "Only for this one: an id, or a handle with or without `@`.")])
        .with(cursor(100))
        .replies::<Page<MessageDelivery, CursorMetadata>>(200)
        .errors(&[404])
}

/// An upload.
pub(super) fn upload(operation: Operation) -> Operation {
    let hash = json!({"type": "string", "pattern": "^[0-9a-f]{64}$"});
    operation
        .once()
        .summary("Upload a file.")
        .description("200 instead of 201 when the room has these bytes under this name already.")
        .with([
            header("x-file-name", "What it is called.", true, json!({"type": "string", "minLength": 1})),
            header("x-file-sha256", "SHA-256 of the bytes, in lower-case hexadecimal.", true, hash),
        ])
        .takes_bytes()
        .errors(&[400, 404, 413])
        .yields(Noun::File, "/data/id")
}

/// A download.
pub(super) fn download(operation: Operation) -> Operation {
    operation
        .summary("Download a file, or a part of it.")
        .description("The bytes as they were uploaded, for saving: no browser shows or runs them.")
        .with([header("Range", "Which bytes, of one range.", false, json!({"type": "string"}))])
        .replies_bytes(200, "*/*")
        .replies_bytes(206, "*/*")
        .errors(&[404, 416])
}
