//! Mentions route messages: whom a text names, who therefore receives it, and how the text is stored.

use bandstand_wire::ids::{IdentityId, IdentityKind};

use crate::handle;
use crate::membership::{Participant, ParticipantStatus};
use crate::message::Mention;

/// Most mentions in one message: one operation of the store never touches more rows than that.
pub const MENTIONS_MAX: usize = 500;

/// A mention as the sender asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Requested {
    /// Who, by id; wins over the handle.
    pub id: Option<IdentityId>,
    /// Who, by handle.
    pub handle: Option<String>,
    /// `mention` or `reference`; `mention` when absent.
    pub kind: Option<String>,
}

/// Why a message's mentions are refused. [`Self::code`] is what clients match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MentionError {
    /// None at all, or references only.
    #[error("a message needs at least one mention of another participant")]
    Required,
    /// More than [`MENTIONS_MAX`].
    #[error("a message may mention at most 500 participants")]
    TooMany,
    /// The sender itself.
    #[error("you cannot mention yourself")]
    Itself,
    /// The same participant twice.
    #[error("a participant is mentioned more than once")]
    Duplicate,
    /// Nobody of that id is in the room. Clients compare this message, so it is the bare token.
    #[error("mentioned_participant_not_in_room")]
    NotInRoom,
    /// Neither `mention` nor `reference`.
    #[error("the kind of a mention is either mention or reference")]
    InvalidKind,
    /// Nobody in the room has that handle.
    #[error("no participant of this room has the handle {0}")]
    HandleNotFound(String),
    /// Neither id nor handle.
    #[error("a mention needs an id or a handle")]
    MissingIdentifier,
}

impl MentionError {
    /// The token that travels.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Required => "mentions_required",
            Self::TooMany => "too_many_mentions",
            Self::Itself => "cannot_mention_self",
            Self::Duplicate => "duplicate_mentions",
            Self::NotInRoom => "mentioned_participant_not_in_room",
            Self::InvalidKind => "invalid_mention_kind",
            Self::HandleNotFound(_) => "handle_not_found",
            Self::MissingIdentifier => "mention_missing_identifier",
        }
    }
}

/// Resolves the mentions of a message against those who are in the room, in request order.
///
/// # Errors
/// The first rule that is broken; nothing may then be stored.
pub fn resolve(
    sender: IdentityId,
    participants: &[Participant],
    requested: &[Requested],
) -> Result<Vec<Mention>, MentionError> {
    if requested.len() > MENTIONS_MAX {
        return Err(MentionError::TooMany);
    }
    let mut mentions: Vec<Mention> = Vec::with_capacity(requested.len());
    for wanted in requested {
        let reference = match wanted.kind.as_deref() {
            None | Some("mention") => false,
            Some("reference") => true,
            Some(_) => return Err(MentionError::InvalidKind),
        };
        let handle = wanted.handle.as_deref().filter(|handle| !handle::folded(handle).is_empty());
        let found = match (wanted.id, handle) {
            (Some(id), _) => participants.iter().find(|p| p.profile.id == id).ok_or(MentionError::NotInRoom)?,
            (None, Some(handle)) => {
                let folded = handle::folded(handle);
                participants
                    .iter()
                    .find(|p| handle::folded(&p.profile.handle) == folded)
                    .ok_or_else(|| MentionError::HandleNotFound(handle.to_owned()))?
            }
            (None, None) => return Err(MentionError::MissingIdentifier),
        };
        if found.profile.id == sender {
            return Err(MentionError::Itself);
        }
        if mentions.iter().any(|mention| mention.id == found.profile.id) {
            return Err(MentionError::Duplicate);
        }
        mentions.push(Mention {
            id: found.profile.id,
            handle: found.profile.handle.clone(),
            name: found.profile.name.clone(),
            reference,
        });
    }
    if mentions.iter().all(|mention| mention.reference) {
        return Err(MentionError::Required);
    }
    Ok(mentions)
}

/// The agents that a message is delivered to: mentioned, not merely referred to, and not kept out of the room.
/// `participants` and `mentions` are those of [`resolve`].
pub fn recipients<'a>(participants: &'a [Participant], mentions: &[Mention]) -> Vec<&'a Participant> {
    mentions
        .iter()
        .filter(|mention| !mention.reference)
        .filter_map(|mention| participants.iter().find(|p| p.profile.id == mention.id))
        .filter(|p| p.profile.kind == IdentityKind::Agent && p.status != ParticipantStatus::Blocked)
        .collect()
}

/// How a mention stands in stored text.
pub fn token(id: IdentityId) -> String {
    format!("@[[{id}]]")
}

/// The text as it is stored: each mention (not reference) whose token is missing is put in front, in request order;
/// what the sender typed stays as it is.
pub fn normalize(content: &str, mentions: &[Mention]) -> String {
    let present = tokens(content);
    let mut stored = String::with_capacity(content.len() + mentions.len() * 43);
    for mention in mentions {
        if !mention.reference && !present.contains(&mention.id) {
            stored.push_str(&token(mention.id));
            stored.push(' ');
        }
    }
    stored.push_str(content);
    stored
}

/// The ids of all mention tokens in a text, in order.
pub fn tokens(content: &str) -> Vec<IdentityId> {
    pieces(content).filter_map(|piece| if let Piece::Token(id) = piece { Some(id) } else { None }).collect()
}

/// A text without its mention tokens.
pub fn without_tokens(content: &str) -> String {
    pieces(content).filter_map(|piece| if let Piece::Text(text) = piece { Some(text) } else { None }).collect()
}

enum Piece<'a> {
    Text(&'a str),
    Token(IdentityId),
}

/// Cuts a text at its tokens. `@[[` that is no token is text.
fn pieces(content: &str) -> impl Iterator<Item = Piece<'_>> {
    const OPEN: &str = "@[[";
    const UUID: usize = 36;
    let mut rest = content;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut from = 0;
        while let Some(found) = rest[from..].find(OPEN) {
            let start = from + found;
            let id = rest.get(start + OPEN.len()..start + OPEN.len() + UUID);
            let closed = rest.get(start + OPEN.len() + UUID..).is_some_and(|tail| tail.starts_with("]]"));
            match id.filter(|_| closed).and_then(|id| id.parse().ok()) {
                Some(id) if start == 0 => {
                    rest = &rest[OPEN.len() + UUID + 2..];
                    return Some(Piece::Token(id));
                }
                Some(_) => {
                    let (text, tail) = rest.split_at(start);
                    rest = tail;
                    return Some(Piece::Text(text));
                }
                None => from = start + OPEN.len(),
            }
        }
        Some(Piece::Text(std::mem::take(&mut rest)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Profile;
    use crate::membership::Role;
    use bandstand_wire::time::Timestamp;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn id(number: u128) -> IdentityId {
        IdentityId(Uuid::from_u128(number))
    }

    fn participant(number: u128, kind: IdentityKind, handle: &str) -> Participant {
        Participant {
            profile: Profile { id: id(number), kind, handle: handle.into(), name: handle.into(), description: None },
            owner: None,
            role: Role::Member,
            status: Participant::initial_status(kind),
            joined_at: Timestamp::from_micros(0),
            stopped: false,
        }
    }

    fn room() -> Vec<Participant> {
        vec![
            participant(1, IdentityKind::Agent, "ana/writer"),
            participant(2, IdentityKind::Agent, "ana/reviewer"),
            participant(3, IdentityKind::User, "ana"),
        ]
    }

    fn by_id(number: u128) -> Requested {
        Requested { id: Some(id(number)), ..Requested::default() }
    }

    fn by_handle(handle: &str) -> Requested {
        Requested { handle: Some(handle.into()), ..Requested::default() }
    }

    fn kind(kind: &str, requested: Requested) -> Requested {
        Requested { kind: Some(kind.into()), ..requested }
    }

    #[test]
    fn each_refusal_has_its_code() {
        let table = [
            (vec![], "mentions_required"),
            (vec![kind("reference", by_id(2))], "mentions_required"),
            (vec![by_id(1)], "cannot_mention_self"),
            (vec![by_id(2), by_handle("@Ana/Reviewer")], "duplicate_mentions"),
            (vec![by_id(9)], "mentioned_participant_not_in_room"),
            (vec![by_handle("bob")], "handle_not_found"),
            (vec![kind("shout", by_id(2))], "invalid_mention_kind"),
            (vec![Requested::default()], "mention_missing_identifier"),
            (vec![by_handle("")], "mention_missing_identifier"),
            (vec![by_id(2); 501], "too_many_mentions"),
        ];
        for (requested, code) in table {
            assert_eq!(resolve(id(1), &room(), &requested).unwrap_err().code(), code, "{requested:?}");
        }
    }

    #[test]
    fn an_id_wins_over_a_handle_and_order_is_kept() {
        let both = Requested { id: Some(id(3)), handle: Some("ana/reviewer".into()), kind: None };
        let mentions = resolve(id(1), &room(), &[both, by_handle("@ANA/reviewer")]).unwrap();
        assert_eq!(mentions.iter().map(|m| m.id).collect::<Vec<_>>(), [id(3), id(2)]);
    }

    #[test]
    fn only_mentioned_agents_receive() {
        let room = room();
        let mentions = resolve(id(3), &room, &[by_id(1), kind("reference", by_id(2))]).unwrap();
        let recipients = recipients(&room, &mentions);
        assert_eq!(recipients.iter().map(|p| p.profile.id).collect::<Vec<_>>(), [id(1)]);
    }

    #[test]
    fn missing_tokens_go_in_front() {
        let mentions = resolve(id(1), &room(), &[by_id(3), by_id(2)]).unwrap();
        let typed = format!("hello {} and @ana", token(id(2)).to_uppercase());
        assert_eq!(normalize(&typed, &mentions), format!("{} {typed}", token(id(3))));
    }

    proptest! {
        #[test]
        fn cutting_loses_nothing(text in "(@\\[\\[|\\]\\]|[a-z@\\[\\]漢]|@\\[\\[018f0000-0000-7000-8000-000000000000\\]\\]){0,12}") {
            let rebuilt: String = pieces(&text).map(|piece| match piece {
                Piece::Text(text) => text.to_owned(),
                Piece::Token(id) => token(id),
            }).collect();
            prop_assert_eq!(rebuilt, text);
        }

        #[test]
        fn storing_is_idempotent(text in ".{0,60}") {
            let mentions = resolve(id(1), &room(), &[by_id(3), by_id(2)]).unwrap();
            let once = normalize(&text, &mentions);
            prop_assert_eq!(normalize(&once, &mentions), once);
        }
    }
}
