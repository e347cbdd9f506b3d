//! Dead letters as they travel.

use bandstand_domain::dead_letter as domain;
use bandstand_wire::rest::dead_letter::{DeadLetter, Party};

/// A message that was given up for an agent.
pub fn dead_letter(letter: &domain::DeadLetter) -> DeadLetter {
    let party = |profile: &bandstand_domain::identity::Profile| Party {
        id: profile.id,
        kind: profile.kind,
        name: profile.name.clone(),
        handle: profile.handle.clone(),
    };
    DeadLetter {
        chat_room_id: letter.room,
        message_id: letter.message,
        sender: party(&letter.sender),
        agent: party(&letter.agent),
        reason: letter.reason.clone(),
        stored_at: letter.stored_at,
        dead_lettered_at: letter.dead_at,
        attempts: letter.attempts,
        last_error: letter.last_error.clone(),
    }
}
