//! A room (`chat` on the wire) and the rules of its title and type.

use bandstand_wire::ids::{IdentityId, RoomId};
use bandstand_wire::time::Timestamp;
use uuid::Uuid;

/// A room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Which.
    pub id: RoomId,
    /// `None` until a title is given or the first text message makes one.
    pub title: Option<String>,
    /// What the room is for: the start of its first text message. `None` until there is one.
    pub description: Option<String>,
    /// An opaque link that the creator gave; stored and echoed, never checked.
    pub task_id: Option<Uuid>,
    /// Open, archived or closed.
    pub status: RoomStatus,
    /// What kind of room.
    pub kind: RoomKind,
    /// Who created it.
    pub creator: IdentityId,
    /// When the newest message or event was posted.
    pub last_message_at: Option<Timestamp>,
    /// When it was created.
    pub inserted_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word that travels and is stored.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Reads [`Self::as_str`].
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text)
            }
        }
    };
}
pub(crate) use words;

words! {
    /// Whether a room takes writes.
    RoomStatus {
        /// Takes messages.
        Active = "active",
        /// Readable only.
        Archived = "archived",
        /// Readable only, for good.
        Closed = "closed",
    }
}

words! {
    /// What kind of room; decided by how it came to be.
    RoomKind {
        /// One or two participants so far.
        Direct = "direct",
        /// A third participant joined.
        Group = "group",
        /// Created with a task link.
        Task = "task",
    }
}

/// Longest title, in characters after trimming.
pub const TITLE_MAX_CHARACTERS: usize = 120;

/// Longest automatic title, in characters.
pub const AUTOMATIC_TITLE_CHARACTERS: usize = 60;

/// Longest description, in characters.
pub const DESCRIPTION_CHARACTERS: usize = 200;

/// What a push calls a room that has no title yet (both SDKs refuse a null there).
pub const UNTITLED: &str = "New room";

/// Why a title is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TitleError {
    /// Longer than [`TITLE_MAX_CHARACTERS`].
    #[error("should be at most 120 character(s)")]
    TooLong,
    /// Holds a line break or NUL.
    #[error("must not contain line breaks or NUL")]
    ControlCharacter,
}

/// Trims and checks a title; blank means none.
///
/// # Errors
/// [`TitleError`] when it is too long or holds a line break or NUL.
pub fn title(text: &str) -> Result<Option<String>, TitleError> {
    if text.contains(['\n', '\r', '\0']) {
        return Err(TitleError::ControlCharacter);
    }
    let trimmed = text.trim();
    if trimmed.chars().count() > TITLE_MAX_CHARACTERS {
        return Err(TitleError::TooLong);
    }
    Ok((!trimmed.is_empty()).then(|| trimmed.to_owned()))
}

/// The title that the first text message gives its room: its first characters on one line, without mention tokens.
pub fn automatic_title(content: &str) -> Option<String> {
    opening(content, AUTOMATIC_TITLE_CHARACTERS)
}

/// What the first text message says of its room's purpose: as the title, but longer.
pub fn automatic_description(content: &str) -> Option<String> {
    opening(content, DESCRIPTION_CHARACTERS)
}

/// The first characters of a text, on one line and without mention tokens.
fn opening(content: &str, characters: usize) -> Option<String> {
    let plain = crate::mention::without_tokens(content);
    let line = plain.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = words.chars().take(characters).collect();
    let cut = cut.trim_end();
    (!cut.is_empty()).then(|| cut.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_trimmed_and_blank_means_none() {
        assert_eq!(title("  Plans "), Ok(Some("Plans".into())));
        assert_eq!(title("   "), Ok(None));
        assert_eq!(title("a\nb"), Err(TitleError::ControlCharacter));
        assert_eq!(title(&"x".repeat(121)), Err(TitleError::TooLong));
        assert_eq!(title(&"ü".repeat(120)).unwrap().unwrap().chars().count(), 120);
    }

    #[test]
    fn the_first_message_names_the_room() {
        let token = "@[[018f0000-0000-7000-8000-000000000000]]";
        assert_eq!(automatic_title(&format!("{token} plan\nthe  launch")), Some("plan the launch".into()));
        assert_eq!(automatic_title(token), None);
        assert_eq!(automatic_title(&"long ".repeat(40)).unwrap().chars().count(), 59);
        assert_eq!(automatic_description(&format!("{token} plan\n the launch")), Some("plan the launch".into()));
        assert_eq!(automatic_description(&"long ".repeat(90)).unwrap().chars().count(), 199);
    }
}
