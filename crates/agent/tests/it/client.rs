//! The whole Agent API, once through, against the real server.

use bandstand_agent::client::{
    ContextPlace, EventDraft, MarkFate, MemoryDraft, MemoryQuery, MessageDraft, MessageQuery, RoomDraft, TaskChange,
    TaskDraft,
};

use crate::support::{PATIENCE, World, client};

#[tokio::test]
async fn a_message_from_post_to_processed() {
    let world = World::start().await;
    let [bob, cy] = [world.agent("Bob").await, world.agent("Cy").await];
    let room = world.room(&[&bob, &cy]).await;
    assert!(bob.client.next_message(room).await.unwrap().is_none());
    world.says(room, "please look", &[&bob]).await;

    let message = bob.client.next_message(room).await.unwrap().expect("a message");
    assert_eq!(message.mentions()[0].id, bob.me.id);
    assert_eq!(message.sender_id, world.owner);
    assert!(cy.client.next_message(room).await.unwrap().is_none());

    let early = bob.client.mark_processed(room, message.id).await.unwrap_err();
    assert_eq!(early.mark_fate(), MarkFate::Rejected);
    let claimed = bob.client.mark_processing(room, message.id).await.unwrap();
    assert_eq!((claimed.status.as_str(), claimed.attempt_number), ("processing", 1));
    assert!(bob.client.report_activity(room, true, PATIENCE).await.unwrap());

    let posted = bob.client.post_message(room, &MessageDraft::new("done").to(world.owner)).await.unwrap();
    assert_eq!(posted.recipients[0].id, world.owner);
    let event = EventDraft::new("tool_call", "{}").metadata(serde_json::json!({"a": 1}));
    bob.client.post_event(room, &event).await.unwrap();
    bob.client.mark_processed(room, message.id).await.unwrap();
    assert!(bob.client.next_message(room).await.unwrap().is_none());

    world.says(room, "for your information", &[&bob]).await;
    let second = bob.client.next_message(room).await.unwrap().expect("a message");
    bob.client.mark_processing(room, second.id).await.unwrap();
    bob.client.mark_declined(room, second.id, Some("it only informs")).await.unwrap();

    let all = MessageQuery { status: Some("all".into()), ..MessageQuery::default() };
    let listed = bob.client.messages(room, &all).await.unwrap();
    assert_eq!(listed.data[0].delivery_status(bob.me.id), Some("processed"));
    let context = bob.client.context(room, &ContextPlace::Start, 2).await.unwrap();
    assert!(context.metadata.has_more);
    let place = ContextPlace::Cursor(context.metadata.next_cursor.unwrap());
    let rest = bob.client.context(room, &place, 2).await.unwrap();
    assert_eq!((rest.data.len(), rest.data[0].message_type.as_str()), (2, "tool_call"));
    let stranger = world.agent("Stranger").await;
    let hidden = stranger.client.next_message(room).await.unwrap_err();
    assert!(hidden.is_not_found(), "{hidden}");
    world.end().await;
}

#[tokio::test]
async fn rooms_participants_and_peers() {
    let world = World::start().await;
    let [bob, cy] = [world.agent("Bob").await, world.agent("Cy").await];
    assert_eq!(bob.me.handle.as_deref(), Some("olga/bob"));
    assert!(bob.me.offers("ff_room_tasks"));
    let draft = RoomDraft { title: Some("Plans".into()), ..RoomDraft::default() };
    let room = bob.client.create_room(&draft).await.unwrap();
    assert_eq!(bob.client.rename_room(room.id, "Better plans").await.unwrap().title.as_deref(), Some("Better plans"));
    assert_eq!(bob.client.rooms(1, 100).await.unwrap().data[0].id, room.id);
    let peers = bob.client.peers(Some(room.id), 1, 100).await.unwrap();
    assert_eq!(peers.data.len(), 2);
    bob.client.add_participant(room.id, cy.me.id, "member").await.unwrap();
    let twice = bob.client.add_participant(room.id, cy.me.id, "member").await.unwrap_err();
    assert_eq!(twice.status(), Some(409));
    assert_eq!(bob.client.participants(room.id).await.unwrap().len(), 2);
    assert_eq!(cy.client.show_room(room.id).await.unwrap().title.as_deref(), Some("Better plans"));
    bob.client.remove_participant(room.id, cy.me.id).await.unwrap();
    assert!(cy.client.show_room(room.id).await.unwrap_err().is_not_found());
    let wrong = client(&world.url(), "band_a_wrong").me().await.unwrap_err();
    assert_eq!(wrong.status(), Some(401));
    world.end().await;
}

#[tokio::test]
async fn contacts_memories_tasks_and_files() {
    let world = World::start().await;
    let [bob, cy] = [world.agent("Bob").await, world.agent("Cy").await];
    let (b, c) = (&bob.client, &cy.client);
    assert_eq!(b.add_contact("@olga/cy", Some("hi")).await.unwrap().status, "pending");
    let requests = c.contact_requests(1, 20, "pending").await.unwrap();
    assert_eq!(requests.data.received[0].from_handle.as_deref(), Some("olga/bob"));
    c.respond_contact_request("approve", Some("olga/bob"), None).await.unwrap();
    assert_eq!(b.contacts(1, 20).await.unwrap().data[0].handle.as_deref(), Some("olga/cy"));
    b.remove_contact(Some("olga/cy"), None).await.unwrap();

    let draft = MemoryDraft {
        content: "likes tea".into(),
        system: "long_term".into(),
        kind: "semantic".into(),
        segment: "user".into(),
        thought: "it matters".into(),
        scope: Some("agent".into()),
        subject_id: None,
        metadata: None,
    };
    let memory = b.store_memory(&draft).await.unwrap();
    let query = MemoryQuery { content_query: Some("tea".into()), ..MemoryQuery::default() };
    assert_eq!(b.memories(&query).await.unwrap().data[0].id, memory.id);
    assert_eq!(b.memory(&memory.id).await.unwrap().content, "likes tea");
    b.archive_memory(&memory.id).await.unwrap();
    assert_eq!(b.supersede_memory(&memory.id).await.unwrap().status.as_deref(), Some("superseded"));
    assert!(b.memory("a/../b").await.unwrap_err().is_not_found());

    let room = world.room(&[&bob]).await;
    let task = b.create_task(room, &TaskDraft { subject: "Write".into(), ..TaskDraft::default() }).await.unwrap();
    let change = TaskChange { status: Some("in_progress".into()), ..TaskChange::default() };
    assert_eq!(b.update_task(room, "1", &change).await.unwrap().assignments.len(), 1);
    assert!(b.task(room, &task.id, true).await.unwrap().history.is_some());
    assert_eq!(b.task_history(room, "1", None, None).await.unwrap().data[0].event, "created");
    assert_eq!(b.tasks(room, None, None, Some(10)).await.unwrap().data.len(), 1);
    b.set_board(room, Some("Ship"), None).await.unwrap();
    assert_eq!(b.board(room, false).await.unwrap().goal_title.as_deref(), Some("Ship"));

    let file = b.upload_file(room, "a.txt", "text/plain", "hello".into()).await.unwrap();
    assert_eq!(b.download_file(room, &file.id, 100).await.unwrap(), "hello");
    assert!(b.download_file(room, &file.id, 4).await.is_err());
    assert!(b.delegation_token(cy.me.id, room.0.into()).await.unwrap_err().is_not_found());
    world.end().await;
}
