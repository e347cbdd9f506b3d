//! Stopping a room's agents, letting them go on, interrupting one, and what their work is in each room.

use std::collections::BTreeMap;

use bandstand_domain::event::Event;
use bandstand_domain::execution::{Addressee, ControlMode, Execution, Signal};
use bandstand_domain::membership::Role;
use bandstand_store::executions::{self, BATCH, Stop};
use bandstand_store::participants::Access;
use bandstand_store::{Reader, StoreError, Writer, identities, messages, participants, rooms};
use bandstand_wire::ids::{ExecutionId, IdentityId, RoomId};

use crate::auth::Caller;
use crate::service::rooms::updated;
use crate::state::Services;

/// Most messages that an agent is told again when it may go on. What is beyond it finds through `/messages/next`, as
/// after a reconnect.
const REPLAY: i64 = 100;

/// Most bytes of them that one operation reads: half of what may wait for one socket.
const REPLAY_BYTES: usize = 4 * 1024 * 1024;

/// Messages that are read at a time, so that large ones are not all in memory before they are counted.
const REPLAY_READ: usize = 10;

/// Why a signal is refused.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No such room or agent, or the caller may not know of it, or the agent has no such execution.
    #[error("not found")]
    NotFound,
    /// Only an owner of the room stops its agents.
    #[error("only an owner of the room may do this")]
    NotOwner,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a person tells all agents of a room.
#[derive(Clone, Copy, Debug)]
enum RoomSignal {
    Stop,
    Play,
}

impl RoomSignal {
    fn mode(self) -> ControlMode {
        match self {
            Self::Stop => ControlMode::Stop,
            Self::Play => ControlMode::Play,
        }
    }
}

impl Services {
    /// Stops the agents that are in a room now. Until they may go on, they hear nothing of it and may neither take up
    /// work nor post. Those that are stopped already are told again, and nothing else changes for them.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn stop_agents(&self, caller: Caller, room: RoomId) -> Result<(), ControlError> {
        self.signal_room(caller, room, RoomSignal::Stop).await
    }

    /// Lets the agents of a room go on, and tells each that was stopped what it missed meanwhile.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn play_agents(&self, caller: Caller, room: RoomId) -> Result<(), ControlError> {
        self.signal_room(caller, room, RoomSignal::Play).await
    }

    /// One transaction for some hundred agents, so nearly always one in all.
    async fn signal_room(&self, caller: Caller, room: RoomId, what: RoomSignal) -> Result<(), ControlError> {
        let (now, signal) =
            (self.clock.now(), Signal { mode: what.mode(), room: Some(room), correlation: self.ids.uuid() });
        let mut after = 0;
        loop {
            let done: Option<i64> = self
                .store
                .write("signal_room", move |tx| {
                    Box::pin(async move {
                        let advanced = rooms::advance(tx, room).await?.ok_or(ControlError::NotFound)?;
                        let access = owned(tx, caller, room).await?;
                        let done = match what {
                            RoomSignal::Stop => {
                                let stop = Stop { sequence: advanced.sequence, by_key: access.member_key, at: now };
                                stop_some(tx, advanced.key, after, stop, signal).await?
                            }
                            RoomSignal::Play => play_some(tx, room, advanced.key, after, signal).await?,
                        };
                        if done.changed {
                            updated::<StoreError>(tx, advanced.key, access.room).await?;
                        }
                        Ok::<_, ControlError>(done.more_after)
                    })
                })
                .await?;
            match done {
                Some(last) => after = last,
                None => return Ok(()),
            }
        }
    }

    /// The executions of a user's agent, in the newest rooms first, each with the position that a cursor needs.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn executions(
        &self,
        owner: IdentityId,
        agent: IdentityId,
        before: Option<i64>,
        limit: i64,
    ) -> Result<Vec<(Execution, i64)>, ControlError> {
        self.store
            .read("executions", move |tx| {
                Box::pin(async move {
                    own_agent(tx, owner, agent).await?;
                    Ok(executions::of_agent(tx, agent, before.unwrap_or(i64::MAX), limit).await?)
                })
            })
            .await
    }

    /// Interrupts a user's agent: it gives up whatever turn it is in, in all its rooms. The execution only names it.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn interrupt_agent(
        &self,
        owner: IdentityId,
        agent: IdentityId,
        execution: ExecutionId,
    ) -> Result<(), ControlError> {
        let signal = Signal { mode: ControlMode::Interrupt, room: None, correlation: self.ids.uuid() };
        self.store
            .write("interrupt_agent", move |tx| {
                Box::pin(async move {
                    own_agent(tx, owner, agent).await?;
                    if !executions::exists(tx, agent, execution).await? {
                        return Err(ControlError::NotFound);
                    }
                    let agents = vec![Addressee { agent, execution: Some(execution) }];
                    tx.emit(Event::AgentsSignalled { signal, agents });
                    Ok(())
                })
            })
            .await
    }
}

/// The caller's place in a room that it owns.
async fn owned(tx: &mut Reader, caller: Caller, room: RoomId) -> Result<Access, ControlError> {
    let access = participants::access(tx, caller.identity, caller.kind, room).await?;
    let access = access.ok_or(ControlError::NotFound)?;
    match access.membership {
        Some(own) if own.role == Role::Owner => Ok(access),
        _ => Err(ControlError::NotOwner),
    }
}

async fn own_agent(tx: &mut Reader, owner: IdentityId, agent: IdentityId) -> Result<(), ControlError> {
    let found = identities::agent(tx, agent).await?.filter(|agent| agent.owner == owner);
    found.map(drop).ok_or(ControlError::NotFound)
}

/// What a batch of agents came to.
struct Batch {
    /// Somebody was stopped, or may go on.
    changed: bool,
    /// The last agent's key, if more may follow.
    more_after: Option<i64>,
}

/// Stops a batch of agents after key `after`.
async fn stop_some(
    tx: &mut Writer,
    room_key: i64,
    after: i64,
    stop: Stop,
    signal: Signal,
) -> Result<Batch, StoreError> {
    let agents = executions::of_room(tx, room_key, after, BATCH).await?;
    let Some(last) = agents.last().map(|agent| agent.member_key) else {
        return Ok(Batch { changed: false, more_after: None });
    };
    let changed = executions::stop(tx, room_key, after, last, stop).await? > 0;
    let full = i64::try_from(agents.len()).is_ok_and(|count| count >= BATCH);
    tx.emit(Event::AgentsSignalled { signal, agents: agents.into_iter().map(|agent| agent.addressee).collect() });
    Ok(Batch { changed, more_after: full.then_some(last) })
}

/// Lets a batch of agents after key `after` go on: as many as there are, or as what they missed may be read for at
/// once. In the same transaction, so that nothing newer is heard before what was missed.
async fn play_some(
    tx: &mut Writer,
    room: RoomId,
    room_key: i64,
    after: i64,
    signal: Signal,
) -> Result<Batch, StoreError> {
    let agents = executions::of_room(tx, room_key, after, BATCH).await?;
    let mut missed: BTreeMap<i64, Vec<IdentityId>> = BTreeMap::new();
    let mut addressees = Vec::with_capacity(agents.len());
    let (mut last, mut deliveries) = (after, 0);
    for agent in &agents {
        if let Some(stopped) = agent.stopped_sequence {
            let sequences = executions::missed(tx, room_key, agent.member_key, stopped, REPLAY).await?;
            deliveries += i64::try_from(sequences.len()).unwrap_or(BATCH);
            if deliveries > BATCH {
                break;
            }
            for sequence in sequences {
                missed.entry(sequence).or_default().push(agent.addressee.agent);
            }
        }
        addressees.push(agent.addressee);
        last = agent.member_key;
    }
    let all = i64::try_from(agents.len()).is_ok_and(|count| count < BATCH) && addressees.len() == agents.len();
    let changed = executions::resume(tx, room_key, after, last).await? > 0;
    if !addressees.is_empty() {
        tx.emit(Event::AgentsSignalled { signal, agents: addressees });
    }
    replay(tx, room, room_key, missed).await?;
    Ok(Batch { changed, more_after: (!all).then_some(last) })
}

/// Announces messages to those who missed them, oldest first.
async fn replay(
    tx: &mut Writer,
    room: RoomId,
    room_key: i64,
    mut missed: BTreeMap<i64, Vec<IdentityId>>,
) -> Result<(), StoreError> {
    let sequences: Vec<i64> = missed.keys().copied().collect();
    let mut bytes = 0;
    for some in sequences.chunks(REPLAY_READ) {
        for message in messages::at(tx, room, room_key, some).await? {
            bytes += message.content.len();
            if bytes > REPLAY_BYTES {
                return Ok(());
            }
            let agents = missed.remove(&message.sequence).unwrap_or_default();
            tx.emit(Event::MessageReplayed { message, agents });
        }
    }
    Ok(())
}
