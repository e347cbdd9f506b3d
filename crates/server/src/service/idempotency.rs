//! The job that forgets replies to idempotent requests, some at a time.

use std::time::Duration;

use bandstand_store::{StoreError, idempotency};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::state::Services;

impl Services {
    /// Forgets replies that are older than they are remembered for, up to one operation's worth; how many. The
    /// background job calls it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn forget_idempotent_requests(&self) -> Result<u64, StoreError> {
        let kept = i64::try_from(self.limits.idempotency_retention.as_micros()).unwrap_or(i64::MAX);
        let forgotten = self.clock.now().plus_micros(kept.saturating_neg());
        self.store
            .write("forget_idempotent_requests", move |tx| {
                Box::pin(async move { idempotency::prune(tx, forgotten).await })
            })
            .await
    }
}

/// Starts the job. It also looks whether another node has given somebody a quota.
pub fn start(services: Services, stop: CancellationToken) -> JoinHandle<()> {
    const EVERY: Duration = Duration::from_secs(60);
    tokio::spawn(async move {
        loop {
            let forgotten = services.forget_idempotent_requests().await;
            match forgotten {
                Ok(many) if many >= idempotency::BATCH.unsigned_abs() && !stop.is_cancelled() => continue,
                Ok(_) => {}
                Err(why) => {
                    tracing::warn!(error = %why, "old idempotent requests were not forgotten; trying again later")
                }
            }
            if let Err(why) = services.quotas.look(&services.store).await {
                tracing::warn!(error = %why, "cannot look for quotas; trying again later");
            }
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = stop.cancelled() => return,
            }
        }
    })
}
