//! What agents remember, and who may read or change it.

use bandstand_wire::ids::{IdentityId, MemoryId, OrganizationId};
use bandstand_wire::time::Timestamp;
use uuid::Uuid;

use crate::content;
use crate::room::words;

words! {
    /// How long a memory is meant to last.
    MemorySystem {
        /// What was just perceived.
        Sensory = "sensory",
        /// What matters for the work at hand.
        Working = "working",
        /// What matters from now on.
        LongTerm = "long_term",
    }
}

words! {
    /// What kind of memory within its system.
    MemoryType {
        /// Seen.
        Iconic = "iconic",
        /// Heard.
        Echoic = "echoic",
        /// Touched.
        Haptic = "haptic",
        /// Something that happened.
        Episodic = "episodic",
        /// A fact.
        Semantic = "semantic",
        /// How to do something.
        Procedural = "procedural",
    }
}

words! {
    /// What a memory tells about.
    MemorySegment {
        /// A person.
        User = "user",
        /// An agent.
        Agent = "agent",
        /// A tool.
        Tool = "tool",
        /// A rule to keep to.
        Guideline = "guideline",
    }
}

words! {
    /// For whom a memory is.
    MemoryScope {
        /// For the agent that stored it alone.
        Agent = "agent",
        /// For its organization's agents that deal with the subject, and for the subject itself.
        Subject = "subject",
        /// For everybody in its organization.
        Organization = "organization",
    }
}

words! {
    /// Whether a memory holds.
    MemoryStatus {
        /// It holds.
        Active = "active",
        /// It no longer holds; kept for the record.
        Superseded = "superseded",
        /// Put away; people can bring it back.
        Archived = "archived",
    }
}

impl MemorySystem {
    /// The types that a memory of this system may have.
    pub fn types(self) -> &'static [MemoryType] {
        match self {
            Self::Sensory => &[MemoryType::Iconic, MemoryType::Echoic, MemoryType::Haptic],
            Self::Working | Self::LongTerm => &[MemoryType::Episodic, MemoryType::Semantic, MemoryType::Procedural],
        }
    }
}

/// Something that an agent remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Which.
    pub id: MemoryId,
    /// What is remembered. It never changes.
    pub content: String,
    /// Why the agent stored it.
    pub thought: String,
    /// How long it is meant to last.
    pub system: MemorySystem,
    /// What kind (`type` on the wire).
    pub kind: MemoryType,
    /// What it tells about.
    pub segment: MemorySegment,
    /// For whom it is.
    pub scope: MemoryScope,
    /// Whether it holds.
    pub status: MemoryStatus,
    /// JSON as the agent supplied it.
    pub metadata: Option<String>,
    /// Whom it is about, as the agent gave it: it may name nobody.
    pub subject: Option<Uuid>,
    /// The agent that stored it and its name; `None` once that agent is deleted.
    pub source: Option<(IdentityId, String)>,
    /// The user who owns, or owned, that agent.
    pub owner: IdentityId,
    /// The owner's organization when it was stored; `None` for the scope agent, and where there was none.
    pub organization: Option<OrganizationId>,
    /// When it was stored.
    pub inserted_at: Timestamp,
    /// When its status last changed.
    pub updated_at: Timestamp,
}

/// Somebody who wants to read or change a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Viewer {
    /// Who.
    pub id: IdentityId,
    /// The organization of the user, or of the agent's owner.
    pub organization: Option<OrganizationId>,
}

impl Memory {
    fn is_shared_within(&self, viewer: &Viewer) -> bool {
        self.organization.is_some() && self.organization == viewer.organization
    }

    fn is_of(&self, agent: IdentityId) -> bool {
        self.source.as_ref().is_some_and(|(source, _)| *source == agent)
    }

    fn is_about(&self, user: IdentityId) -> bool {
        self.subject == Some(user.0)
    }

    /// Whether it is private to an agent that exists and belongs to this user.
    fn is_private_to_an_agent_of(&self, user: IdentityId) -> bool {
        self.scope == MemoryScope::Agent && self.source.is_some() && self.owner == user
    }

    /// Whether an agent may read it: its own, and what its organization shares. Another agent's private ones never.
    pub fn agent_may_read(&self, agent: &Viewer) -> bool {
        self.is_of(agent.id)
            || match self.scope {
                MemoryScope::Agent => false,
                MemoryScope::Subject | MemoryScope::Organization => self.is_shared_within(agent),
            }
    }

    /// Whether an agent may supersede or archive it: only the one that stored it.
    pub fn agent_may_change(&self, agent: IdentityId) -> bool {
        self.is_of(agent)
    }

    /// Whether a user may read it: what is about the user, what its organization shares with everybody, and what an
    /// agent of the user's keeps to itself.
    pub fn user_may_read(&self, user: &Viewer) -> bool {
        match self.scope {
            MemoryScope::Agent => self.is_private_to_an_agent_of(user.id),
            MemoryScope::Subject => self.is_about(user.id),
            MemoryScope::Organization => self.is_about(user.id) || self.is_shared_within(user),
        }
    }

    /// Whether a user who may read it may also supersede, archive, restore and delete it: what is about the user, and
    /// what an agent of the user's keeps to itself.
    pub fn user_may_change(&self, user: IdentityId) -> bool {
        match self.scope {
            MemoryScope::Agent => self.is_private_to_an_agent_of(user),
            MemoryScope::Subject | MemoryScope::Organization => self.is_about(user),
        }
    }
}

/// Longest content, in bytes of UTF-8.
pub const CONTENT_MAX_BYTES: usize = 65_536;

/// Longest thought, in bytes of UTF-8.
pub const THOUGHT_MAX_BYTES: usize = 16_384;

/// Largest metadata, in bytes of JSON.
pub const METADATA_MAX_BYTES: usize = 65_536;

/// Longest search for words, in characters.
pub const QUERY_MAX_CHARACTERS: usize = 1000;

/// Why a text of a memory is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Nothing to see.
    #[error("can't be blank")]
    Blank,
    /// Holds a character that PostgreSQL cannot store.
    #[error("must not contain the character NUL")]
    Nul,
    /// Longer than it may be.
    #[error("should be at most {0} byte(s)")]
    TooLong(usize),
}

/// Checks what is to be remembered.
///
/// # Errors
/// [`TextError`].
pub fn check_content(text: &str) -> Result<(), TextError> {
    if !content::is_visible(text) {
        return Err(TextError::Blank);
    }
    check_text(text, CONTENT_MAX_BYTES)
}

/// Checks why it is to be remembered; an agent may say nothing about that.
///
/// # Errors
/// [`TextError`], never [`TextError::Blank`].
pub fn check_thought(text: &str) -> Result<(), TextError> {
    check_text(text, THOUGHT_MAX_BYTES)
}

fn check_text(text: &str, max: usize) -> Result<(), TextError> {
    if text.contains('\0') {
        return Err(TextError::Nul);
    }
    if text.len() > max {
        return Err(TextError::TooLong(max));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANA: u128 = 1;
    const ANAS_BOT: u128 = 11;
    const BOB: u128 = 2;
    const BOBS_BOT: u128 = 12;

    fn id(number: u128) -> IdentityId {
        IdentityId(Uuid::from_u128(number))
    }

    fn viewer(number: u128, organization: Option<u128>) -> Viewer {
        Viewer { id: id(number), organization: organization.map(|number| OrganizationId(Uuid::from_u128(number))) }
    }

    /// A memory that Ana's bot stored.
    fn memory(scope: MemoryScope, subject: Option<u128>, organization: Option<u128>) -> Memory {
        Memory {
            id: MemoryId(Uuid::from_u128(100)),
            content: "x".into(),
            thought: String::new(),
            system: MemorySystem::Working,
            kind: MemoryType::Semantic,
            segment: MemorySegment::User,
            scope,
            status: MemoryStatus::Active,
            metadata: None,
            subject: subject.map(Uuid::from_u128),
            source: Some((id(ANAS_BOT), "bot".into())),
            owner: id(ANA),
            organization: organization.map(|number| OrganizationId(Uuid::from_u128(number))),
            inserted_at: Timestamp::from_micros(0),
            updated_at: Timestamp::from_micros(0),
        }
    }

    #[test]
    fn every_type_belongs_to_its_systems() {
        for system in MemorySystem::ALL {
            for kind in MemoryType::ALL {
                let sensory = matches!(kind, MemoryType::Iconic | MemoryType::Echoic | MemoryType::Haptic);
                let fits = system.types().contains(kind);
                assert_eq!(fits, sensory == (*system == MemorySystem::Sensory), "{system:?} {kind:?}");
            }
        }
    }

    #[test]
    fn the_table_of_reading() {
        use MemoryScope::{Agent, Organization, Subject};
        // The memory (scope, subject, organization), who looks (and its organization), may it read, may it change.
        let agents = [
            ((Agent, None, None), (ANAS_BOT, None), true, true),
            ((Agent, Some(BOBS_BOT), None), (BOBS_BOT, Some(7)), false, false),
            ((Agent, Some(BOB), None), (BOBS_BOT, None), false, false),
            ((Subject, Some(BOB), Some(7)), (BOBS_BOT, Some(7)), true, false),
            ((Subject, Some(BOB), Some(7)), (BOBS_BOT, Some(8)), false, false),
            ((Subject, Some(BOBS_BOT), Some(7)), (BOBS_BOT, None), false, false),
            ((Subject, Some(BOB), None), (BOBS_BOT, None), false, false),
            ((Organization, None, Some(7)), (BOBS_BOT, Some(7)), true, false),
            ((Organization, None, Some(7)), (BOBS_BOT, Some(8)), false, false),
            ((Organization, None, Some(7)), (BOBS_BOT, None), false, false),
            ((Organization, None, Some(7)), (ANAS_BOT, None), true, true),
        ];
        for ((scope, subject, organization), (who, its), read, change) in agents {
            let (memory, viewer) = (memory(scope, subject, organization), viewer(who, its));
            let said = (memory.agent_may_read(&viewer), memory.agent_may_change(viewer.id));
            assert_eq!(said, (read, change), "{scope:?} {subject:?} {organization:?} {who} {its:?}");
        }
        let users = [
            ((Agent, None, None), (ANA, None), true, true),
            ((Agent, Some(BOB), None), (BOB, Some(7)), false, false),
            ((Subject, Some(BOB), None), (BOB, None), true, true),
            ((Subject, Some(BOB), Some(7)), (ANA, Some(7)), false, false),
            ((Subject, Some(ANA), None), (ANA, None), true, true),
            ((Organization, None, Some(7)), (BOB, Some(7)), true, false),
            ((Organization, None, Some(7)), (BOB, Some(8)), false, false),
            ((Organization, None, Some(7)), (ANA, None), false, false),
            ((Organization, Some(BOB), Some(7)), (BOB, Some(8)), true, true),
        ];
        for ((scope, subject, organization), (who, its), read, change) in users {
            let (memory, viewer) = (memory(scope, subject, organization), viewer(who, its));
            let said = (memory.user_may_read(&viewer), memory.user_may_change(viewer.id));
            assert_eq!(said, (read, change), "{scope:?} {subject:?} {organization:?} {who} {its:?}");
        }
    }

    #[test]
    fn what_a_deleted_agent_kept_to_itself_is_gone() {
        let orphan = Memory { source: None, ..memory(MemoryScope::Agent, Some(ANA), None) };
        assert!(!orphan.user_may_read(&viewer(ANA, None)));
        assert!(!orphan.user_may_change(id(ANA)));
        assert!(!orphan.agent_may_read(&viewer(ANAS_BOT, None)));
        let shared = Memory { source: None, ..memory(MemoryScope::Organization, None, Some(7)) };
        assert!(shared.user_may_read(&viewer(BOB, Some(7))) && shared.agent_may_read(&viewer(BOBS_BOT, Some(7))));
    }

    #[test]
    fn texts_are_bounded() {
        assert_eq!(check_content(" \n"), Err(TextError::Blank));
        assert_eq!(check_content("a\0"), Err(TextError::Nul));
        assert_eq!(check_content(&"ü".repeat(CONTENT_MAX_BYTES / 2)), Ok(()));
        assert_eq!(check_content(&"ü".repeat(CONTENT_MAX_BYTES / 2 + 1)), Err(TextError::TooLong(CONTENT_MAX_BYTES)));
        assert_eq!(check_thought(""), Ok(()));
        assert_eq!(check_thought(&"x".repeat(THOUGHT_MAX_BYTES + 1)), Err(TextError::TooLong(THOUGHT_MAX_BYTES)));
    }
}
