//! One file for each measurement.

pub(crate) mod agents;
pub(crate) mod disk;
pub(crate) mod fanout;
pub(crate) mod history;
pub(crate) mod memory;
pub(crate) mod posts;
pub(crate) mod push;
pub(crate) mod transcripts;
