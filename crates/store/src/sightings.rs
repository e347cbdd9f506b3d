//! What servers saw of agents, and the runs of servers that saw it.

use bandstand_wire::ids::{IdentityId, RoomId};
use bandstand_wire::time::Timestamp;

use crate::{Param, StoreError, Writer, params};

/// What one run of a server saw of an agent. What it did not see stays as it was written before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Which agent.
    pub agent: IdentityId,
    /// Since when it is connected, the newest time, and when that ended.
    pub connected: Option<(Timestamp, Option<Timestamp>)>,
    /// When a newer connection replaced an older one.
    pub superseded_at: Option<Timestamp>,
    /// The first and the last refusal for too many requests, and when it may come back.
    pub limited: Option<[Timestamp; 3]>,
}

/// Begins a run. Every earlier one that did not say that it ended is over as well, because data has one owner at a
/// time; the key of the new one.
pub async fn begin_run(tx: &mut Writer, at: Timestamp) -> Result<i64, StoreError> {
    const FIND: &str = "UPDATE runs SET found_at = ?1 WHERE ended_at IS NULL AND found_at IS NULL";
    const BEGIN: &str = "INSERT INTO runs (started_at, alive_at) VALUES (?1, ?1) RETURNING key";
    tx.execute(FIND, params![at.as_micros()]).await?;
    tx.query_one(BEGIN, params![at.as_micros()]).await?.int(0)
}

/// Notes that a run goes on.
pub async fn alive(tx: &mut Writer, run: i64, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE runs SET alive_at = ?2 WHERE key = ?1";
    tx.execute(SQL, params![run, at.as_micros()]).await.map(drop)
}

/// Notes that a run ends, with all its connections closed.
pub async fn end_run(tx: &mut Writer, run: i64, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE runs SET alive_at = ?2, ended_at = ?2 WHERE key = ?1";
    tx.execute(SQL, params![run, at.as_micros()]).await.map(drop)
}

/// Writes what a run saw.
pub async fn note(tx: &mut Writer, run: i64, seen: &[Sighting]) -> Result<(), StoreError> {
    // The connection is the newest that is known: of one that is not connected in this run, the run says nothing.
    const SQL: &str = "INSERT INTO sightings (agent_key, run_key, connected_at, gone_at, superseded_at, \
                       limited_first_at, limited_last_at, limited_until) \
                       SELECT key, ?2, ?3, ?4, ?5, ?6, ?7, ?8 FROM identities WHERE id = ?1 AND kind = 1 \
                       ON CONFLICT (agent_key) DO UPDATE SET \
                       run_key = CASE WHEN excluded.connected_at IS NULL THEN sightings.run_key \
                       ELSE excluded.run_key END, \
                       gone_at = CASE WHEN excluded.connected_at IS NULL THEN sightings.gone_at \
                       ELSE excluded.gone_at END, \
                       connected_at = COALESCE(excluded.connected_at, sightings.connected_at), \
                       superseded_at = COALESCE(excluded.superseded_at, sightings.superseded_at), \
                       limited_first_at = COALESCE(excluded.limited_first_at, sightings.limited_first_at), \
                       limited_last_at = COALESCE(excluded.limited_last_at, sightings.limited_last_at), \
                       limited_until = COALESCE(excluded.limited_until, sightings.limited_until)";
    let micros = |at: Option<Timestamp>| Param::from(at.map(Timestamp::as_micros));
    let rows: Vec<Vec<Param<'_>>> = seen
        .iter()
        .map(|one| {
            let mut row = vec![Param::from(one.agent), Param::from(run)];
            row.push(micros(one.connected.map(|(since, _)| since)));
            row.push(micros(one.connected.and_then(|(_, until)| until)));
            row.push(micros(one.superseded_at));
            row.extend([0, 1, 2].map(|place| micros(one.limited.and_then(|times| times.get(place).copied()))));
            row
        })
        .collect();
    tx.execute_many(SQL, &rows).await.map(drop)
}

/// Writes agents' last signs of life in rooms.
pub async fn note_activity(tx: &mut Writer, seen: &[(RoomId, IdentityId, Timestamp)]) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE participants SET active_at = ?3 \
                       WHERE room_key = (SELECT key FROM rooms WHERE id = ?1) \
                       AND member_key = (SELECT key FROM identities WHERE id = ?2) \
                       AND (active_at IS NULL OR active_at < ?3)";
    let rows: Vec<Vec<Param<'_>>> =
        seen.iter().map(|(room, agent, at)| params![*room, *agent, at.as_micros()].to_vec()).collect();
    tx.execute_many(SQL, &rows).await.map(drop)
}
