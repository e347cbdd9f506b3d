//! Stories about the real binary.
#![expect(clippy::unwrap_used, reason = "the helpers of these stories are tests as well")]

mod administration;
mod backup;
mod breaking_off;
mod chat;
mod configuration;
mod crash;
mod demo;
mod doctor;
mod draining;
mod help;
mod metrics;
mod people;
mod program;
mod run;
mod starting;
mod tls;
mod transcript;
mod transcript_room;
