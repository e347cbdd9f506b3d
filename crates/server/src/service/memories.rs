//! What agents remember: storing, finding, putting away. Who may read or change what is said in the domain.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use bandstand_domain::membership;
use bandstand_domain::memory::{Memory, MemoryScope, MemorySegment, MemoryStatus, MemorySystem, MemoryType};
use bandstand_store::memories::{Asker, Audience, BATCH, MemoryQuery};
use bandstand_store::{Reader, StoreError, Writer, contacts, identities, memories, participants, peers};
use bandstand_wire::ids::{IdentityId, IdentityKind, MemoryId};
use bandstand_wire::time::Timestamp;
use uuid::Uuid;

use crate::auth::Caller;
use crate::service::lists::Listed;
use crate::state::Services;

/// Why something about memories is refused.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// No such memory, or the caller may not read it.
    #[error("memory not found")]
    NotFound,
    /// An agent wants to change what another one stored.
    #[error("only the agent that stored a memory may change it")]
    NotSource,
    /// A user wants to change what is neither about the user nor private to an agent of the user's.
    #[error("you may change only memories about you and the private ones of your agents")]
    NotYours,
    /// Only an archived memory can be restored.
    #[error("is not archived, so it cannot be restored")]
    NotArchived,
    /// The caller is in no organization.
    #[error("the agent's owner belongs to no organization")]
    NoOrganization,
    /// The caller was deleted meanwhile.
    #[error("the caller does not exist")]
    NoCaller,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A memory to be stored, its fields checked.
#[derive(Clone, Debug)]
pub struct NewMemory {
    /// What to remember.
    pub content: String,
    /// Why.
    pub thought: String,
    /// How long it is meant to last.
    pub system: MemorySystem,
    /// What kind.
    pub kind: MemoryType,
    /// What it tells about.
    pub segment: MemorySegment,
    /// For whom it is.
    pub scope: MemoryScope,
    /// Whom it is about.
    pub subject: Option<Uuid>,
    /// JSON as the agent supplied it.
    pub metadata: Option<String>,
}

/// Whose memories an agent lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// What it stored itself.
    Me,
    /// What its organization shares.
    Organization,
}

/// Which scopes a list is narrowed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeFilter {
    /// Nothing was said.
    Unsaid,
    /// All of them.
    All,
    /// One.
    Only(MemoryScope),
}

/// What of all that a user may read to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserView {
    /// Everything.
    All,
    /// What is about the user.
    AboutMe,
    /// What the user's organization shares.
    Organization,
    /// What comes from a room. Nothing on this server does.
    Room,
}

/// What else a list is narrowed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filters {
    /// Of this system.
    pub system: Option<MemorySystem>,
    /// Of this type.
    pub kind: Option<MemoryType>,
    /// Of this segment.
    pub segment: Option<MemorySegment>,
    /// Of this status.
    pub status: Option<MemoryStatus>,
    /// About this subject.
    pub subject: Option<Uuid>,
    /// Stored by this agent.
    pub source: Option<IdentityId>,
    /// Holding all of these words.
    pub words: Option<Vec<String>>,
}

/// Which rows of a list to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// After this row: its moment and id.
    pub after: Option<(i64, Uuid)>,
    /// Rows to skip.
    pub offset: i64,
    /// Most rows.
    pub limit: i64,
    /// Whether to count them all.
    pub with_total: bool,
}

/// A memory as a user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserMemory {
    /// The memory.
    pub memory: Memory,
    /// The name and kind of whom it is about, if the user may see that.
    pub subject: Option<(String, IdentityKind)>,
}

/// What becomes of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryChange {
    /// It no longer holds.
    Supersede,
    /// It is put away.
    Archive,
    /// It is brought back.
    Restore,
}

impl Services {
    /// Stores a memory of the calling agent.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub async fn store_memory(&self, caller: Caller, new: NewMemory) -> Result<Memory, MemoryError> {
        let (id, now) = (self.ids.memory(), self.clock.now());
        self.store
            .write("store_memory", move |tx| {
                Box::pin(async move {
                    let asker = asker(tx, caller).await?;
                    let organization = match new.scope {
                        MemoryScope::Agent => None,
                        MemoryScope::Subject => asker.viewer.organization,
                        MemoryScope::Organization => {
                            Some(asker.viewer.organization.ok_or(MemoryError::NoOrganization)?)
                        }
                    };
                    let memory = Memory {
                        id,
                        content: new.content,
                        thought: new.thought,
                        system: new.system,
                        kind: new.kind,
                        segment: new.segment,
                        scope: new.scope,
                        status: MemoryStatus::Active,
                        metadata: new.metadata,
                        subject: new.subject,
                        source: Some((caller.identity, String::new())),
                        owner: caller.identity,
                        organization,
                        inserted_at: now,
                        updated_at: now,
                    };
                    memories::insert(tx, &memory, &asker).await?;
                    // Read back, since it names its source and owner.
                    memories::one(tx, id).await?.ok_or(MemoryError::NotFound)
                })
            })
            .await
    }

    /// Memories that the calling agent may read.
    ///
    /// # Errors
    /// [`MemoryError::NoOrganization`] when it asks for what an organization shares and is in none.
    pub async fn agent_memories(
        &self,
        caller: Caller,
        whose: Whose,
        scope: ScopeFilter,
        filters: Filters,
        slice: Slice,
    ) -> Result<Listed<Memory>, MemoryError> {
        self.store
            .read("agent_memories", move |tx| {
                Box::pin(async move {
                    let asker = asker(tx, caller).await?;
                    let (audience, scope) = agent_audience(&asker, whose, scope, filters.subject)?;
                    Ok(listed(tx, query(audience, scope, filters, slice), slice).await?)
                })
            })
            .await
    }

    /// Memories that the calling user may read.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub async fn user_memories(
        &self,
        caller: Caller,
        view: UserView,
        filters: Filters,
        slice: Slice,
    ) -> Result<Listed<UserMemory>, MemoryError> {
        self.store
            .read("user_memories", move |tx| {
                Box::pin(async move {
                    let asker = asker(tx, caller).await?;
                    let (user_key, user) = (asker.key, caller.identity);
                    let audience = match (view, asker.organization_key) {
                        (UserView::Room, _) | (UserView::Organization, None) => {
                            return Ok(Listed { rows: Vec::new(), total: slice.with_total.then_some(0) });
                        }
                        (UserView::All, organization_key) => Audience::User { user_key, user, organization_key },
                        (UserView::AboutMe, _) => Audience::AboutUser { user_key, user },
                        (UserView::Organization, Some(organization_key)) => Audience::Organization { organization_key },
                    };
                    let found = listed(tx, query(audience, None, filters, slice), slice).await?;
                    Ok(Listed { rows: with_subjects(tx, user, found.rows).await?, total: found.total })
                })
            })
            .await
    }

    /// A memory that the calling agent may read.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub async fn agent_memory(&self, caller: Caller, id: MemoryId) -> Result<Memory, MemoryError> {
        self.store.read("agent_memory", move |tx| Box::pin(readable(tx, caller, id))).await
    }

    /// A memory that the calling user may read.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub async fn user_memory(&self, caller: Caller, id: MemoryId) -> Result<UserMemory, MemoryError> {
        self.store
            .read("user_memory", move |tx| {
                Box::pin(async move {
                    let memory = readable(tx, caller, id).await?;
                    with_subject(tx, caller.identity, memory).await
                })
            })
            .await
    }

    /// Changes the status of a memory that the calling agent stored. The same status again changes nothing.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub async fn change_agent_memory(
        &self,
        caller: Caller,
        id: MemoryId,
        change: MemoryChange,
    ) -> Result<Memory, MemoryError> {
        let now = self.clock.now();
        self.store
            .write("change_agent_memory", move |tx| {
                Box::pin(async move {
                    let memory = readable(tx, caller, id).await?;
                    if !memory.agent_may_change(caller.identity) {
                        return Err(MemoryError::NotSource);
                    }
                    changed(tx, &memory, change, now).await
                })
            })
            .await
    }

    /// Changes the status of a memory that is about the calling user or private to an agent of its. The same status
    /// again changes nothing.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub async fn change_user_memory(
        &self,
        caller: Caller,
        id: MemoryId,
        change: MemoryChange,
    ) -> Result<UserMemory, MemoryError> {
        let now = self.clock.now();
        self.store
            .write("change_user_memory", move |tx| {
                Box::pin(async move {
                    let memory = readable(tx, caller, id).await?;
                    if !memory.user_may_change(caller.identity) {
                        return Err(MemoryError::NotYours);
                    }
                    let memory = changed(tx, &memory, change, now).await?;
                    with_subject(tx, caller.identity, memory).await
                })
            })
            .await
    }

    /// Deletes a memory for good: one about the calling user, or private to an agent of its.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub async fn delete_memory(&self, caller: Caller, id: MemoryId) -> Result<(), MemoryError> {
        self.store
            .write("delete_memory", move |tx| {
                Box::pin(async move {
                    let memory = readable(tx, caller, id).await?;
                    if !memory.user_may_change(caller.identity) {
                        return Err(MemoryError::NotYours);
                    }
                    if memories::delete(tx, id).await? { Ok(()) } else { Err(MemoryError::NotFound) }
                })
            })
            .await
    }

    /// Deletes a part of what deleted agents kept to themselves. Nobody can read it any more; whether more is left.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn forget_deleted(&self) -> Result<bool, StoreError> {
        let deleted: u64 =
            self.store.write("forget_deleted", |tx| Box::pin(memories::delete_private_of_deleted(tx))).await?;
        Ok(deleted >= BATCH)
    }
}

async fn asker(tx: &mut Reader, caller: Caller) -> Result<Asker, MemoryError> {
    memories::asker(tx, caller.identity, caller.kind).await?.ok_or(MemoryError::NoCaller)
}

/// Whose memories an agent's list shows, and the scope that is left to filter by.
fn agent_audience(
    asker: &Asker,
    whose: Whose,
    scope: ScopeFilter,
    subject: Option<Uuid>,
) -> Result<(Audience, Option<MemoryScope>), MemoryError> {
    let agent_key = asker.key;
    let organization_key = asker.organization_key.ok_or(MemoryError::NoOrganization);
    let own = Audience::Own { agent_key };
    match (whose, scope) {
        (Whose::Me, ScopeFilter::Unsaid | ScopeFilter::All) => Ok((own, None)),
        (Whose::Me, ScopeFilter::Only(scope @ MemoryScope::Organization)) => {
            // The platform refuses it even here, where an empty list would do no harm, and clients wait for it.
            organization_key?;
            Ok((own, Some(scope)))
        }
        (Whose::Me, ScopeFilter::Only(scope)) => Ok((own, Some(scope))),
        (Whose::Organization, ScopeFilter::Unsaid | ScopeFilter::Only(MemoryScope::Organization)) => {
            Ok((Audience::Organization { organization_key: organization_key? }, None))
        }
        (Whose::Organization, ScopeFilter::All) => {
            Ok((Audience::OwnAndOrganization { agent_key, organization_key: organization_key? }, None))
        }
        (Whose::Organization, ScopeFilter::Only(MemoryScope::Subject)) => {
            let organization_key = organization_key?;
            // What is shared about a subject is found only by whoever names the subject.
            Ok(subject.map_or((own, Some(MemoryScope::Subject)), |subject| {
                (Audience::Subject { organization_key, subject }, None)
            }))
        }
        (Whose::Organization, ScopeFilter::Only(scope @ MemoryScope::Agent)) => {
            organization_key?;
            Ok((own, Some(scope)))
        }
    }
}

fn query(audience: Audience, scope: Option<MemoryScope>, filters: Filters, slice: Slice) -> MemoryQuery {
    MemoryQuery {
        audience,
        system: filters.system,
        kind: filters.kind,
        segment: filters.segment,
        scope,
        status: filters.status,
        subject: filters.subject,
        source: filters.source,
        words: filters.words,
        after: slice.after,
        offset: slice.offset,
        limit: slice.limit,
    }
}

async fn listed(tx: &mut Reader, query: MemoryQuery, slice: Slice) -> Result<Listed<Memory>, StoreError> {
    let rows = memories::page(tx, &query).await?;
    let total = if slice.with_total { Some(memories::count(tx, &query).await?) } else { None };
    Ok(Listed { rows, total })
}

/// A memory that the caller may read.
async fn readable(tx: &mut Reader, caller: Caller, id: MemoryId) -> Result<Memory, MemoryError> {
    let asker = asker(tx, caller).await?;
    let memory = memories::one(tx, id).await?.filter(|memory| match caller.kind {
        IdentityKind::Agent => memory.agent_may_read(&asker.viewer),
        IdentityKind::User => memory.user_may_read(&asker.viewer),
    });
    memory.ok_or(MemoryError::NotFound)
}

async fn changed(
    tx: &mut Writer,
    memory: &Memory,
    change: MemoryChange,
    now: Timestamp,
) -> Result<Memory, MemoryError> {
    let (from, to) = match change {
        MemoryChange::Supersede => (None, MemoryStatus::Superseded),
        MemoryChange::Archive => (None, MemoryStatus::Archived),
        MemoryChange::Restore => (Some(MemoryStatus::Archived), MemoryStatus::Active),
    };
    let moved = memories::set_status(tx, memory.id, from, to, now).await?;
    let memory = memories::one(tx, memory.id).await?.ok_or(MemoryError::NotFound)?;
    if !moved && from.is_some() {
        return Err(MemoryError::NotArchived);
    }
    Ok(memory)
}

async fn with_subject(tx: &mut Reader, user: IdentityId, memory: Memory) -> Result<UserMemory, MemoryError> {
    let subject = match memory.subject {
        Some(subject) => visible(tx, user, IdentityId(subject)).await?,
        None => None,
    };
    Ok(UserMemory { memory, subject })
}

/// Each subject is looked up once.
async fn with_subjects(
    tx: &mut Reader,
    user: IdentityId,
    memories: Vec<Memory>,
) -> Result<Vec<UserMemory>, StoreError> {
    let mut known = HashMap::new();
    for subject in memories.iter().filter_map(|memory| memory.subject) {
        if let Entry::Vacant(place) = known.entry(subject) {
            place.insert(visible(tx, user, IdentityId(subject)).await?);
        }
    }
    let named = |memory: Memory| {
        let subject = memory.subject.and_then(|subject| known.get(&subject).cloned().flatten());
        UserMemory { memory, subject }
    };
    Ok(memories.into_iter().map(named).collect())
}

/// The name and kind of somebody that a user may see: itself, its peers, and who is in a room with it.
async fn visible(
    tx: &mut Reader,
    user: IdentityId,
    who: IdentityId,
) -> Result<Option<(String, IdentityKind)>, StoreError> {
    let Some(profile) = identities::by_id(tx, who).await? else { return Ok(None) };
    let (Some(own), Some(other)) = (peers::peerage(tx, user).await?, peers::peerage(tx, who).await?) else {
        return Ok(None);
    };
    let is_contact = contacts::are_contacts(tx, user, who).await?;
    let is_visible = membership::is_peer(&own, &other, is_contact) || participants::share_room(tx, user, who).await?;
    Ok(is_visible.then_some((profile.name, profile.kind)))
}
