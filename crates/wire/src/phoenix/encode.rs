//! What the server sends: frame to text. A payload is serialised by the caller, once for all who hear it; only the
//! short part before it differs from socket to socket.

use super::event;
use super::frame::{Ref, Version};

/// How a request of a client ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok,
    /// Refused.
    Error,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
        }
    }
}

/// An event of a channel. `join_ref` must be the one of this socket's own join: without it the Python client drops the
/// event and says nothing.
pub fn push(version: Version, join_ref: &Ref, topic: &str, event: &str, payload: &str) -> String {
    frame(version, join_ref, &Ref::NONE, topic, event, &[payload])
}

/// The answer to a client's frame, with the frame's own refs and topic. `response` is a JSON object.
pub fn reply(version: Version, join_ref: &Ref, reference: &Ref, topic: &str, status: Status, response: &str) -> String {
    let payload = ["{\"status\":\"", status.as_str(), "\",\"response\":", response, "}"];
    frame(version, join_ref, reference, topic, event::REPLY, &payload)
}

/// A [`reply`] that refuses, with the reason that clients show or compare.
pub fn refusal(version: Version, join_ref: &Ref, reference: &Ref, topic: &str, reason: &str) -> String {
    let mut response = String::with_capacity(reason.len() + 13);
    response.push_str("{\"reason\":");
    push_json_string(&mut response, reason);
    response.push('}');
    reply(version, join_ref, reference, topic, Status::Error, &response)
}

/// A channel ended: after a leave, or because a newer join of the same topic took its place.
pub fn close(version: Version, join_ref: &Ref, topic: &str) -> String {
    frame(version, join_ref, join_ref, topic, event::CLOSE, &["{}"])
}

/// A channel broke; the client joins it again.
pub fn error(version: Version, join_ref: &Ref, topic: &str) -> String {
    frame(version, join_ref, join_ref, topic, event::ERROR, &["{\"reason\":\"channel_crash\"}"])
}

/// What a client sends, in version 2 and without a payload: a join (whose `join_ref` is its `reference`), a leave (with
/// the `join_ref` of the join that it ends), or a heartbeat (without one).
pub fn request(join_ref: Option<u64>, reference: u64, topic: &str, event: &str) -> String {
    let quoted = |number: u64| format!("\"{number}\"");
    let join_ref = join_ref.map_or_else(|| "null".to_owned(), quoted);
    let mut out = format!("[{join_ref},{},", quoted(reference));
    push_json_string(&mut out, topic);
    out.push(',');
    push_json_string(&mut out, event);
    out.push_str(",{}]");
    out
}

fn frame(version: Version, join_ref: &Ref, reference: &Ref, topic: &str, event: &str, payload: &[&str]) -> String {
    let (join_ref, reference) = (join_ref.as_json(), reference.as_json());
    let length: usize = payload.iter().map(|part| part.len()).sum();
    // 48 holds the punctuation and, in version 1, the names of the fields.
    let mut out = String::with_capacity(length + topic.len() + event.len() + join_ref.len() + reference.len() + 48);
    match version {
        Version::V2 => {
            out.push('[');
            out.push_str(join_ref);
            out.push(',');
            out.push_str(reference);
            out.push(',');
            push_json_string(&mut out, topic);
            out.push(',');
            push_json_string(&mut out, event);
            out.push(',');
            payload.iter().for_each(|part| out.push_str(part));
            out.push(']');
        }
        Version::V1 => {
            out.push_str("{\"topic\":");
            push_json_string(&mut out, topic);
            out.push_str(",\"event\":");
            push_json_string(&mut out, event);
            out.push_str(",\"ref\":");
            out.push_str(reference);
            out.push_str(",\"payload\":");
            payload.iter().for_each(|part| out.push_str(part));
            out.push('}');
        }
    }
    out
}

/// Nearly every topic and event needs no escape, so the common case copies.
fn push_json_string(out: &mut String, text: &str) {
    if text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&serde_json::Value::from(text).to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use proptest::prelude::*;

    fn reference(json: &str) -> Ref {
        parse(Version::V2, &format!(r#"[{json},null,"t","e",{{}}]"#)).unwrap().join_ref
    }

    #[test]
    fn every_frame_of_version_2() {
        let (j, r) = (reference("\"3\""), reference("\"9\""));
        let v2 = Version::V2;
        assert_eq!(
            push(v2, &j, "chat_room:x", "message_created", "{\"id\":1}"),
            r#"["3",null,"chat_room:x","message_created",{"id":1}]"#
        );
        assert_eq!(
            reply(v2, &Ref::NONE, &r, "phoenix", Status::Ok, "{}"),
            r#"[null,"9","phoenix","phx_reply",{"status":"ok","response":{}}]"#
        );
        assert_eq!(
            refusal(v2, &j, &r, "a\"b", "unmatched topic"),
            r#"["3","9","a\"b","phx_reply",{"status":"error","response":{"reason":"unmatched topic"}}]"#
        );
        assert_eq!(close(v2, &j, "t"), r#"["3","3","t","phx_close",{}]"#);
        assert_eq!(error(v2, &j, "t"), r#"["3","3","t","phx_error",{"reason":"channel_crash"}]"#);
    }

    #[test]
    fn what_a_client_sends() {
        assert_eq!(request(Some(3), 3, "chat_room:x", "phx_join"), r#"["3","3","chat_room:x","phx_join",{}]"#);
        let heartbeat = request(None, 9, "phoenix", "heartbeat");
        assert_eq!(heartbeat, r#"[null,"9","phoenix","heartbeat",{}]"#);
        assert_eq!(parse(Version::V2, &heartbeat).unwrap().event, "heartbeat");
    }

    #[test]
    fn version_1_has_no_join_ref() {
        let r = reference("\"9\"");
        assert_eq!(push(Version::V1, &r, "t", "e", "{}"), r#"{"topic":"t","event":"e","ref":null,"payload":{}}"#);
        assert_eq!(
            reply(Version::V1, &Ref::NONE, &r, "t", Status::Ok, "{}"),
            r#"{"topic":"t","event":"phx_reply","ref":"9","payload":{"status":"ok","response":{}}}"#
        );
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            join_ref in prop_oneof![Just("null".to_owned()), "\"[0-9]{1,9}\"", "[1-9][0-9]{0,8}"],
            topic in ".{0,40}",
            event in ".{0,20}",
            text in ".{0,40}",
        ) {
            let join_ref = reference(&join_ref);
            let payload = serde_json::json!({ "text": text }).to_string();
            for version in [Version::V1, Version::V2] {
                let written = push(version, &join_ref, &topic, &event, &payload);
                let frame = parse(version, &written).unwrap();
                prop_assert_eq!(&frame.topic, &topic);
                prop_assert_eq!(&frame.event, &event);
                prop_assert_eq!(frame.payload.get(), payload.as_str());
                prop_assert!(frame.reference.is_none());
                if version == Version::V2 {
                    prop_assert_eq!(&frame.join_ref, &join_ref);
                }
                let answered = reply(version, &join_ref, &join_ref, &topic, Status::Ok, &payload);
                prop_assert_eq!(&parse(version, &answered).unwrap().reference, &join_ref);
            }
        }
    }
}
