//! What a person sees of a room while it happens.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::person::{Member, text};
use crate::relay::Upstream;
use crate::room::Room;
use crate::server::PATIENCE;

/// A person's socket in one room. It is not touched by [`crate::Faults::on_push`] rules for agents only by chance: rules
/// count pushes on every socket, so open a watch on [`Watch`] events that the rules do not name.
pub struct Watch {
    socket: Upstream,
    topic: String,
    room: Room,
    seen: Vec<Value>,
}

impl Watch {
    pub(crate) async fn open(url: &str, key: &str, id: bandstand_wire::ids::RoomId, room: Room) -> Self {
        let address = format!("{}/api/v1/socket/websocket?vsn=2.0.0", url.replacen("http", "ws", 1));
        let mut request = address.into_client_request().expect("a socket address");
        request.headers_mut().insert("x-api-key", key.parse().expect("a key"));
        let (socket, _) = tokio_tungstenite::connect_async(request).await.expect("the person's socket is accepted");
        let mut watch = Self { socket, topic: format!("chat_room:{id}"), room, seen: Vec::new() };
        watch.join().await;
        watch
    }

    async fn join(&mut self) {
        let frame = json!(["1", "1", self.topic, "phx_join", {}]);
        self.socket.send(Message::text(frame.to_string())).await.expect("the socket takes a frame");
        loop {
            let frame = self.frame().await;
            if frame[3] == "phx_reply" && frame[1] == "1" {
                assert_eq!(frame[4]["status"], "ok", "the person may see the room: {frame}");
                return;
            }
        }
    }

    async fn frame(&mut self) -> Value {
        loop {
            let message = timeout(PATIENCE, self.socket.next()).await.expect("something happens in the room");
            match message {
                Some(Ok(Message::Text(text))) => {
                    return serde_json::from_str(text.as_str()).expect("a frame of JSON");
                }
                Some(Ok(_)) => {}
                other => panic!("the person's socket ended: {other:?}"),
            }
        }
    }

    /// Waits for the first row, seen already or still to come, that fits.
    ///
    /// # Panics
    /// When none has come after [`PATIENCE`].
    pub async fn wait_for(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(row) = self.seen.iter().find(|row| fits(row)) {
            return row.clone();
        }
        let waiting = async {
            loop {
                let frame = self.frame().await;
                if frame[2] != self.topic.as_str() {
                    continue;
                }
                if matches!(frame[3].as_str(), Some("message_created" | "event_created" | "message_updated")) {
                    let row = frame[4].clone();
                    self.seen.push(row.clone());
                    if fits(&row) {
                        return row;
                    }
                }
            }
        };
        match timeout(PATIENCE, waiting).await {
            Ok(row) => row,
            Err(_) => panic!("{what} did not happen in {PATIENCE:?}; the room: {:#?}", self.room.history().await),
        }
    }

    /// Waits until somebody says something, and tells what.
    pub async fn message_from(&mut self, member: &dyn Member) -> String {
        let sender = member.id().to_string();
        let row = self
            .wait_for("a message", |row| row["sender_id"] == sender.as_str() && row["message_type"] == "text")
            .await;
        text(&row["content"]).to_owned()
    }

    /// Waits until a message has this status for an agent: `delivered`, `processing`, `processed` or `failed`.
    pub async fn status(&mut self, message: bandstand_wire::ids::MessageId, of: &dyn Member, status: &str) {
        let (message, of) = (message.to_string(), of.id().to_string());
        self.wait_for(&format!("the status {status}"), |row| {
            row["id"] == message.as_str() && row["metadata"]["delivery_status"][&of]["status"] == status
        })
        .await;
    }
}
