//! The platform's tools against the real server: results, effects, and the words that a model reads.

use bandstand_agent::failure::{AgentFailure, FailureReport};
use bandstand_agent::registry::{Effect, FailureKind, Filter, Tool, ToolError};
use bandstand_agent::tools::{AgentTools, Binding, Capabilities, Capability, ContactTools, Format, Toolbox};
use serde_json::{Value, json};

use crate::support::World;

async fn text(tools: &AgentTools, tool: &str, arguments: Value) -> String {
    tools.execute_tool_call_structured(tool, arguments).await.unwrap().text()
}

#[tokio::test]
async fn a_reply_reaches_those_who_are_meant_however_they_are_called() {
    let world = World::start().await;
    let [bob, cy] = [world.agent("Bob").await, world.agent("Cy").await];
    let room = world.room(&[&bob, &cy]).await;
    let tools = bob.tools(room);
    let posted = tools.send_message("hello", &["@OLGA", "olga/CY", "cy"]).await.unwrap().unwrap();
    let recipients: Vec<_> = posted.recipients.iter().map(|recipient| recipient.id).collect();
    assert_eq!(recipients, [world.owner, cy.me.id]);
    assert!(tools.turn().replied());

    let value = tools
        .execute_tool_call("band_send_message", json!({"content": "again", "mentions": [cy.me.id], "extra": 1}))
        .await
        .unwrap();
    let expected = json!({"id": value["id"], "recipients": [{"id": cy.me.id, "handle": "olga/cy", "name": "Cy"}],
        "success": true, "inserted_at": null});
    assert_eq!(value, expected);

    let tools = bob.tools(room);
    let handles = "Available handles: ['@olga', '@olga/cy']";
    assert_eq!(
        text(&tools, "band_send_message", json!({"content": "x", "mentions": []})).await,
        "At least one mention is required"
    );
    assert_eq!(
        text(&tools, "band_send_message", json!({"content": "x", "mentions": ["@nobody"]})).await,
        format!("Error executing band_send_message: Unknown participant 'nobody'. {handles}")
    );
    assert_eq!(
        text(&tools, "band_send_message", json!({"content": "x", "mentions": []})).await,
        format!("At least one mention is required. {handles}. Use participant handles from the list.")
    );
    assert_eq!(
        text(&tools, "band_send_message", json!({"content": "x", "mentions": ["bob"]})).await,
        format!("Error executing band_send_message: You cannot mention yourself. {handles}")
    );
    assert!(!tools.turn().complete());
    world.end().await;
}

#[tokio::test]
async fn somebody_who_has_just_joined_is_found() {
    let world = World::start().await;
    let [bob, cy] = [world.agent("Bob").await, world.agent("Cy").await];
    let room = world.room(&[&bob]).await;
    let tools = bob.tools(room);
    tools.get_participants().await.unwrap();
    let body = json!({"participant": {"participant_id": cy.me.id, "role": "member"}});
    world.person("POST", &format!("chats/{room}/participants"), body).await;
    assert!(tools.send_message("welcome", &["@olga/cy"]).await.unwrap().is_some());
    world.end().await;
}

#[tokio::test]
async fn people_come_and_go() {
    let world = World::start().await;
    let [bob, _cy] = [world.agent("Bob").await, world.agent("Cy").await];
    let room = bob.tools(world.room(&[&bob]).await).create_chatroom(None).await.unwrap();
    let tools = bob.tools(room);
    let peers = tools.execute_tool_call("band_lookup_peers", json!({})).await.unwrap();
    assert_eq!(peers["metadata"]["total_count"], 2);
    let added = tools.execute_tool_call("band_add_participant", json!({"name": "@Olga/Cy"})).await.unwrap();
    assert_eq!((&added["name"], &added["status"], &added["role"]), (&json!("Cy"), &json!("added"), &json!("member")));
    assert!(tools.turn().complete() && !tools.turn().replied());
    let again = tools.execute_tool_call("band_add_participant", json!({"identifier": "cy", "role": "admin"})).await;
    assert_eq!(again.unwrap()["status"], "already_in_room");
    assert_eq!(tools.participants().len(), 2);
    let removed = tools.execute_tool_call("band_remove_participant", json!({"identifier": "CY"})).await.unwrap();
    assert_eq!(removed["status"], "removed");
    assert_eq!(tools.participants().len(), 1);
    assert_eq!(
        text(&tools, "band_add_participant", json!({"identifier": "who"})).await,
        "Error executing band_add_participant: Participant 'who' not found. Use band_lookup_peers to find available \
         peers."
    );
    assert_eq!(
        text(&tools, "band_remove_participant", json!({"identifier": "who"})).await,
        "Error executing band_remove_participant: Participant 'who' not found in this room."
    );
    let rows = tools.execute_tool_call("band_get_participants", json!({})).await.unwrap();
    let keys: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "name", "type", "role", "status", "handle", "online", "avatar_url"]);
    world.end().await;
}

#[tokio::test]
async fn every_tool_works_once() {
    let world = World::start().await;
    let [bob, _cy] = [world.agent("Bob").await, world.agent("Cy").await];
    let room = world.room(&[&bob]).await;
    let tools = bob.tools(room);
    let call = async |tool: &str, arguments: Value| {
        let outcome = tools.execute_tool_call_structured(tool, arguments).await.unwrap();
        assert!(outcome.ok(), "{tool}: {}", outcome.text());
        outcome.into_value()
    };
    let event = call("band_send_event", json!({"content": "hm", "message_type": "thought"})).await;
    assert_eq!((&event["message_type"], &event["success"]), (&json!("thought"), &json!(true)));
    assert_eq!(call("band_no_reply", json!({"reason": "x"})).await, json!({"status": "no_reply"}));
    assert!(call("band_create_chatroom", json!({})).await.is_string());
    assert_eq!(call("band_add_contact", json!({"handle": "@olga/cy"})).await["status"], "pending");
    assert_eq!(call("band_list_contacts", json!({})).await["data"], json!([]));
    let requests = call("band_list_contact_requests", json!({})).await;
    assert_eq!(requests["data"]["sent"][0]["to_handle"], "olga/cy");
    let id = requests["data"]["sent"][0]["id"].clone();
    let cancelled = call("band_respond_contact_request", json!({"action": "cancel", "request_id": id})).await;
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(
        text(&tools, "band_remove_contact", json!({})).await,
        "Error executing band_remove_contact: Either handle or contact_id must be provided"
    );
    let memory = json!({"content": "c", "thought": "t", "system": "working", "type": "semantic", "segment": "user",
        "scope": "agent"});
    let stored = call("band_store_memory", memory).await;
    assert_eq!(stored["subject_id"], Value::Null);
    let id = json!({"memory_id": stored["id"]});
    call("band_get_memory", id.clone()).await;
    assert_eq!(call("band_list_memories", json!({"scope": "agent"})).await["data"][0]["id"], stored["id"]);
    call("band_archive_memory", id.clone()).await;
    call("band_supersede_memory", id).await;
    let organization = json!({"content": "c", "thought": "t", "system": "working", "type": "semantic",
        "segment": "user", "scope": "organization"});
    assert_eq!(
        text(&tools, "band_store_memory", organization).await,
        "scope=\"organization\" was rejected: the agent's owner does not belong to an organization. Retry with \
         scope=\"agent\" instead."
    );
    call("band_create_task", json!({"subject": "one"})).await;
    call("band_create_task", json!({"subject": "two", "supersedes_id": "#1"})).await;
    assert_eq!(call("band_list_tasks", json!({"state": "all", "limit": "5"})).await["data"][0]["state"], "superseded");
    let updated = call("band_update_task", json!({"id": "#2", "status": "completed", "state": "archived"})).await;
    assert_eq!(updated["overall_status"], "completed");
    assert!(call("band_get_task", json!({"id": "2", "include": "history"})).await["history"].is_array());
    assert!(call("band_get_task_history", json!({"id": "2"})).await["metadata"]["limit"].is_i64());
    assert_eq!(call("band_set_board", json!({"goal_title": "g"})).await["goal_title"], "g");
    assert_eq!(call("band_get_board", json!({"include": null})).await["goal_title"], "g");
    let sent = json!({"content": "hello", "filename": "a.txt", "mentions": ["olga"]});
    let sent = call("band_send_room_file", sent).await;
    let files = call("band_list_room_files", json!({})).await;
    assert_eq!(files["data"][0]["id"], sent["attachment"]["id"]);
    let file = call("band_read_room_file", json!({"file_id": sent["attachment"]["id"]})).await;
    assert_eq!(file["text"], "hello");
    assert_eq!(
        text(&tools, "band_read_room_file", json!({"file_id": "nothing"})).await,
        "File not found, or file transfer is unavailable in this room."
    );
    let bad = json!({"content": "x", "filename": "é", "mentions": ["olga"]});
    assert!(text(&tools, "band_send_room_file", bad).await.contains("printable ASCII"));
    assert!(world.history(room).await.iter().any(|(_, content)| content.ends_with("Shared a file: a.txt")));
    world.end().await;
}

#[tokio::test]
async fn a_notice_and_a_failure_and_another_rooms_context() {
    let world = World::start().await;
    let bob = world.agent("Bob").await;
    let room = world.room(&[&bob]).await;
    let tools = bob.tools(room);
    tools.send_notice("one moment", &["olga"]).await.unwrap();
    assert!(!tools.turn().complete());
    let context = tools.fetch_room_context(room, 1, 50).await.unwrap();
    assert_eq!((context["data"].as_array().unwrap().len(), &context["meta"]["page"]), (1, &json!(1)));
    assert_eq!(tools.send_failure(&AgentFailure::new("acme", "boom")).await, FailureReport::Posted);
    assert!(tools.turn().complete() && !tools.turn().replied());
    world.person("POST", &format!("chats/{room}/agents/stop"), Value::Null).await;
    let report = tools.send_failure(&AgentFailure::new("acme", "boom")).await;
    assert_eq!(report, FailureReport::Stopped { room });
    let stopped = tools.send_message("x", &["olga"]).await.unwrap_err();
    assert!(matches!(stopped, ToolError::Stopped(_)), "{stopped:?}");
    let stopped = json!({"content": "x", "mentions": ["olga"]});
    assert!(tools.execute_tool_call("band_send_message", stopped).await.is_err());
    world.end().await;
}

#[tokio::test]
async fn what_is_offered() {
    let world = World::start().await;
    let bob = world.agent("Bob").await;
    let room = world.room(&[&bob]).await;
    let tools = bob.tools(room);
    let memory = Capabilities::of([Capability::Memory]);
    for (capabilities, count) in [
        (None, 13),
        (Some(&Capabilities::none()), 8),
        (Some(&memory), 13),
        (Some(&Capabilities::of([Capability::Tasks])), 15),
        (Some(&Capabilities::of([Capability::Files])), 11),
        (Some(&Capabilities::all()), 28),
    ] {
        assert_eq!(tools.openai_tool_schemas(capabilities).len(), count, "{capabilities:?}");
    }
    assert!("gemini".parse::<Format>().unwrap_err().to_string().starts_with("Invalid format: gemini."));
    assert_eq!(tools.offered().len(), 8);

    let hub = bob.tools_with(room, Binding { hub_room: Some(room), ..Binding::default() });
    assert!(hub.is_hub_room() && hub.offered().len() == 13);
    assert_eq!(hub.anthropic_tool_schemas(Some(&memory)).len(), 18);

    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let filter = Filter {
        include_groups: Some(names(&["chat", "custom"])),
        include_tools: Some(names(&["band_send_message", "band_store_memory", "band_no_reply", "own"])),
        exclude_tools: names(&["band_no_reply", "unknown"]),
    };
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}
    let own = Tool::new("own", |_: AgentTools, _: Nothing| async { Ok::<_, ToolError>("ok") }).effect(Effect::Act);
    let toolbox = Toolbox::new(Capabilities::all()).with(own.clone()).unwrap();
    assert_eq!(toolbox.clone().with(own).unwrap_err().name, "own");
    let tools = bob.tools_with(room, Binding { toolbox: toolbox.filter(filter).into(), ..Binding::default() });
    let offered: Vec<String> = tools.offered().iter().map(|spec| spec.name().to_owned()).collect();
    assert_eq!(offered, ["band_send_message", "own"]);
    let excluded = tools.execute_tool_call_structured("band_no_reply", json!({})).await.unwrap();
    assert_eq!(excluded.failure_kind(), Some(FailureKind::UnknownTool));
    assert_eq!(tools.execute_tool_call("own", Value::Null).await.unwrap(), "ok");
    assert!(tools.turn().complete());
    world.end().await;
}

#[tokio::test]
async fn contact_tools_speak_in_short() {
    let world = World::start().await;
    let [bob, _cy] = [world.agent("Bob").await, world.agent("Cy").await];
    let contacts = ContactTools::new(bob.client.clone());
    contacts.add_contact("olga/cy", None).await.unwrap();
    let requests = contacts.list_contact_requests(1, 50, "pending").await.unwrap();
    assert_eq!(requests.sent[0].to_name.as_deref(), Some("Cy"));
    assert!(contacts.list_contacts(1, 50).await.unwrap().contacts.is_empty());
    let neither = contacts.remove_contact(None, None).await.unwrap_err().to_string();
    assert_eq!(neither, "Either handle or contact_id must be provided");
    let neither = contacts.respond_contact_request("approve", None, None).await.unwrap_err().to_string();
    assert_eq!(neither, "Either handle or request_id must be provided");
    world.end().await;
}
