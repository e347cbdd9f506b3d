//! What is joined, and what a frame means for it. No I/O: frames in, decisions out.

use std::collections::HashMap;

use bandstand_wire::phoenix::{ClientFrame, Topic, event, request};
use serde::Deserialize;
use tokio::sync::oneshot;

use super::JoinError;

pub(super) type JoinAnswer = oneshot::Sender<Result<(), JoinError>>;

/// Where a topic stands.
struct Channel {
    /// The number of its latest join.
    join_ref: u64,
    joined: bool,
    /// Who waits for it, at the first join.
    waiting: Option<JoinAnswer>,
    /// Why it is joined again.
    again: Option<Again>,
    /// Heartbeats since it was asked for.
    unanswered_beats: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    /// The connection was lost.
    Connection,
    /// The topic alone broke.
    Topic,
}

/// What a frame means.
#[derive(Debug, PartialEq)]
pub(super) enum Meaning {
    /// Nothing to do.
    Nothing,
    /// A push on a joined topic.
    Push(Topic),
    /// A topic broke: join it again soon.
    Broken(Topic),
    /// A topic that was joined before is joined again, by itself.
    Rejoined(Topic),
    /// A topic that was joined before is refused.
    Lost(Topic, String),
    /// The last topic of a reconnect is answered.
    Back,
    /// The server is alive.
    Alive,
}

/// Everything that is joined or to be joined.
#[derive(Default)]
pub(super) struct Channels {
    reference: u64,
    channels: HashMap<Topic, Channel>,
    leaving: HashMap<u64, oneshot::Sender<()>>,
    heartbeat: Option<u64>,
    /// Whether a reconnect waits for topics.
    reconnecting: bool,
}

#[derive(Deserialize)]
struct Reply {
    status: String,
    #[serde(default)]
    response: Response,
}

#[derive(Default, Deserialize)]
struct Response {
    #[serde(default)]
    reason: Option<String>,
}

impl Channels {
    fn next(&mut self) -> u64 {
        self.reference += 1;
        self.reference
    }

    /// Wants a topic; the frame that asks for it, unless it is joined already or being joined.
    pub(super) fn join(&mut self, topic: Topic, answer: JoinAnswer, connected: bool) -> Option<String> {
        if let Some(channel) = self.channels.get_mut(&topic) {
            if channel.joined {
                let _ = answer.send(Ok(()));
            } else {
                channel.waiting = Some(answer);
            }
            return None;
        }
        let join_ref = self.next();
        let channel = Channel { join_ref, joined: false, waiting: Some(answer), again: None, unanswered_beats: 0 };
        self.channels.insert(topic, channel);
        connected.then(|| request(Some(join_ref), join_ref, &topic.to_string(), event::JOIN))
    }

    /// Does not want a topic any more; the frame that says so.
    pub(super) fn leave(
        &mut self,
        topic: Topic,
        answer: Option<oneshot::Sender<()>>,
        connected: bool,
    ) -> Option<String> {
        let channel = self.channels.remove(&topic)?;
        if !connected {
            return None;
        }
        let reference = self.next();
        if let Some(answer) = answer {
            self.leaving.insert(reference, answer);
        }
        Some(request(Some(channel.join_ref), reference, &topic.to_string(), event::LEAVE))
    }

    /// The connection is gone: everything is to be joined again.
    pub(super) fn lost(&mut self) {
        self.leaving.clear();
        self.heartbeat = None;
        for channel in self.channels.values_mut() {
            if channel.joined || channel.again.is_some() {
                channel.again = Some(Again::Connection);
            }
            channel.joined = false;
        }
    }

    /// The connection is back: the frames that ask for everything, control topics first.
    pub(super) fn rejoin_all(&mut self) -> Vec<String> {
        // At the first connect there is nothing to come back to.
        self.reconnecting = self.channels.values().any(|channel| channel.again == Some(Again::Connection));
        let mut topics: Vec<Topic> = self.channels.keys().copied().collect();
        topics.sort_unstable();
        topics.into_iter().filter_map(|topic| self.ask(topic)).collect()
    }

    /// Asks for a broken topic once more.
    pub(super) fn rejoin(&mut self, topic: Topic) -> Option<String> {
        self.channels.get(&topic).filter(|channel| !channel.joined)?;
        self.ask(topic)
    }

    fn ask(&mut self, topic: Topic) -> Option<String> {
        let join_ref = self.next();
        let channel = self.channels.get_mut(&topic)?;
        (channel.join_ref, channel.unanswered_beats) = (join_ref, 0);
        Some(request(Some(join_ref), join_ref, &topic.to_string(), event::JOIN))
    }

    /// A heartbeat, and whatever was not answered for two of them; none when the last one was not answered.
    pub(super) fn beat(&mut self) -> Option<Vec<String>> {
        if self.heartbeat.is_some() {
            return None;
        }
        let reference = self.next();
        self.heartbeat = Some(reference);
        let mut frames = vec![request(None, reference, event::HEARTBEAT_TOPIC, event::HEARTBEAT)];
        let mut forgotten = Vec::new();
        for (topic, channel) in self.channels.iter_mut().filter(|(_, channel)| !channel.joined) {
            channel.unanswered_beats += 1;
            if channel.unanswered_beats > 1 {
                forgotten.push(*topic);
            }
        }
        frames.extend(forgotten.into_iter().filter_map(|topic| self.ask(topic)));
        Some(frames)
    }

    /// What a frame of the server means.
    pub(super) fn read(&mut self, frame: &ClientFrame<'_>) -> Meaning {
        let own = |channel: &Channel| frame.join_ref.as_json().trim_matches('"') == channel.join_ref.to_string();
        if frame.event == event::REPLY {
            return self.answered(frame);
        }
        let Ok(topic) = Topic::parse(&frame.topic) else { return Meaning::Nothing };
        let Some(channel) = self.channels.get_mut(&topic) else { return Meaning::Nothing };
        match frame.event.as_str() {
            // With an old number it is about a join that is over.
            event::CLOSE | event::ERROR if own(channel) => {
                if channel.joined {
                    channel.again = Some(Again::Topic);
                }
                channel.joined = false;
                Meaning::Broken(topic)
            }
            event::CLOSE | event::ERROR => Meaning::Nothing,
            // A broadcast may come without a number.
            _ if channel.joined && (frame.join_ref.is_none() || own(channel)) => Meaning::Push(topic),
            _ => Meaning::Nothing,
        }
    }

    fn answered(&mut self, frame: &ClientFrame<'_>) -> Meaning {
        let Ok(reference) = frame.reference.as_json().trim_matches('"').parse::<u64>() else { return Meaning::Nothing };
        if frame.topic == event::HEARTBEAT_TOPIC {
            if self.heartbeat == Some(reference) {
                self.heartbeat = None;
            }
            return Meaning::Alive;
        }
        if let Some(answer) = self.leaving.remove(&reference) {
            let _ = answer.send(());
            return Meaning::Nothing;
        }
        let Ok(topic) = Topic::parse(&frame.topic) else { return Meaning::Nothing };
        let Some(channel) = self.channels.get_mut(&topic).filter(|channel| channel.join_ref == reference) else {
            return Meaning::Nothing;
        };
        let reply: Option<Reply> = serde_json::from_str(frame.payload.get()).ok();
        let (waiting, again) = (channel.waiting.take(), channel.again.take());
        if reply.as_ref().is_some_and(|reply| reply.status == "ok") {
            channel.joined = true;
            if let Some(waiting) = waiting {
                let _ = waiting.send(Ok(()));
            }
            return match again {
                Some(Again::Topic) => Meaning::Rejoined(topic),
                Some(Again::Connection) | None => self.back(),
            };
        }
        self.channels.remove(&topic);
        let reason = reply.and_then(|reply| reply.response.reason).unwrap_or_else(|| "no reason given".into());
        if let Some(waiting) = waiting {
            let _ = waiting.send(Err(JoinError::Refused(reason.clone())));
        }
        match again {
            Some(_) => Meaning::Lost(topic, reason),
            None => self.back(),
        }
    }

    /// Whether the reconnect is complete with this answer.
    pub(super) fn back(&mut self) -> Meaning {
        let waits = self.channels.values().any(|channel| channel.again == Some(Again::Connection));
        if self.reconnecting && !waits {
            self.reconnecting = false;
            return Meaning::Back;
        }
        Meaning::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bandstand_wire::ids::RoomId;
    use bandstand_wire::phoenix::{Version, parse};
    use uuid::Uuid;

    const ROOM: Topic = Topic::ChatRoom(RoomId(Uuid::from_u128(7)));

    fn read(channels: &mut Channels, text: &str) -> Meaning {
        let text = text.replace("ROOM", &ROOM.to_string());
        channels.read(&parse(Version::V2, &text).unwrap())
    }

    fn joined() -> Channels {
        let mut channels = Channels::default();
        let (answer, mut answered) = oneshot::channel();
        let frame = channels.join(ROOM, answer, true).unwrap();
        assert_eq!(frame, format!(r#"["1","1","{ROOM}","phx_join",{{}}]"#));
        let ok = r#"["1","1","ROOM","phx_reply",{"status":"ok","response":{}}]"#;
        assert_eq!(read(&mut channels, ok), Meaning::Nothing);
        assert_eq!(answered.try_recv(), Ok(Ok(())));
        channels
    }

    #[test]
    fn only_pushes_of_the_current_join_count() {
        let mut channels = joined();
        assert_eq!(read(&mut channels, r#"["1",null,"ROOM","message_created",{}]"#), Meaning::Push(ROOM));
        assert_eq!(read(&mut channels, r#"[null,null,"ROOM","message_created",{}]"#), Meaning::Push(ROOM));
        assert_eq!(read(&mut channels, r#"["9",null,"ROOM","message_created",{}]"#), Meaning::Nothing);
        assert_eq!(read(&mut channels, r#"["9","9","ROOM","phx_close",{}]"#), Meaning::Nothing);
    }

    #[test]
    fn a_refused_join_is_forgotten() {
        let mut channels = Channels::default();
        let (answer, mut answered) = oneshot::channel();
        channels.join(ROOM, answer, true).unwrap();
        let no = r#"["1","1","ROOM","phx_reply",{"status":"error","response":{"reason":"unauthorized"}}]"#;
        assert_eq!(read(&mut channels, no), Meaning::Nothing);
        assert_eq!(answered.try_recv(), Ok(Err(JoinError::Refused("unauthorized".into()))));
        assert!(channels.rejoin_all().is_empty());
    }

    #[test]
    fn a_broken_topic_is_joined_again_with_a_new_number() {
        let mut channels = joined();
        assert_eq!(read(&mut channels, r#"["1","1","ROOM","phx_error",{}]"#), Meaning::Broken(ROOM));
        assert_eq!(channels.rejoin(ROOM), Some(format!(r#"["2","2","{ROOM}","phx_join",{{}}]"#)));
        let ok = r#"["2","2","ROOM","phx_reply",{"status":"ok","response":{}}]"#;
        assert_eq!(read(&mut channels, ok), Meaning::Rejoined(ROOM));
        assert_eq!(channels.rejoin(ROOM), None);
    }

    #[test]
    fn after_a_reconnect_every_topic_is_answered_before_it_is_over() {
        let mut channels = joined();
        channels.lost();
        assert_eq!(channels.rejoin_all().len(), 1);
        let ok = r#"["2","2","ROOM","phx_reply",{"status":"ok","response":{}}]"#;
        assert_eq!(read(&mut channels, ok), Meaning::Back);

        channels.lost();
        channels.rejoin_all();
        let no = r#"["3","3","ROOM","phx_reply",{"status":"error","response":{"reason":"unauthorized"}}]"#;
        assert_eq!(read(&mut channels, no), Meaning::Lost(ROOM, "unauthorized".into()));
        assert_eq!(channels.back(), Meaning::Back);
    }

    #[test]
    fn a_heartbeat_without_an_answer_is_noticed() {
        let mut channels = Channels::default();
        assert_eq!(channels.beat().unwrap(), [r#"[null,"1","phoenix","heartbeat",{}]"#]);
        assert_eq!(channels.beat(), None);
        let alive = r#"[null,"1","phoenix","phx_reply",{"status":"ok","response":{}}]"#;
        assert_eq!(read(&mut channels, alive), Meaning::Alive);
        assert!(channels.beat().is_some());
    }

    #[test]
    fn a_leave_names_the_join_that_it_ends() {
        let mut channels = joined();
        let (answer, mut answered) = oneshot::channel();
        assert_eq!(channels.leave(ROOM, Some(answer), true), Some(format!(r#"["1","2","{ROOM}","phx_leave",{{}}]"#)));
        read(&mut channels, r#"["1","2","ROOM","phx_reply",{"status":"ok","response":{}}]"#);
        assert_eq!(answered.try_recv(), Ok(()));
        assert_eq!(channels.leave(ROOM, None, true), None);
    }
}
