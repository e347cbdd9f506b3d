//! What those in a room hear of its task board: the REST objects, people and agents alike.

use bandstand_domain::board::Board;
use bandstand_domain::task::Task;
use bandstand_wire::push::event;

use super::tell;
use crate::render;
use crate::socket::hub::Shared;

pub(super) fn task_created(shared: &Shared, task: &Task) {
    to_participants(shared, event::TASK_CREATED, task);
}

pub(super) fn task_updated(shared: &Shared, task: &Task) {
    to_participants(shared, event::TASK_UPDATED, task);
}

fn to_participants(shared: &Shared, event: &'static str, task: &Task) {
    shared.rooms.with(task.room, |room| tell(room.tasks.all(), event, || render::board::task(task)));
}

pub(super) fn board_updated(shared: &Shared, board: &Board) {
    let listeners = |room: &mut crate::socket::rooms::Room| {
        tell(room.tasks.all(), event::BOARD_UPDATED, || render::board::board(board));
    };
    shared.rooms.with(board.room, listeners);
}
