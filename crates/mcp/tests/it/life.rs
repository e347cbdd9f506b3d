//! Living in rooms with nothing but MCP.

use std::time::Duration;

use bandstand_mcp::Choices;
use bandstand_testkit::TestServer;
use reqwest::Method;
use rmcp::model::{CallToolRequestParams, ClientRequest, Request};
use rmcp::service::PeerRequestOptions;
use serde_json::json;

use super::support::{piped, piped_with};

#[tokio::test]
async fn the_oldest_message_of_any_room_comes_first_and_the_next_wait_settles_it() {
    let server = TestServer::start().await;
    let seat = server.agent("editor").await;
    let (one, two) = (server.owner().room(&[&seat]).await, server.owner().room(&[&seat]).await);
    let mut watch = two.watch().await;
    let mut messages = Vec::new();
    for (room, words) in [(&two, "first"), (&one, "second"), (&two, "third")] {
        server.clock().advance(Duration::from_secs(1));
        messages.push(room.says(words, &[&seat]).await);
    }
    let editor = piped(&server, &seat).await;
    for (words, message) in ["first", "second", "third"].iter().zip(&messages) {
        let given = editor.waits().await;
        assert!(given["content"].as_str().unwrap().ends_with(words), "{given}");
        assert_eq!((&given["id"], &given["attempt"]), (&json!(message), &json!(1)));
    }
    watch.status(messages[0], &seat, "processed").await;
    // A live one, in a room that the agent enters while it waits.
    let waiting = editor.waits();
    let says = async {
        let room = server.owner().room(&[&seat]).await;
        room.says("in a new room", &[&seat]).await
    };
    let (given, _) = tokio::join!(waiting, says);
    assert!(given["content"].as_str().unwrap().ends_with("in a new room"));
    watch.status(messages[2], &seat, "processed").await;
}

#[tokio::test]
async fn what_was_not_settled_is_served_again_to_the_next_session() {
    let server = TestServer::start().await;
    let seat = server.agent("editor").await;
    let room = server.owner().room(&[&seat]).await;
    let message = room.says("Are you there?", &[&seat]).await;
    let editor = piped(&server, &seat).await;
    assert_eq!(editor.waits().await["id"], json!(message));
    editor.drops().await;
    let editor = piped(&server, &seat).await;
    let again = editor.waits().await;
    assert_eq!((&again["id"], &again["attempt"]), (&json!(message), &json!(2)));
    let done = editor.call("band_finish_message", json!({"outcome": "declined", "reason": "not mine"})).await;
    assert_eq!(done["status"], "declined");
    let why = editor.call("band_why", json!({"chat_id": room.id, "message_id": message})).await;
    assert!(why["data"].to_string().contains("declined"), "{why}");
    let nothing = editor.call("band_wait_for_message", json!({"timeout_s": 0})).await;
    assert_eq!((&nothing["message"], &nothing["settled"]), (&json!(null), &json!(null)));
    assert!(editor.fails("band_finish_message", json!({"outcome": "processed"})).await.contains("No message"));
}

#[tokio::test]
async fn a_server_that_restarts_meanwhile_costs_nothing() {
    let server = TestServer::start().await;
    let seat = server.agent("editor").await;
    let room = server.owner().room(&[&seat]).await;
    let mut heard = Vec::new();
    let editor = piped(&server, &seat).await;
    room.says("one", &[&seat]).await;
    heard.push(editor.waits().await);
    server.restart().await;
    room.says("two", &[&seat]).await;
    heard.push(editor.waits().await);
    server.crash().await;
    server.come_back().await;
    room.says("three", &[&seat]).await;
    heard.push(editor.waits().await);
    let words: Vec<&str> = heard.iter().filter_map(|row| row["content"].as_str()?.split(' ').next_back()).collect();
    assert_eq!(words, ["one", "two", "three"]);
}

#[tokio::test]
async fn an_answer_that_nobody_read_is_given_again() {
    let server = TestServer::start().await;
    let seat = server.agent("editor").await;
    let room = server.owner().room(&[&seat]).await;
    let editor = piped(&server, &seat).await;
    // The client gives up on a wait.
    let call = CallToolRequestParams::new("band_wait_for_message")
        .with_arguments(json!({"timeout_s": 50}).as_object().cloned().unwrap());
    let request = ClientRequest::CallToolRequest(Request::new(call));
    let handle = editor.client.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
    handle.cancel(Some("changed its mind".into())).await.unwrap();
    let first = room.says("first", &[&seat]).await;
    assert_eq!(editor.waits().await["id"], json!(first));
    // An answer is lost on its way: the client says which one it had.
    let second = room.says("second", &[&seat]).await;
    let given = editor.call("band_wait_for_message", json!({"timeout_s": 20, "handled": first})).await;
    assert_eq!((&given["message"]["id"], &given["settled"]["status"]), (&json!(second), &json!("processed")));
    let again = editor.call("band_wait_for_message", json!({"timeout_s": 20, "handled": first})).await;
    assert_eq!((&again["message"]["id"], &again["settled"]), (&json!(second), &json!(null)));
}

#[tokio::test]
async fn a_stopped_agent_waits_until_it_may_go_on() {
    let server = TestServer::start().await;
    let seat = server.agent("editor").await;
    let room = server.owner().room(&[&seat]).await;
    let editor = piped(&server, &seat).await;
    server.owner().stops(&room).await;
    let message = room.says("held back", &[&seat]).await;
    let nothing = editor.call("band_wait_for_message", json!({"timeout_s": 1})).await;
    assert_eq!(nothing["message"], json!(null));
    let refusal =
        editor.fails("band_send_event", json!({"chat_id": room.id, "content": "hm", "message_type": "thought"})).await;
    assert!(refusal.contains("stopped"), "{refusal}");
    let (given, ()) = tokio::join!(editor.waits(), async { server.owner().plays(&room).await });
    assert_eq!(given["id"], json!(message));
}

#[tokio::test]
async fn a_pinned_room_is_the_only_one() {
    let server = TestServer::start().await;
    let seat = server.agent("editor").await;
    let (room, other) = (server.owner().room(&[&seat]).await, server.owner().room(&[&seat]).await);
    other.says("elsewhere", &[&seat]).await;
    let here = room.says("here", &[&seat]).await;
    let choices = Choices { room: Some(room.id.to_string()), ..Choices::default() };
    let editor = piped_with(&server, &seat, choices).await;
    assert_eq!(editor.waits().await["id"], json!(here));
    let nothing = editor.call("band_wait_for_message", json!({"timeout_s": 1})).await;
    assert_eq!((&nothing["message"], &nothing["settled"]["message_id"]), (&json!(null), &json!(here)));
    editor.call("band_send_message", json!({"content": "Yes", "mentions": [server.owner().handle]})).await;
    assert_eq!(room.said_by(&seat).await.len(), 1);
}

#[tokio::test]
async fn errors_tell_a_model_what_to_do() {
    let server = TestServer::start().await;
    let seat = server.agent("editor").await;
    let room = server.owner().room(&[&seat]).await;
    let editor = piped(&server, &seat).await;
    for (tool, arguments, words) in [
        ("band_nothing", json!({}), "Unknown tool: band_nothing"),
        ("band_get_participants", json!({}), "chat_id: Field required"),
        ("band_get_participants", json!({"chat_id": "no id"}), "not the ID of a chat room"),
        ("band_wait_for_message", json!({"timeout_s": 51}), "less than or equal to 50"),
        ("band_finish_message", json!({"outcome": "failed"}), "reason"),
        ("band_send_message", json!({"chat_id": room.id, "content": "x", "mentions": ["@nobody"]}), "@owner"),
        ("band_list_contacts", json!({}), "Unknown tool"),
    ] {
        let said = editor.fails(tool, arguments).await;
        assert!(said.contains(words), "{tool}: {said}");
    }
    let (status, _) = server.owner().request(Method::DELETE, &format!("/agents/{}?force=true", seat.id), None).await;
    assert!((200..300).contains(&status));
    let said = editor.fails("band_wait_for_message", json!({"timeout_s": 5})).await;
    assert!(
        said.contains("the key is not, or no longer, valid")
            && !said.contains("x-request-id")
            && !said.contains("band_a_"),
        "{said}"
    );
}
