//! A room's board: the goal of the room with its trail, how many active tasks are how far, and what people see of a room
//! because of it.

use bandstand_wire::ids::RoomId;
use bandstand_wire::time::Timestamp;
use serde::Serialize;

use crate::content::is_visible;
use crate::identity::Profile;
use crate::room::words;
use crate::task::{self, Actor, FromTo, TaskStatus, TextFault};

/// A room's goal: the mission of those in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// The mission in a line.
    pub title: Option<String>,
    /// The mission in a paragraph.
    pub summary: Option<String>,
    /// Who set it first.
    pub created_by: Actor,
    /// Who changed it last.
    pub updated_by: Actor,
    /// When it was first set.
    pub inserted_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A room's board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Board {
    /// Which room.
    pub room: RoomId,
    /// The goal; `None` until one is set.
    pub goal: Option<Goal>,
}

/// What a participant saves of the goal: `None` stays, `Some(None)` is taken away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoalUpdate {
    /// The title.
    pub title: Option<Option<String>>,
    /// The summary.
    pub summary: Option<Option<String>>,
}

/// Trims and checks a goal's title or summary of at most `most` characters; blank means none.
///
/// # Errors
/// [`TextFault`].
pub fn goal_text(text: &str, most: usize) -> Result<Option<String>, TextFault> {
    let text = text.trim();
    task::check(text, most)?;
    Ok(is_visible(text).then(|| text.to_owned()))
}

words! {
    /// What a row of a goal's trail tells.
    BoardEventKind {
        /// The goal was set for the first time.
        GoalSet = "goal_set",
        /// It was changed.
        GoalEdited = "goal_edited",
    }
}

/// The fields of a goal that a save changed. Written as JSON it is the row's `payload` on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GoalChange {
    /// The title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal_title: Option<FromTo<Option<String>>>,
    /// The summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal_summary: Option<FromTo<Option<String>>>,
}

/// A row of a goal's trail that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardEvent {
    /// What it tells.
    pub kind: BoardEventKind,
    /// What changed.
    pub change: GoalChange,
    /// Who did it.
    pub actor: Actor,
    /// When.
    pub at: Timestamp,
}

impl Board {
    /// Saves what `by` says of the goal: the goal as it is now and the row of its trail. `None` when nothing changes.
    pub fn set_goal(&self, by: &Actor, update: GoalUpdate, at: Timestamp) -> Option<(Goal, BoardEvent)> {
        fn put(before: Option<&String>, update: Option<Option<String>>) -> Option<FromTo<Option<String>>> {
            let change = FromTo { from: before.cloned(), to: update? };
            (change.from != change.to).then_some(change)
        }
        let before = self.goal.as_ref();
        let goal_title = put(before.and_then(|goal| goal.title.as_ref()), update.title);
        let goal_summary = put(before.and_then(|goal| goal.summary.as_ref()), update.summary);
        if goal_title.is_none() && goal_summary.is_none() {
            return None;
        }
        let unset = Goal {
            title: None,
            summary: None,
            created_by: by.clone(),
            updated_by: by.clone(),
            inserted_at: at,
            updated_at: at,
        };
        let mut goal = Goal { updated_by: by.clone(), updated_at: at, ..before.cloned().unwrap_or(unset) };
        if let Some(change) = &goal_title {
            goal.title.clone_from(&change.to);
        }
        if let Some(change) = &goal_summary {
            goal.summary.clone_from(&change.to);
        }
        let kind = if before.is_none() { BoardEventKind::GoalSet } else { BoardEventKind::GoalEdited };
        let event = BoardEvent { kind, change: GoalChange { goal_title, goal_summary }, actor: by.clone(), at };
        Some((goal, event))
    }
}

/// How many active tasks of a room have which status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounts([i64; TaskStatus::ALL.len()]);

impl TaskCounts {
    /// From the numbers in the order of [`TaskStatus::ALL`].
    pub fn new(counts: [i64; TaskStatus::ALL.len()]) -> Self {
        Self(counts)
    }

    /// How many have this status.
    pub fn of(&self, status: TaskStatus) -> i64 {
        TaskStatus::ALL.iter().zip(self.0).filter(|(other, _)| **other == status).map(|(_, count)| count).sum()
    }
}

words! {
    /// What the agents of a room are up to, in one word.
    WorkStatus {
        /// Nothing.
        Idle = "idle",
        /// One of them works.
        Working = "working",
        /// One of them was stopped.
        Stopped = "stopped",
        /// One of them could not do what it was asked.
        Failed = "failed",
    }
}

/// What people see of a room besides the room itself, while tasks are on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// Its agents, in the order of joining.
    pub agents: Vec<Profile>,
    /// How many active tasks have which status.
    pub task_counts: TaskCounts,
    /// Whether one of its agents is stopped in it.
    pub stopped: bool,
    /// Whether one of its agents has a message that it failed and did not take up again.
    pub failed: bool,
}

impl Overview {
    /// What its agents are up to; `working` says whether one of them reports that it works just now. What needs a person
    /// counts first.
    pub fn work_status(&self, working: bool) -> WorkStatus {
        if self.stopped {
            WorkStatus::Stopped
        } else if self.failed {
            WorkStatus::Failed
        } else if working {
            WorkStatus::Working
        } else {
            WorkStatus::Idle
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bandstand_wire::ids::{IdentityId, IdentityKind};
    use proptest::prelude::*;
    use uuid::Uuid;

    fn actor(number: u128) -> Actor {
        Actor {
            id: IdentityId(Uuid::from_u128(number)),
            kind: IdentityKind::Agent,
            name: format!("A{number}"),
            handle: format!("o/a{number}"),
        }
    }

    fn unset() -> Board {
        Board { room: RoomId(Uuid::from_u128(1)), goal: None }
    }

    fn text() -> impl Strategy<Value = Option<String>> {
        prop::option::of("[ab]{0,1}".prop_map(String::from))
    }

    #[test]
    fn only_what_changed_is_told_and_the_first_save_sets() {
        let (ana, bob) = (actor(1), actor(2));
        let update = GoalUpdate { title: Some(Some("Ship".into())), summary: None };
        let (goal, first) = unset().set_goal(&ana, update.clone(), Timestamp::from_micros(1)).unwrap();
        assert_eq!(first.kind, BoardEventKind::GoalSet);
        assert_eq!(serde_json::to_string(&first.change).unwrap(), r#"{"goal_title":{"from":null,"to":"Ship"}}"#);
        let board = Board { goal: Some(goal), ..unset() };
        assert_eq!(board.set_goal(&bob, update, Timestamp::from_micros(2)), None);
        let update = GoalUpdate { title: Some(None), summary: Some(Some("All of it".into())) };
        let (goal, second) = board.set_goal(&bob, update, Timestamp::from_micros(3)).unwrap();
        assert_eq!(second.kind, BoardEventKind::GoalEdited);
        assert_eq!(
            serde_json::to_string(&second.change).unwrap(),
            r#"{"goal_title":{"from":"Ship","to":null},"goal_summary":{"from":null,"to":"All of it"}}"#
        );
        assert_eq!((goal.created_by, goal.updated_by), (ana, bob));
        assert_eq!((goal.inserted_at, goal.updated_at), (Timestamp::from_micros(1), Timestamp::from_micros(3)));
    }

    proptest! {
        #[test]
        fn the_trail_replays_to_the_goal(saves in prop::collection::vec((prop::option::of(text()), prop::option::of(text())), 0..12)) {
            let (mut board, mut replayed) = (unset(), (None, None));
            for (at, (title, summary)) in (1..).zip(saves) {
                let update = GoalUpdate { title, summary };
                let Some((next, event)) = board.set_goal(&actor(1), update, Timestamp::from_micros(at)) else { continue };
                for (field, change) in [(&mut replayed.0, event.change.goal_title), (&mut replayed.1, event.change.goal_summary)] {
                    if let Some(FromTo { from, to }) = change {
                        prop_assert_eq!(&*field, &from);
                        *field = to;
                    }
                }
                board.goal = Some(next);
            }
            let now = board.goal.map_or((None, None), |goal| (goal.title, goal.summary));
            prop_assert_eq!(replayed, now);
        }
    }

    #[test]
    fn what_needs_a_person_counts_first() {
        let overview = |stopped, failed| Overview { stopped, failed, ..Overview::default() };
        assert_eq!(overview(true, true).work_status(true), WorkStatus::Stopped);
        assert_eq!(overview(false, true).work_status(true), WorkStatus::Failed);
        assert_eq!(overview(false, false).work_status(true), WorkStatus::Working);
        assert_eq!(overview(false, false).work_status(false), WorkStatus::Idle);
    }
}
