//! Who is in a room, as the agent knows it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bandstand_wire::ids::IdentityId;
use serde::Serialize;

use crate::client::model::{Participant, Peer};

/// Somebody in a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Member {
    /// Who.
    pub id: IdentityId,
    /// Its name.
    pub name: Option<String>,
    /// `User` or `Agent`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its handle, without `@`.
    pub handle: Option<String>,
    /// An agent's description. Lists of participants do not tell it; pushes and lists of peers do.
    pub description: Option<String>,
}

impl Member {
    /// What people call it: its handle, else its name.
    pub fn label(&self) -> String {
        match (&self.handle, &self.name) {
            (Some(handle), _) => format!("@{handle}"),
            (None, Some(name)) => name.clone(),
            (None, None) => self.id.to_string(),
        }
    }
}

/// Handles are kept without the `@`s that some sources write before them.
fn bare(handle: Option<String>) -> Option<String> {
    let handle = handle?.trim_start_matches('@').to_owned();
    (!handle.is_empty()).then_some(handle)
}

impl From<Participant> for Member {
    fn from(from: Participant) -> Self {
        Self { id: from.id, name: from.name, kind: from.kind, handle: bare(from.handle), description: from.description }
    }
}

impl From<Peer> for Member {
    fn from(from: Peer) -> Self {
        let Peer { id, name, kind, handle, description, .. } = from;
        Self { id, name: Some(name), kind, handle: bare(handle), description }
    }
}

#[derive(Debug, Default)]
struct State {
    members: Vec<Member>,
    revision: u64,
    loaded: bool,
}

/// Who is in a room. Cloning shares it: the runtime keeps it up to date from pushes, the tools from what they list.
#[derive(Clone, Debug, Default)]
pub struct Roster(Arc<Mutex<State>>);

impl Roster {
    /// With these in it.
    pub fn of(members: Vec<Member>) -> Self {
        let roster = Self::default();
        roster.replace(members);
        roster
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everybody, as known now.
    pub fn members(&self) -> Vec<Member> {
        self.state().members.clone()
    }

    /// Somebody.
    pub fn get(&self, id: IdentityId) -> Option<Member> {
        self.state().members.iter().find(|member| member.id == id).cloned()
    }

    /// Whether a list of the room was read at all.
    pub fn is_loaded(&self) -> bool {
        self.state().loaded
    }

    /// Grows with every change of who is in it, or of what is known of somebody.
    pub fn revision(&self) -> u64 {
        self.state().revision
    }

    /// A list of the room is the truth about who is in it; what it does not tell of somebody stays known. A list that
    /// names somebody twice is no such truth, and false is returned.
    pub fn replace(&self, members: Vec<Member>) -> bool {
        let mut seen = HashSet::new();
        if !members.iter().all(|member| seen.insert(member.id)) {
            return false;
        }
        let mut state = self.state();
        let mut merged: Vec<Member> = members
            .into_iter()
            .map(|member| match state.members.iter().find(|known| known.id == member.id) {
                Some(known) => merge(known, member),
                None => member,
            })
            .collect();
        state.loaded = true;
        // It was made in the place of what was read, which is larger.
        merged.shrink_to_fit();
        if merged != state.members {
            state.members = merged;
            state.revision += 1;
        }
        true
    }

    /// Somebody is in the room.
    pub fn add(&self, member: Member) {
        let mut state = self.state();
        match state.members.iter().position(|known| known.id == member.id) {
            Some(at) => {
                let merged = merge(&state.members[at], member);
                if merged != state.members[at] {
                    state.members[at] = merged;
                    state.revision += 1;
                }
            }
            None => {
                state.members.push(member);
                state.revision += 1;
            }
        }
    }

    /// Somebody is not in the room any more.
    pub fn remove(&self, id: IdentityId) {
        let mut state = self.state();
        let before = state.members.len();
        state.members.retain(|member| member.id != id);
        if state.members.len() != before {
            state.revision += 1;
        }
    }
}

/// What is told wins; what is not told stays.
fn merge(known: &Member, told: Member) -> Member {
    Member {
        id: told.id,
        name: told.name.or_else(|| known.name.clone()),
        kind: told.kind,
        handle: told.handle.or_else(|| known.handle.clone()),
        description: told.description.or_else(|| known.description.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn member(number: u128, name: &str, description: Option<&str>) -> Member {
        Member {
            id: IdentityId(Uuid::from_u128(number)),
            name: Some(name.into()),
            kind: "Agent".into(),
            handle: None,
            description: description.map(str::to_owned),
        }
    }

    #[test]
    fn a_list_replaces_who_is_there_and_keeps_what_it_does_not_tell() {
        let roster = Roster::of(vec![member(1, "Ann", Some("writes")), member(2, "Bob", None)]);
        let revision = roster.revision();
        assert!(roster.replace(vec![member(1, "Anna", None)]));
        assert_eq!(roster.members(), [member(1, "Anna", Some("writes"))]);
        assert_eq!(roster.revision(), revision + 1);
        assert!(roster.replace(vec![member(1, "Anna", None)]));
        assert_eq!(roster.revision(), revision + 1);
        assert!(!roster.replace(vec![member(3, "Cy", None), member(3, "Cy", None)]));
        assert_eq!(roster.members().len(), 1);
    }

    #[test]
    fn handles_lose_their_at_signs() {
        assert_eq!(bare(Some("@@ann".into())).as_deref(), Some("ann"));
        assert_eq!(bare(Some("@".into())), None);
    }
}
