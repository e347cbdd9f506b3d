//! Signals to agents, and what they hear again once they may go on.

use std::sync::Arc;

use bandstand_domain::execution::{Addressee, ControlMode, Signal};
use bandstand_domain::message::Message;
use bandstand_wire::ids::{IdentityId, RoomId};
use bandstand_wire::push::{AgentControl, event};

use super::{count, json};
use crate::render;
use crate::socket::hub::Shared;
use crate::socket::outbound::Mark;
use crate::socket::{activity, locked};

/// Each agent is told on the control channel of its live connection, if it has one.
pub(super) fn signalled(shared: &Shared, signal: Signal, agents: &[Addressee]) {
    let mut told = 0;
    for addressee in agents {
        let directory = locked(&shared.directory);
        let Some(channel) = directory.control_channel(addressee.agent) else { continue };
        let Some(payload) = json(&payload(signal, *addressee)) else { continue };
        channel.push(event::AGENT_CONTROL, &payload, None);
        told += 1;
    }
    count(told);
    if let (ControlMode::Stop, Some(room)) = (signal.mode, signal.room) {
        no_longer_work(shared, room, agents);
    }
}

fn payload(signal: Signal, addressee: Addressee) -> AgentControl {
    AgentControl {
        mode: signal.mode.as_str(),
        scope: if signal.room.is_some() { "room" } else { "agent" },
        agent_id: addressee.agent,
        execution_id: addressee.execution,
        room_id: signal.room,
        correlation_id: signal.correlation,
    }
}

/// Who is stopped does not work; people need not wait for its report to expire.
fn no_longer_work(shared: &Shared, room: RoomId, agents: &[Addressee]) {
    shared.rooms.with(room, |state| {
        let ended = agents.iter().filter(|one| activity::end(&mut state.working, one.agent)).count();
        if ended > 0 {
            activity::announce(state);
        }
    });
}

/// A message that was held back from these agents. Only they hear it: people did when it was posted.
pub(super) fn replayed(shared: &Shared, message: &Message, agents: &[IdentityId]) {
    shared.rooms.with(message.room, |room| {
        let mut listeners = agents.iter().flat_map(|agent| room.chat.agent(*agent)).peekable();
        if listeners.peek().is_none() {
            return;
        }
        let Some(payload) = json(&render::message(message)) else { return };
        let mark = Mark { room: message.room, sequence: message.sequence };
        let mut told = 0;
        for listener in listeners {
            listener.push(event::MESSAGE_CREATED, &Arc::clone(&payload), Some(mark));
            told += 1;
        }
        count(told);
    });
}
