//! A room's goal, and what people see of a room because of its board.

use bandstand_domain::board::{Board, BoardEventKind, GoalUpdate, Overview};
use bandstand_domain::event::Event;
use bandstand_domain::task::{Actor, HISTORY_SHOWN, HistoryRow};
use bandstand_store::{StoreError, boards, rooms};
use bandstand_wire::ids::RoomId;

use crate::auth::Caller;
use crate::service::tasks::{TaskError, place, shown, writable};
use crate::state::Services;

/// A board with the newest rows of its goal's trail, oldest first, where they were asked for.
#[derive(Clone, Debug)]
pub struct ShownBoard {
    /// The board.
    pub board: Board,
    /// The rows, and whether there are older ones.
    pub trail: Option<(Vec<HistoryRow<BoardEventKind>>, bool)>,
}

impl Services {
    /// A room's board, with the newest rows of its goal's trail if they are asked for.
    ///
    /// # Errors
    /// [`TaskError`].
    pub async fn board(&self, caller: Caller, room: RoomId, with_trail: bool) -> Result<ShownBoard, TaskError> {
        self.store
            .read("board", move |tx| {
                Box::pin(async move {
                    let access = place(tx, caller, room).await?;
                    let board = boards::board(tx, room, access.room_key).await?;
                    let trail = if with_trail {
                        Some(shown(boards::trail(tx, access.room_key, HISTORY_SHOWN + 1).await?))
                    } else {
                        None
                    };
                    Ok(ShownBoard { board, trail })
                })
            })
            .await
    }

    /// Saves what the caller says of a room's goal. A save that changes nothing leaves everything as it was.
    ///
    /// # Errors
    /// [`TaskError`]; then nothing is stored.
    pub async fn set_goal(&self, caller: Caller, room: RoomId, update: GoalUpdate) -> Result<Board, TaskError> {
        let at = self.clock.now();
        self.store
            .write("set_goal", move |tx| {
                Box::pin(async move {
                    let (access, _) = writable(tx, caller, room).await?;
                    let before = boards::board(tx, room, access.room_key).await?;
                    let by = Actor::from(&access.member);
                    let Some((goal, event)) = before.set_goal(&by, update, at) else { return Ok(before) };
                    boards::save_goal(tx, access.room_key, access.member_key, &goal, &event).await?;
                    let board = Board { room, goal: Some(goal) };
                    tx.emit(Event::BoardUpdated { board: board.clone() });
                    Ok(board)
                })
            })
            .await
    }

    /// What people see of a room besides the room itself; `None` while tasks are off, or when the room is gone.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn overview(&self, room: RoomId) -> Result<Option<Overview>, StoreError> {
        if !self.limits.tasks {
            return Ok(None);
        }
        self.store
            .read("overview", move |tx| {
                Box::pin(async move {
                    let Some(key) = rooms::key(tx, room).await? else { return Ok(None) };
                    boards::overview(tx, key).await.map(Some)
                })
            })
            .await
    }
}
