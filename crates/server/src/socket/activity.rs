//! Who works in a room just now, as agents report it. A report counts for a while and is renewed by the next one, so
//! that an agent that dies stops working without saying so.

use std::sync::Arc;

use bandstand_domain::identity::Profile;
use bandstand_wire::ids::IdentityId;
use bandstand_wire::push::{ActivityChanged, WorkingAgent, event};
use bandstand_wire::time::Timestamp;
use tokio::time::Instant;

pub use bandstand_wire::push::Activity as ActivityDetail;

use super::audience::json;
use super::rooms::Room;

/// An agent at work.
#[derive(Debug)]
pub(crate) struct Working {
    agent: IdentityId,
    name: String,
    detail: Option<ActivityDetail>,
    since: Timestamp,
    expires: Instant,
}

/// Takes a report of an agent that works; whether people see a difference.
pub(crate) fn begin(
    working: &mut Vec<Working>,
    agent: &Profile,
    detail: Option<ActivityDetail>,
    now: Timestamp,
    expires: Instant,
) -> bool {
    match working.iter_mut().find(|one| one.agent == agent.id) {
        Some(one) => {
            one.expires = expires;
            let changed = one.detail != detail || one.name != agent.name;
            one.detail = detail;
            one.name.clone_from(&agent.name);
            changed
        }
        None => {
            working.push(Working { agent: agent.id, name: agent.name.clone(), detail, since: now, expires });
            true
        }
    }
}

/// An agent stopped; whether it was working.
pub(crate) fn end(working: &mut Vec<Working>, agent: IdentityId) -> bool {
    let before = working.len();
    working.retain(|one| one.agent != agent);
    working.len() != before
}

/// Forgets reports that were not renewed; whether there were any.
pub(crate) fn expire(working: &mut Vec<Working>, now: Instant) -> bool {
    let before = working.len();
    working.retain(|one| one.expires > now);
    working.len() != before
}

/// All who work, as it travels.
pub(crate) fn rows(working: &[Working]) -> Vec<WorkingAgent> {
    let row = |one: &Working| WorkingAgent {
        agent_id: one.agent,
        name: one.name.clone(),
        activity: one.detail.clone(),
        since: one.since,
    };
    working.iter().map(row).collect()
}

/// Tells the room's people who works in it.
pub(crate) fn announce(room: &Room) {
    if room.activity.is_empty() {
        return;
    }
    if let Some(payload) = json(&ActivityChanged { working_agents: rows(&room.working) }) {
        let mut told = 0;
        for subscriber in room.activity.users() {
            subscriber.push(event::ACTIVITY_CHANGED, &Arc::clone(&payload), None);
            told += 1;
        }
        super::audience::count(told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bandstand_wire::ids::IdentityKind;
    use std::time::Duration;
    use uuid::Uuid;

    #[test]
    fn a_renewed_report_is_no_change_and_an_old_one_ends() {
        let agent = Profile {
            id: IdentityId(Uuid::from_u128(1)),
            kind: IdentityKind::Agent,
            handle: "ann/bob".into(),
            name: "Bob".into(),
            description: None,
        };
        let (mut working, then, start) = (Vec::new(), Timestamp::from_micros(5), Instant::now());
        let later = start + Duration::from_secs(1);
        assert!(begin(&mut working, &agent, None, then, start));
        assert!(!begin(&mut working, &agent, None, Timestamp::from_micros(9), later));
        assert!(!expire(&mut working, start));
        let detail = ActivityDetail { kind: "reasoning".into(), name: None };
        assert!(begin(&mut working, &agent, Some(detail.clone()), then, later));
        let [row] = &rows(&working)[..] else { panic!("one works") };
        assert_eq!((row.since, &row.activity), (then, &Some(detail)));
        assert!(expire(&mut working, later));
        assert!(!end(&mut working, agent.id));
    }
}
