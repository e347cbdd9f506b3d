//! Stories about the real binary.
#![expect(clippy::unwrap_used, reason = "the helpers of these stories are tests as well")]

mod administration;
mod backup;
mod configuration;
mod crash;
mod doctor;
mod draining;
mod help;
mod metrics;
mod program;
mod starting;
mod tls;
