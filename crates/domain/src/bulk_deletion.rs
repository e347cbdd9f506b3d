//! Deleting many rooms or agents by one request, which a background job carries out.

use bandstand_wire::ids::BulkDeletionId;
use bandstand_wire::time::Timestamp;

/// Most things that one request deletes.
pub const ITEMS_MAX: usize = 100;

/// Longest id that a request may name, in characters; one that is no UUID is merely not found.
pub const GIVEN_MAX_CHARACTERS: usize = 255;

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// The number that the database keeps. Never change one: old rows hold it.
            pub fn code(self) -> i64 {
                match self { $(Self::$variant => $code),+ }
            }

            /// Reads [`Self::code`].
            pub fn from_code(code: i64) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

codes! {
    /// What is deleted.
    Resource {
        /// Rooms.
        Room = 0,
        /// Agents.
        Agent = 1,
    }
}

codes! {
    /// How far a job is.
    JobStatus {
        /// Accepted.
        Queued = 0,
        /// Begun.
        Processing = 1,
        /// Every item has its result, be it a refusal.
        Completed = 2,
        /// Stopped at an item that the server could not delete; nothing after it was tried.
        Failed = 3,
    }
}

impl JobStatus {
    /// The word that travels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// Whether there is nothing left to do.
    pub fn is_over(self) -> bool {
        match self {
            Self::Queued | Self::Processing => false,
            Self::Completed | Self::Failed => true,
        }
    }
}

codes! {
    /// Why an item was not deleted.
    Refusal {
        /// There is none of this id that the user may know of, or it is gone by now.
        NotFound = 0,
        /// The user may see it but not delete it.
        Forbidden = 1,
        /// The agent worked, and the request did not say `force`.
        HistoryExists = 2,
        /// The server could not delete it: the job stopped here.
        DeleteFailed = 3,
        /// The job stopped before it came to this one.
        NotAttempted = 4,
    }
}

impl Refusal {
    /// The code that travels.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Forbidden => "forbidden",
            Self::HistoryExists => "execution_history_exists",
            Self::DeleteFailed => "delete_failed",
            Self::NotAttempted => "not_attempted",
        }
    }

    /// The same for people.
    pub fn message(self) -> &'static str {
        match self {
            Self::NotFound => "not found",
            Self::Forbidden => "you may not delete this",
            Self::HistoryExists => "the agent has execution history; pass force=true to delete it all the same",
            Self::DeleteFailed => "the server could not delete this, and stopped here",
            Self::NotAttempted => "not attempted, because an earlier one failed",
        }
    }
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not yet its turn.
    Pending,
    /// Deleted.
    Succeeded,
    /// Not deleted.
    Failed(Refusal),
}

/// One thing to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The id as the request gave it.
    pub given: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// A request to delete many things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkDeletion {
    /// Which.
    pub id: BulkDeletionId,
    /// What it deletes.
    pub resource: Resource,
    /// Whether agents are deleted even if they worked.
    pub force: bool,
    /// How far it is.
    pub status: JobStatus,
    /// In the order of the request.
    pub items: Vec<Item>,
    /// When it was accepted.
    pub inserted_at: Timestamp,
    /// When its first item was taken up.
    pub started_at: Option<Timestamp>,
    /// When its last item had its result.
    pub completed_at: Option<Timestamp>,
}

/// How many items of a job have which outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Deleted.
    pub succeeded: usize,
    /// Not deleted.
    pub failed: usize,
}

impl BulkDeletion {
    /// Counts outcomes.
    pub fn counts(&self) -> Counts {
        self.items.iter().fold(Counts::default(), |counts, item| match item.outcome {
            Outcome::Pending => counts,
            Outcome::Succeeded => Counts { succeeded: counts.succeeded + 1, ..counts },
            Outcome::Failed(_) => Counts { failed: counts.failed + 1, ..counts },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_read_back() {
        for code in 0..10 {
            assert!(Resource::from_code(code).is_none_or(|one| one.code() == code));
            assert!(JobStatus::from_code(code).is_none_or(|one| one.code() == code));
            assert!(Refusal::from_code(code).is_none_or(|one| one.code() == code));
        }
        assert_eq!((Resource::from_code(2), JobStatus::from_code(4), Refusal::from_code(5)), (None, None, None));
    }

    #[test]
    fn what_is_pending_counts_for_nothing() {
        let item = |outcome| Item { given: "x".into(), outcome };
        let job = BulkDeletion {
            id: BulkDeletionId(uuid::Uuid::nil()),
            resource: Resource::Room,
            force: false,
            status: JobStatus::Processing,
            items: vec![
                item(Outcome::Succeeded),
                item(Outcome::Failed(Refusal::NotFound)),
                item(Outcome::Succeeded),
                item(Outcome::Pending),
            ],
            inserted_at: Timestamp::from_micros(0),
            started_at: None,
            completed_at: None,
        };
        assert_eq!(job.counts(), Counts { succeeded: 2, failed: 1 });
        assert!(JobStatus::Failed.is_over() && !job.status.is_over());
    }
}
