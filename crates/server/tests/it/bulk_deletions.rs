//! Deleting many rooms or agents by one request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bandstand_domain::bulk_deletion::Resource;
use bandstand_server::auth::Caller as Identified;
use bandstand_server::service::bulk_deletions::BulkRequest;
use bandstand_server::settings::Limits;
use bandstand_server::state::Services;
use bandstand_store::testing::{TestDatabase, TestEngine};
use bandstand_wire::ids::{IdentityId, KeyId};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Caller, PATIENCE, Reply, Room, TestApp, run_on, stories, without_jobs};

stories!(
    rooms_are_deleted_in_the_background,
    agents_are_deleted_in_the_background,
    requests_are_checked,
    a_job_is_its_users_own,
    a_room_in_many_jobs_is_deleted_once,
    a_failure_stops_the_job,
    what_became_of_a_job_is_forgotten_after_a_while,
);

async fn deletes(who: &Caller, what: &str, body: Value) -> Reply {
    who.post(&format!("{what}/bulk-delete"), body).await
}

/// The job at the end, asked for as a client does.
async fn finished(who: &Caller, id: &str) -> Reply {
    let over = async {
        loop {
            let reply = who.get(&format!("bulk-deletions/{id}")).await.assert_status(200);
            let job = reply.data();
            assert_eq!(
                job["processed"].as_u64(),
                Some(results(job).iter().filter(|one| one.as_str() != "pending").count() as u64)
            );
            if matches!(job["status"].as_str(), Some("completed" | "failed")) {
                return reply;
            }
            assert_eq!(job["completed_at"], Value::Null);
        }
    };
    tokio::time::timeout(PATIENCE, over).await.expect("the job ends")
}

/// What became of each id: `pending`, `succeeded`, or the code of its error.
fn results(job: &Value) -> Vec<String> {
    let results = job["results"].as_array().expect("results");
    let word = |result: &Value| match result["error"]["code"].as_str() {
        Some(code) => {
            assert_eq!(result["status"], "failed");
            assert!(result["error"]["message"].as_str().is_some_and(|text| !text.is_empty()));
            code.to_owned()
        }
        None => result["status"].as_str().expect("a status").to_owned(),
    };
    results.iter().map(word).collect()
}

async fn exists(who: &Caller, room: &Room) -> bool {
    match who.get(&room.path("")).await.status {
        200 => true,
        404 => false,
        other => panic!("{other}"),
    }
}

async fn rooms_are_deleted_in_the_background(app: TestApp) {
    let (olga, eve, ana) = (app.owner(), app.user("eve").await, app.agent("ana").await);
    let own = app.room_with(&olga, &[&ana]).await;
    let agents = app.room_with(&ana, &[]).await;
    let foreign = eve.creates_room().await;
    let global = app.global_agent(&olga, "global").await;
    let readable = app.room_with(&eve, &[&global]).await;
    let kept = olga.creates_room().await;
    let work = olga.says(&own, "work", &[&ana]).await;
    app.clock.advance(1);
    let ids = [&own.id, "no-uuid", &foreign.id, &readable.id, &agents.id, &olga.id, ""];

    let accepted = deletes(&olga, "chats", json!({"ids": ids})).await.assert_status(202);
    let id = accepted.id();
    assert_eq!(accepted.header("location"), Some(format!("/api/v1/me/bulk-deletions/{id}").as_str()));
    assert_eq!(
        accepted.data(),
        &json!({
            "id": id, "resource_type": "chat", "status": "queued", "force": false,
            "total": 7, "processed": 0, "succeeded": 0, "failed": 0,
            "results": ids.map(|id| json!({"id": id, "status": "pending"})),
            "inserted_at": "2026-01-01T00:00:01.000000Z", "started_at": null, "completed_at": null,
        })
    );
    let done = finished(&olga, &id).await;
    let job = done.data();
    assert_eq!(
        results(job),
        ["succeeded", "not_found", "not_found", "forbidden", "succeeded", "not_found", "not_found"]
    );
    let given: Vec<&str> = job["results"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(given, ids);
    assert_eq!(
        (&job["status"], &job["processed"], &job["succeeded"], &job["failed"]),
        (&json!("completed"), &json!(7), &json!(2), &json!(5))
    );
    assert_eq!((&job["started_at"], &job["completed_at"]), (&job["inserted_at"], &job["inserted_at"]));
    for (room, there) in [(&own, false), (&agents, false), (&readable, true), (&kept, true)] {
        assert_eq!(exists(&olga, room).await, there, "{}", room.id);
    }
    assert!(exists(&eve, &foreign).await);
    ana.marks(&own, &work, "processing").await.assert_error(404, "not_found");
    // The same again finds nothing.
    let again = deletes(&olga, "chats", json!({"ids": [own.id]})).await.assert_status(202);
    assert_eq!(results(finished(&olga, &again.id()).await.data()), ["not_found"]);
}

async fn agents_are_deleted_in_the_background(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let [idle, busy, busier] = app.agents(["idle", "busy", "busier"]).await;
    let foreign = eve.registers("foreign").await;
    let global = app.global_agent(&eve, "global").await;
    let room = app.room_with(&olga, &[&idle, &busy, &busier]).await;
    for agent in [&busy, &busier] {
        agent.says(&room, "I did it", &[&olga]).await;
    }
    let mut watcher = olga.joins(&format!("room_participants:{}", room.id)).await;
    let mut socket = busy.joins(&format!("agent_rooms:{}", busy.id)).await;
    watcher.skip_to("agent_connected").await;
    let ids = [&idle.id, &busy.id, &foreign.id, &global.id, &olga.id, "no-uuid"];
    let accepted = deletes(&olga, "agents", json!({"ids": ids})).await.assert_status(202);
    assert_eq!((&accepted.data()["resource_type"], &accepted.data()["force"]), (&json!("agent"), &json!(false)));
    let done = finished(&olga, &accepted.id()).await;
    assert_eq!(
        results(done.data()),
        ["succeeded", "execution_history_exists", "not_found", "not_found", "not_found", "not_found"]
    );
    idle.get("me").await.assert_error(401, "unauthorized");
    busy.get("me").await.assert_status(200);
    assert_eq!(watcher.skip_to("participant_removed").await["id"], json!(idle.id));

    let ids = [&busy.id, &idle.id, &busier.id];
    let accepted = deletes(&olga, "agents", json!({"ids": ids, "force": true})).await.assert_status(202);
    let done = finished(&olga, &accepted.id()).await;
    assert_eq!(done.data()["force"], true);
    assert_eq!(results(done.data()), ["succeeded", "not_found", "succeeded"]);
    // Who is gone is gone at once, whatever is left to be tidied up.
    assert_eq!(socket.closes().await, 1001);
    assert_eq!(olga.get("agents").await.rows().len(), 0);
    assert_eq!(olga.get(&room.path("/participants")).await.strings("id"), std::slice::from_ref(&olga.id));
    for agent in [&busy, &busier] {
        assert_eq!(watcher.skip_to("participant_removed").await["id"], json!(agent.id));
    }
    foreign.get("me").await.assert_status(200);
}

async fn requests_are_checked(app: TestApp) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    let id = "0190aaaa-0000-7000-8000-0000000000ab";
    let many: Vec<String> = (0..101).map(|number| number.to_string()).collect();
    for what in ["agents", "chats"] {
        for (body, places) in [
            (json!({}), &["/ids"][..]),
            (json!({"ids": null}), &["/ids"]),
            (json!({"ids": []}), &["/ids"]),
            (json!({"ids": id}), &["/ids"]),
            (json!({"ids": many}), &["/ids"]),
            (json!({"ids": [id, id]}), &["/ids/1"]),
            (json!({"ids": [id, id.to_uppercase()]}), &["/ids/1"]),
            (json!({"ids": ["x", 7, null, "x"]}), &["/ids/1", "/ids/2", "/ids/3"]),
            (json!({"ids": ["a\u{0}b", "x".repeat(256)]}), &["/ids/0", "/ids/1"]),
            (json!({"ids": [id], "all": true}), &["/all"]),
            (json!([id]), &["/"]),
        ] {
            deletes(&olga, what, body).await.assert_invalid(places);
        }
        olga.post_nothing(&format!("{what}/bulk-delete")).await.assert_error(400, "bad_request");
        olga.get(&format!("{what}/bulk-delete")).await.assert_error(405, "method_not_allowed");
        deletes(&ana, &format!("/api/v1/me/{what}"), json!({"ids": [id]})).await.assert_error(403, "forbidden");
        deletes(&app.nobody(), what, json!({"ids": [id]})).await.assert_error(401, "unauthorized");
    }
    for force in [json!(null), json!("true"), json!(1)] {
        deletes(&olga, "agents", json!({"ids": [id], "force": force})).await.assert_invalid(&["/force"]);
    }
    deletes(&olga, "chats", json!({"ids": [id], "force": false})).await.assert_invalid(&["/force"]);
    // A hundred may be.
    let accepted = deletes(&olga, "chats", json!({"ids": many[..100]})).await.assert_status(202);
    let done = finished(&olga, &accepted.id()).await;
    assert_eq!((&done.data()["total"], &done.data()["failed"]), (&json!(100), &json!(100)));
}

async fn a_job_is_its_users_own(app: TestApp) {
    let (olga, eve, ana) = (app.owner(), app.user("eve").await, app.agent("ana").await);
    let room = olga.creates_room().await;
    let id = deletes(&olga, "chats", json!({"ids": [room.id]})).await.assert_status(202).id();
    let path = format!("bulk-deletions/{id}");
    finished(&olga, &id).await;
    eve.get(&path).await.assert_error(404, "not_found");
    olga.get(&format!("bulk-deletions/{}", room.id)).await.assert_error(404, "not_found");
    olga.get(&format!("{path}?colour=red")).await.assert_invalid(&["/colour"]);
    olga.get("bulk-deletions/no-uuid").await.assert_invalid(&["/id"]);
    olga.get("bulk-deletions/%FF").await.assert_invalid(&["/id"]);
    ana.get(&format!("/api/v1/me/{path}")).await.assert_error(403, "forbidden");
    app.nobody().get("bulk-deletions/no-uuid").await.assert_error(401, "unauthorized");
}

async fn a_room_in_many_jobs_is_deleted_once(app: TestApp) {
    let olga = app.owner();
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(olga.creates_room().await.id);
    }
    let body = json!({"ids": ids});
    let accepted = join_all((0..16).map(|_| deletes(&olga, "chats", body.clone()))).await;
    let mut won: HashMap<usize, usize> = HashMap::new();
    for job in accepted {
        let done = finished(&olga, &job.assert_status(202).id()).await;
        for (place, result) in results(done.data()).iter().enumerate() {
            match result.as_str() {
                "succeeded" => *won.entry(place).or_default() += 1,
                other => assert_eq!(other, "not_found"),
            }
        }
    }
    assert_eq!((0..4).map(|place| won.get(&place).copied()).collect::<Vec<_>>(), [Some(1); 4]);
    assert_eq!(olga.get("chats").await.rows().len(), 0);
}

async fn a_failure_stops_the_job(app: TestApp) {
    let (olga, ana) = (app.owner(), app.agent("ana").await);
    let [first, damaged, third] =
        [app.room_with(&olga, &[&ana]).await, app.room_with(&olga, &[&ana]).await, app.room_with(&olga, &[&ana]).await];
    let damage = |from: &str, to: &str| {
        let id = damaged.id.replace('-', "");
        let id = match app.database.engine() {
            TestEngine::Sqlite => format!("x'{id}'"),
            TestEngine::Postgres => format!("'{id}'"),
        };
        app.database.execute(&format!(
            "UPDATE participants SET role = '{to}' WHERE role = '{from}' AND room_key = (SELECT key FROM rooms WHERE id = {id})"
        ));
    };
    damage("member", "no such role");
    let ids = [&first.id, &damaged.id, &third.id];
    let accepted = deletes(&olga, "chats", json!({"ids": ids})).await.assert_status(202);
    let done = finished(&olga, &accepted.id()).await;
    assert_eq!(done.data()["status"], "failed");
    assert_eq!(results(done.data()), ["succeeded", "delete_failed", "not_attempted"]);
    assert_eq!((&done.data()["succeeded"], &done.data()["failed"]), (&json!(1), &json!(2)));
    assert!(!exists(&olga, &first).await && exists(&olga, &third).await, "nothing after it was touched");
    damage("no such role", "member");
    assert!(exists(&olga, &damaged).await, "nothing of it was");
    // The next job is not held up by it.
    let accepted = deletes(&olga, "chats", json!({"ids": ids})).await.assert_status(202);
    assert_eq!(results(finished(&olga, &accepted.id()).await.data()), ["not_found", "succeeded", "succeeded"]);
}

async fn what_became_of_a_job_is_forgotten_after_a_while(app: TestApp) {
    const WEEK: i64 = 7 * 24 * 60 * 60;
    let olga = app.owner();
    let services = &app.state().services;
    let items = || app.database.query("SELECT job_key FROM bulk_deletion_items").len();
    let mut jobs = Vec::new();
    for _ in 0..6 {
        let ids = [olga.creates_room().await.id, "no-uuid".to_owned()];
        let id = deletes(&olga, "chats", json!({"ids": ids})).await.assert_status(202).id();
        finished(&olga, &id).await;
        jobs.push(id);
        app.clock.advance(1);
    }
    app.clock.advance(WEEK - 7);
    assert_eq!(services.forget_bulk_deletions().await, Ok(0), "the oldest has a second left");
    app.clock.advance(4);
    // One that is not over stays, however old it gets.
    app.database
        .execute("UPDATE bulk_deletions SET completed_at = NULL WHERE key = (SELECT min(key) FROM bulk_deletions)");
    assert_eq!(services.forget_bulk_deletions().await, Ok(3));
    assert_eq!(services.forget_bulk_deletions().await, Ok(0));
    assert_eq!(items(), 6);
    for (place, job) in jobs.iter().enumerate() {
        let reply = olga.get(&format!("bulk-deletions/{job}")).await;
        match place {
            1..4 => drop(reply.assert_error(404, "not_found")),
            _ => drop(reply.assert_status(200)),
        }
    }
    // No more at once than one operation may touch.
    app.clock.advance(WEEK);
    app.database.execute("UPDATE bulk_deletions SET completed_at = 0");
    for _ in 0..3 {
        let id = accept(services, &olga, &[]).await;
        finished(&olga, &id).await;
    }
    app.database.execute("UPDATE bulk_deletions SET completed_at = 0");
    assert_eq!(services.forget_bulk_deletions().await, Ok(4));
    assert_eq!(services.forget_bulk_deletions().await, Ok(2));
    assert_eq!((items(), app.database.query("SELECT key FROM bulk_deletions").len()), (0, 0));
}

/// What the server has no request for: somebody, as the services know it.
fn identified(who: &Caller) -> Identified {
    Identified { identity: IdentityId(who.id.parse().unwrap()), kind: who.kind, key: KeyId(uuid::Uuid::nil()) }
}

async fn accept(services: &Services, who: &Caller, rooms: &[Room]) -> String {
    let ids = rooms.iter().map(|room| room.id.clone()).collect();
    let request = BulkRequest { caller: identified(who), resource: Resource::Room, force: false, ids };
    services.accept_bulk_deletion(request).await.expect("it is accepted").id.to_string()
}

/// A job that was accepted and begun goes on where it was, and with what was decided when it was accepted.
async fn a_restart_goes_on(engine: TestEngine) {
    let database = Arc::new(TestDatabase::create(engine).await);
    let kept = Mutex::new(None);
    let first = run_on(&database, Limits::default(), None, async |app: TestApp| {
        let (olga, eve) = (app.owner(), app.user("eve").await);
        let helper = app.global_agent(&eve, "helper").await;
        let mut rooms = Vec::new();
        for _ in 0..4 {
            // Eve owns them through her agent.
            let room = app.room_with(&olga, &[]).await;
            olga.adds_as(&room, &helper, "owner").await.assert_status(201);
            rooms.push(room);
        }
        *kept.lock().unwrap() = Some((eve, helper, rooms));
    })
    .await;
    let (eve, helper, rooms) = kept.lock().unwrap().take().expect("the first server's");

    // A server that dies after one of them, and in which Eve then loses what she had.
    let services = without_jobs(&first).await;
    let id = accept(&services, &eve, &rooms).await;
    assert!(services.delete_next_of_bulk().await.expect("the store works"), "one is deleted");
    let olga = identified(&first.owner());
    for room in &rooms[1..] {
        let (room, helper) = (room.id.parse().unwrap(), IdentityId(helper.id.parse().unwrap()));
        services.remove_participant(olga, room, helper).await.expect("she may");
    }
    services.store.close().await;

    run_on(&database, Limits::default(), Some(&first), async |app: TestApp| {
        let (olga, eve) = (app.owner(), Caller { app: app.clone(), ..eve.clone() });
        let done = finished(&eve, &id).await;
        assert_eq!(results(done.data()), ["succeeded"; 4]);
        assert_eq!(done.data()["status"], "completed");
        for room in &rooms {
            assert!(!exists(&olga, room).await);
        }
    })
    .await;
}

/// The same with a server that goes down as it does: wherever the job was, nothing is lost and nothing done twice.
async fn a_shutdown_loses_nothing(engine: TestEngine) {
    let database = Arc::new(TestDatabase::create(engine).await);
    let kept = Mutex::new(None);
    let first = run_on(&database, Limits::default(), None, async |app: TestApp| {
        let (olga, ana) = (app.owner(), app.agent("ana").await);
        let mut rooms = Vec::new();
        for _ in 0..60 {
            rooms.push(app.room_with(&olga, &[&ana]).await);
        }
        let ids: Vec<&String> = rooms.iter().map(|room| &room.id).collect();
        let id = deletes(&olga, "chats", json!({"ids": ids})).await.assert_status(202).id();
        app.begin_stop();
        *kept.lock().unwrap() = Some((id, rooms));
    })
    .await;
    let (id, rooms) = kept.lock().unwrap().take().expect("the first server's");
    run_on(&database, Limits::default(), Some(&first), async |app: TestApp| {
        let olga = app.owner();
        let done = finished(&olga, &id).await;
        assert_eq!(results(done.data()), vec!["succeeded"; rooms.len()]);
        assert_eq!(olga.get("chats").await.rows().len(), 0);
    })
    .await;
}

/// A running server forgets by itself what ended long ago.
async fn the_job_forgets(engine: TestEngine) {
    let database = Arc::new(TestDatabase::create(engine).await);
    let first = run_on(&database, Limits::default(), None, async |app: TestApp| {
        let olga = app.owner();
        for _ in 0..9 {
            let id = deletes(&olga, "chats", json!({"ids": ["no-uuid"]})).await.assert_status(202).id();
            finished(&olga, &id).await;
        }
    })
    .await;
    database.execute("UPDATE bulk_deletions SET completed_at = 0");
    run_on(&database, Limits::default(), Some(&first), async |app: TestApp| {
        app.until_none("SELECT key FROM bulk_deletions").await;
        assert_eq!(database.query("SELECT job_key FROM bulk_deletion_items").len(), 0);
    })
    .await;
}

/// Makes a test of each for each engine.
macro_rules! on_each_engine {
    ($($story:ident),*) => {
        $(mod $story {
            use bandstand_store::testing::TestEngine;

            #[tokio::test]
            async fn sqlite() {
                super::$story(TestEngine::Sqlite).await;
            }

            #[tokio::test]
            async fn postgres() {
                super::$story(TestEngine::Postgres).await;
            }
        })*
    };
}
on_each_engine!(a_restart_goes_on, a_shutdown_loses_nothing, the_job_forgets);
