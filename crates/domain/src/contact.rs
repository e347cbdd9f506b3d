//! Contacts: who knows whom with consent, and the rules of asking for it. A contact is mutual: one approval makes both
//! sides, one removal ends both.

use bandstand_wire::ids::{ContactId, ContactRequestId, IdentityId, IdentityKind};
use bandstand_wire::time::Timestamp;

use crate::identity::Profile;
use crate::room::words;

words! {
    /// What became of a request. Everything but the first is final.
    RequestStatus {
        /// Not answered yet.
        Pending = "pending",
        /// The two are contacts since.
        Approved = "approved",
        /// The recipient declined.
        Rejected = "rejected",
        /// Nobody answered in time. Requests do not expire by themselves here; the word is the platform's.
        Expired = "expired",
        /// The requester took it back, or one of the two was deleted.
        Cancelled = "cancelled",
    }
}

words! {
    /// What one of the two does to a pending request.
    Answer {
        /// The recipient consents.
        Approve = "approve",
        /// The recipient declines.
        Reject = "reject",
        /// The requester takes it back.
        Cancel = "cancel",
    }
}

impl Answer {
    /// Whose answer it is.
    pub fn side(self) -> Side {
        match self {
            Self::Approve | Self::Reject => Side::Recipient,
            Self::Cancel => Side::Requester,
        }
    }

    /// What becomes of the request.
    pub fn status(self) -> RequestStatus {
        match self {
            Self::Approve => RequestStatus::Approved,
            Self::Reject => RequestStatus::Rejected,
            Self::Cancel => RequestStatus::Cancelled,
        }
    }
}

/// Which of the two of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Who asked.
    Requester,
    /// Who was asked.
    Recipient,
}

/// One of the two of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// Who.
    pub id: IdentityId,
    /// Person or program.
    pub kind: IdentityKind,
    /// Without `@`. `None` when it was deleted: the handle may be somebody else's by now.
    pub handle: Option<String>,
    /// Its name.
    pub name: String,
}

/// Somebody asks somebody to become contacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContactRequest {
    /// Which.
    pub id: ContactRequestId,
    /// Who asks.
    pub requester: Party,
    /// Who is asked.
    pub recipient: Party,
    /// What became of it.
    pub status: RequestStatus,
    /// What the requester says of itself.
    pub message: Option<String>,
    /// When it was made.
    pub inserted_at: Timestamp,
    /// When it stopped being pending.
    pub responded_at: Option<Timestamp>,
}

/// A contact as one of the two has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The record; the other side has another one.
    pub id: ContactId,
    /// Who it is.
    pub profile: Profile,
    /// A person's e-mail address, which only contacts learn.
    pub email: Option<String>,
    /// Whether it is in the public directory.
    pub listed_in_directory: bool,
    /// Since when.
    pub inserted_at: Timestamp,
}

/// Longest message of a request, in characters.
pub const MESSAGE_MAX_CHARACTERS: usize = 500;

/// Why the message of a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Longer than [`MESSAGE_MAX_CHARACTERS`].
    #[error("should be at most 500 character(s)")]
    TooLong,
    /// Holds a character that PostgreSQL cannot store.
    #[error("must not contain the character NUL")]
    Nul,
}

/// Checks the message of a request; one that nobody can see is none.
///
/// # Errors
/// [`MessageError`].
pub fn message(text: &str) -> Result<Option<&str>, MessageError> {
    if text.contains('\0') {
        return Err(MessageError::Nul);
    }
    if text.chars().count() > MESSAGE_MAX_CHARACTERS {
        return Err(MessageError::TooLong);
    }
    Ok(crate::content::is_visible(text).then_some(text))
}

/// How two stand to each other, as seen by the one who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They are one and the same.
    Same,
    /// They are contacts.
    Contacts,
    /// There is a pending request, and this is the asker's side in it.
    Open(Side),
    /// Nothing of all that.
    Strangers,
}

/// What asking comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// A new request, which waits for an answer.
    Request,
    /// Approval of the other's request: both want it.
    Approve,
}

/// Why somebody cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Nobody is its own contact.
    #[error("you cannot be a contact of yourself")]
    Myself,
    /// Nothing to ask for.
    #[error("you are contacts already")]
    AlreadyContacts,
    /// It was asked before and has not answered.
    #[error("a contact request to this handle is pending already")]
    AlreadyPending,
}

/// What it comes to when one asks the other to become contacts.
///
/// # Errors
/// [`AskError`].
pub fn ask(relation: Relation) -> Result<Asking, AskError> {
    match relation {
        Relation::Same => Err(AskError::Myself),
        Relation::Contacts => Err(AskError::AlreadyContacts),
        Relation::Open(Side::Requester) => Err(AskError::AlreadyPending),
        Relation::Open(Side::Recipient) => Ok(Asking::Approve),
        Relation::Strangers => Ok(Asking::Request),
    }
}

/// Why a request cannot be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The other one of the two may do this.
    #[error("only the {} of a contact request may {} it", side_name(.0.side()), .0.as_str())]
    WrongSide(Answer),
    /// It was answered before.
    #[error("the contact request is {} already", .0.as_str())]
    Resolved(RequestStatus),
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Requester => "requester",
        Side::Recipient => "recipient",
    }
}

/// What becomes of a request in this status when the one on this side answers it so. Who may answer is looked at
/// before what became of the request.
///
/// # Errors
/// [`AnswerError`].
pub fn answer(status: RequestStatus, side: Side, answer: Answer) -> Result<RequestStatus, AnswerError> {
    if side != answer.side() {
        return Err(AnswerError::WrongSide(answer));
    }
    match status {
        RequestStatus::Pending => Ok(answer.status()),
        RequestStatus::Approved | RequestStatus::Rejected | RequestStatus::Expired | RequestStatus::Cancelled => {
            Err(AnswerError::Resolved(status))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;

    #[test]
    fn the_table_of_asking() {
        for (relation, said) in [
            (Relation::Same, Err(AskError::Myself)),
            (Relation::Contacts, Err(AskError::AlreadyContacts)),
            (Relation::Open(Side::Requester), Err(AskError::AlreadyPending)),
            (Relation::Open(Side::Recipient), Ok(Asking::Approve)),
            (Relation::Strangers, Ok(Asking::Request)),
        ] {
            assert_eq!(ask(relation), said, "{relation:?}");
        }
    }

    #[test]
    fn the_table_of_answers() {
        use {Answer::*, RequestStatus::*, Side::*};
        for (status, side, given, said) in [
            (Pending, Recipient, Approve, Ok(Approved)),
            (Pending, Recipient, Reject, Ok(Rejected)),
            (Pending, Requester, Cancel, Ok(Cancelled)),
            (Pending, Requester, Approve, Err(AnswerError::WrongSide(Approve))),
            (Pending, Requester, Reject, Err(AnswerError::WrongSide(Reject))),
            (Pending, Recipient, Cancel, Err(AnswerError::WrongSide(Cancel))),
            (Approved, Recipient, Approve, Err(AnswerError::Resolved(Approved))),
            (Rejected, Recipient, Approve, Err(AnswerError::Resolved(Rejected))),
            (Cancelled, Requester, Cancel, Err(AnswerError::Resolved(Cancelled))),
            (Expired, Recipient, Reject, Err(AnswerError::Resolved(Expired))),
            // The side comes first: what became of it changes nothing about who may.
            (Approved, Requester, Approve, Err(AnswerError::WrongSide(Approve))),
        ] {
            assert_eq!(answer(status, side, given), said, "{status:?} {side:?} {given:?}");
        }
        assert_eq!(
            AnswerError::WrongSide(Cancel).to_string(),
            "only the requester of a contact request may cancel it",
            "what the client reads"
        );
        assert_eq!(AnswerError::Resolved(Approved).to_string(), "the contact request is approved already");
    }

    #[test]
    fn a_message_is_short_and_visible() {
        assert_eq!(message("hi\nthere"), Ok(Some("hi\nthere")));
        for blank in ["", "  \n", "\u{200b}"] {
            assert_eq!(message(blank), Ok(None), "{blank:?}");
        }
        let longest = "ü".repeat(MESSAGE_MAX_CHARACTERS);
        assert_eq!(message(&longest), Ok(Some(longest.as_str())));
        assert_eq!(message(&format!("{longest}ü")), Err(MessageError::TooLong));
        assert_eq!(message("a\0b"), Err(MessageError::Nul));
    }

    proptest! {
        /// A request is answered once, by the one whose answer it is, and stays what it became.
        #[test]
        fn a_request_is_answered_once(
            answers in prop::collection::vec((select(vec![Side::Requester, Side::Recipient]), select(Answer::ALL)), 0..12),
        ) {
            let mut status = RequestStatus::Pending;
            let mut answered = 0;
            for (side, given) in answers {
                if let Ok(next) = answer(status, side, given) {
                    prop_assert_eq!((side, next), (given.side(), given.status()));
                    (status, answered) = (next, answered + 1);
                }
            }
            prop_assert!(answered <= 1);
            prop_assert_eq!(answered == 0, status == RequestStatus::Pending);
        }
    }
}
