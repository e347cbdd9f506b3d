//! The server is killed at random moments while agents post and work; what it acknowledged is never lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::program::{Installation, Server, http_client};

pub(crate) const OWNER_KEY: &str = "band_u_0123456789abcdefghijklmnopqrstuvwxyz";
const ROUNDS: u64 = 30;
pub(crate) const WRITERS: usize = 3;
/// The writer that repeats what was not answered.
const CAREFUL: usize = 0;

/// The address of the server that runs just now; a killed one's is of no use, so its clients give up and read it anew.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) client: Client,
    pub(crate) address: String,
}

impl Door {
    pub(crate) async fn call(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Option<(StatusCode, Value)> {
        self.call_once(key, method, path, body, None).await
    }

    /// The same with an idempotency key.
    async fn call_once(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: Option<Value>,
        once: Option<String>,
    ) -> Option<(StatusCode, Value)> {
        let mut request = self.client.request(method, format!("http://{}/api/v1{path}", self.address));
        request = request.header("x-api-key", key);
        if let Some(once) = once {
            request = request.header("idempotency-key", once);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let reply = request.send().await.ok()?;
        let status = reply.status();
        let text = reply.text().await.ok()?;
        let value = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).ok()? };
        Some((status, value))
    }

    pub(crate) async fn must(&self, key: &str, method: Method, path: &str, body: Option<Value>) -> Value {
        let (status, value) = self.call(key, method.clone(), path, body).await.unwrap();
        assert!(status.is_success(), "{method} {path}: {status} {value}");
        value
    }
}

/// A small generator of the moments of death: the same in each run.
struct Moments(u64);

impl Moments {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// What was acknowledged, over all rounds.
#[derive(Default)]
pub(crate) struct Acknowledged {
    /// Id of each posted message to its writer and number.
    pub(crate) posted: BTreeMap<String, (usize, u64)>,
    /// Messages that were marked as processed.
    pub(crate) processed: BTreeSet<String>,
}

pub(crate) struct Story {
    writers: Vec<String>,
    reader: String,
    pub(crate) reader_id: String,
    pub(crate) room: String,
    numbers: Vec<AtomicU64>,
    pub(crate) acknowledged: Mutex<Acknowledged>,
}

impl Story {
    /// Posts one numbered message after the other until the server is gone. The careful writer sends an idempotency key
    /// with each, and the one that was not answered again to the next server.
    pub(crate) async fn write(&self, door: &Door, writer: usize) {
        let careful = writer == CAREFUL;
        loop {
            let number = self.numbers[writer].load(Ordering::Relaxed);
            if !careful {
                self.numbers[writer].fetch_add(1, Ordering::Relaxed);
            }
            let once = careful.then(|| number.to_string());
            let body =
                json!({"message": {"content": format!("{writer} {number}"), "mentions": [{"id": self.reader_id}]}});
            let path = format!("/agent/chats/{}/messages", self.room);
            match door.call_once(&self.writers[writer], Method::POST, &path, Some(body), once).await {
                Some((StatusCode::CREATED, reply)) => {
                    if careful {
                        self.numbers[writer].fetch_add(1, Ordering::Relaxed);
                    }
                    let id = reply["data"]["id"].as_str().unwrap().to_owned();
                    let before = self.acknowledged.lock().await.posted.insert(id, (writer, number));
                    assert_eq!(before, None, "an id was given twice");
                }
                Some((status, reply)) => panic!("a post was answered with {status}: {reply}"),
                None => return,
            }
        }
    }

    /// Works through the backlog until the server is gone, or, with `to_the_end`, until there is nothing left.
    pub(crate) async fn work(&self, door: &Door, to_the_end: bool) {
        let messages = format!("/agent/chats/{}/messages", self.room);
        loop {
            let next = door.call(&self.reader, Method::GET, &format!("{messages}/next"), None).await;
            let id = match next {
                Some((StatusCode::OK, reply)) => reply["data"]["id"].as_str().unwrap().to_owned(),
                Some((StatusCode::NO_CONTENT, _)) if to_the_end => return,
                Some((StatusCode::NO_CONTENT, _)) => {
                    tokio::task::yield_now().await;
                    continue;
                }
                Some((status, reply)) => panic!("next was answered with {status}: {reply}"),
                None => return,
            };
            assert!(!self.acknowledged.lock().await.processed.contains(&id), "a processed message was served again");
            for mark in ["processing", "processed"] {
                let path = format!("{messages}/{id}/{mark}");
                match door.call(&self.reader, Method::POST, &path, None).await {
                    Some((StatusCode::OK, _)) => {}
                    Some((status, reply)) => panic!("{mark} was answered with {status}: {reply}"),
                    None => return,
                }
            }
            self.acknowledged.lock().await.processed.insert(id);
        }
    }
}

pub(crate) fn start(installation: &Installation) -> Server {
    let mut command = installation.command(&["up", "--listen", "127.0.0.1:0"]);
    command.env("BANDSTAND_OWNER_KEY", OWNER_KEY);
    Server::start(command)
}

async fn nothing_acknowledged_is_lost(installation: Installation) {
    let client = http_client();
    let door = |server: &Server| Door { client: client.clone(), address: server.address.clone() };
    let mut server = start(&installation);
    let story = Arc::new(prepare(&door(&server)).await);
    let mut moments = Moments(7);
    for _ in 0..ROUNDS {
        let now = door(&server);
        let mut tasks = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            let (story, door) = (Arc::clone(&story), now.clone());
            tasks.spawn(async move { story.write(&door, writer).await });
        }
        let (reader, behind) = (Arc::clone(&story), now.clone());
        tasks.spawn(async move { reader.work(&behind, false).await });
        // The moment of death is the point of this story, not a way to wait for something.
        tokio::time::sleep(Duration::from_millis(10 + moments.next(140))).await;
        server.signal("KILL");
        server.ended();
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
        server = start(&installation);
    }

    let now = door(&server);
    story.work(&now, true).await;
    let history = whole_history(&now, &story.room).await;
    let acknowledged = story.acknowledged.lock().await;
    assert!(acknowledged.posted.len() as u64 > ROUNDS, "only {} posts in all", acknowledged.posted.len());

    let mut seen = BTreeSet::new();
    let mut newest = [None; WRITERS];
    let mut careful = Vec::new();
    for message in &history {
        let id = message["id"].as_str().unwrap();
        assert!(seen.insert(id.to_owned()), "{id} is there twice");
        let content = message["content"].as_str().unwrap();
        let (writer, number) = content.rsplit_once("]] ").unwrap().1.split_once(' ').unwrap();
        let (writer, number): (usize, u64) = (writer.parse().unwrap(), number.parse().unwrap());
        assert!(newest[writer] < Some(number), "{content} is out of order");
        newest[writer] = Some(number);
        if writer == CAREFUL {
            careful.push(number);
        }
        if let Some(posted) = acknowledged.posted.get(id) {
            assert_eq!(*posted, (writer, number), "{id} is another message than was acknowledged");
        }
        // Acknowledged or not: no message without its delivery, and each was processed in the end.
        let delivery = &message["metadata"]["delivery_status"][&story.reader_id];
        assert_eq!(delivery["status"], "processed", "{message}");
    }
    // Each once and none left out; the last may be one that the last kill kept from being answered.
    let answered = story.numbers[CAREFUL].load(Ordering::Relaxed);
    let expected: Vec<u64> = (0..answered.max(careful.len() as u64)).collect();
    assert_eq!(careful, expected);
    assert!(careful.len() as u64 <= answered + 1, "{answered} of {} were answered", careful.len());
    for id in acknowledged.posted.keys() {
        assert!(seen.contains(id), "{id} was acknowledged and is lost");
    }
    server.stop();
}

pub(crate) async fn prepare(door: &Door) -> Story {
    let mut agents = Vec::new();
    for name in ["reader", "writer 0", "writer 1", "writer 2"] {
        let body = json!({"agent": {"name": name, "description": "an agent of a story"}});
        let reply = door.must(OWNER_KEY, Method::POST, "/me/agents/register", Some(body)).await;
        let id = reply["data"]["agent"]["id"].as_str().unwrap().to_owned();
        agents.push((id, reply["data"]["credentials"]["api_key"].as_str().unwrap().to_owned()));
    }
    let room = door.must(OWNER_KEY, Method::POST, "/me/chats", Some(json!({"chat": {}}))).await;
    let room = room["data"]["id"].as_str().unwrap().to_owned();
    for (id, _) in &agents {
        let body = json!({"participant": {"participant_id": id}});
        door.must(OWNER_KEY, Method::POST, &format!("/me/chats/{room}/participants"), Some(body)).await;
    }
    let (reader_id, reader) = agents.remove(0);
    Story {
        writers: agents.into_iter().map(|(_, key)| key).collect(),
        reader,
        reader_id,
        room,
        numbers: (0..WRITERS).map(|_| AtomicU64::new(0)).collect(),
        acknowledged: Mutex::default(),
    }
}

/// Every text of the room, oldest first.
pub(crate) async fn whole_history(door: &Door, room: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/me/chats/{room}/messages?message_type=text&limit=100{cursor}");
        let page = door.must(OWNER_KEY, Method::GET, &path, None).await;
        all.extend(page["data"].as_array().unwrap().iter().cloned());
        match page["metadata"]["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    all.reverse();
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_on_sqlite() {
    nothing_acknowledged_is_lost(Installation::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_on_postgres() {
    nothing_acknowledged_is_lost(Installation::on_postgres().await).await;
}
