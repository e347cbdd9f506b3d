//! What travels between Bandstand and its clients: ids, timestamps, the error envelope, the JSON of both REST APIs,
//! Phoenix frames and the payloads of pushes. No I/O, no async, no rules.

pub mod error;
pub mod ids;
pub mod page;
pub mod phoenix;
pub mod push;
pub mod rest;
pub mod time;
