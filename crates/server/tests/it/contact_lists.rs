//! Lists of contacts and requests, page by page, and what contacts are good for: peers and rooms.

use serde_json::{Value, json};

use crate::contacts::{answers, asked, asks, befriend};
use crate::support::{Caller, Reply, TestApp, stories};

stories!(
    each_direction_is_paged_by_itself,
    sent_requests_are_listed_by_status,
    contacts_are_paged,
    contacts_are_peers,
    a_contact_may_be_invited,
    a_deleted_agent_is_nobodys_contact,
    a_deleted_agent_leaves_more_than_one_batch,
    what_a_crash_left_of_a_deleted_agent_ends_later,
);

fn column(rows: &Value, field: &str) -> Vec<String> {
    rows.as_array().unwrap().iter().map(|row| row[field].as_str().unwrap().to_owned()).collect()
}

async fn agents(app: &TestApp, count: usize) -> Vec<Caller> {
    let mut agents = Vec::new();
    for number in 0..count {
        agents.push(app.agent(&format!("agent {number}")).await);
    }
    agents
}

async fn each_direction_is_paged_by_itself(app: TestApp) {
    let (eve, others) = (app.user("eve").await, agents(&app, 5).await);
    let eva = eve.registers("eva").await;
    let mut received = Vec::new();
    for other in &others {
        received.push(asked(other, &eva).await);
    }
    let olga = app.owner();
    let sent = asked(&eva, &olga).await;
    received.reverse();
    for (page, rows, own) in
        [(1, &received[..2], &[sent.clone()][..]), (2, &received[2..4], &[]), (3, &received[4..], &[]), (4, &[], &[])]
    {
        let reply = eva.get(&format!("contacts/requests?page={page}&page_size=2")).await.assert_status(200);
        assert_eq!(column(&reply.data()["received"], "id"), rows, "newest first");
        assert_eq!(column(&reply.data()["sent"], "id"), own);
        assert_eq!(
            reply.metadata(),
            &json!({
                "page": page, "page_size": 2,
                "received": {"total": 5, "total_pages": 3}, "sent": {"total": 1, "total_pages": 1},
            })
        );
    }
    for wrong in ["page=0", "page_size=0", "page=x", "sent_status=expired", "sent_status=", "status=all", "cursor=x"] {
        let place = format!("/{}", wrong.split('=').next().unwrap());
        eva.get(&format!("contacts/requests?{wrong}")).await.assert_invalid(&[&place]);
    }
    let clamped = eva.get("contacts/requests?page_size=1000").await.assert_status(200);
    assert_eq!(clamped.metadata()["page_size"], 100);
    // The same for people.
    let of_olga = olga.get("contacts/requests?page=2&page_size=1").await.assert_status(200);
    assert_eq!(
        of_olga.json(),
        &json!({"data": [], "metadata": {"page": 2, "page_size": 1, "total_count": 1, "total_pages": 1}})
    );
    olga.get("contacts/requests?status=all").await.assert_invalid(&["/status"]);
    olga.get("contacts/requests/sent?status=expired&page=0").await.assert_invalid(&["/status", "/page"]);
    olga.get("contacts?type=User").await.assert_invalid(&["/type"]);
}

async fn sent_requests_are_listed_by_status(app: TestApp) {
    let (eve, others) = (app.user("eve").await, agents(&app, 6).await);
    let eva = eve.registers("eva").await;
    for who in [&eve, &eva] {
        let mut wanted = std::collections::BTreeMap::<&str, Vec<String>>::new();
        for (other, action) in others.iter().zip(["approve", "reject", "cancel", "none", "reject", "none"]) {
            let request = asked(who, other).await;
            let (answering, status) = match action {
                "none" => (None, "pending"),
                "cancel" => (Some(who), "cancelled"),
                "approve" => (Some(other), "approved"),
                _ => (Some(other), "rejected"),
            };
            if let Some(answering) = answering {
                answers(answering, &request, action).await.assert_status(200);
            }
            wanted.entry(status).or_default().insert(0, request.clone());
            wanted.entry("all").or_default().insert(0, request);
        }
        let list = async |query: &str| -> (Vec<String>, Value) {
            if who.id == eve.id {
                let reply = who.get(&format!("contacts/requests/sent?{query}")).await.assert_status(200);
                (reply.strings("id"), reply.metadata()["total_count"].clone())
            } else {
                let query = query.replace("status", "sent_status");
                let reply = who.get(&format!("contacts/requests?{query}")).await.assert_status(200);
                (column(&reply.data()["sent"], "id"), reply.metadata()["sent"]["total"].clone())
            }
        };
        for (status, rows) in &wanted {
            assert_eq!(list(&format!("status={status}")).await, (rows.clone(), json!(rows.len())), "{status}");
        }
        let default = if who.id == eve.id { "all" } else { "pending" };
        assert_eq!(list("page_size=50").await.0, wanted[default]);
        assert_eq!(list("status=rejected&page=2&page_size=1").await, (wanted["rejected"][1..].to_vec(), json!(2)));
    }
}

async fn contacts_are_paged(app: TestApp) {
    let (eve, others) = (app.user("eve").await, agents(&app, 5).await);
    let eva = eve.registers("eva").await;
    for other in &others {
        befriend(other, &eva).await;
        befriend(&eve, other).await;
    }
    let handles: Vec<String> = others.iter().rev().map(|other| other.handle.clone()).collect();
    for (page, shown) in [(1, &handles[..2]), (2, &handles[2..4]), (3, &handles[4..]), (9, &[])] {
        let path = format!("contacts?page={page}&page_size=2");
        let totals = json!({"page": page, "page_size": 2, "total_count": 5, "total_pages": 3});
        let of_agent = eva.get(&path).await.assert_status(200);
        assert_eq!((of_agent.strings("handle"), of_agent.metadata()), (shown.to_vec(), &totals));
        let of_person = eve.get(&path).await.assert_status(200);
        let seen: Vec<&Value> = of_person.rows().iter().map(|row| &row["user"]["handle"]).collect();
        assert_eq!(
            (seen, of_person.metadata()),
            (shown.iter().map(|handle| json!(handle)).collect::<Vec<_>>().iter().collect(), &totals)
        );
    }
    eve.post("contacts/remove", json!({"handle": handles[2]})).await.assert_status(200);
    assert_eq!(eve.get("contacts").await.metadata()["total_count"], 4);
    assert_eq!(eva.get("contacts").await.metadata()["total_count"], 5, "contacts of its owner are not its own");
}

/// Name, source and whether it is a contact, of each peer.
fn peers(reply: &Reply) -> Vec<(String, String, bool)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = reply.rows().iter();
    rows.map(|row| (text(&row["handle"]), text(&row["source"]), row["is_contact"].as_bool().unwrap())).collect()
}

async fn contacts_are_peers(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let (aaron, eva) = (eve.registers("aaron").await, eve.registers("eva").await);
    let global = app.global_agent(&eve, "global").await;
    let row = |who: &Caller, source: &str, contact: bool| (who.handle.clone(), source.to_owned(), contact);
    let registry = [row(&olga, "registry", false), row(&bob, "registry", false), row(&global, "registry", false)];
    assert_eq!(peers(&ana.get("peers").await), registry);

    befriend(&ana, &aaron).await;
    befriend(&ana, &eve).await;
    befriend(&bob, &ana).await;
    befriend(&ana, &global).await;
    asked(&ana, &eva).await;
    let wanted = [
        row(&olga, "registry", false),
        row(&bob, "registry", true),
        row(&global, "registry", true),
        row(&eve, "contact", true),
        row(&aaron, "contact", true),
    ];
    let reply = ana.get("peers").await.assert_status(200);
    assert_eq!(peers(&reply), wanted, "registry first; a pending request makes no peer");
    assert_eq!((&reply.metadata()["total_count"], &reply.metadata()["total_pages"]), (&json!(5), &json!(1)));
    let second = ana.get("peers?page=2&page_size=3").await.assert_status(200);
    assert_eq!(peers(&second), wanted[3..]);
    assert_eq!(second.metadata()["total_pages"], 2);
    // Nobody else's peers changed, but those of the other sides.
    assert_eq!(
        peers(&bob.get("peers").await),
        [row(&olga, "registry", false), row(&ana, "registry", true), row(&global, "registry", false)]
    );
    assert_eq!(peers(&aaron.get("peers").await).last(), Some(&row(&ana, "contact", true)));
    let of_eve = peers(&eve.get("peers?type=Agent").await);
    assert_eq!(
        of_eve,
        [
            row(&aaron, "registry", false),
            row(&eva, "registry", false),
            row(&global, "registry", false),
            row(&ana, "contact", true)
        ]
    );
    assert!(peers(&olga.get("peers").await).iter().all(|(_, source, contact)| source == "registry" && !contact));
    assert!(peers(&eve.get("peers?type=User").await).is_empty());

    let room = app.room_with(&ana, &[&aaron, &bob]).await;
    let left = ana.get(&format!("peers?not_in_chat={}", room.id)).await;
    assert_eq!(peers(&left), [wanted[0].clone(), wanted[2].clone(), wanted[3].clone()]);
    ana.post("contacts/remove", json!({"handle": "eve"})).await.assert_status(200);
    ana.post("contacts/remove", json!({"handle": bob.handle})).await.assert_status(200);
    assert_eq!(
        peers(&ana.get("peers").await),
        [wanted[0].clone(), row(&bob, "registry", false), wanted[2].clone(), wanted[4].clone()]
    );
}

async fn a_contact_may_be_invited(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let eva = eve.registers("eva").await;
    let (hers, ours) = (app.room_with(&ana, &[&bob]).await, app.room_with(&olga, &[]).await);
    for stranger in [&eve, &eva] {
        ana.adds(&hers, stranger).await.assert_error(403, "forbidden");
        olga.adds(&ours, stranger).await.assert_error(403, "forbidden");
        let request = asked(&ana, stranger).await;
        ana.adds(&hers, stranger).await.assert_error(403, "forbidden");
        answers(stranger, &request, "approve").await.assert_status(200);
        bob.adds(&hers, stranger).await.assert_error(403, "forbidden");
        ana.adds(&hers, stranger).await.assert_status(201);
        olga.adds(&ours, stranger).await.assert_error(403, "forbidden");
        befriend(stranger, &olga).await;
        olga.adds(&ours, stranger).await.assert_status(201);
    }
    // They stay when the contact ends, but would not get in again.
    ana.post("contacts/remove", json!({"handle": "eve"})).await.assert_status(200);
    assert_eq!(ana.get(&hers.path("/participants")).await.rows().len(), 4);
    eve.says(&hers, "still here", &[&ana]).await;
    eve.removes(&hers, &eve).await.assert_status(200);
    ana.adds(&hers, &eve).await.assert_error(403, "forbidden");
}

async fn a_deleted_agent_is_nobodys_contact(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let eva = eve.registers("eva").await;
    befriend(&ana, &eva).await;
    befriend(&eve, &ana).await;
    let to = asked(&bob, &ana).await;
    let from = asked(&ana, &olga).await;
    let declined = asked(&eva, &bob).await;
    answers(&bob, &declined, "reject").await.assert_status(200);
    let (mut eva_socket, mut bob_socket) = (
        eva.joins(&format!("agent_contacts:{}", eva.id)).await,
        bob.joins(&format!("agent_contacts:{}", bob.id)).await,
    );
    let (mut eve_socket, mut olga_socket) = (
        eve.joins(&format!("user_contacts:{}", eve.id)).await,
        olga.joins(&format!("user_contacts:{}", olga.id)).await,
    );
    let record = |reply: Reply| reply.rows()[0]["id"].clone();
    let (of_eva, of_eve) = (record(eva.get("contacts").await), record(eve.get("contacts").await));

    olga.delete(&format!("agents/{}?force=true", ana.id)).await.assert_status(200);
    for who in [&eva, &eve] {
        let left = who.get("contacts").await.assert_status(200);
        assert_eq!((left.rows().len(), &left.metadata()["total_count"]), (0, &json!(0)));
    }
    assert!(olga.get("contacts/requests").await.rows().is_empty());
    answers(&olga, &from, "approve").await.assert_error(409, "conflict");
    answers(&bob, &to, "cancel").await.assert_error(409, "conflict");
    let sent = bob.get("contacts/requests?sent_status=cancelled").await.assert_status(200);
    assert_eq!(
        (&sent.data()["sent"][0]["id"], &sent.data()["sent"][0]["to_handle"], &sent.data()["sent"][0]["to_name"]),
        (&json!(to), &Value::Null, &json!("ana")),
        "its handle may be somebody else's soon"
    );
    assert_eq!(eva_socket.next_event("contact_removed").await, json!({"id": of_eva}));
    assert_eq!(eve_socket.next_event("contact_removed").await, json!({"id": of_eve}));
    assert_eq!(bob_socket.next_event("contact_request_updated").await, json!({"id": to, "status": "cancelled"}));
    assert_eq!(olga_socket.next_event("contact_request_updated").await, json!({"id": from, "status": "cancelled"}));

    asks(&eva, "olga/ana", Value::Null).await.assert_error(404, "not_found");
    eve.post("contacts/resolve", json!({"handle": "olga/ana"})).await.assert_error(404, "not_found");
    // A new agent of the same name is somebody else.
    let ana = app.agent("ana").await;
    assert!(ana.get("contacts").await.rows().is_empty());
    befriend(&eva, &ana).await;
    let rejected = eva.get("contacts/requests?sent_status=rejected").await;
    assert_eq!(rejected.data()["sent"][0]["to_handle"], bob.handle);
}

async fn a_deleted_agent_leaves_more_than_one_batch(app: TestApp) {
    let olga = app.owner();
    let (ana, others) = (app.agent("ana").await, agents(&app, 60).await);
    for (number, other) in others.iter().enumerate() {
        match number % 3 {
            0 => befriend(other, &ana).await,
            1 => drop(asked(other, &ana).await),
            _ => drop(asked(&ana, other).await),
        }
    }
    olga.delete(&format!("agents/{}?force=true", ana.id)).await.assert_status(200);
    let left = app.database.query(
        "SELECT count(*) FROM contacts UNION ALL SELECT count(*) FROM contact_requests WHERE status = 'pending'",
    );
    assert_eq!(left, [["0"], ["0"]]);
    let answered = app.database.query("SELECT status, count(*) FROM contact_requests GROUP BY status ORDER BY status");
    assert_eq!(answered, [["approved", "20"], ["cancelled", "40"]]);
}

/// As if the server had died right after it deleted an agent: the background job ends what is left.
async fn what_a_crash_left_of_a_deleted_agent_ends_later(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let eva = eve.registers("eva").await;
    befriend(&ana, &eva).await;
    let request = asked(&ana, &eve).await;
    let mut evas = eva.joins(&format!("agent_contacts:{}", eva.id)).await;
    let mut eves = eve.joins(&format!("user_contacts:{}", eve.id)).await;
    app.database.execute("UPDATE identities SET deleted_at = 1 WHERE handle = 'olga/ana'");
    // Nobody becomes a contact of what is gone.
    answers(&eve, &request, "approve").await.assert_error(404, "not_found");
    asks(&eva, "olga/ana", Value::Null).await.assert_error(404, "not_found");
    olga.delete(&format!("agents/{}", bob.id)).await.assert_status(200);
    evas.next_event("contact_removed").await;
    let updated = eves.next_event("contact_request_updated").await;
    assert_eq!(updated, json!({"id": request, "status": "cancelled"}));
    assert!(eva.get("contacts").await.rows().is_empty());
}
