//! People sign in with a token of the server's own.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::support::{Caller, Reply, Socket, TestApp, stories};

stories!(
    a_key_is_exchanged_for_a_token,
    others_verify_a_token_by_the_published_keys,
    a_token_is_a_persons_alone,
    a_token_expires_and_so_does_its_socket,
    a_token_dies_with_its_key,
    a_token_of_a_deleted_user_opens_nothing,
    where_a_token_is_shown_on_a_socket,
    of_a_token_and_a_key_the_token_counts,
    phoenix_in_a_browser_gets_its_sub_protocol,
);
stories!(
    limits: bandstand_server::settings::Limits { auth_failures_per_minute: 0, ..Default::default() } =>
    whatever_is_shown_is_refused_with_401,
    no_token_that_was_changed_is_taken,
);

/// Exchanges the key.
pub(crate) async fn token_of(who: &Caller) -> String {
    let reply = who.post_nothing("/api/v1/sign-in").await.assert_status(200);
    reply.data()["access_token"].as_str().expect("a token").to_owned()
}

/// A request with a token and no key.
pub(crate) async fn with_token(app: &TestApp, token: &str, method: Method, path: &str) -> Reply {
    app.request(method, path, &[("authorization", &format!("Bearer {token}"))], None).await
}

pub(crate) async fn profile(app: &TestApp, token: &str) -> Reply {
    with_token(app, token, Method::GET, "/api/v1/me/profile").await
}

/// A socket opened with a token in the query, as clients of people do.
pub(crate) async fn socket(app: &TestApp, token: &str) -> Socket {
    Socket::open(&app.nobody(), &format!("vsn=2.0.0&token={token}")).await
}

async fn a_key_is_exchanged_for_a_token(app: TestApp) {
    let eve = app.user("eve").await;
    let ana = eve.registers("ana").await;
    let reply = eve.post_nothing("/api/v1/sign-in").await.assert_status(200);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!((&reply.data()["token_type"], &reply.data()["expires_in"]), (&json!("Bearer"), &json!(900)));
    let token = reply.data()["access_token"].as_str().unwrap().to_owned();
    assert_eq!(profile(&app, &token).await.assert_status(200).data()["handle"], "eve");

    // It does what the key does: rooms, messages, pushes.
    let room = app.room_with(&eve, &[&ana]).await;
    let mut socket = socket(&app, &token).await;
    socket.join(&format!("user_rooms:{}", eve.id)).await;
    socket.join(&format!("chat_room:{}", room.id)).await;
    let message = json!({"message": {"content": "hello", "mentions": [{"id": ana.id}]}});
    let headers = [("authorization", &*format!("bearer {token}")), ("content-type", "application/json")];
    let path = format!("/api/v1/me/chats/{}/messages", room.id);
    app.request(Method::POST, &path, &headers, Some(message.to_string().into_bytes())).await.assert_status(201);
    let content = socket.skip_to("message_created").await["content"].as_str().unwrap().to_owned();
    assert!(content.ends_with("hello"), "{content}");
    socket.close().await;
}

async fn others_verify_a_token_by_the_published_keys(app: TestApp) {
    let token = token_of(&app.user("eve").await).await;
    let published = app.nobody().get("/.well-known/jwks.json").await.assert_status(200);
    let keys = published.json()["keys"].as_array().unwrap().clone();
    assert_eq!(keys.len(), 1);
    assert_eq!(
        (&keys[0]["kty"], &keys[0]["crv"], &keys[0]["alg"]),
        (&json!("OKP"), &json!("Ed25519"), &json!("EdDSA"))
    );
    assert_eq!(keys[0].as_object().unwrap().len(), 6, "nothing but the public half");
    let (message, signature) = token.rsplit_once('.').unwrap();
    let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
    let public = UnparsedPublicKey::new(&ED25519, bytes(keys[0]["x"].as_str().unwrap()));
    public.verify(message.as_bytes(), &bytes(signature)).unwrap();
    let part = |at: usize| -> Value { serde_json::from_slice(&bytes(token.split('.').nth(at).unwrap())).unwrap() };
    assert_eq!(part(0)["kid"], keys[0]["kid"]);
    assert_eq!((&part(1)["iss"], &part(1)["aud"]), (&json!("bandstand"), &json!("bandstand")));
}

async fn a_token_is_a_persons_alone(app: TestApp) {
    let (eve, ana) = (app.user("eve").await, app.agent("ana").await);
    ana.post_nothing("/api/v1/sign-in").await.assert_error(403, "forbidden");
    app.nobody().post_nothing("/api/v1/sign-in").await.assert_error(401, "unauthorized");
    let token = token_of(&eve).await;
    // It is not exchanged for another one.
    with_token(&app, &token, Method::POST, "/api/v1/sign-in").await.assert_error(401, "unauthorized");
    with_token(&app, &token, Method::GET, "/api/v1/agent/me").await.assert_error(403, "forbidden");
    // Neither stands for the other.
    let as_key = [("x-api-key", token.as_str())];
    app.request(Method::GET, "/api/v1/me/profile", &as_key, None).await.assert_error(401, "unauthorized");
    profile(&app, &eve.key).await.assert_error(401, "unauthorized");
    profile(&app, &ana.key).await.assert_error(401, "unauthorized");
    profile(&app, &token).await.assert_status(200);
    app.request(Method::GET, "/api/v1/me/profile", &as_key, None).await.assert_error(401, "unauthorized");
    // Nor does it make anybody an agent, not even the own one.
    let hers = eve.registers("hers").await;
    let query = format!("?vsn=2.0.0&token={token}&agent_id={}", hers.id);
    Socket::refused(&app, &query, &[]).await.assert_status(403);
}

async fn a_token_expires_and_so_does_its_socket(app: TestApp) {
    let eve = app.user("eve").await;
    let token = token_of(&eve).await;
    let mut old = socket(&app, &token).await;
    old.join(&format!("user_rooms:{}", eve.id)).await;
    app.clock.advance(15 * 60 + 59);
    profile(&app, &token).await.assert_status(200);
    old.heartbeat().await;
    let fresh = token_of(&eve).await;
    let newer = socket(&app, &fresh).await;
    app.clock.advance(1);
    profile(&app, &token).await.assert_error(401, "unauthorized");
    assert_eq!(old.closed().await, 1001);
    Socket::refused(&app, &format!("?vsn=2.0.0&token={token}"), &[]).await.assert_status(403);
    profile(&app, &fresh).await.assert_status(200);
    newer.close().await;
}

async fn a_token_dies_with_its_key(app: TestApp) {
    let (eve, mia) = (app.user("eve").await, app.user("mia").await);
    let (hers, mias) = (token_of(&eve).await, token_of(&mia).await);
    let (mut by_token, mut by_key) = (socket(&app, &hers).await, eve.socket().await);
    let other = socket(&app, &mias).await;
    profile(&app, &hers).await.assert_status(200);
    app.revoke_key(&eve).await;
    profile(&app, &hers).await.assert_error(401, "unauthorized");
    assert_eq!((by_token.closed().await, by_key.closed().await), (1001, 1001));
    Socket::refused(&app, &format!("?vsn=2.0.0&token={hers}"), &[]).await.assert_status(403);
    profile(&app, &mias).await.assert_status(200);
    other.close().await;
}

async fn a_token_of_a_deleted_user_opens_nothing(app: TestApp) {
    let token = token_of(&app.user("eve").await).await;
    app.database.execute("UPDATE identities SET deleted_at = 1 WHERE handle = 'eve'");
    profile(&app, &token).await.assert_error(401, "unauthorized");
    Socket::refused(&app, &format!("?vsn=2.0.0&token={token}"), &[]).await.assert_status(403);
}

async fn where_a_token_is_shown_on_a_socket(app: TestApp) {
    let eve = app.user("eve").await;
    let token = token_of(&eve).await;
    let bearer = format!("Bearer {token}");
    let offered = format!("phoenix, base64url.bearer.phx.{}", URL_SAFE_NO_PAD.encode(&token));
    let fits = [("x-auth-token", &token), ("authorization", &bearer), ("sec-websocket-protocol", &offered)];
    for (header, value) in fits {
        let reply = Socket::refused(&app, "?vsn=2.0.0", &[(header, value)]).await;
        assert_eq!(reply.status, 101, "{header}");
    }
    let mangled = format!("{}x", &token[..token.len() - 2]);
    for (header, value) in [("x-auth-token", mangled.clone()), ("authorization", format!("Bearer {mangled}"))] {
        Socket::refused(&app, "?vsn=2.0.0", &[(header, &value)]).await.assert_status(403);
    }
}

async fn of_a_token_and_a_key_the_token_counts(app: TestApp) {
    let (eve, mia) = (app.user("eve").await, app.user("mia").await);
    let ana = app.agent("ana").await;
    let bearer = format!("Bearer {}", token_of(&eve).await);
    let profile = async |key: &str, bearer: &str| {
        let headers = [("x-api-key", key), ("authorization", bearer)];
        app.request(Method::GET, "/api/v1/me/profile", &headers, None).await
    };
    // The generated client always sends a key, whatever it is.
    for key in [&mia.key, "", "none"] {
        assert_eq!(profile(key, &bearer).await.assert_status(200).data()["handle"], "eve");
    }
    profile(&mia.key, "Bearer x.y.z").await.assert_error(401, "unauthorized");
    // A proxy's header beside a key is no token.
    assert_eq!(profile(&mia.key, "Basic eDp5").await.assert_status(200).data()["handle"], "mia");
    // Agents have keys alone.
    let headers = [("x-api-key", ana.key.as_str()), ("authorization", bearer.as_str())];
    app.request(Method::GET, "/api/v1/agent/me", &headers, None).await.assert_status(200);
    // On sockets as well: what is wrong with the token is not mended by a key.
    let key = [("x-api-key", mia.key.as_str())];
    Socket::refused(&app, "?vsn=2.0.0&token=x.y.z", &key).await.assert_status(403);
    let mut socket = Socket::open(&mia, &format!("vsn=2.0.0&token={}", &bearer[7..])).await;
    socket.join(&format!("user_rooms:{}", eve.id)).await;
    socket.close().await;
}

async fn phoenix_in_a_browser_gets_its_sub_protocol(app: TestApp) {
    let token = token_of(&app.user("eve").await).await;
    let offered = format!("phoenix, base64url.bearer.phx.{}", URL_SAFE_NO_PAD.encode(&token));
    let reply = Socket::refused(&app, "?vsn=2.0.0", &[("sec-websocket-protocol", &offered)]).await;
    assert_eq!((reply.status, reply.header("sec-websocket-protocol")), (101, Some("phoenix")));
    // Nobody else is told of one.
    let key = app.user("mia").await.key;
    let reply = Socket::refused(&app, "?vsn=2.0.0", &[("x-api-key", &key)]).await;
    assert_eq!((reply.status, reply.header("sec-websocket-protocol")), (101, None));
}

/// Bytes that look random and are the same in each run.
struct Bytes(u64);

impl Bytes {
    fn next(&mut self) -> u8 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 24) as u8
    }

    fn many(&mut self) -> Vec<u8> {
        let length = usize::from(self.next());
        // What HTTP lets no header hold would only keep the rest from being tried.
        let fits = |byte: u8| if byte < 0x20 || byte == 0x7f { byte | 0xc0 } else { byte };
        (0..length).map(|_| fits(self.next())).collect()
    }
}

/// A request with any bytes in a header: its status. Bytes that no HTTP client may send are left out.
async fn shown(app: &TestApp, path: &str, header: &str, value: &[u8]) -> Option<u16> {
    let value = reqwest::header::HeaderValue::from_bytes(value).ok()?;
    let request = app.http.get(format!("http://{}{path}", app.address)).header(header, value);
    Some(request.send().await.expect("an answer").status().as_u16())
}

async fn whatever_is_shown_is_refused_with_401(app: TestApp) {
    let token = token_of(&app.user("eve").await).await;
    let mut random = Bytes(0x5eed);
    let mut tried = 0;
    let empty = URL_SAFE_NO_PAD.encode("{}");
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    let payload = token.split('.').nth(1).unwrap();
    let mut values: Vec<Vec<u8>> = [
        "",
        " ",
        "Bearer",
        "Bearer ",
        "Bearer .",
        "Bearer ..",
        "Bearer ...",
        "Bearer \u{e9}",
        "bearer\t",
        "Basic",
        "Ä",
    ]
    .into_iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    values.push(format!("Bearer {empty}.{empty}.").into_bytes());
    values.push(format!("Bearer {none}.{payload}.").into_bytes());
    values.push(format!("Bearer {token} {token}").into_bytes());
    values.push(format!("Bearer {token},").into_bytes());
    values.push(format!("Bearer {}", "a".repeat(13_000)).into_bytes());
    for _ in 0..150 {
        values.push([b"Bearer ".to_vec(), random.many()].concat());
        values.push(random.many());
    }
    for value in &values {
        for path in ["/api/v1/me/profile", "/api/v1/agent/me"] {
            for header in ["authorization", "x-api-key"] {
                let Some(status) = shown(&app, path, header, value).await else { continue };
                assert_eq!(status, 401, "{path} {header} {:?}", String::from_utf8_lossy(value));
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

async fn no_token_that_was_changed_is_taken(app: TestApp) {
    let token = token_of(&app.user("eve").await).await;
    profile(&app, &token).await.assert_status(200);
    let mut random = Bytes(0xfeed);
    for _ in 0..200 {
        let mut changed = token.clone().into_bytes();
        let at = (usize::from(random.next()) * 256 + usize::from(random.next())) % changed.len();
        changed[at] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."[usize::from(random.next()) % 65];
        if changed == token.as_bytes() {
            continue;
        }
        let changed = String::from_utf8(changed).unwrap();
        assert_eq!(profile(&app, &changed).await.status, 401, "{changed}");
    }
}
