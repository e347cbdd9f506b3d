//! Quotas and rates: what is refused for being too many, and what clients are told then.

use bandstand_server::settings::Limits;
use bandstand_store::quotas::{Quota, Resource};
use bandstand_wire::ids::IdentityId;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Caller, Reply, Socket, TestApp, stories};

stories!(own_quotas_count_without_settings, nothing_is_limited_unless_asked_for);

mod quotas {
    use super::{
        Limits, agents_of_a_user, messages_of_a_day, of_many_at_once_no_more_than_the_quota,
        own_quotas_go_before_settings, rooms_of_a_creator,
    };

    fn limits() -> Limits {
        Limits {
            quota_agents: Some(3),
            quota_rooms: Some(2),
            quota_messages_per_day: Some(3),
            room_participants: 4,
            ..Limits::default()
        }
    }

    crate::support::stories!(limits: super::limits() =>
        agents_of_a_user,
        rooms_of_a_creator,
        messages_of_a_day,
        own_quotas_go_before_settings,
        of_many_at_once_no_more_than_the_quota,
    );
}

mod rates {
    use super::{
        Limits, each_class_of_each_key_has_its_own_rate, frames_of_a_socket, strangers_do_not_hold_up_who_is_known,
        what_settles_a_turn_is_never_refused, whose_request_it_is,
    };

    fn limits() -> Limits {
        Limits {
            agent_reads_per_minute: Some(30),
            agent_writes_per_minute: Some(4),
            auth_failures_per_minute: 3,
            client_address_header: Some("x-forwarded-for".into()),
            socket_frames_per_second: 1,
            ..Limits::default()
        }
    }

    crate::support::stories!(limits: super::limits() =>
        each_class_of_each_key_has_its_own_rate,
        what_settles_a_turn_is_never_refused,
        strangers_do_not_hold_up_who_is_known,
        whose_request_it_is,
        frames_of_a_socket,
    );
}

/// A quota that is used up, with the contract's details.
#[track_caller]
fn assert_limit(reply: Reply, resource: &str, limit: i64, current: i64) {
    let reply = reply.assert_error(403, "limit_reached");
    assert_eq!(reply.error()["details"], json!({"resource": resource, "limit": limit, "current": current}));
}

fn agent(name: &str) -> Value {
    json!({"agent": {"name": name, "description": "an agent of a test"}})
}

fn id(who: &Caller) -> IdentityId {
    IdentityId(who.id.parse().expect("a UUID"))
}

async fn has_quota(who: &Caller, resource: Resource, quota: Option<Quota>) {
    let set = who.app.state().services.set_quota(id(who), resource, quota).await.expect("it is set");
    assert!(set);
    assert_eq!(who.app.state().services.quota(id(who), resource).await, Ok(quota));
}

async fn agents_of_a_user(app: TestApp) {
    let owner = app.owner();
    app.agents(["ana", "bob", "eve"]).await;
    assert_limit(owner.post("agents/register", agent("gil")).await, "agents", 3, 3);
    // One that is deleted makes room; another user has its own.
    let gone = owner.get("agents").await.rows()[0]["id"].as_str().unwrap().to_owned();
    owner.delete(&format!("agents/{gone}")).await.assert_status(200);
    owner.post("agents/register", agent("gil")).await.assert_status(201);
    assert_limit(owner.post("agents/register", agent("hal")).await, "agents", 3, 3);
    app.user("ben").await.post("agents/register", agent("hal")).await.assert_status(201);
}

async fn rooms_of_a_creator(app: TestApp) {
    let owner = app.owner();
    let ana = app.agent("ana").await;
    let first = owner.creates_room().await;
    owner.creates_room().await;
    assert_limit(owner.post("chats", json!({"chat": {}})).await, "chats", 2, 2);
    // An agent's rooms are its own. Archived rooms count, deleted ones do not.
    ana.creates_room().await;
    owner.post_nothing(&first.path("/archive")).await.assert_status(200);
    assert_limit(owner.post("chats", json!({"chat": {}})).await, "chats", 2, 2);
    owner.delete(&first.path("")).await.assert_status(200);
    owner.creates_room().await;
}

async fn messages_of_a_day(app: TestApp) {
    let owner = app.owner();
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let rooms = [app.room_with(&owner, &[&ana, &bob]).await, app.room_with(&owner, &[&ana, &bob]).await];
    ana.says(&rooms[0], "one", &[&bob]).await;
    ana.says(&rooms[1], "two", &[&bob]).await;
    // What is refused does not count, and neither do events.
    ana.posts(&rooms[0], "nobody", &[]).await.assert_status(422);
    ana.records(&rooms[0], "thought", "hm").await;
    ana.says(&rooms[0], "three", &[&bob]).await;
    assert_limit(ana.posts(&rooms[0], "four", &[&bob]).await, "messages", 3, 3);
    assert_limit(ana.posts(&rooms[1], "four", &[&bob]).await, "messages", 3, 3);
    bob.says(&rooms[1], "mine", &[&ana]).await;
    assert_eq!(owner.contents(&rooms[0].path("/messages?message_type=text")).await.len(), 2);
    app.clock.advance(24 * 60 * 60);
    ana.says(&rooms[0], "four", &[&bob]).await;
}

async fn own_quotas_go_before_settings(app: TestApp) {
    let owner = app.owner();
    has_quota(&owner, Resource::Agents, Some(Quota::Most(1))).await;
    owner.post("agents/register", agent("ana")).await.assert_status(201);
    assert_limit(owner.post("agents/register", agent("bob")).await, "agents", 1, 1);
    has_quota(&owner, Resource::Agents, Some(Quota::Unlimited)).await;
    for name in ["bob", "eve", "gil"] {
        owner.post("agents/register", agent(name)).await.assert_status(201);
    }
    // Back to the settings: what it has stays.
    has_quota(&owner, Resource::Agents, None).await;
    assert_limit(owner.post("agents/register", agent("hal")).await, "agents", 3, 3);
    assert_eq!(owner.get("agents").await.rows().len(), 4);
    // Participants of its rooms.
    let room = owner.creates_room().await;
    let (ben, eva) = (app.user("ben").await, app.user("eva").await);
    let guests = [ben.registers("one").await, eva.registers("two").await];
    has_quota(&owner, Resource::Participants, Some(Quota::Most(2))).await;
    let own = owner.get("agents").await;
    let add = async |index: usize| {
        let who = &own.rows()[index]["id"];
        owner.post(&room.path("/participants"), json!({"participant": {"participant_id": who}})).await
    };
    add(0).await.assert_status(201);
    assert_limit(add(1).await, "participants", 2, 2);
    assert_eq!(guests.len(), 2);
    let nobody = app.state().services.set_quota(IdentityId(uuid::Uuid::nil()), Resource::Agents, None).await;
    assert_eq!(nobody, Ok(false));
}

async fn of_many_at_once_no_more_than_the_quota(app: TestApp) {
    let owner = app.owner();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..10 {
        let owner = owner.clone();
        tasks.spawn(async move { owner.post("agents/register", agent(&format!("a{number}"))).await.status });
    }
    let statuses = tasks.join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 3, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 403).count(), 7, "{statuses:?}");
}

async fn own_quotas_count_without_settings(app: TestApp) {
    let owner = app.owner();
    let ana = app.agent("ana").await;
    let room = app.room_with(&owner, &[&ana]).await;
    owner.says(&room, "before", &[&ana]).await;
    has_quota(&owner, Resource::Messages, Some(Quota::Most(1))).await;
    has_quota(&owner, Resource::Rooms, Some(Quota::Most(0))).await;
    owner.says(&room, "one", &[&ana]).await;
    assert_limit(owner.posts(&room, "two", &[&ana]).await, "messages", 1, 1);
    assert_limit(owner.post("chats", json!({"chat": {}})).await, "chats", 0, 0);
    ana.says(&room, "free", &[&owner]).await;
    has_quota(&owner, Resource::Messages, None).await;
    owner.says(&room, "two", &[&ana]).await;
}

async fn nothing_is_limited_unless_asked_for(app: TestApp) {
    let ana = app.agent("ana").await;
    for _ in 0..200 {
        let reply = ana.get("me").await.assert_status(200);
        assert_eq!(reply.header("x-ratelimit-limit"), None);
    }
}

fn rate(reply: &Reply) -> Vec<&str> {
    ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"]
        .iter()
        .map(|name| reply.header(name).unwrap_or("-"))
        .collect()
}

async fn each_class_of_each_key_has_its_own_rate(app: TestApp) {
    let now = bandstand_store::testing::NOW_MICROS / 1_000_000;
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let (soon, minute) = ((now + 15).to_string(), (now + 60).to_string());
    let first = ana.post("chats", json!({})).await.assert_status(201);
    assert_eq!(rate(&first), ["4", "3", &soon, "-"]);
    // A refusal counts as well, and does not say when to come back: that is not why it was refused.
    let refused = ana.post("chats", json!({"chat": 1})).await.assert_status(422);
    assert_eq!(rate(&refused), ["-", "-", "-", "-"]);
    ana.post("chats", json!({})).await.assert_status(201);
    assert_eq!(rate(&ana.post("chats", json!({})).await.assert_status(201)), ["4", "0", &minute, "-"]);
    for _ in 0..3 {
        let refused = ana.post("chats", json!({})).await.assert_error(429, "rate_limited");
        assert_eq!(rate(&refused), ["4", "0", &soon, "15"]);
    }
    // Reads, other keys and people have rates of their own, or none.
    ana.get("me").await.assert_status(200);
    bob.post("chats", json!({})).await.assert_status(201);
    for _ in 0..20 {
        let reply = app.owner().post("chats", json!({"chat": {}})).await.assert_status(201);
        assert_eq!(rate(&reply), ["-", "-", "-", "-"]);
    }
    assert_eq!(ana.get("chats").await.rows().len(), 3);
    app.clock.advance(14);
    let refused = ana.post("chats", json!({})).await.assert_error(429, "rate_limited");
    assert_eq!(rate(&refused)[3], "1");
    app.clock.advance(1);
    ana.post("chats", json!({})).await.assert_status(201);
    ana.post("chats", json!({})).await.assert_error(429, "rate_limited");
    // A clock that jumps back holds nobody up for longer than one that stands still.
    app.clock.advance(-10_000);
    ana.post("chats", json!({})).await.assert_error(429, "rate_limited");
    app.clock.advance(15);
    ana.post("chats", json!({})).await.assert_status(201);
}

async fn what_settles_a_turn_is_never_refused(app: TestApp) {
    let owner = app.owner();
    let ana = app.agent("ana").await;
    let room = app.room_with(&owner, &[&ana]).await;
    let message = owner.says(&room, "go", &[&ana]).await;
    ana.marks(&room, &message, "processing").await.assert_status(200);
    for _ in 0..3 {
        ana.post("chats", json!({})).await.assert_status(201);
    }
    ana.marks(&room, &message, "processing").await.assert_error(429, "rate_limited");
    ana.post(&room.path("/activity"), json!({"working": true})).await.assert_status(200);
    ana.marks(&room, &message, "processed").await.assert_status(200);
    assert_eq!(ana.next_id(&room).await, None);
}

/// A request with this key from an address, as the proxy in front says it.
async fn from(app: &TestApp, address: &str, key: &str) -> Reply {
    let headers = [("x-api-key", key), ("x-forwarded-for", address)];
    app.request(Method::GET, "/api/v1/agent/me", &headers, None).await
}

async fn strangers_do_not_hold_up_who_is_known(app: TestApp) {
    let ana = app.agent("ana").await;
    let late = app.owner().registers("late").await;
    app.revoke_key(&late).await;
    for _ in 0..3 {
        from(&app, "192.0.2.1", "band_a_unknown").await.assert_error(401, "unauthorized");
    }
    let refused = from(&app, "192.0.2.1", "band_a_unknown").await.assert_error(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("20"));
    from(&app, "192.0.2.1", &late.key).await.assert_error(429, "rate_limited");
    // No key at all is no try, and who is known is let in.
    app.request(Method::GET, "/api/v1/agent/me", &[("x-forwarded-for", "192.0.2.1")], None).await.assert_status(401);
    from(&app, "192.0.2.1", &ana.key).await.assert_status(200);
    from(&app, "192.0.2.2", "band_a_unknown").await.assert_error(401, "unauthorized");
    // The socket's upgrade counts with it.
    let refused = Socket::refused(&app, "", &[("x-api-key", "band_a_unknown"), ("x-forwarded-for", "192.0.2.1")]).await;
    assert_eq!((refused.status, refused.error()["code"].as_str()), (429, Some("too_many_requests")));
    assert_eq!(refused.error()["retry_after"], 20);
    app.clock.advance(20);
    from(&app, "192.0.2.1", "band_a_unknown").await.assert_error(401, "unauthorized");
    from(&app, "192.0.2.1", "band_a_unknown").await.assert_error(429, "rate_limited");
}

async fn whose_request_it_is(app: TestApp) {
    // What comes before the proxy's own entry is what the client made up.
    for made_up in ["198.51.100.1", "198.51.100.2", "198.51.100.3"] {
        from(&app, &format!("{made_up}, 192.0.2.1"), "band_a_unknown").await.assert_status(401);
    }
    from(&app, "198.51.100.4, 192.0.2.1", "band_a_unknown").await.assert_status(429);
    from(&app, "2001:db8::1", "band_a_unknown").await.assert_status(401);
    // Without a readable entry it is the connection's address.
    for _ in 0..3 {
        from(&app, "unknown", "band_a_unknown").await.assert_status(401);
    }
    from(&app, "unknown", "band_a_unknown").await.assert_status(429);
}

async fn frames_of_a_socket(app: TestApp) {
    let ana = app.agent("ana").await;
    let mut socket = ana.socket().await;
    let mut refused = 0;
    for _ in 0..40 {
        let reference = socket.fresh_ref();
        socket.send(json!([reference, reference, "nothing:1", "phx_join", {}])).await;
        let frame = socket.frame().await;
        assert_eq!(frame.reference, reference.as_str());
        let reason = &frame.payload["response"]["reason"];
        refused += u32::from(reason == "rate_limited");
    }
    // Ten seconds' worth at once, and one for each second that this took.
    assert!((10..=30).contains(&refused), "{refused}");
    // Signs of life are always answered.
    let reference = socket.fresh_ref();
    socket.send(json!([null, reference, "phoenix", "heartbeat", {}])).await;
    assert_eq!(socket.frame().await.payload["status"], "ok");
}
