//! Registering and deleting agents.

use bandstand_domain::handle;
use bandstand_domain::identity::{Agent, Profile};
use bandstand_store::participants::Leftover;
use bandstand_store::quotas::{LimitReached, Resource};
use bandstand_store::{StoreError, Writer, audit, contacts, executions, identities, keys, participants, rooms};
use bandstand_wire::ids::{IdentityId, IdentityKind};
use bandstand_wire::time::Timestamp;
use serde_json::json;

use crate::secret::{ApiKey, KeyKind};
use crate::service::audit::Noting;
use crate::service::participants::{Gone, take_out};
use crate::service::removals;
use crate::state::Services;

/// What is asked for when registering an agent.
#[derive(Clone, Debug)]
pub struct Registration {
    /// Whose.
    pub owner: IdentityId,
    /// Its name, trimmed and checked.
    pub name: String,
    /// What it does, trimmed and checked.
    pub description: String,
    /// Visible to everybody.
    pub is_global: bool,
}

/// Why an agent cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// The owner has an agent of that name.
    #[error("has already been taken")]
    NameTaken,
    /// The owner was deleted meanwhile.
    #[error("the owner does not exist")]
    NoOwner,
    /// A quota is used up.
    #[error(transparent)]
    Quota(#[from] LimitReached),
    /// There is no randomness for a key.
    #[error("no randomness: {0}")]
    Randomness(getrandom::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an agent cannot be deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteAgentError {
    /// No such agent, or it is somebody else's.
    #[error("agent not found")]
    NotFound,
    /// It worked, and `force` was not given.
    #[error("the agent has execution history; pass force=true to delete it all the same")]
    HasHistory,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A deleted agent.
#[derive(Clone, Debug, PartialEq)]
pub struct DeletedAgent {
    /// Who it was.
    pub agent: Agent,
    /// Rooms where it had worked.
    pub executions: i64,
}

/// How many slugs are tried before giving up: names are unique per owner, so a clash is rare.
const SLUG_TRIES: usize = 1000;

impl Services {
    /// Registers an agent and makes its key, which is in the answer and nowhere else.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub async fn register_agent(&self, registration: Registration) -> Result<(Agent, ApiKey), RegisterError> {
        self.register_agent_noting(registration, None).await
    }

    /// The same as an act of administration, if it is one.
    pub(super) async fn register_agent_noting(
        &self,
        registration: Registration,
        noting: Option<Noting>,
    ) -> Result<(Agent, ApiKey), RegisterError> {
        let api_key = ApiKey::generate(KeyKind::Agent, getrandom::fill).map_err(RegisterError::Randomness)?;
        let (id, key_id, now) = (self.ids.identity(), self.ids.key(), self.clock.now());
        let (hash, hint) = (api_key.hash(), api_key.hint());
        let quota = self.quota_rule(Resource::Agents);
        let agent = self
            .store
            .write("register_agent", move |tx| {
                Box::pin(async move {
                    let owner = identities::user(tx, registration.owner).await?.ok_or(RegisterError::NoOwner)?;
                    if let Some(quota) = quota {
                        quota.claim::<RegisterError>(tx, registration.owner).await?;
                    }
                    let base = handle::slug(&registration.name);
                    for attempt in 1..=SLUG_TRIES {
                        let slug = handle::slug_choice(&base, attempt);
                        let agent = Agent {
                            profile: Profile {
                                id,
                                kind: IdentityKind::Agent,
                                handle: format!("{}/{slug}", owner.profile.handle),
                                name: registration.name.clone(),
                                description: Some(registration.description.clone()),
                            },
                            owner: registration.owner,
                            slug,
                            is_global: registration.is_global,
                            shared_with_organization: false,
                            listed_in_directory: false,
                            registry_access: false,
                            inserted_at: now,
                            updated_at: now,
                        };
                        if identities::insert_agent(tx, &agent).await? {
                            keys::insert(tx, key_id, id, hash, &hint, now).await?;
                            if let Some(noting) = noting {
                                let details = json!({ "id": id, "is_global": agent.is_global, "key_id": key_id });
                                noting.note(tx, &agent.profile.handle, details).await?;
                            }
                            return Ok(agent);
                        }
                        if identities::agent_name_taken(tx, registration.owner, &registration.name).await? {
                            return Err(RegisterError::NameTaken);
                        }
                    }
                    Err(RegisterError::NameTaken)
                })
            })
            .await?;
        Ok((agent, api_key))
    }

    /// Deletes an agent: its key stops working at once, then it leaves its rooms one by one and its contacts end.
    ///
    /// `owner` restricts it to that user's agents.
    ///
    /// # Errors
    /// [`DeleteAgentError`].
    pub async fn delete_agent(
        &self,
        owner: Option<IdentityId>,
        id: IdentityId,
        force: bool,
    ) -> Result<DeletedAgent, DeleteAgentError> {
        self.delete_agent_noting(owner, id, force, None).await
    }

    /// The same as an act of administration, if it is one.
    pub(super) async fn delete_agent_noting(
        &self,
        owner: Option<IdentityId>,
        id: IdentityId,
        force: bool,
        noting: Option<Noting>,
    ) -> Result<DeletedAgent, DeleteAgentError> {
        let now = self.clock.now();
        let deleted = self
            .store
            .write("delete_agent", move |tx| {
                Box::pin(async move {
                    if noting.is_some() {
                        audit::lock(tx).await?;
                    }
                    let deleted: DeletedAgent = delete_in(tx, owner, id, force, now).await?;
                    if let Some(noting) = noting {
                        let details = json!({ "id": id, "forced": force, "executions": deleted.executions });
                        noting.note(tx, &deleted.agent.profile.handle, details).await?;
                    }
                    Ok::<_, DeleteAgentError>(deleted)
                })
            })
            .await?;
        self.finish_deletion(id).await;
        Ok(deleted)
    }

    /// What follows from an agent's deletion. Nobody sees the agent any more, so a failure here is not the caller's: the
    /// background job goes on with whatever is left, also when the server dies in between.
    pub(super) async fn finish_deletion(&self, id: IdentityId) {
        let finished = async {
            self.leave_rooms_of(id).await?;
            self.drop_contacts_of(id).await?;
            self.forget_deleted().await.map(drop)
        };
        if let Err(why) = finished.await {
            tracing::warn!(error = %why, identity.id = %id, "a deleted agent is still in rooms or contacts; trying again later");
        }
        self.removals.wake();
    }

    /// Takes a deleted agent out of the first rooms that it is still in; an agent of more leaves the rest in the
    /// background, so that its deletion is answered in time.
    async fn leave_rooms_of(&self, id: IdentityId) -> Result<(), StoreError> {
        const AT_ONCE: i64 = 100;
        let rooms: Vec<_> =
            self.store.read("rooms_of_deleted", move |tx| Box::pin(rooms::keys_of_member(tx, id, 0, AT_ONCE))).await?;
        for (room, room_key) in rooms {
            self.take_out_deleted(Leftover { room, room_key, member: id }).await?;
        }
        Ok(())
    }

    /// Takes a deleted agent out of one room.
    pub(super) async fn take_out_deleted(&self, leftover: Leftover) -> Result<(), StoreError> {
        let now = self.clock.now();
        self.store
            .write("take_out_deleted", move |tx: &mut Writer| {
                Box::pin(async move {
                    let Some(advanced) = rooms::advance(tx, leftover.room).await? else { return Ok(()) };
                    let member = participants::deleted_member(tx, advanced.key, leftover.member).await?;
                    let Some((member, member_key)) = member else { return Ok(()) };
                    let Some(room) = rooms::by_key(tx, advanced.key).await? else { return Ok(()) };
                    let gone = Gone { member: &member, member_key, reason: removals::AGENT_DELETED };
                    take_out(tx, room, advanced.key, advanced.sequence, gone, now).await
                })
            })
            .await
    }
}

/// Deletes an agent, as far as one transaction goes; [`Services::finish_deletion`] does the rest.
pub(super) async fn delete_in(
    tx: &mut Writer,
    owner: Option<IdentityId>,
    id: IdentityId,
    force: bool,
    now: Timestamp,
) -> Result<DeletedAgent, DeleteAgentError> {
    let agent = identities::agent(tx, id).await?;
    let agent = agent.filter(|agent| owner.is_none_or(|owner| agent.owner == owner));
    let agent = agent.ok_or(DeleteAgentError::NotFound)?;
    let worked_in = executions::worked_in(tx, id).await?;
    if !force && worked_in > 0 {
        return Err(DeleteAgentError::HasHistory);
    }
    // From here on nobody becomes its contact or asks it: whoever wants to waits for this, and finds nobody then.
    if let Some(key) = participants::member_key(tx, id).await? {
        contacts::lock(tx, &[key]).await?;
    }
    keys::revoke_all(tx, id, now).await?;
    identities::delete(tx, id, now).await?;
    Ok(DeletedAgent { agent, executions: worked_in })
}
