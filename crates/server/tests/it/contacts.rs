//! Contacts with consent, in both APIs: asking, answering, listing, removing, and each way of being refused.

use serde_json::{Value, json};

use crate::support::{Caller, Reply, TestApp, stories};

stories!(
    consent_makes_two_agents_contacts,
    people_and_agents_become_contacts,
    whoever_is_asked_while_it_asks_has_consented,
    a_handle_is_read_with_and_without_the_at_sign,
    asking_in_vain,
    answering_in_vain,
    removing_ends_both_sides,
    a_declined_or_withdrawn_request_can_be_made_again,
    a_handle_resolves_to_a_name_and_nothing_more,
);

/// Asks whoever has this handle, from whichever API.
pub(crate) async fn asks(who: &Caller, handle: &str, message: Value) -> Reply {
    match who.kind {
        bandstand_wire::ids::IdentityKind::Agent => {
            who.post("contacts/add", json!({"handle": handle, "message": message})).await
        }
        bandstand_wire::ids::IdentityKind::User => {
            let request = json!({"recipient_handle": handle, "message": message});
            who.post("contacts/requests", json!({"contact_request": request})).await
        }
    }
}

/// Asks somebody who does not know it yet: the request's id.
pub(crate) async fn asked(who: &Caller, whom: &Caller) -> String {
    let reply = asks(who, &whom.handle, Value::Null).await.assert_status(201);
    assert_eq!(reply.data()["status"], "pending", "{reply:?}");
    reply.id()
}

/// Answers a request by its id, from whichever API.
pub(crate) async fn answers(who: &Caller, request: &str, action: &str) -> Reply {
    match (who.kind, action) {
        (bandstand_wire::ids::IdentityKind::Agent, _) => {
            who.post("contacts/requests/respond", json!({"action": action, "request_id": request})).await
        }
        (bandstand_wire::ids::IdentityKind::User, "cancel") => {
            who.delete(&format!("contacts/requests/{request}")).await
        }
        (bandstand_wire::ids::IdentityKind::User, _) => {
            who.post_nothing(&format!("contacts/requests/{request}/{action}")).await
        }
    }
}

/// Makes contacts of two.
pub(crate) async fn befriend(one: &Caller, other: &Caller) {
    let request = asked(one, other).await;
    let reply = answers(other, &request, "approve").await.assert_status(200);
    assert_eq!(reply.data(), &json!({"id": request, "status": "approved"}));
}

/// Two agents of two people.
async fn two_agents(app: &TestApp) -> (Caller, Caller) {
    let eve = app.user("eve").await;
    (app.agent("ana").await, eve.registers("Eva B").await)
}

const NOW: &str = "2026-01-01T00:00:00.000000Z";

async fn consent_makes_two_agents_contacts(app: TestApp) {
    let (ana, eva) = two_agents(&app).await;
    let reply = asks(&ana, "eve/eva-b", json!("Let us talk.")).await.assert_status(201);
    let request = reply.id();
    app.names.give(&request, "request");
    assert_eq!(reply.named(), json!({"data": {"id": "<request>", "status": "pending"}}));

    let none = json!({"total": 0, "total_pages": 0});
    let one = json!({"total": 1, "total_pages": 1});
    assert_eq!(
        eva.get("contacts/requests").await.assert_status(200).named(),
        json!({
            "data": {
                "received": [{
                    "id": "<request>", "status": "pending", "from_handle": "olga/ana", "from_name": "ana",
                    "message": "Let us talk.", "inserted_at": NOW,
                }],
                "sent": [],
            },
            "metadata": {"page": 1, "page_size": 20, "received": one, "sent": none},
        })
    );
    assert_eq!(
        ana.get("contacts/requests?page_size=50").await.assert_status(200).named(),
        json!({
            "data": {
                "received": [],
                "sent": [{
                    "id": "<request>", "status": "pending", "to_handle": "eve/eva-b", "to_name": "Eva B",
                    "message": "Let us talk.", "inserted_at": NOW,
                }],
            },
            "metadata": {"page": 1, "page_size": 50, "received": none, "sent": one},
        })
    );
    assert!(ana.get("contacts").await.rows().is_empty(), "asking is not having");

    let answer = json!({"action": "approve", "handle": "@olga/ana"});
    let reply = eva.post("contacts/requests/respond", answer).await.assert_status(200);
    assert_eq!(reply.named(), json!({"data": {"id": "<request>", "status": "approved"}}));
    let contact = |name: &str, handle: &str, description: &str| {
        json!({
            "data": [{
                "id": "<id>", "type": "Agent", "handle": handle, "name": name, "description": description,
                "is_external": true, "listed_in_directory": false, "online": false, "inserted_at": NOW,
            }],
            "metadata": {"page": 1, "page_size": 20, "total_count": 1, "total_pages": 1},
        })
    };
    let (of_ana, of_eva) = (ana.get("contacts").await.assert_status(200), eva.get("contacts").await.assert_status(200));
    assert_eq!(of_ana.named(), contact("Eva B", "eve/eva-b", "Eva B, an agent of a test"));
    assert_eq!(of_eva.named(), contact("ana", "olga/ana", "ana, an agent of a test"));
    assert_ne!(of_ana.strings("id"), of_eva.strings("id"), "each side has a record of its own");

    // What is answered is in nobody's way any more, but can be looked up.
    let later = ana.get("contacts/requests").await;
    assert_eq!(later.data(), &json!({"received": [], "sent": []}));
    let later = eva.get("contacts/requests").await;
    assert_eq!(later.data(), &json!({"received": [], "sent": []}));
    let approved = ana.get("contacts/requests?sent_status=approved").await;
    assert_eq!(approved.data()["sent"][0]["id"], request.as_str());
}

async fn people_and_agents_become_contacts(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let eva = eve.registers("eva").await;
    let _online = eva.socket().await;
    app.clock.advance(1);
    let reply = asks(&olga, "eve", Value::Null).await.assert_status(201);
    let request = reply.id();
    app.names.give(&request, "request");
    let row = |status: &str, responded_at: Value| {
        json!({
            "id": "<request>", "status": status, "inserted_at": "2026-01-01T00:00:01.000000Z",
            "requester_id": "<olga>", "requester_type": "User",
            "requester": {"id": "<olga>", "handle": "olga", "name": "olga"},
            "recipient_id": "<eve>", "recipient_type": "User",
            "recipient": {"id": "<eve>", "handle": "eve", "name": "eve"},
            "responded_at": responded_at,
        })
    };
    let page = |rows: Value| {
        let total = rows.as_array().unwrap().len();
        json!({"data": rows, "metadata": {"page": 1, "page_size": 20, "total_count": total, "total_pages": total}})
    };
    assert_eq!(reply.named()["data"], row("pending", Value::Null));
    assert_eq!(eve.get("contacts/requests").await.named(), page(json!([row("pending", Value::Null)])));
    assert_eq!(olga.get("contacts/requests").await.named(), page(json!([])), "only received ones");
    assert_eq!(olga.get("contacts/requests/sent").await.named(), page(json!([row("pending", Value::Null)])));
    app.clock.advance(1);
    answers(&eve, &request, "approve").await.assert_status(200);
    assert_eq!(eve.get("contacts/requests").await.named(), page(json!([])));
    let answered = row("approved", json!("2026-01-01T00:00:02.000000Z"));
    assert_eq!(olga.get("contacts/requests/sent").await.named(), page(json!([answered])));

    // An agent asks a person, a person asks an agent.
    app.clock.advance(1);
    befriend(&olga, &eva).await;
    let contact = |who: &str, kind: &str, at: &str, online: bool, user: Value| {
        json!({
            "id": "<id>", "contact_id": who, "contact_type": kind, "status": "active", "source": "request",
            "online": online, "inserted_at": at, "user": user,
        })
    };
    assert_eq!(
        olga.get("contacts").await.assert_status(200).named()["data"],
        json!([
            contact(
                "<eva>",
                "Agent",
                "2026-01-01T00:00:03.000000Z",
                true,
                json!({"id": "<eva>", "handle": "eve/eva", "name": "eva", "listed_in_directory": false}),
            ),
            contact(
                "<eve>",
                "User",
                "2026-01-01T00:00:02.000000Z",
                false,
                json!({
                    "id": "<eve>", "handle": "eve", "name": "eve", "email": "eve@example.org",
                    "listed_in_directory": false,
                }),
            ),
        ]),
        "newest first; only people have an e-mail address"
    );
    let of_eva = eva.get("contacts").await.assert_status(200).named();
    assert_eq!(
        of_eva["data"],
        json!([{
            "id": "<id>", "type": "User", "handle": "olga", "name": "olga", "description": null, "is_external": null,
            "listed_in_directory": false, "online": false, "inserted_at": "2026-01-01T00:00:03.000000Z",
        }]),
        "agents never read e-mail addresses"
    );
}

async fn whoever_is_asked_while_it_asks_has_consented(app: TestApp) {
    let (ana, eva) = two_agents(&app).await;
    let (olga, eve) = (app.owner(), app.user("eda").await);
    for (one, other) in [(&ana, &eva), (&olga, &eve), (&ana, &eve), (&olga, &eva)] {
        let request = asked(one, other).await;
        let reply = asks(other, &one.handle, json!("me too")).await.assert_status(201);
        assert_eq!((&reply.id(), &reply.data()["status"]), (&request, &json!("approved")), "it is the same request");
        asks(other, &one.handle, Value::Null).await.assert_error(409, "conflict");
        asks(one, &other.handle, Value::Null).await.assert_error(409, "conflict");
    }
    for who in [&ana, &eva, &olga, &eve] {
        assert_eq!(who.get("contacts").await.rows().len(), 2);
    }
    assert!(eve.get("contacts/requests").await.rows().is_empty());
}

async fn a_handle_is_read_with_and_without_the_at_sign(app: TestApp) {
    let (ana, eva) = two_agents(&app).await;
    for handle in ["eve/eva-b", "@eve/eva-b", "@EVE/Eva-B", " eve/eva-b "] {
        let reply = asks(&ana, handle, Value::Null).await.assert_status(201);
        let found = eva.get("contacts/requests").await;
        assert_eq!(found.data()["received"][0]["from_handle"], ana.handle, "without the sign");
        let answer = json!({"action": "cancel", "handle": handle});
        let cancelled = ana.post("contacts/requests/respond", answer).await.assert_status(200);
        assert_eq!(cancelled.data(), &json!({"id": reply.id(), "status": "cancelled"}));
    }
    befriend(&ana, &eva).await;
    ana.post("contacts/remove", json!({"handle": "@Eve/EVA-B"})).await.assert_status(200);
}

async fn asking_in_vain(app: TestApp) {
    let (ana, eva) = two_agents(&app).await;
    let (olga, long) = (app.owner(), "ü".repeat(501));
    for who in [&ana, &olga] {
        let agent = who.id == ana.id;
        let (handle, message) = if agent {
            ("/handle", "/message")
        } else {
            ("/contact_request/recipient_handle", "/contact_request/message")
        };
        for malformed in ["", " ", "@", "@@eve", "eve/", "/eva", "eve/eva/b", "eve eva", "eve/Eva B", "e\u{e4}", "x\0"]
        {
            let reply = asks(who, malformed, Value::Null).await.assert_error(400, "bad_request");
            assert!(reply.error()["details"][handle].is_array(), "the place is named: {reply:?}");
        }
        asks(who, "nobody", Value::Null).await.assert_error(404, "not_found");
        asks(who, "eve/nobody", Value::Null).await.assert_error(404, "not_found");
        asks(who, &who.handle, Value::Null).await.assert_error(409, "conflict");
        asks(who, "eve", json!(long)).await.assert_invalid(&[message]);
        asks(who, "eve", json!("a\0b")).await.assert_invalid(&[message]);
        asks(who, "eve", json!(5)).await.assert_invalid(&[message]);
        let (path, wrong): (&str, Vec<(Value, Vec<&str>)>) = if agent {
            let wrong = vec![
                (json!({}), vec!["/handle"]),
                (json!({"handle": null}), vec!["/handle"]),
                (json!({"handle": 5, "colour": "red"}), vec!["/colour", "/handle"]),
            ];
            ("contacts/add", wrong)
        } else {
            let wrong = vec![
                (json!({}), vec!["/contact_request"]),
                (json!({"contact_request": {}}), vec!["/contact_request/recipient_handle"]),
                (
                    json!({"contact_request": {"recipient_handle": ["eve"], "to": 1}, "handle": "eve"}),
                    vec!["/handle", "/contact_request/to", "/contact_request/recipient_handle"],
                ),
            ];
            ("contacts/requests", wrong)
        };
        for (body, places) in wrong {
            who.post(path, body).await.assert_invalid(&places);
        }
        let received = |reply: &Reply| reply.data()["received"].as_array().unwrap().len();
        assert_eq!(received(&eva.get("contacts/requests").await), 0, "nothing came of all that");

        asks(who, "eve/eva-b", json!("x".repeat(500))).await.assert_status(201);
        let again = asks(who, "eve/eva-b", Value::Null).await.assert_error(409, "conflict");
        assert_eq!(again.header("retry-after"), Some("1"), "clients retry a 409");
        let answer = json!({"action": "approve", "handle": who.handle});
        eva.post("contacts/requests/respond", answer).await.assert_status(200);
        asks(who, "eve/eva-b", Value::Null).await.assert_error(409, "conflict");
        asks(&eva, &who.handle, Value::Null).await.assert_error(409, "conflict");
    }
}

async fn answering_in_vain(app: TestApp) {
    let (ana, eva) = two_agents(&app).await;
    let (olga, bob) = (app.owner(), app.agent("bob").await);
    let eda = app.user("eda").await;
    let nowhere = "00000000-0000-4000-8000-00000000dead";
    for (one, other) in [(&ana, &eva), (&olga, &eda), (&ana, &eda), (&olga, &eva)] {
        let request = asked(one, other).await;
        // The wrong one of the two.
        answers(one, &request, "approve").await.assert_error(403, "forbidden");
        answers(one, &request, "reject").await.assert_error(403, "forbidden");
        answers(other, &request, "cancel").await.assert_error(403, "forbidden");
        for action in ["approve", "reject", "cancel"] {
            // Somebody else, and nothing there: word for word the same.
            let mut said = Vec::new();
            for (who, id) in [(&bob, request.as_str()), (one, nowhere), (other, nowhere)] {
                let reply = answers(who, id, action).await.assert_error(404, "not_found");
                said.push(reply.error()["message"].clone());
            }
            assert!(said.iter().all(|text| *text == said[0]), "{said:?}");
        }
        answers(other, &request, "reject").await.assert_status(200);
        // It was answered; who may not answer learns nothing new.
        answers(other, &request, "approve").await.assert_error(409, "conflict");
        answers(other, &request, "reject").await.assert_error(409, "conflict");
        answers(one, &request, "cancel").await.assert_error(409, "conflict");
        answers(one, &request, "approve").await.assert_error(403, "forbidden");
        assert!(one.get("contacts").await.rows().is_empty() && other.get("contacts").await.rows().is_empty());
    }

    let respond = "contacts/requests/respond";
    let request = asked(&ana, &eva).await;
    for (body, places) in [
        (json!({}), &["/action"][..]),
        (json!({"action": "accept", "handle": "olga/ana"}), &["/action"]),
        (json!({"action": 5, "request_id": "x", "why": 1}), &["/why", "/action", "/request_id"]),
        (json!({"action": "approve", "request_id": "x"}), &["/request_id"]),
    ] {
        eva.post(respond, body).await.assert_invalid(places);
    }
    eva.post(respond, json!({"action": "approve"})).await.assert_error(400, "bad_request");
    let nulls = json!({"action": "approve", "handle": null, "request_id": null});
    eva.post(respond, nulls).await.assert_error(400, "bad_request");
    eva.post(respond, json!({"action": "approve", "handle": "a b"})).await.assert_error(400, "bad_request");
    for (who, action, handle) in [
        (&eva, "approve", "nobody"),
        (&eva, "approve", "olga/bob"),
        (&eva, "approve", "eve/eva-b"),
        (&eva, "cancel", "olga/ana"),
        (&ana, "approve", "eve/eva-b"),
        (&ana, "reject", "eve/eva-b"),
    ] {
        who.post(respond, json!({"action": action, "handle": handle})).await.assert_error(404, "not_found");
    }
    eda.post_nothing("contacts/requests/not-an-id/approve").await.assert_error(404, "not_found");
    eda.delete("contacts/requests/not-an-id").await.assert_error(404, "not_found");
    // Of both names for a request the id counts.
    let both = json!({"action": "reject", "request_id": request, "handle": "olga/bob"});
    eva.post(respond, both).await.assert_status(200);
}

async fn removing_ends_both_sides(app: TestApp) {
    let (ana, eva) = two_agents(&app).await;
    let (olga, bob) = (app.owner(), app.agent("bob").await);
    let nowhere = json!("00000000-0000-4000-8000-00000000dead");
    for (one, other) in [(&ana, &eva), (&olga, &eva), (&eva, &ana)] {
        let record = |of: &Reply| of.rows()[0]["id"].clone();
        for by in ["handle", "own record", "identity", "the other's side"] {
            befriend(one, other).await;
            let removed = match by {
                "handle" => one.post("contacts/remove", json!({"handle": other.handle})).await,
                "own record" => {
                    let body = json!({"contact_id": record(&one.get("contacts").await), "handle": null});
                    one.post("contacts/remove", body).await
                }
                "identity" => one.post("contacts/remove", json!({"contact_id": other.id})).await,
                _ => other.post("contacts/remove", json!({"handle": one.handle})).await,
            };
            assert_eq!(removed.assert_status(200).data(), &json!({"status": "removed"}), "by {by}");
            assert!(one.get("contacts").await.rows().is_empty() && other.get("contacts").await.rows().is_empty());
            for who in [one, other] {
                let whom = if who.id == one.id { other } else { one };
                who.post("contacts/remove", json!({"handle": whom.handle})).await.assert_error(404, "not_found");
            }
        }
    }

    befriend(&ana, &eva).await;
    let of_eva = eva.get("contacts").await.rows()[0]["id"].clone();
    for who in [&ana, &bob, &olga] {
        who.post("contacts/remove", json!({"contact_id": of_eva})).await.assert_error(404, "not_found");
        who.post("contacts/remove", json!({"contact_id": nowhere})).await.assert_error(404, "not_found");
        who.post("contacts/remove", json!({"handle": "nobody"})).await.assert_error(404, "not_found");
        who.post("contacts/remove", json!({"handle": who.handle})).await.assert_error(404, "not_found");
        who.post("contacts/remove", json!({"handle": "no body"})).await.assert_error(400, "bad_request");
        who.post("contacts/remove", json!({})).await.assert_error(400, "bad_request");
        who.post("contacts/remove", json!({"handle": null, "contact_id": null})).await.assert_error(400, "bad_request");
        who.post("contacts/remove", json!({"contact_id": "x", "id": 1})).await.assert_invalid(&["/id", "/contact_id"]);
    }
    bob.post("contacts/remove", json!({"handle": eva.handle})).await.assert_error(404, "not_found");
    assert_eq!(eva.get("contacts").await.rows().len(), 1, "others' attempts changed nothing");
}

async fn a_declined_or_withdrawn_request_can_be_made_again(app: TestApp) {
    let (ana, eva) = two_agents(&app).await;
    let first = asked(&ana, &eva).await;
    answers(&eva, &first, "reject").await.assert_status(200);
    let second = asked(&ana, &eva).await;
    answers(&ana, &second, "cancel").await.assert_status(200);
    // Who declined may ask later itself.
    let third = asked(&eva, &ana).await;
    answers(&ana, &third, "approve").await.assert_status(200);
    ana.post("contacts/remove", json!({"handle": eva.handle})).await.assert_status(200);
    let fourth = asked(&ana, &eva).await;
    let sent = ana.get("contacts/requests?sent_status=all").await;
    let rows = sent.data()["sent"].as_array().unwrap().iter();
    let history: Vec<_> = rows.map(|row| (row["id"].as_str().unwrap(), row["status"].as_str().unwrap())).collect();
    assert_eq!(
        history,
        [(fourth.as_str(), "pending"), (second.as_str(), "cancelled"), (first.as_str(), "rejected")],
        "newest first"
    );
}

async fn a_handle_resolves_to_a_name_and_nothing_more(app: TestApp) {
    let (_, eva) = two_agents(&app).await;
    let olga = app.owner();
    for (handle, wanted) in [
        ("@eve", json!({"type": "User", "name": "eve", "handle": "eve"})),
        ("olga", json!({"type": "User", "name": "olga", "handle": "olga"})),
        ("@Eve/Eva-B", json!({"type": "Agent", "name": "Eva B", "handle": "eve/eva-b"})),
    ] {
        let reply = olga.post("contacts/resolve", json!({"handle": handle})).await.assert_status(200);
        assert_eq!(reply.data(), &wanted);
    }
    olga.post("contacts/resolve", json!({"handle": "eve/nobody"})).await.assert_error(404, "not_found");
    olga.post("contacts/resolve", json!({"handle": "eve/"})).await.assert_error(400, "bad_request");
    olga.post("contacts/resolve", json!({"handle": ""})).await.assert_error(400, "bad_request");
    olga.post("contacts/resolve", json!({})).await.assert_invalid(&["/handle"]);
    olga.post("contacts/resolve", json!({"handle": "eve", "id": 1})).await.assert_invalid(&["/id"]);
    // There is no such operation for agents.
    let path = "/api/v1/me/contacts/resolve";
    eva.post(path, json!({"handle": "eve"})).await.assert_error(403, "forbidden");
}
