//! `bandstand room`.

use std::process::ExitCode;

use anyhow::{anyhow, bail};
use bandstand_wire::ids::RoomId;
use serde_json::{Value, json};

use super::with_client;
use crate::cli::RoomCommand;
use crate::output::{Failure, columns, say, say_json};
use crate::people::client::{Client, room_of, typed};
use crate::people::model::{Participant, Room};
use crate::people::text::{day_and_time, one_line};
use crate::people::{places, text};

/// Columns of a title in a list.
const TITLE: usize = 40;
/// Handles shown of a room in a list.
const SHOWN: usize = 4;

pub(crate) fn run(command: &RoomCommand) -> Result<ExitCode, Failure> {
    with_client(command.account(), async |client| perform(&client, command).await)?;
    Ok(ExitCode::SUCCESS)
}

async fn perform(client: &Client, command: &RoomCommand) -> Result<(), Failure> {
    let json = command.account().json;
    match command {
        RoomCommand::List { all, .. } => {
            let rows = client.rooms((!all).then_some("active")).await?;
            if json { say_json(&json!({ "rooms": rows }))? } else { list(&typed(rows)?) }
        }
        RoomCommand::New { title, with, .. } => {
            let made = client.create_room(title.as_deref()).await?;
            let room = room_of(&made)?;
            let added = add(client, room.id, with, "member")
                .await
                .map_err(|error| anyhow!("the room {} is made, but {error:#}", room.id))?;
            if json {
                say_json(&json!({ "room": made, "added": added.iter().map(|it| &it.1).collect::<Vec<_>>() }))?;
            } else {
                say(&format!("Made {} ({}).", one_line(room.name(), TITLE), room.id));
                tell_added(&added);
            }
        }
        RoomCommand::Show { room, .. } => {
            let id = places::room(client, room).await?;
            let (row, participants) = (client.room(id).await?, client.participant_rows(id).await?);
            if json {
                say_json(&json!({ "room": row, "participants": participants }))?;
            } else {
                show(&room_of(&row)?, &typed(participants)?);
            }
        }
        RoomCommand::Add { room, who, role, .. } => {
            let id = places::room(client, room).await?;
            let added = add(client, id, who, role).await?;
            if json {
                say_json(&json!({ "added": added.iter().map(|it| &it.1).collect::<Vec<_>>() }))?;
            } else {
                tell_added(&added);
            }
        }
        RoomCommand::Remove { room, who, .. } => {
            let id = places::room(client, room).await?;
            remove(client, id, who, json).await?;
        }
        RoomCommand::Archive { room, undo, .. } => {
            let id = places::room(client, room).await?;
            let row = client.archive(id, !undo).await?;
            if json {
                say_json(&json!({ "room": row }))?;
            } else {
                let told = if *undo { "is active again" } else { "is archived; --undo brings it back" };
                say(&format!("{} {told}.", one_line(room_of(&row)?.name(), TITLE)));
            }
        }
    }
    Ok(())
}

fn list(rooms: &[Room]) {
    if rooms.is_empty() {
        return say("None: `bandstand room new` makes one.");
    }
    let rows: Vec<_> = rooms
        .iter()
        .map(|room| {
            let last = room.last_message_at.as_deref().map(day_and_time).unwrap_or_default();
            let status = room.status.clone().unwrap_or_default();
            [one_line(room.name(), TITLE), members(room), status, last, room.id.to_string()]
        })
        .collect();
    say(&columns(["TITLE", "WHO", "STATUS", "LAST MESSAGE", "ID"], &rows));
}

fn members(room: &Room) -> String {
    let mut shown: Vec<String> = room.participants.iter().take(SHOWN).map(|it| text::harmless(&it.label())).collect();
    let all = room.participant_count.and_then(|count| usize::try_from(count).ok()).unwrap_or(room.participants.len());
    if all > shown.len() {
        shown.push(format!("+{}", all - shown.len()));
    }
    shown.join(" ")
}

fn show(room: &Room, participants: &[Participant]) {
    let last = room.last_message_at.as_deref().map_or_else(|| "never".to_owned(), day_and_time);
    let lines = [
        ["title".to_owned(), one_line(room.name(), 200)],
        ["status".to_owned(), room.status.clone().unwrap_or_default()],
        ["last message".to_owned(), last],
    ];
    say(&columns(["id", &room.id.to_string()], &lines));
    say("");
    let rows: Vec<_> = participants
        .iter()
        .map(|it| {
            let presence = match it.online {
                Some(true) => "online",
                Some(false) => "offline",
                None => "",
            };
            let role = it.role.clone().unwrap_or_default();
            let about = one_line(it.description.as_deref().unwrap_or_default(), TITLE);
            [text::harmless(&it.label()), one_line(&it.name, TITLE), it.kind.clone(), role, presence.to_owned(), about]
        })
        .collect();
    say(&columns(["HANDLE", "NAME", "TYPE", "ROLE", "PRESENCE", "WHAT IT DOES"], &rows));
}

/// Adds everybody, after all of them were found.
async fn add(client: &Client, room: RoomId, who: &[String], role: &str) -> anyhow::Result<Vec<(Participant, Value)>> {
    if who.is_empty() {
        return Ok(Vec::new());
    }
    let peers = client.peers(room).await?;
    let mut found = Vec::with_capacity(who.len());
    for what in who {
        match places::who(&peers, what)? {
            Some(peer) => found.push(peer.clone()),
            None if places::who(&client.participants(room).await?, what)?.is_some() => {
                bail!("{what} is in the room already")
            }
            None => bail!("you know nobody called {what} who could be added; nobody was"),
        }
    }
    let mut added = Vec::with_capacity(found.len());
    for peer in found {
        let row = client.add(room, peer.id, role).await?;
        added.push((peer, row));
    }
    Ok(added)
}

fn tell_added(added: &[(Participant, Value)]) {
    for (peer, _) in added {
        let offline = if peer.online == Some(false) && peer.kind == "Agent" { ", who is offline now" } else { "" };
        say(&format!("Added {}{offline}.", text::harmless(&peer.label())));
    }
}

async fn remove(client: &Client, room: RoomId, who: &[String], json: bool) -> Result<(), Failure> {
    let participants = client.participants(room).await?;
    let mut found = Vec::with_capacity(who.len());
    for what in who {
        let one = places::who(&participants, what)?;
        found.push(one.ok_or_else(|| anyhow!("nobody in this room is called {what}; nobody was removed"))?);
    }
    let mut removed = Vec::with_capacity(found.len());
    for one in found {
        removed.push(client.remove(room, one.id).await?);
        if !json {
            say(&format!("Removed {}.", text::harmless(&one.label())));
        }
    }
    if json { say_json(&json!({ "removed": removed })) } else { Ok(()) }
}
