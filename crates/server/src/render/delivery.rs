//! The delivery ledger as it travels.

use bandstand_domain::identity::Profile;
use bandstand_domain::ledger::{Account, Named, Reason, Step, summary};
use bandstand_wire::rest::delivery::{
    DeliveryEvidence, DeliveryOutcome, DeliveryParticipant, DeliveryReason, DeliveryStage, MessageDelivery,
};
use bandstand_wire::time::Timestamp;

use crate::service::ledger::{Accounted, Whom};

/// A row of the ledger.
pub fn row(accounted: &Accounted) -> MessageDelivery {
    let Accounted { message, room, whom, is_recipient, account, as_of } = accounted;
    let Account { stage, verdict, reason, steps, attempts, outcome } = account;
    let (participant, called) = match whom {
        Whom::Member(profile) => (self::participant(profile), profile.handle.clone()),
        Whom::Nobody { id, handle } => {
            let called = handle.clone().or_else(|| id.map(|id| id.to_string())).unwrap_or_default();
            (DeliveryParticipant { id: id.map(|id| id.0), handle: handle.clone(), name: None, kind: None }, called)
        }
    };
    MessageDelivery {
        message_id: *message,
        chat_room_id: *room,
        participant,
        is_recipient: *is_recipient,
        stage: stage.as_str(),
        verdict: verdict.as_str(),
        reason: reason.as_ref().map(self::reason),
        outcome: outcome.as_ref().map(|outcome| DeliveryOutcome {
            declined: outcome.declined,
            reason: outcome.reason.clone(),
            replied: outcome.replied,
        }),
        attempts: *attempts,
        stages: steps.iter().map(step).collect(),
        summary: summary(account, &called),
        as_of: *as_of,
    }
}

fn participant(profile: &Profile) -> DeliveryParticipant {
    DeliveryParticipant {
        id: Some(profile.id.0),
        handle: Some(profile.handle.clone()),
        name: Some(profile.name.clone()),
        kind: Some(profile.kind),
    }
}

fn step(step: &Step) -> DeliveryStage {
    DeliveryStage { stage: step.stage.as_str(), at: step.at, attempt: step.attempt, note: step.note.clone() }
}

fn reason(reason: &Reason) -> DeliveryReason {
    let (since, evidence) = evidence(reason);
    DeliveryReason { code: reason.code().as_str(), since, evidence }
}

fn evidence(reason: &Reason) -> (Option<Timestamp>, DeliveryEvidence) {
    let none = DeliveryEvidence::default();
    match reason {
        Reason::NotMentioned { named } => {
            let named_as = match named {
                Named::Sender => Some("sender"),
                Named::Reference => Some("reference"),
                Named::No | Named::Mention => None,
            };
            (None, DeliveryEvidence { named_as, ..none })
        }
        Reason::NotAParticipant { joined_at, left_at } => {
            (*left_at, DeliveryEvidence { joined_at: *joined_at, left_at: *left_at, ..none })
        }
        Reason::NeverConnected { since } => (Some(*since), DeliveryEvidence { registered_at: Some(*since), ..none }),
        Reason::Offline { since, latest } => {
            (Some(*since), DeliveryEvidence { offline_since: Some(*since), offline_latest: *latest, ..none })
        }
        Reason::NotTaken { since, connected_since, reached_at, busy_with } => {
            let (connected_since, reached_at, busy_with) = (*connected_since, *reached_at, *busy_with);
            (Some(*since), DeliveryEvidence { connected_since, reached_at, busy_with, ..none })
        }
        Reason::NoActivity { since, attempt } => {
            (Some(*since), DeliveryEvidence { attempt: Some(*attempt), last_activity_at: Some(*since), ..none })
        }
        Reason::Stopped(stopped) => {
            let stopped_by = Some(participant(&stopped.by));
            (Some(stopped.at), DeliveryEvidence { stopped_by, stopped_at: Some(stopped.at), ..none })
        }
        Reason::Superseded { at, attempt } => {
            (Some(*at), DeliveryEvidence { superseded_at: Some(*at), attempt: *attempt, ..none })
        }
        Reason::RateLimited(limited) => {
            let (first_refused_at, last_refused_at) = (Some(limited.first_at), Some(limited.last_at));
            let retry_at = Some(limited.until);
            (first_refused_at, DeliveryEvidence { first_refused_at, last_refused_at, retry_at, ..none })
        }
        Reason::Expired { at } => (Some(*at), DeliveryEvidence { expired_at: Some(*at), ..none }),
        Reason::Unknown { missing, last, at } => {
            let (missing, last_certain) = (Some(missing.as_str()), Some(last.as_str()));
            (Some(*at), DeliveryEvidence { missing, last_certain, last_certain_at: Some(*at), ..none })
        }
    }
}
