//! The engine's stories, each on both databases.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod batch;
mod contact_plans;
mod control_plans;
mod events;
mod full_disk;
mod lease_plans;
mod ledger_plans;
mod limits;
mod lost_commit;
mod memories;
mod opening;
mod owner;
mod plans;
mod quota_plans;
mod schema;
mod snapshot;
mod support;
mod tasks;
mod values;
