//! The answer in a sentence, for people. The same wherever it is shown.

use super::{Account, Certain, Missing, Named, Reason, Stage, Verdict};

/// What became of a message for `who` (a handle without `@`), in one or two sentences.
pub fn summary(account: &Account, who: &str) -> String {
    let attempt = account.steps.iter().rev().find_map(|step| step.attempt).unwrap_or(account.attempts);
    let end = account.steps.last();
    let note = end.and_then(|step| step.note.as_deref()).unwrap_or("no reason was given");
    let at = end.map(|step| step.at.to_string()).unwrap_or_default();
    match (&account.reason, account.stage) {
        (Some(reason), stage) => because(reason, stage, who),
        (None, Stage::Processed) => processed(account, who, &at),
        (None, Stage::Failed) => {
            format!("Attempt {attempt} of @{who} failed at {at}: {note}. The message is served again.")
        }
        (None, Stage::Cancelled) => format!("Cancelled for @{who} at {at}: {note}."),
        (None, Stage::DeadLettered) if note == "attempts" => {
            format!("Given up for @{who} at {at}: too many attempts ended without success.")
        }
        (None, Stage::DeadLettered) => format!("Given up for @{who} at {at}: {note}."),
        (None, _) if account.verdict == Verdict::Working => format!("@{who} is working on it (attempt {attempt})."),
        // No account has neither a reason nor an end; a test goes through all.
        (None, stage) => format!("{} for @{who}.", stage.as_str()),
    }
}

fn processed(account: &Account, who: &str, at: &str) -> String {
    let outcome = account.outcome.clone().unwrap_or_default();
    match (outcome.declined, outcome.replied, outcome.reason) {
        (true, _, Some(why)) => format!("@{who} declined it at {at}: {why}."),
        (true, _, None) => format!("@{who} declined it at {at}."),
        (false, Some(true), _) => format!("@{who} processed it at {at} and replied."),
        (false, Some(false), _) => format!("@{who} processed it at {at} without a reply in the room."),
        (false, None, _) => format!("@{who} processed it at {at}; whether it replied was not recorded."),
    }
}

fn because(reason: &Reason, stage: Stage, who: &str) -> String {
    match reason {
        Reason::NotMentioned { named: Named::Sender } => format!("@{who} sent this message itself."),
        Reason::NotMentioned { named: Named::Reference } => {
            format!("The message refers to @{who} without mentioning it, so it was not delivered.")
        }
        Reason::NotMentioned { .. } => format!("The message does not mention @{who}, so it was not delivered."),
        Reason::NotAParticipant { joined_at: Some(at), .. } => {
            format!("@{who} was not in the room when the message was posted; it joined at {at}.")
        }
        Reason::NotAParticipant { left_at: Some(at), .. } => {
            format!("@{who} was not in the room when the message was posted; it had left at {at}.")
        }
        Reason::NotAParticipant { .. } => format!("@{who} was never in this room."),
        Reason::NeverConnected { since } => {
            format!("@{who} has never connected since it was registered at {since}.")
        }
        Reason::Offline { since, latest: None } => format!("@{who} has been offline since {since}."),
        Reason::Offline { since, latest: Some(latest) } => {
            format!("@{who} is offline, since some moment between {since} and {latest}, when the server was down.")
        }
        Reason::NotTaken { since, connected_since, reached_at, busy_with } => {
            let how = match (connected_since, reached_at) {
                (Some(_), Some(_)) => "is connected and got the message, but has not taken it up",
                (Some(_), None) => "is connected but does not listen in this room, and has not fetched the message",
                (None, _) => "fetched the message, but has not taken it up",
            };
            match busy_with {
                Some(_) => format!("@{who} {how} since {since}: it works on another message of this room."),
                None => format!("@{who} {how} since {since}."),
            }
        }
        Reason::NoActivity { since, attempt } => match stage {
            Stage::Lapsed => format!("Attempt {attempt} of @{who} has lapsed: no sign of life since {since}."),
            _ => format!("@{who} took it up (attempt {attempt}) and has shown no sign of life since {since}."),
        },
        Reason::Stopped(stopped) => {
            format!("@{who} was stopped in this room by @{} at {}.", stopped.by.handle, stopped.at)
        }
        Reason::Superseded { at, .. } => {
            format!(
                "A newer connection of @{who} replaced the one that had the message at {at}, and has not taken it up."
            )
        }
        Reason::RateLimited(limited) => format!(
            "@{who} sends too many requests and is refused: last at {}, told to wait until {}.",
            limited.last_at, limited.until
        ),
        Reason::Expired { at } => format!("Given up for @{who} at {at}: it had waited too long."),
        Reason::Unknown { missing, last, at } => {
            let what = match missing {
                Missing::Connection => "whether it is connected cannot be told just now",
                Missing::Record => "what happened before this server kept a record cannot be told",
                Missing::Reading => "whether a person has read a message is not recorded",
                Missing::Consistency => "what is recorded contradicts itself",
            };
            let certain = match last {
                Certain::Posted => "it was posted",
                Certain::Pushed => "it was pushed",
                Certain::Served => "it was served",
                Certain::PickedUp => "it was taken up",
                Certain::Active => "it showed a sign of life",
                Certain::Connected => "it was connected",
            };
            format!("Unknown for @{who}: {what}. Last certain: {certain} at {at}.")
        }
    }
}
