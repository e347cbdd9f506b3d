//! What both sides hear of their contacts: in the form that each SDK accepts, and nobody else hears of it.

use serde_json::{Value, json};

use crate::contacts::{answers, asked, asks, befriend};
use crate::support::{Caller, Socket, TestApp, stories};

stories!(
    an_agent_hears_of_a_request_in_a_flat_form,
    a_person_hears_of_a_request_in_the_rows_form,
    both_hear_what_became_of_a_request,
    each_side_hears_of_its_own_record,
    nobody_else_hears,
    nothing_is_told_of_a_refusal,
);

/// Connects and joins the channel of its contacts.
async fn listens(who: &Caller) -> Socket {
    match who.kind {
        bandstand_wire::ids::IdentityKind::Agent => who.joins(&format!("agent_contacts:{}", who.id)).await,
        bandstand_wire::ids::IdentityKind::User => who.joins(&format!("user_contacts:{}", who.id)).await,
    }
}

const NOW: &str = "2026-01-01T00:00:00.000000Z";

/// Which keys the validators of band-sdk-core 2.8.0 and the TypeScript SDK ask for: all of these as text; a null
/// anywhere else but in `responded_at` would be rejected by one of them.
fn check(event: &str, payload: &Value) {
    let required: &[&str] = match event {
        "contact_request_received" if payload.get("requester_id").is_none() => {
            &["id", "status", "inserted_at", "from_handle", "from_name"]
        }
        "contact_request_received" => &["id", "status", "inserted_at"],
        "contact_request_updated" => &["id", "status"],
        "contact_added" => &["id", "type", "inserted_at", "handle", "name"],
        "contact_removed" => &["id"],
        other => panic!("{other}"),
    };
    for key in required {
        assert!(payload[key].is_string(), "{event}: {key} in {payload}");
    }
    for (key, value) in payload.as_object().unwrap() {
        assert!(!value.is_null() || key == "responded_at", "{event}: {key} in {payload}");
    }
    assert!(payload.get("description").is_none_or(Value::is_string));
    assert!(payload.get("is_external").is_none_or(Value::is_boolean));
}

async fn hears(socket: &mut Socket, event: &str) -> Value {
    let payload = socket.next_event(event).await;
    check(event, &payload);
    socket.app.names.replace(&payload)
}

async fn an_agent_hears_of_a_request_in_a_flat_form(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let (ana, eva) = (app.agent("ana").await, eve.registers("eva").await);
    let mut socket = listens(&eva).await;
    for (who, message) in [(&ana, Value::Null), (&olga, json!("It's me.\nOlga")), (&eve, json!("  "))] {
        let request = asks(who, &eva.handle, message.clone()).await.assert_status(201).id();
        app.names.give(&request, "request");
        let mut wanted = json!({
            "id": request, "from_handle": who.handle, "from_name": who.name, "status": "pending", "inserted_at": NOW,
        });
        if message.as_str().is_some_and(|text| !text.trim().is_empty()) {
            wanted["message"] = message;
        }
        assert_eq!(hears(&mut socket, "contact_request_received").await, app.names.replace(&wanted));
    }
    socket.assert_silent().await;
}

async fn a_person_hears_of_a_request_in_the_rows_form(app: TestApp) {
    let eve = app.user("eve").await;
    let ana = app.agent("ana").await;
    let mut socket = listens(&eve).await;
    let request = asks(&ana, "eve", json!("hello")).await.assert_status(201).id();
    app.names.give(&request, "request");
    let wanted = json!({
        "id": "<request>", "status": "pending", "message": "hello", "inserted_at": NOW, "responded_at": null,
        "requester_id": "<ana>", "requester_type": "Agent",
        "requester": {"id": "<ana>", "handle": "olga/ana", "name": "ana"},
        "recipient_id": "<eve>", "recipient_type": "User",
        "recipient": {"id": "<eve>", "handle": "eve", "name": "eve"},
    });
    assert_eq!(hears(&mut socket, "contact_request_received").await, wanted);
    assert_eq!(eve.get("contacts/requests").await.named()["data"], json!([wanted]), "the row of the list");
    answers(&ana, &request, "cancel").await.assert_status(200);
    assert_eq!(hears(&mut socket, "contact_request_updated").await, json!({"id": "<request>", "status": "cancelled"}));
    let second = asked(&ana, &eve).await;
    let payload = socket.next_event("contact_request_received").await;
    check("contact_request_received", &payload);
    assert!(payload["id"] == second.as_str() && payload.get("message").is_none(), "no message, no key: {payload}");
}

async fn both_hear_what_became_of_a_request(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let (ana, eva) = (app.agent("ana").await, eve.registers("eva").await);
    for (one, other) in [(&ana, &eva), (&olga, &eve), (&ana, &eve), (&olga, &eva)] {
        let (mut ones, mut others) = (listens(one).await, listens(other).await);
        for (action, status) in [("reject", "rejected"), ("cancel", "cancelled"), ("approve", "approved")] {
            let request = asked(one, other).await;
            hears(&mut others, "contact_request_received").await;
            let answering = if action == "cancel" { one } else { other };
            answers(answering, &request, action).await.assert_status(200);
            for socket in [&mut ones, &mut others] {
                let payload = socket.next_event("contact_request_updated").await;
                assert_eq!(payload, json!({"id": request, "status": status}), "exactly that");
            }
        }
        for socket in [&mut ones, &mut others] {
            hears(socket, "contact_added").await;
            socket.assert_silent().await;
        }
    }
}

async fn each_side_hears_of_its_own_record(app: TestApp) {
    let eve = app.user("eve").await;
    let ana = app.agent("ana").await;
    let (mut anas, mut eves) = (listens(&ana).await, listens(&eve).await);
    // Both ask: the second request is consent.
    let request = asked(&ana, &eve).await;
    hears(&mut eves, "contact_request_received").await;
    asks(&eve, "olga/ana", Value::Null).await.assert_status(201);
    for socket in [&mut anas, &mut eves] {
        let payload = socket.next_event("contact_request_updated").await;
        assert_eq!(payload, json!({"id": request, "status": "approved"}));
    }
    let (of_ana, of_eve) = (ana.get("contacts").await, eve.get("contacts").await);
    app.names.give(of_ana.rows()[0]["id"].as_str().unwrap(), "ana's record");
    app.names.give(of_eve.rows()[0]["id"].as_str().unwrap(), "eve's record");
    assert_eq!(
        hears(&mut anas, "contact_added").await,
        json!({"id": "<ana's record>", "handle": "eve", "name": "eve", "type": "User", "inserted_at": NOW}),
        "no e-mail address; what is only known of agents is left out"
    );
    assert_eq!(
        hears(&mut eves, "contact_added").await,
        json!({
            "id": "<eve's record>", "handle": "olga/ana", "name": "ana", "type": "Agent", "inserted_at": NOW,
            "description": "ana, an agent of a test", "is_external": true, "listed_in_directory": false,
        })
    );
    eve.post("contacts/remove", json!({"handle": "olga/ana"})).await.assert_status(200);
    assert_eq!(hears(&mut anas, "contact_removed").await, json!({"id": "<ana's record>"}));
    assert_eq!(hears(&mut eves, "contact_removed").await, json!({"id": "<eve's record>"}));
    anas.assert_silent().await;
    eves.assert_silent().await;
}

async fn nobody_else_hears(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let (ana, bob, eva) = (app.agent("ana").await, app.agent("bob").await, eve.registers("eva").await);
    let mut sockets = [listens(&olga).await, listens(&bob).await, listens(&eve).await];
    // The owners of the two hear nothing of it, nor who only shares a room with them.
    app.room_with(&ana, &[&bob, &olga]).await;
    befriend(&ana, &eva).await;
    ana.post("contacts/remove", json!({"handle": eva.handle})).await.assert_status(200);
    for socket in &mut sockets {
        socket.assert_silent().await;
    }
    // Nor may anybody join the channel of another, or of the other kind.
    let mut socket = eve.socket().await;
    for topic in ["agent_contacts", "user_contacts"] {
        let refused = socket.try_join(&format!("{topic}:{}", eva.id)).await;
        assert_eq!(refused, Err("unauthorized".to_owned()), "{topic}");
    }
    let mut socket = eva.socket().await;
    assert_eq!(socket.try_join(&format!("user_contacts:{}", eva.id)).await, Err("unauthorized".to_owned()));
}

async fn nothing_is_told_of_a_refusal(app: TestApp) {
    let eve = app.user("eve").await;
    let (ana, eva) = (app.agent("ana").await, eve.registers("eva").await);
    let request = asked(&ana, &eva).await;
    let (mut anas, mut evas) = (listens(&ana).await, listens(&eva).await);
    asks(&ana, &eva.handle, Value::Null).await.assert_error(409, "conflict");
    asks(&ana, &ana.handle, Value::Null).await.assert_error(409, "conflict");
    answers(&ana, &request, "approve").await.assert_error(403, "forbidden");
    answers(&eva, &request, "cancel").await.assert_error(403, "forbidden");
    ana.post("contacts/remove", json!({"handle": eva.handle})).await.assert_error(404, "not_found");
    anas.assert_silent().await;
    evas.assert_silent().await;
}
