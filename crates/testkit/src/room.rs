//! A room of a test, as a person in it sees it.

use bandstand_wire::ids::{MessageId, RoomId};
use reqwest::Method;
use serde_json::{Value, json};

use crate::person::{Member, Person, text};
use crate::watch::Watch;

/// A room, and the person through whose eyes the test sees it.
#[derive(Clone, Debug)]
pub struct Room {
    /// Which.
    pub id: RoomId,
    person: Person,
}

impl Room {
    pub(crate) fn new(person: Person, id: RoomId) -> Self {
        Self { id, person }
    }

    /// The person says something to somebody.
    pub async fn says(&self, content: &str, to: &[&dyn Member]) -> MessageId {
        let mentions: Vec<Value> = to.iter().map(|member| json!({ "id": member.id() })).collect();
        let body = json!({ "message": { "content": content, "mentions": mentions } });
        let path = format!("/chats/{}/messages", self.id);
        let (status, reply) = self.person.request(Method::POST, &path, Some(body)).await;
        assert_eq!(status, 201, "the message is taken: {reply}");
        let id = text(&reply["data"]["id"]);
        MessageId(id.parse().unwrap_or_else(|why| panic!("a message id, not {id}: {why}")))
    }

    /// Everything that was said and done in the room, oldest first.
    pub async fn history(&self) -> Vec<Value> {
        let mut rows = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let after = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
            let path = format!("/chats/{}/messages?limit=100{after}", self.id);
            let (status, reply) = self.person.request(Method::GET, &path, None).await;
            assert_eq!(status, 200, "the history is shown: {reply}");
            rows.extend(reply["data"].as_array().cloned().unwrap_or_default());
            match reply["metadata"]["next_cursor"].as_str() {
                Some(next) if reply["metadata"]["has_more"] == true => cursor = Some(next.to_owned()),
                _ => {
                    // The platform lists the newest first.
                    rows.reverse();
                    return rows;
                }
            }
        }
    }

    /// Everything that somebody wrote in the room, oldest first.
    pub async fn said_by(&self, member: &dyn Member) -> Vec<String> {
        let sender = member.id().to_string();
        let said = |row: &&Value| row["sender_id"] == sender.as_str() && row["message_type"] == "text";
        self.history().await.iter().filter(said).map(|row| text(&row["content"]).to_owned()).collect()
    }

    /// Sees what happens in the room from now on.
    pub async fn watch(&self) -> Watch {
        Watch::open(self.person.url(), &self.person.key, self.id, self.clone()).await
    }
}
