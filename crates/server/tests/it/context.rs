//! What an agent is given to remember.

use serde_json::json;

use crate::support::{TestApp, stories};

stories!(
    it_is_what_the_agent_sent_and_what_mentioned_it,
    a_page_of_a_hundred_has_a_hundred,
    both_families_of_paging_answer_what_clients_need,
    it_outlives_removal_and_names_deleted_senders,
);

async fn it_is_what_the_agent_sent_and_what_mentioned_it(app: TestApp) {
    let [ana, bob, cy] = app.agents(["ana", "bob", "cy"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob, &cy]).await;
    let to_bob = olga.says(&room, "to bob", &[&bob]).await;
    olga.says(&room, "to cy", &[&cy]).await;
    ana.records(&room, "thought", "ana's").await;
    let thought = bob.records(&room, "thought", "bob's").await;
    let call = bob.records(&room, "tool_call", "bob's call").await;
    let answer = bob.says(&room, "from bob", &[&olga]).await;
    let both = ana.says(&room, "to both", &[&bob, &cy]).await;
    bob.handles(&room, &to_bob).await;

    let reply = bob.get(&room.path("/context")).await.assert_status(200);
    assert_eq!(reply.strings("id"), [to_bob, thought, call, answer, both]);
    assert_eq!(reply.metadata(), &reply.json()["meta"]);
    assert_eq!(
        reply.metadata(),
        &json!({
            "has_more": false, "limit": 50, "next_cursor": null,
            "page": 1, "page_size": 50, "total_count": 5, "total_pages": 1,
        })
    );
}

async fn a_page_of_a_hundred_has_a_hundred(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    for number in 0..103 {
        ana.says(&room, &number.to_string(), &[&bob]).await;
    }
    for who in [&ana, &bob] {
        let first = who.get(&room.path("/context?page_size=100")).await.assert_status(200);
        assert_eq!(first.rows().len(), 100);
        assert_eq!((&first.metadata()["total_pages"], &first.metadata()["has_more"]), (&json!(2), &json!(true)));
        let second = who.get(&room.path("/context?page=2&page_size=100")).await.assert_status(200);
        let ends: Vec<String> =
            second.strings("content").iter().map(|text| text[text.len() - 3..].to_owned()).collect();
        assert_eq!(ends, ["100", "101", "102"]);
        assert_eq!(who.get(&room.path("/context")).await.rows().len(), 50);
    }
    assert_eq!(bob.get(&room.path("/messages?limit=100")).await.rows().len(), 100);
}

async fn both_families_of_paging_answer_what_clients_need(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    for text in ["a", "b", "c"] {
        ana.says(&room, text, &[&bob]).await;
    }
    let by_cursor = bob.get(&room.path("/context?limit=2")).await.assert_status(200);
    assert_eq!(by_cursor.metadata()["has_more"], true);
    assert_eq!(by_cursor.metadata().get("total_count"), None);
    let cursor = by_cursor.metadata()["next_cursor"].as_str().expect("a cursor").to_owned();
    let rest = bob.get(&room.path(&format!("/context?limit=2&cursor={cursor}"))).await.assert_status(200);
    assert_eq!(rest.rows().len(), 1);
    assert_eq!(rest.metadata(), &json!({"has_more": false, "limit": 2, "next_cursor": null}));
    let by_page = bob.get(&room.path("/context?page=2&page_size=2")).await.assert_status(200);
    assert_eq!(
        by_page.metadata(),
        &json!({
            "has_more": false, "limit": 2, "next_cursor": null,
            "page": 2, "page_size": 2, "total_count": 3, "total_pages": 2,
        })
    );
}

async fn it_outlives_removal_and_names_deleted_senders(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    let one = ana.says(&room, "one", &[&bob]).await;
    olga.removes(&room, &bob).await.assert_status(200);
    bob.get(&room.path("/context")).await.assert_error(404, "not_found");
    olga.adds(&room, &bob).await.assert_status(201);
    olga.delete(&format!("agents/{}?force=true", ana.id)).await.assert_status(200);
    let context = bob.get(&room.path("/context")).await.assert_status(200);
    assert_eq!(context.strings("id"), [one]);
    assert_eq!(context.strings("sender_name"), ["ana"]);
    assert_eq!(context.metadata()["total_count"], 1);
}
