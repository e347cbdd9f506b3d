//! Who administers, and the log of what administrators did: each act notes itself in its own transaction.

use bandstand_domain::audit::{Act, Door, Entry, Head};
use bandstand_store::{Reader, StoreError, Writer, audit};
use bandstand_wire::ids::IdentityId;
use serde_json::Value;

use crate::state::Services;

/// On whose behalf administrative acts are done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The user; none for whoever may open the data folder.
    pub id: Option<IdentityId>,
    /// Its handle.
    pub name: String,
    /// Through what it came.
    pub door: Door,
}

impl Actor {
    /// Whoever may open the data folder or its admin socket.
    pub fn local(door: Door) -> Self {
        Self { id: None, name: "local".to_owned(), door }
    }
}

/// An act that is about to be done: it knows all but what came of it.
pub(super) struct Noting(Act);

impl Noting {
    /// Adds it to the log. `details` never holds a secret.
    pub(super) async fn note(
        self,
        tx: &mut Writer,
        target: impl Into<String>,
        details: Value,
    ) -> Result<(), StoreError> {
        audit::append(tx, Act { target: target.into(), details, ..self.0 }).await.map(drop)
    }
}

/// A page of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditPage {
    /// The entries, oldest first.
    pub entries: Vec<Entry>,
    /// How far the log reaches.
    pub head: Head,
}

impl Services {
    /// The same use cases on behalf of somebody.
    pub fn acting_as(&self, actor: Actor) -> Self {
        Self { actor: actor.into(), ..self.clone() }
    }

    /// Begins to note an act, e.g. `user.add`, as of now.
    pub(super) fn noting(&self, act: &'static str) -> Noting {
        let actor = &self.actor;
        Noting(Act {
            at: self.clock.now(),
            actor_id: actor.id,
            actor: actor.name.clone(),
            door: actor.door,
            act: act.to_owned(),
            target: String::new(),
            details: Value::Null,
        })
    }

    /// Notes an act that changes nothing in the store, e.g. that a backup is taken.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn note_act(&self, act: &'static str, target: &str, details: Value) -> Result<(), StoreError> {
        let (noting, target) = (self.noting(act), target.to_owned());
        self.store.write("note_act", move |tx| Box::pin(noting.note(tx, target, details))).await
    }

    /// The entries after a sequence (0: from the first), oldest first, at most `limit`.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn audit_log(&self, after: i64, limit: i64) -> Result<AuditPage, StoreError> {
        self.store
            .read("audit_log", move |tx: &mut Reader| {
                Box::pin(async move {
                    Ok(AuditPage { entries: audit::after(tx, after, limit).await?, head: audit::head(tx).await? })
                })
            })
            .await
    }
}
