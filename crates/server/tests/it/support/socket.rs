//! A raw WebSocket client that looks at every frame. It knows no more of Phoenix than what the frames say.

use std::collections::{HashMap, VecDeque};

use futures_util::{SinkExt, StreamExt};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::{Caller, PATIENCE, Reply, Room, TestApp};

/// The largest message that the Python client takes, less a margin.
const FRAME_MAX: usize = 1_000_000;

/// A frame of the server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) join_ref: Value,
    pub(crate) reference: Value,
    pub(crate) topic: String,
    pub(crate) event: String,
    pub(crate) payload: Value,
}

impl Frame {
    fn read(text: &str) -> Self {
        assert!(text.len() < FRAME_MAX, "a frame of {} bytes", text.len());
        let value: Value = serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"));
        let Value::Array(parts) = value else { panic!("no array: {text}") };
        let [join_ref, reference, Value::String(topic), Value::String(event), payload @ Value::Object(_)] = &parts[..]
        else {
            panic!("not five elements of the right types: {text}");
        };
        let (topic, event) = (topic.clone(), event.clone());
        Self { join_ref: join_ref.clone(), reference: reference.clone(), topic, event, payload: payload.clone() }
    }

    /// The frame as it came.
    pub(crate) fn array(&self) -> Value {
        json!([self.join_ref, self.reference, self.topic, self.event, self.payload])
    }

    fn is_push(&self) -> bool {
        !self.event.starts_with("phx_")
    }
}

/// A connection that speaks version 2.
pub(crate) struct Socket {
    pub(crate) app: TestApp,
    caller: Caller,
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    reference: u64,
    /// Joined topics and their join_ref.
    joined: HashMap<String, String>,
    /// Pushes that came while a reply was waited for.
    early: VecDeque<Frame>,
}

impl Socket {
    /// Connects as band-sdk does: the key in the header.
    pub(crate) async fn open(caller: &Caller, query: &str) -> Self {
        let url = format!("ws://{}/api/v1/socket/websocket?{query}", caller.app.address);
        let mut request = url.into_client_request().expect("a request");
        if !caller.key.is_empty() {
            request.headers_mut().insert("x-api-key", caller.key.parse().expect("a header"));
        }
        let (stream, _) = connect_async(request).await.expect("the upgrade is accepted");
        let (joined, early) = (HashMap::new(), VecDeque::new());
        Self { app: caller.app.clone(), caller: caller.clone(), stream, reference: 0, joined, early }
    }

    /// A handshake that is refused, as an HTTP reply.
    pub(crate) async fn refused(app: &TestApp, query: &str, headers: &[(&str, &str)]) -> Reply {
        let handshake = [
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let headers = [&handshake[..], headers].concat();
        app.request(Method::GET, &format!("/api/v1/socket/websocket{query}"), &headers, None).await
    }

    /// The next number, as a string: what clients send.
    pub(crate) fn fresh_ref(&mut self) -> String {
        self.reference += 1;
        self.reference.to_string()
    }

    pub(crate) async fn send(&mut self, frame: Value) {
        self.send_message(Message::text(frame.to_string())).await;
    }

    pub(crate) async fn send_message(&mut self, message: Message) {
        self.stream.send(message).await.expect("the server reads");
    }

    /// What comes next, whatever it is.
    pub(crate) async fn message(&mut self) -> Option<Result<Message, Error>> {
        timeout(PATIENCE, self.stream.next()).await.expect("the server says something")
    }

    /// The next frame. A push must carry the own `join_ref` and no `ref` (rule 1).
    pub(crate) async fn frame(&mut self) -> Frame {
        loop {
            let frame = match self.message().await {
                Some(Ok(Message::Text(text))) => Frame::read(text.as_str()),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                other => panic!("a frame, please, not {other:?}"),
            };
            if frame.is_push() {
                let own = self.joined.get(&frame.topic).map(String::as_str);
                assert_eq!((frame.join_ref.as_str(), &frame.reference), (own, &Value::Null), "{frame:?}");
            }
            return frame;
        }
    }

    /// Sends an event and waits for its reply; pushes that come meanwhile are kept.
    pub(crate) async fn call(&mut self, join_ref: Value, reference: &str, topic: &str, event: &str) -> Frame {
        self.send(json!([join_ref, reference, topic, event, {}])).await;
        loop {
            let frame = self.frame().await;
            if frame.event == "phx_reply" && frame.reference == reference {
                assert_eq!((&frame.join_ref, frame.topic.as_str()), (&join_ref, topic), "{frame:?}");
                return frame;
            }
            if frame.is_push() {
                self.early.push_back(frame);
            }
        }
    }

    /// Joins a topic: the response, or the reason of the refusal.
    pub(crate) async fn try_join(&mut self, topic: &str) -> Result<Value, String> {
        let reference = self.fresh_ref();
        let before = self.joined.insert(topic.to_owned(), reference.clone());
        let reply = self.call(json!(reference), &reference, topic, "phx_join").await;
        match reply.payload["status"].as_str() {
            Some("ok") => Ok(reply.payload["response"].clone()),
            Some("error") => {
                assert!(before.is_none(), "a joined topic was lost: {reply:?}");
                self.joined.remove(topic);
                Err(reply.payload["response"]["reason"].as_str().expect("a reason").to_owned())
            }
            _ => panic!("neither ok nor error: {reply:?}"),
        }
    }

    /// Sends a join whose reply the caller looks for itself; the join_ref.
    pub(crate) async fn expect_join(&mut self, topic: &str) -> String {
        let reference = self.fresh_ref();
        self.joined.insert(topic.to_owned(), reference.clone());
        self.send(json!([reference, reference, topic, "phx_join", {}])).await;
        reference
    }

    pub(crate) async fn join(&mut self, topic: &str) -> Value {
        self.try_join(topic).await.unwrap_or_else(|reason| panic!("{topic}: {reason}"))
    }

    /// Joins what a room has for agents.
    pub(crate) async fn join_room(&mut self, room: &Room) {
        self.join(&format!("chat_room:{}", room.id)).await;
        self.join(&format!("room_participants:{}", room.id)).await;
    }

    pub(crate) async fn leave(&mut self, topic: &str) -> Frame {
        let reference = self.fresh_ref();
        let join_ref = self.joined.get(topic).cloned();
        let reply = self.call(json!(join_ref), &reference, topic, "phx_leave").await;
        self.joined.remove(topic);
        reply
    }

    pub(crate) async fn heartbeat(&mut self) -> Frame {
        let reference = self.fresh_ref();
        self.call(Value::Null, &reference, "phoenix", "heartbeat").await
    }

    /// The next push.
    pub(crate) async fn push(&mut self) -> Frame {
        if let Some(frame) = self.early.pop_front() {
            return frame;
        }
        let frame = self.frame().await;
        assert!(frame.is_push(), "a push, please, not {frame:?}");
        frame
    }

    /// The next push, which must be this event: its payload.
    pub(crate) async fn next_event(&mut self, event: &str) -> Value {
        let frame = self.push().await;
        assert_eq!(frame.event, event, "{frame:?}");
        frame.payload
    }

    /// The next push of this event, whatever comes before it: its payload.
    pub(crate) async fn skip_to(&mut self, event: &str) -> Value {
        loop {
            let frame = self.push().await;
            if frame.event == event {
                return frame.payload;
            }
        }
    }

    /// The next push, which must be this event: its payload with names for ids.
    pub(crate) async fn next_named(&mut self, event: &str) -> Value {
        let payload = self.next_event(event).await;
        self.app.names.replace(&payload)
    }

    /// Nothing that happened until now is heard here. Without waiting: something happens now that is heard, and events
    /// are announced in the order in which they were committed, so whatever was to come would come before it.
    pub(crate) async fn assert_silent(&mut self) {
        let own = match self.caller.kind {
            bandstand_wire::ids::IdentityKind::Agent => format!("agent_rooms:{}", self.caller.id),
            bandstand_wire::ids::IdentityKind::User => format!("user_rooms:{}", self.caller.id),
        };
        if !self.joined.contains_key(&own) {
            self.join(&own).await;
        }
        let reply = self.caller.post("chats", json!({"chat": {"title": "a marker"}})).await.assert_status(201);
        let frame = self.push().await;
        assert_eq!((frame.event.as_str(), &frame.payload["id"]), ("room_added", &reply.data()["id"]), "{frame:?}");
    }

    /// The server closes, and nothing comes before: the code.
    pub(crate) async fn closed(&mut self) -> u16 {
        assert_eq!(self.early, [], "pushes before the close");
        match self.message().await {
            Some(Ok(Message::Close(Some(close)))) => close.code.into(),
            other => panic!("a close frame, please, not {other:?}"),
        }
    }

    /// Reads on until the server closes: the code.
    pub(crate) async fn closes(&mut self) -> u16 {
        loop {
            match self.message().await {
                Some(Ok(Message::Close(Some(close)))) => return close.code.into(),
                Some(Ok(_)) => {}
                other => panic!("a close frame, please, not {other:?}"),
            }
        }
    }

    /// Closes as clients do, and waits for the server's answer.
    pub(crate) async fn close(mut self) {
        self.stream.close(None).await.expect("the server reads");
        while let Some(Ok(message)) = self.message().await {
            if message.is_close() {
                return;
            }
        }
    }
}
