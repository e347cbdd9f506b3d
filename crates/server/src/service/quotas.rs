//! Quotas: how much each may have. The settings say it for all, a row of the database for one.
//!
//! Nearly no server has quotas, so nothing is looked up unless there are any.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bandstand_store::quotas::{self, LimitReached, Quota, Resource};
use bandstand_store::{Store, StoreError, Writer, audit};
use bandstand_wire::ids::IdentityId;
use bandstand_wire::time::Timestamp;
use serde_json::json;

use crate::state::Services;

/// Whether anybody has a quota of its own. What this server sets counts at once; what another node sets, within a minute.
#[derive(Clone, Debug)]
pub struct Quotas(Arc<AtomicBool>);

impl Quotas {
    /// As the database says.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn load(store: &Store) -> Result<Self, StoreError> {
        let quotas = Self(Arc::default());
        quotas.look(store).await?;
        Ok(quotas)
    }

    /// Looks again.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn look(&self, store: &Store) -> Result<(), StoreError> {
        // Never back to "none": a quota may be set while this reads, and looking for nothing costs little.
        if !self.exist() && store.read("any_quotas", |tx| Box::pin(quotas::any(tx))).await? {
            self.0.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn exist(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What an operation has to look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    resource: Resource,
    /// What the settings say.
    general: Option<i64>,
}

impl Rule {
    /// Makes sure that `who` may have one more agent or room.
    pub(super) async fn claim<E>(self, tx: &mut Writer, who: IdentityId) -> Result<(), E>
    where
        E: From<StoreError> + From<LimitReached>,
    {
        Ok(quotas::claim(tx, who, self.resource, self.general).await??)
    }

    /// Counts one more message of `who`.
    pub(super) async fn count_message<E>(self, tx: &mut Writer, who: IdentityId, now: Timestamp) -> Result<(), E>
    where
        E: From<StoreError> + From<LimitReached>,
    {
        Ok(quotas::count_message(tx, who, self.general, now).await??)
    }

    /// How many there may be for `who`.
    pub(super) async fn most(self, tx: &mut Writer, who: IdentityId) -> Result<i64, StoreError> {
        Ok(quotas::effective(tx, who, self.resource, self.general).await?.unwrap_or(i64::MAX))
    }
}

impl Services {
    /// What to look at before there is one more of something; `None` when nobody has a quota of it.
    pub(super) fn quota_rule(&self, resource: Resource) -> Option<Rule> {
        let limits = &self.limits;
        let general = match resource {
            Resource::Agents => limits.quota_agents.map(i64::from),
            Resource::Rooms => limits.quota_rooms.map(i64::from),
            Resource::Participants => Some(i64::try_from(limits.room_participants).unwrap_or(i64::MAX)),
            Resource::Messages => limits.quota_messages_per_day.map(i64::from),
        };
        let needed = general.is_some() && resource != Resource::Participants;
        (needed || self.quotas.exist()).then_some(Rule { resource, general })
    }

    /// Gives an identity a quota of its own, or with `None` takes it away, so that the settings count again; false when
    /// there is no such identity. What it has beyond a new quota stays.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn set_quota(
        &self,
        who: IdentityId,
        resource: Resource,
        quota: Option<Quota>,
    ) -> Result<bool, StoreError> {
        let noting = self.noting("quota.set");
        let set: bool = self
            .store
            .write("set_quota", move |tx| {
                Box::pin(async move {
                    // Before any other lock, as every act of administration.
                    audit::lock(tx).await?;
                    if !quotas::set(tx, who, resource, quota).await? {
                        return Ok(false);
                    }
                    let most = match quota {
                        Some(Quota::Most(most)) => json!(most),
                        Some(Quota::Unlimited) => json!("unlimited"),
                        None => json!(null),
                    };
                    noting.note(tx, who.to_string(), json!({"resource": resource.as_str(), "most": most})).await?;
                    Ok::<_, StoreError>(true)
                })
            })
            .await?;
        self.quotas.look(&self.store).await?;
        Ok(set)
    }

    /// An identity's own quota; `None` when the settings count.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn quota(&self, who: IdentityId, resource: Resource) -> Result<Option<Quota>, StoreError> {
        self.store.read("quota", move |tx| Box::pin(async move { quotas::get(tx, who, resource).await })).await
    }
}
