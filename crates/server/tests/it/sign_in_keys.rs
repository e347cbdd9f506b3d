//! Keys that take the place of others: API keys with an overlap, and the key that tokens are signed with.

use std::time::Duration;

use crate::sign_in::{profile, socket, token_of};
use crate::support::{Caller, TestApp, stories};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

stories!(
    a_rotated_key_goes_on_for_a_while,
    one_key_of_several_is_rotated,
    a_shorter_overlap_does_not_lengthen_a_life,
    the_signing_key_is_rotated_with_an_overlap,
    all_tokens_are_revoked_and_keys_are_not,
    uses_of_a_key_are_noted_once_a_minute,
);

async fn rotate(app: &TestApp, what: &str, overlap: Duration) -> String {
    let rotated = app.state().services.rotate_key_with_overlap(what, overlap).await.expect("a new key");
    rotated.key.reveal().to_owned()
}

async fn a_rotated_key_goes_on_for_a_while(app: TestApp) {
    let ana = app.agent("ana").await;
    let eve = app.user("eve").await;
    let token = token_of(&eve).await;
    let mut sockets = [ana.socket().await, eve.socket().await, socket(&app, &token).await];
    let renewed = Caller { key: rotate(&app, &ana.handle, DAY).await, ..ana.clone() };
    let hers = Caller { key: rotate(&app, "eve", DAY).await, ..eve.clone() };
    for who in [&ana, &renewed] {
        who.get("me").await.assert_status(200);
    }
    for who in [&eve, &hers] {
        who.get("profile").await.assert_status(200);
    }
    for socket in &mut sockets {
        socket.heartbeat().await;
    }
    let keys = app.state().services.list_keys().await.unwrap();
    let of_ana: Vec<bool> =
        keys.iter().filter(|key| key.holder.handle == ana.handle).map(|key| key.expires_at.is_some()).collect();
    assert_eq!(of_ana, [true, false]);

    // A token that is issued now for the old key does not outlive it.
    app.clock.advance(24 * 60 * 60 - 60);
    let short = eve.post_nothing("/api/v1/sign-in").await.assert_status(200);
    assert_eq!(short.data()["expires_in"], 60);
    let short = short.data()["access_token"].as_str().unwrap().to_owned();
    profile(&app, &short).await.assert_status(200);
    let late = ana.socket().await;
    app.clock.advance(60);
    ana.get("me").await.assert_error(401, "unauthorized");
    eve.get("profile").await.assert_error(401, "unauthorized");
    profile(&app, &short).await.assert_error(401, "unauthorized");
    let mut late = late;
    assert_eq!(late.closed().await, 1001);
    for socket in &mut sockets {
        assert_eq!(socket.closed().await, 1001);
    }
    renewed.get("me").await.assert_status(200);
    hers.get("profile").await.assert_status(200);
    renewed.socket().await.close().await;
}

async fn one_key_of_several_is_rotated(app: TestApp) {
    let ana = app.agent("ana").await;
    let second = Caller { key: rotate(&app, &ana.handle, DAY).await, ..ana.clone() };
    let keys = app.state().services.list_keys().await.unwrap();
    let newest = keys.iter().rev().find(|key| key.holder.handle == ana.handle).unwrap().id.to_string();
    // The newest alone: the oldest goes on as it was.
    let third = Caller { key: rotate(&app, &newest, Duration::ZERO).await, ..ana.clone() };
    second.get("me").await.assert_error(401, "unauthorized");
    ana.get("me").await.assert_status(200);
    third.get("me").await.assert_status(200);
    // One that opens nothing is replaced by nothing.
    let refused = app.state().services.rotate_key_with_overlap(&newest, DAY).await.unwrap_err();
    assert!(refused.to_string().contains("there is no key, user or agent"), "{refused}");
}

async fn a_shorter_overlap_does_not_lengthen_a_life(app: TestApp) {
    let ana = app.agent("ana").await;
    let minute = Duration::from_secs(60);
    rotate(&app, &ana.handle, minute).await;
    let newest = Caller { key: rotate(&app, &ana.handle, DAY).await, ..ana.clone() };
    app.clock.advance(60);
    ana.get("me").await.assert_error(401, "unauthorized");
    newest.get("me").await.assert_status(200);
    // At once is at once.
    let last = Caller { key: rotate(&app, &ana.handle, Duration::ZERO).await, ..ana.clone() };
    newest.get("me").await.assert_error(401, "unauthorized");
    last.get("me").await.assert_status(200);
}

async fn the_signing_key_is_rotated_with_an_overlap(app: TestApp) {
    let eve = app.user("eve").await;
    let old = token_of(&eve).await;
    let published = async || {
        let reply = app.nobody().get("/.well-known/jwks.json").await.assert_status(200);
        let keys = reply.json()["keys"].as_array().unwrap().clone();
        keys.iter().map(|key| key["kid"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let [first] = published().await.try_into().unwrap();
    let rotated = app.owner().post_nothing("/api/v1/admin/signing-keys/rotate").await.assert_status(200);
    let second = rotated.data()["kid"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    let new = token_of(&eve).await;
    for token in [&old, &new] {
        profile(&app, token).await.assert_status(200);
    }
    app.clock.advance(61);
    assert_eq!(published().await, [second.clone(), first]);
    // Until the last token that it signed is over.
    app.clock.advance(15 * 60 + 120);
    assert_eq!(published().await, [second]);
}

async fn all_tokens_are_revoked_and_keys_are_not(app: TestApp) {
    let eve = app.user("eve").await;
    let token = token_of(&eve).await;
    profile(&app, &token).await.assert_status(200);
    let (mut by_token, mut by_key) = (socket(&app, &token).await, eve.socket().await);
    let body = serde_json::json!({"revoke": true});
    app.owner().post("/api/v1/admin/signing-keys/rotate", body).await.assert_status(200);
    profile(&app, &token).await.assert_error(401, "unauthorized");
    assert_eq!(by_token.closed().await, 1001);
    by_key.heartbeat().await;
    profile(&app, &token_of(&eve).await).await.assert_status(200);
    by_key.close().await;
}

async fn uses_of_a_key_are_noted_once_a_minute(app: TestApp) {
    let ana = app.agent("ana").await;
    let used = || async {
        let keys = app.state().services.list_keys().await.unwrap();
        let key = keys.into_iter().find(|key| key.holder.handle == ana.handle).unwrap();
        key.last_used_at.map(|at| at.as_micros())
    };
    app.until_none(&format!(
        "SELECT 1 FROM api_keys k JOIN identities i ON i.key = k.identity_key
         WHERE i.handle = '{}' AND k.last_used_at IS NULL",
        ana.handle
    ))
    .await;
    let first = used().await.unwrap();
    app.clock.advance(59);
    for _ in 0..5 {
        ana.get("me").await.assert_status(200);
    }
    assert_eq!(used().await, Some(first));
    app.clock.advance(1);
    ana.get("me").await.assert_status(200);
    app.until_none(&format!("SELECT 1 FROM api_keys WHERE last_used_at = {first} AND hint = '{}'", &ana.key[..11]))
        .await;
    assert_eq!(used().await, Some(first + 60_000_000));
}
