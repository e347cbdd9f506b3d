//! Bulk deletions as they travel.

use bandstand_domain::bulk_deletion::{BulkDeletion, Item, Outcome, Resource};
use bandstand_wire::rest::bulk_deletion::{BulkDeletionJob, BulkError, BulkItem};

/// A job, finished or not.
pub fn job(job: &BulkDeletion) -> BulkDeletionJob {
    let counts = job.counts();
    BulkDeletionJob {
        id: job.id,
        resource_type: match job.resource {
            Resource::Room => "chat",
            Resource::Agent => "agent",
        },
        status: job.status.as_str(),
        force: job.force,
        total: job.items.len(),
        processed: counts.succeeded + counts.failed,
        succeeded: counts.succeeded,
        failed: counts.failed,
        results: job.items.iter().map(item).collect(),
        inserted_at: job.inserted_at,
        started_at: job.started_at,
        completed_at: job.completed_at,
    }
}

fn item(item: &Item) -> BulkItem {
    let (status, refusal) = match item.outcome {
        Outcome::Pending => ("pending", None),
        Outcome::Succeeded => ("succeeded", None),
        Outcome::Failed(refusal) => ("failed", Some(refusal)),
    };
    let error = refusal.map(|refusal| BulkError { code: refusal.word(), message: refusal.message() });
    BulkItem { id: item.given.clone(), status, error }
}
