//! Bad input: the contract's envelope with a request id (the oracle looks at that), the field named, nothing changed.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{TestApp, stories};

stories!(
    a_body_that_is_not_json,
    a_missing_or_wrong_key,
    the_wrong_kind_of_key,
    paths_and_methods_that_do_not_exist,
    media_types,
    an_unknown_query_parameter_of_a_list,
    an_unknown_query_parameter_of_anything_else,
    request_ids_differ,
    what_needs_no_key,
);
stories!(limits: bandstand_server::settings::Limits { body_bytes: 1000, ..Default::default() } => a_body_that_is_too_large);

async fn a_body_that_is_not_json(app: TestApp) {
    let ana = app.agent("ana").await;
    let olga = app.owner();
    let room = app.room_with(&ana, &[&olga]).await;
    for who in [&ana, &olga] {
        for body in
            ["{", "{\"message\":", "nonsense", "{}{}", "\u{0}", "{\"message\":{\"content\":\"\\ud800\"}}", "[1,]"]
        {
            let body = Some(body.as_bytes().to_vec());
            let reply = who.send(Method::POST, &room.path("/messages"), Some("application/json"), body).await;
            reply.assert_error(400, "bad_request");
        }
        let not_utf8 = Some(b"{\"message\":{\"content\":\"\xff\"}}".to_vec());
        let reply = who.send(Method::POST, &room.path("/messages"), Some("application/json"), not_utf8).await;
        reply.assert_error(400, "bad_request");
        who.post_nothing(&room.path("/messages")).await.assert_error(400, "bad_request");
        let deep = Some("[".repeat(100_000).into_bytes());
        let reply = who.send(Method::POST, &room.path("/messages"), Some("application/json"), deep).await;
        reply.assert_error(400, "bad_request");
    }
    assert_eq!(olga.get(&room.path("/messages")).await.rows().len(), 0);
}

async fn a_missing_or_wrong_key(app: TestApp) {
    let ana = app.agent("ana").await;
    let nobody = app.nobody();
    let nowhere = "/api/v1/agent/chats/00000000-0000-4000-8000-00000000dead";
    let paths = [
        "/api/v1/agent/me",
        "/api/v1/agent/peers",
        "/api/v1/agent/chats",
        nowhere,
        "/api/v1/me/profile",
        "/api/v1/me/agents",
        "/api/v1/me/peers",
        "/api/v1/me/chats",
    ];
    for path in paths {
        nobody.get(path).await.assert_error(401, "unauthorized");
        for key in ["x", "band_a_0000000000000000000000000000000000000000000", &ana.key[..ana.key.len() - 1], " "] {
            app.request(Method::GET, path, &[("x-api-key", key)], None).await.assert_error(401, "unauthorized");
        }
        let other = format!("{}x", ana.key);
        app.request(Method::GET, path, &[("x-api-key", &other)], None).await.assert_error(401, "unauthorized");
        let bearer = format!("Bearer {}", ana.key);
        app.request(Method::GET, path, &[("authorization", &bearer)], None).await.assert_error(401, "unauthorized");
    }
    // Before anything else is looked at.
    nobody.post("/api/v1/agent/chats", json!({"what": 1})).await.assert_error(401, "unauthorized");
    nobody.get("/api/v1/agent/chats?what=1").await.assert_error(401, "unauthorized");
    // The header's name in any case.
    app.request(Method::GET, "/api/v1/agent/me", &[("X-API-Key", &ana.key)], None).await.assert_status(200);
}

async fn the_wrong_kind_of_key(app: TestApp) {
    let (ana, olga) = (app.agent("ana").await, app.owner());
    let room = app.room_with(&ana, &[&olga]).await;
    for path in ["me", "peers", "chats", &room.path(""), &room.path("/messages"), &room.path("/messages/next")] {
        olga.get(&format!("/api/v1/agent/{path}")).await.assert_error(403, "forbidden");
    }
    for path in ["profile", "agents", "peers", "chats", &room.path(""), &room.path("/messages")] {
        ana.get(&format!("/api/v1/me/{path}")).await.assert_error(403, "forbidden");
    }
    let body = json!({"agent": {"name": "x", "description": "xxxxxxxxxxxxx"}});
    ana.post("/api/v1/me/agents/register", body).await.assert_error(403, "forbidden");
    ana.delete(&format!("/api/v1/me/agents/{}", ana.id)).await.assert_error(403, "forbidden");
}

async fn paths_and_methods_that_do_not_exist(app: TestApp) {
    let (ana, olga) = (app.agent("ana").await, app.owner());
    let room = app.room_with(&ana, &[&olga]).await;
    for path in
        ["/", "/api", "/api/v1", "/api/v1/agent", "/api/v1/agent/nothing", "/api/v1/me/", "/api/v2/agent/me", "/%ff"]
    {
        ana.get(path).await.assert_error(404, "not_found");
    }
    for (method, path) in [
        (Method::PUT, "/api/v1/agent/chats".to_owned()),
        (Method::DELETE, "/api/v1/agent/me".to_owned()),
        (Method::POST, "/api/v1/agent/peers".to_owned()),
        (Method::GET, format!("/api/v1/agent/{}", room.path("/events"))),
        (Method::PUT, format!("/api/v1/agent/{}", room.path("/messages"))),
    ] {
        ana.send(method, &path, None, None).await.assert_error(405, "method_not_allowed");
    }
    for malformed in ["x", "%00", "0190", "%2F", "a".repeat(3000).as_str()] {
        ana.get(&format!("chats/{malformed}")).await.assert_error(404, "not_found");
        ana.get(&format!("chats/{malformed}/messages")).await.assert_error(404, "not_found");
        olga.get(&format!("chats/{malformed}/participants")).await.assert_error(404, "not_found");
        olga.delete(&format!("agents/{malformed}")).await.assert_error(404, "not_found");
        ana.post_nothing(&room.path(&format!("/messages/{malformed}/processing"))).await.assert_error(404, "not_found");
    }
    // The same UUID however it is written.
    ana.get(&format!("chats/{}", room.id.to_uppercase())).await.assert_status(200);
    ana.get(&format!("chats/{}", room.id.replace('-', ""))).await.assert_status(200);
}

async fn media_types(app: TestApp) {
    let ana = app.agent("ana").await;
    let post = async |media_type: Option<&str>| {
        ana.send(Method::POST, "chats", media_type, Some(b"{\"chat\":{}}".to_vec())).await
    };
    for good in [
        None,
        Some("application/json"),
        Some("application/json; charset=utf-8"),
        Some("Application/JSON"),
        Some("application/vnd.api+json"),
    ] {
        post(good).await.assert_status(201);
    }
    for bad in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx"]
    {
        post(Some(bad)).await.assert_error(415, "unsupported_media_type");
    }
}

async fn a_body_that_is_too_large(app: TestApp) {
    let ana = app.agent("ana").await;
    let bob = app.agent("bob").await;
    let room = app.room_with(&ana, &[&bob]).await;
    ana.posts(&room, &"x".repeat(2000), &[&bob]).await.assert_error(413, "payload_too_large");
    assert_eq!(bob.next(&room).await, None);
    ana.says(&room, &"x".repeat(800), &[&bob]).await;
}

async fn an_unknown_query_parameter_of_a_list(app: TestApp) {
    let (ana, olga) = (app.agent("ana").await, app.owner());
    let room = app.room_with(&ana, &[&olga]).await;
    for path in ["peers", "chats", &room.path("/messages"), &room.path("/context")] {
        let reply = ana.get(&format!("{path}?colour=red&page=1")).await.assert_invalid(&["/colour"]);
        assert_eq!(reply.error()["details"]["/colour"], json!(["Unexpected field: colour"]));
    }
    let room_path = room.path("");
    for path in ["peers", "agents", "chats", &room.path("/messages"), &room.path("/participants"), &room_path] {
        olga.get(&format!("{path}?a/b=1")).await.assert_invalid(&["/a~1b"]);
    }
    olga.delete(&format!("agents/{}?colour=red", ana.id)).await.assert_invalid(&["/colour"]);
    ana.get("me").await.assert_status(200);
}

async fn an_unknown_query_parameter_of_anything_else(app: TestApp) {
    let (ana, olga) = (app.agent("ana").await, app.owner());
    let room = app.room_with(&ana, &[&olga]).await;
    for path in ["me", &room.path(""), &room.path("/participants"), &room.path("/messages/next")] {
        ana.get(&format!("{path}?colour=red")).await.assert_invalid(&["/colour"]);
    }
    olga.get("profile?colour=red").await.assert_invalid(&["/colour"]);
    let before = ana.get("chats").await.rows().len();
    ana.post("chats?colour=red", json!({"chat": {}})).await.assert_invalid(&["/colour"]);
    assert_eq!(ana.get("chats").await.rows().len(), before);
}

async fn request_ids_differ(app: TestApp) {
    let ana = app.agent("ana").await;
    let first = ana.get("me").await;
    let second = ana.get("chats/x").await.assert_error(404, "not_found");
    let (first, second) = (first.header("x-request-id").unwrap(), second.header("x-request-id").unwrap());
    assert_ne!(first, second);
}

async fn what_needs_no_key(app: TestApp) {
    let nobody = app.nobody();
    assert_eq!(nobody.get("/api/v1/test").await.assert_status(200).json(), &json!({"status": "ok"}));
    assert_eq!(nobody.get("/healthz").await.assert_status(200).json(), &json!({"status": "alive"}));
    assert_eq!(nobody.get("/readyz").await.assert_status(200).json(), &json!({"status": "ready"}));
    let version = nobody.get("/api/version").await.assert_status(200);
    assert!(matches!(&version.json()["version"], Value::String(version) if !version.is_empty()));
}
