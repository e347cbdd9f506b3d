//! When a request is sent again, and when it must not be.

use bandstand_agent::client::{Client, ClientError, EventDraft, Idempotency, MarkFate, MessageDraft};
use bandstand_agent::wire::ids::RoomId;

use crate::support::stand_in::{ANN, Fault, ROOM, StandIn, error};
use crate::support::{client, options};

fn room() -> RoomId {
    ROOM.parse().unwrap()
}

fn draft() -> MessageDraft {
    MessageDraft::new("hi").to(ANN.parse().unwrap())
}

fn client_with(platform: &StandIn, idempotency: Idempotency) -> Client {
    let mut options = options(&platform.url(), "band_a_secret");
    options.idempotency = idempotency;
    options.build().unwrap()
}

#[tokio::test]
async fn a_read_is_repeated_after_whatever_may_pass() {
    let platform = StandIn::start(None).await;
    for fault in [Fault::Status(500, vec![]), Fault::Cut, Fault::Status(429, vec![])] {
        platform.fault("/participants", fault);
    }
    assert_eq!(client(&platform.url(), "k").participants(room()).await.unwrap().len(), 2);
    assert_eq!(platform.asked().len(), 4);

    let platform = StandIn::start(None).await;
    platform.break_all("/participants", Fault::Status(502, vec![]));
    let failed = client(&platform.url(), "k").participants(room()).await.unwrap_err();
    assert_eq!((failed.status(), platform.asked().len()), (Some(502), 4));
}

#[tokio::test]
async fn a_refusal_is_final() {
    let platform = StandIn::start(None).await;
    for status in [400, 401, 403, 404, 409, 422] {
        platform.fault("/messages", Fault::Status(status, vec![]));
        let failed = client(&platform.url(), "k").post_message(room(), &draft()).await.unwrap_err();
        assert_eq!(failed.status(), Some(status));
    }
    assert_eq!(platform.count("/messages"), 6);
}

#[tokio::test]
async fn a_post_is_repeated_when_it_surely_did_nothing() {
    let platform = StandIn::start(None).await;
    for status in [429, 503] {
        platform.fault("/messages", Fault::Status(status, vec![]));
    }
    client(&platform.url(), "k").post_message(room(), &draft()).await.unwrap();
    assert_eq!(platform.count("/messages"), 3);
}

#[tokio::test]
async fn a_post_whose_outcome_is_unknown_is_not_repeated_at_the_hosted_platform() {
    let platform = StandIn::start(None).await;
    for fault in [Fault::Cut, Fault::Status(500, vec![])] {
        platform.fault("/messages", fault);
        let failed = client(&platform.url(), "k").post_message(room(), &draft()).await.unwrap_err();
        assert!(failed.is_outcome_unknown(), "{failed}");
    }
    assert_eq!(platform.count("/messages"), 2);
}

#[tokio::test]
async fn at_our_own_server_it_is_repeated_with_the_same_key() {
    for (name, idempotency) in [(Some("bandstand"), Idempotency::Detect), (None, Idempotency::Supported)] {
        let platform = StandIn::start(name).await;
        platform.fault("/messages", Fault::Cut);
        platform.fault("/messages", Fault::Status(500, vec![]));
        let client = client_with(&platform, idempotency);
        client.post_message(room(), &draft()).await.unwrap();
        let keys: Vec<String> = platform
            .asked()
            .iter()
            .map(|asked| asked.headers["idempotency-key"].to_str().unwrap().to_owned())
            .collect();
        assert_eq!(keys.len(), 3);
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        client.post_event(room(), &EventDraft::thought("hm")).await.unwrap();
        let other = platform.asked().last().unwrap().headers["idempotency-key"].clone();
        assert_ne!(other.to_str().unwrap(), keys[0]);
    }
}

#[tokio::test]
async fn a_deletion_is_not_repeated_after_an_unknown_outcome_anywhere() {
    let platform = StandIn::start(Some("bandstand")).await;
    platform.fault(ANN, Fault::Cut);
    let client = client(&platform.url(), "k");
    assert!(client.remove_participant(room(), ANN.parse().unwrap()).await.is_err());
    assert_eq!(platform.asked().len(), 1);
}

#[tokio::test]
async fn the_final_marks_have_one_try_and_a_claim_has_several() {
    let platform = StandIn::start(Some("bandstand")).await;
    let (client, message) = (client(&platform.url(), "k"), ANN.parse().unwrap());
    platform.fault("/processing", Fault::Cut);
    assert_eq!(client.mark_processing(room(), message).await.unwrap().attempt_number, 1);
    platform.fault("/processed", Fault::Cut);
    let failed = client.mark_processed(room(), message).await.unwrap_err();
    assert_eq!(failed.mark_fate(), MarkFate::Unconfirmed);
    platform.fault("/failed", Fault::Status(503, vec![]));
    assert!(client.mark_failed(room(), message, " ").await.is_err());
    assert_eq!(platform.asked().last().unwrap().body["error"], "Unknown error");
    let claims = platform.count("/processing");
    assert_eq!((claims, platform.count("/processed"), platform.count("/failed")), (2, 1, 1));
}

#[tokio::test]
async fn only_our_own_server_is_told_that_a_message_was_declined() {
    for (name, body) in
        [(Some("bandstand"), serde_json::json!({"outcome": "declined"})), (None, serde_json::Value::Null)]
    {
        let platform = StandIn::start(name).await;
        client(&platform.url(), "k").mark_declined(room(), ANN.parse().unwrap(), None).await.unwrap();
        assert_eq!(platform.asked()[0].body, body);
    }
}

#[tokio::test]
async fn a_stop_is_told_apart_from_a_failure() {
    let platform = StandIn::start(None).await;
    let client = client(&platform.url(), "k");
    let stopped = error("forbidden", "This agent's EXECUTION is stopped");
    platform.fault("/messages", Fault::Body(403, stopped));
    let failed = client.post_message(room(), &draft()).await.unwrap_err();
    assert_eq!(failed.to_string(), format!("Room {ROOM}: platform execution was stopped"));
    platform.fault("/processing", Fault::Body(204, serde_json::Value::Null));
    let failed = client.mark_processing(room(), ANN.parse().unwrap()).await.unwrap_err();
    assert_eq!(failed.mark_fate(), MarkFate::Stopped);
}

#[tokio::test]
async fn a_server_that_asks_for_too_much_patience_is_taken_at_its_word() {
    let platform = StandIn::start(None).await;
    platform.fault("/participants", Fault::Status(429, vec![("retry-after", "3600".into())]));
    let failed = client(&platform.url(), "k").participants(room()).await.unwrap_err();
    assert_eq!((failed.status(), platform.asked().len()), (Some(429), 1));
}

#[tokio::test]
async fn no_error_shows_a_key_a_header_a_body_or_an_address() {
    let platform = StandIn::start(None).await;
    let client = client_with(&platform, Idempotency::Unsupported);
    let port = platform.address.port().to_string();
    let nobody = crate::support::client("http://127.0.0.1:1", "band_a_secret");
    let mut texts = vec![format!("{client:?} {:?}", client.options())];
    for fault in [Fault::Status(422, vec![]), Fault::Status(500, vec![]), Fault::Cut] {
        platform.fault("/messages", fault);
        texts.push(client.post_message(room(), &draft()).await.unwrap_err().to_string());
    }
    platform.fault("/me", Fault::Body(200, serde_json::json!({"data": {"id": "secret"}})));
    texts.push(client.me().await.unwrap_err().to_string());
    let unreachable = nobody.me().await.unwrap_err();
    assert!(matches!(unreachable, ClientError::Unreachable { .. }), "{unreachable:?}");
    texts.push(unreachable.to_string());
    for text in texts.iter().skip(1) {
        assert!(!text.contains("secret") && !text.contains(&port) && !text.contains("127.0.0.1"), "{text}");
    }
    assert!(!texts[0].contains("band_a_secret"), "{}", texts[0]);
    assert_eq!(texts[1], "422 some_code: some message");
}

#[test]
fn an_address_that_is_none_is_refused() {
    for bad in ["", "localhost:4000", "ftp://x", "http://"] {
        assert!(Client::new(bad, "k").is_err(), "{bad}");
    }
    assert_eq!(Client::new("http://x/band/api/v1/", "k").unwrap().base_url(), "http://x/band");
    assert!(Client::new("http://x", "line\nbreak").is_err());
}
