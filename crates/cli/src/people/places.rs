//! Which room, and who, by what a person types.

use anyhow::bail;
use bandstand_wire::ids::RoomId;

use super::client::{Client, typed};
use super::model::{Participant, Room};

/// The shortest part of an id that names a room.
const PREFIX_MIN: usize = 4;
/// Candidates that are told.
const SHOWN: usize = 8;

/// The room that is meant: its id, its title, the beginning of its id, or a part of its title.
pub(crate) async fn room(client: &Client, what: &str) -> anyhow::Result<RoomId> {
    if let Ok(id) = what.trim().parse() {
        return Ok(id);
    }
    let rooms: Vec<Room> = typed(client.rooms(None).await?)?;
    pick_room(&rooms, what).map(|room| room.id)
}

/// The same among the rooms of the agent whose key it is.
pub(crate) async fn agents_room(client: &Client, what: &str) -> anyhow::Result<RoomId> {
    if let Ok(id) = what.trim().parse() {
        return Ok(id);
    }
    let rooms: Vec<Room> = typed(client.agent_rooms().await?)?;
    pick_room(&rooms, what).map(|room| room.id)
}

fn pick_room<'a>(rooms: &'a [Room], what: &str) -> anyhow::Result<&'a Room> {
    let wanted = what.trim().to_lowercase();
    let title = |room: &Room| room.title.as_deref().unwrap_or_default().to_lowercase();
    let by_title: Vec<&Room> = rooms.iter().filter(|room| !wanted.is_empty() && title(room) == wanted).collect();
    let by_id = || rooms.iter().filter(|room| wanted.len() >= PREFIX_MIN && room.id.to_string().starts_with(&wanted));
    let by_part = || rooms.iter().filter(|room| !wanted.is_empty() && title(room).contains(&wanted));
    let mut found = by_title;
    if found.is_empty() {
        found = by_id().collect();
    }
    if found.is_empty() {
        found = by_part().collect();
    }
    match found.as_slice() {
        [room] => Ok(room),
        [] => bail!("there is no room {what:?}; `bandstand room list` shows yours"),
        several => {
            let shown: Vec<String> =
                several.iter().take(SHOWN).map(|room| format!("  {}  {}", room.id, room.name())).collect();
            let more = several.len().saturating_sub(SHOWN);
            let more = if more == 0 { String::new() } else { format!("\n  and {more} more") };
            bail!("{} rooms are called {what:?}; name one by its id:\n{}{more}", several.len(), shown.join("\n"))
        }
    }
}

/// Somebody among people and agents: by id, handle, the last part of an agent's handle, or name.
pub(crate) fn who<'a>(among: &'a [Participant], what: &str) -> anyhow::Result<Option<&'a Participant>> {
    let found = candidates(among, what);
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => {
            let labels: Vec<String> = several.iter().take(SHOWN).map(|it| it.label()).collect();
            bail!("{what} could be {}; write the whole handle", labels.join(" or "))
        }
    }
}

/// Everybody whom a text may mean. What is exact hides what is not.
pub(crate) fn candidates<'a>(among: &'a [Participant], what: &str) -> Vec<&'a Participant> {
    let wanted = what.trim().trim_start_matches('@').to_lowercase();
    if wanted.is_empty() {
        return Vec::new();
    }
    let exact: Vec<&Participant> = among
        .iter()
        .filter(|it| it.folded_handle().as_deref() == Some(&wanted) || it.id.to_string() == wanted)
        .collect();
    if !exact.is_empty() {
        return exact;
    }
    let last_part = |it: &&Participant| {
        it.folded_handle().is_some_and(|handle| handle.rsplit_once('/').is_some_and(|(_, slug)| slug == wanted))
    };
    let named = |it: &&Participant| it.name.to_lowercase() == wanted;
    among.iter().filter(|it| last_part(it) || named(it)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn room_row(id: u128, title: Option<&str>) -> Room {
        serde_json::from_value(json!({ "id": uuid::Uuid::from_u128(id << 96), "title": title })).unwrap()
    }

    #[test]
    fn rooms_by_what_is_typed() {
        let rooms = [room_row(0xabcd_0001, Some("Plan")), room_row(0xabcd_0002, Some("Plan B")), room_row(7, None)];
        let pick = |what: &str| pick_room(&rooms, what).map(|room| room.title.clone()).map_err(|it| it.to_string());
        assert_eq!(pick("plan"), Ok(Some("Plan".into())));
        assert_eq!(pick("abcd0002"), Ok(Some("Plan B".into())));
        assert_eq!(pick("n b"), Ok(Some("Plan B".into())));
        assert!(pick("abcd").unwrap_err().contains("2 rooms"));
        assert!(pick("nothing").unwrap_err().contains("room list"));
        assert!(pick("").is_err());
    }

    fn somebody(id: u128, kind: &str, name: &str, handle: &str) -> Participant {
        let row = json!({ "id": uuid::Uuid::from_u128(id), "type": kind, "name": name, "handle": handle });
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn people_by_what_is_typed() {
        let all = [
            somebody(1, "User", "Ana Lee", "ana"),
            somebody(2, "Agent", "Writer", "ana/writer"),
            somebody(3, "Agent", "Writer", "bob/writer"),
            somebody(4, "Agent", "Clerk", "bob/clerk"),
        ];
        let find = |what: &str| who(&all, what).map(|it| it.map(Participant::label)).map_err(|it| it.to_string());
        assert_eq!(find("@ANA"), Ok(Some("@ana".into())));
        assert_eq!(find("ana lee"), Ok(Some("@ana".into())));
        assert_eq!(find("clerk"), Ok(Some("@bob/clerk".into())));
        assert_eq!(find("bob/writer"), Ok(Some("@bob/writer".into())));
        assert_eq!(find("nobody"), Ok(None));
        assert_eq!(find("writer"), Err("writer could be @ana/writer or @bob/writer; write the whole handle".into()));
    }
}
