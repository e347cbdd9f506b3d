//! People sign in with a token of a configured OpenID Connect issuer.

use std::time::Duration;

use bandstand_server::settings::Limits;
use bandstand_server::sign_in::{Oidc, SignIn};
use bandstand_store::testing::TestEngine;
use serde_json::{Value, json};

use crate::sign_in::{profile, socket};
use crate::support::issuer::{AUDIENCE, Issuer, Mood, NOW, SigningKey};
use crate::support::{Socket, TestApp, run};

/// Makes a test of each story for each engine, with an issuer of its own.
macro_rules! issuer_stories {
    ($create:literal: $($story:ident),* $(,)?) => {
        $(mod $story {
            use super::*;

            #[tokio::test]
            async fn sqlite() {
                with_issuer(TestEngine::Sqlite, $create, super::$story).await;
            }

            #[tokio::test]
            async fn postgres() {
                with_issuer(TestEngine::Postgres, $create, super::$story).await;
            }
        })*
    };
}

issuer_stories!(false:
    a_linked_account_signs_in,
    a_stranger_is_refused_and_told_nothing,
    every_claim_is_checked,
    no_key_verifies_another_algorithm,
    keys_are_rotated,
    an_unknown_key_is_asked_for_once_in_a_while,
    the_last_keys_count_while_the_issuer_is_down,
    an_account_that_is_no_longer_linked_is_out,
);
issuer_stories!(true:
    a_stranger_becomes_a_user,
    the_same_stranger_at_once_becomes_one_user,
    who_was_deleted_does_not_come_back,
);

fn limits(issuer: &str, create_users: bool) -> Limits {
    let oidc = Oidc {
        issuer: Some(issuer.to_owned()),
        audience: Some(AUDIENCE.to_owned()),
        create_users,
        ..SignIn::default().oidc
    };
    Limits { sign_in: SignIn { oidc, ..SignIn::default() }, ..Limits::default() }
}

async fn with_issuer<F: Future<Output = ()>>(
    engine: TestEngine,
    create_users: bool,
    story: impl FnOnce(TestApp, Issuer) -> F,
) {
    let issuer = Issuer::start().await;
    let limits = limits(&issuer.url, create_users);
    run(engine, limits, |app| story(app, issuer)).await;
}

async fn link(app: &TestApp, issuer: &Issuer, who: &str, subject: &str) {
    app.state().services.link_user(who, &issuer.url, subject).await.expect("a link");
}

/// The claims with some changed; null takes one away.
fn but(mut claims: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value.clone(),
        }
    }
    claims
}

async fn a_linked_account_signs_in(app: TestApp, issuer: Issuer) {
    let eve = app.user("eve").await;
    link(&app, &issuer, "eve", "account-1").await;
    let (edwards, curve) = (SigningKey::edwards("a", 1), SigningKey::curve("b"));
    issuer.publishes(&[&edwards, &curve]);
    for key in [&edwards, &curve] {
        let token = key.signs(&issuer.claims("account-1"));
        assert_eq!(profile(&app, &token).await.assert_status(200).data()["handle"], "eve");
        let mut socket = socket(&app, &token).await;
        socket.join(&format!("user_rooms:{}", eve.id)).await;
        socket.close().await;
    }
    // One request for the keys served all of that; and a token that is known is not even looked at again.
    assert_eq!(issuer.fetches(), 1);
    // The socket goes when the token does.
    let brief = edwards.signs(&but(issuer.claims("account-1"), json!({"exp": NOW + 30})));
    let mut socket = socket(&app, &brief).await;
    app.clock.advance(90);
    assert_eq!(socket.closed().await, 1001);
    profile(&app, &brief).await.assert_error(401, "unauthorized");
    let links = app.state().services.list_links().await.unwrap();
    assert_eq!((links.len(), links[0].subject.as_str()), (1, "account-1"));
    // It is one user's, and not another's as well.
    let taken = app.state().services.link_user("olga", &issuer.url, "account-1").await.unwrap_err();
    assert!(taken.to_string().contains("is linked to a user already"), "{taken}");
}

async fn a_stranger_is_refused_and_told_nothing(app: TestApp, issuer: Issuer) {
    let key = SigningKey::edwards("a", 1);
    issuer.publishes(&[&key]);
    let unknown = profile(&app, &key.signs(&issuer.claims("nobody"))).await.assert_error(401, "unauthorized");
    let wrong = profile(&app, "x.y.z").await.assert_error(401, "unauthorized");
    assert_eq!(unknown.error()["message"], wrong.error()["message"]);
    let token = key.signs(&issuer.claims("nobody"));
    let reply = Socket::refused(&app, &format!("?vsn=2.0.0&token={token}"), &[]).await.assert_status(403);
    assert_eq!(reply.body, None);
    assert_eq!(app.state().services.list_users().await.unwrap().len(), 1, "nobody was added");
}

async fn every_claim_is_checked(app: TestApp, issuer: Issuer) {
    app.user("eve").await;
    link(&app, &issuer, "eve", "s").await;
    let key = SigningKey::edwards("a", 1);
    issuer.publishes(&[&key]);
    for (changes, status) in [
        (json!({}), 200),
        (json!({"aud": ["other", AUDIENCE]}), 200),
        (json!({"exp": NOW - 59}), 200),
        (json!({"exp": NOW as f64 + 0.5}), 200),
        (json!({"nbf": NOW + 60, "iat": NOW + 60}), 200),
        (json!({"aud": "other"}), 401),
        (json!({"aud": []}), 401),
        (json!({"aud": null}), 401),
        (json!({"aud": format!("{AUDIENCE}x")}), 401),
        (json!({"aud": 5}), 401),
        (json!({"iss": null}), 401),
        (json!({"iss": "https://other.example.org"}), 401),
        (json!({"iss": format!("{}/", issuer.url)}), 401),
        (json!({"iss": "bandstand", "aud": "bandstand"}), 401),
        (json!({"exp": null}), 401),
        (json!({"exp": NOW - 60}), 401),
        (json!({"exp": 0}), 401),
        (json!({"exp": "never"}), 401),
        (json!({"exp": -1.0e300}), 401),
        (json!({"nbf": NOW + 61}), 401),
        (json!({"iat": NOW + 61}), 401),
        (json!({"sub": null}), 401),
        (json!({"sub": ""}), 401),
        (json!({"sub": "s\u{0}"}), 401),
        (json!({"sub": "x".repeat(256)}), 401),
        (json!({"sub": 5}), 401),
    ] {
        let token = key.signs(&but(issuer.claims("s"), changes.clone()));
        assert_eq!(profile(&app, &token).await.status, status, "{changes}");
    }
}

async fn no_key_verifies_another_algorithm(app: TestApp, issuer: Issuer) {
    app.user("eve").await;
    link(&app, &issuer, "eve", "s").await;
    let (edwards, curve) = (SigningKey::edwards("a", 1), SigningKey::curve("b"));
    let claims = issuer.claims("s");
    let mut secret = edwards.published();
    secret["kty"] = json!("oct");
    secret["k"] = json!("c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0");
    secret["kid"] = json!("secret");
    secret["alg"] = json!("HS256");
    issuer.publishes_raw(vec![secret, edwards.published(), curve.published()]);
    for header in [
        json!({"alg": "none", "kid": "a"}),
        json!({"alg": "HS256", "kid": "a"}),
        json!({"alg": "HS256", "kid": "secret"}),
        json!({"alg": "ES256", "kid": "a"}),
        json!({"alg": "RS256", "kid": "a"}),
        json!({"alg": "EdDSA", "kid": "b"}),
        json!({"alg": "EdDSA"}),
        json!({"alg": "EdDSA", "kid": ""}),
        json!({"alg": "EdDSA", "kid": "a", "crit": ["b64"], "b64": false}),
        json!({"alg": "EdDSA", "kid": "c", "jku": format!("{}/keys", issuer.url)}),
        json!({"alg": "EdDSA", "kid": "c", "jwk": edwards.published()}),
        json!({"alg": "ES256", "kid": "b"}),
    ] {
        let token = edwards.signs_with(&header, &claims);
        assert_eq!(profile(&app, &token).await.status, 401, "{header}");
    }
    // A key of the same name that somebody else made.
    let forger = SigningKey::edwards("a", 2);
    profile(&app, &forger.signs(&claims)).await.assert_error(401, "unauthorized");
    profile(&app, &edwards.signs(&claims)).await.assert_status(200);
}

async fn keys_are_rotated(app: TestApp, issuer: Issuer) {
    app.user("eve").await;
    link(&app, &issuer, "eve", "s").await;
    let (old, new) = (SigningKey::edwards("old", 1), SigningKey::edwards("new", 2));
    let long = but(issuer.claims("s"), json!({"exp": NOW + 100_000}));
    issuer.publishes(&[&old]);
    profile(&app, &old.signs(&long)).await.assert_status(200);
    app.clock.advance(31);
    issuer.publishes(&[&old, &new]);
    profile(&app, &new.signs(&long)).await.assert_status(200);
    assert_eq!(issuer.fetches(), 2);
    // After its hour the set is fetched again, and what is not in it any more verifies nothing.
    issuer.publishes(&[&new]);
    app.clock.advance(3600);
    let other = but(long.clone(), json!({"jti": "another"}));
    profile(&app, &old.signs(&other)).await.assert_error(401, "unauthorized");
    assert_eq!(issuer.fetches(), 3);
    profile(&app, &new.signs(&other)).await.assert_status(200);
}

async fn an_unknown_key_is_asked_for_once_in_a_while(app: TestApp, issuer: Issuer) {
    app.user("eve").await;
    link(&app, &issuer, "eve", "s").await;
    let (key, unknown) = (SigningKey::edwards("a", 1), SigningKey::edwards("b", 2));
    issuer.publishes(&[&key]);
    let claims = issuer.claims("s");
    profile(&app, &key.signs(&claims)).await.assert_status(200);
    app.clock.advance(30);
    let many = (0..20).map(|number| {
        let token = unknown.signs(&but(claims.clone(), json!({ "jti": number })));
        let app = app.clone();
        async move { profile(&app, &token).await.status }
    });
    assert_eq!(futures_util::future::join_all(many).await, [401; 20]);
    assert_eq!(issuer.fetches(), 2, "one for all of them");
    app.clock.advance(29);
    profile(&app, &unknown.signs(&claims)).await.assert_error(401, "unauthorized");
    assert_eq!(issuer.fetches(), 2);
    app.clock.advance(1);
    profile(&app, &unknown.signs(&claims)).await.assert_error(401, "unauthorized");
    assert_eq!(issuer.fetches(), 3);
    profile(&app, &key.signs(&but(claims, json!({"jti": "x"})))).await.assert_status(200);
    assert_eq!(issuer.fetches(), 3);
}

async fn the_last_keys_count_while_the_issuer_is_down(app: TestApp, issuer: Issuer) {
    app.user("eve").await;
    link(&app, &issuer, "eve", "s").await;
    let key = SigningKey::edwards("a", 1);
    issuer.publishes(&[&key]);
    let long = but(issuer.claims("s"), json!({"exp": NOW + 1_000_000}));
    let mut number = 0;
    // Each token is a new one: one that is known would not be looked at.
    let mut token = || {
        number += 1;
        key.signs(&but(long.clone(), json!({ "jti": number })))
    };
    // Down from the start: nobody signs in, and nothing breaks.
    issuer.is(Mood::Down);
    profile(&app, &token()).await.assert_error(401, "unauthorized");
    issuer.is(Mood::Fine);
    profile(&app, &token()).await.assert_error(401, "unauthorized");
    assert_eq!(issuer.fetches(), 1, "it is not asked again at once");
    app.clock.advance(30);
    profile(&app, &token()).await.assert_status(200);
    for mood in [Mood::Down, Mood::Nonsense, Mood::Huge, Mood::Redirects] {
        issuer.is(mood);
        app.clock.advance(3600);
        let before = issuer.fetches();
        profile(&app, &token()).await.assert_status(200);
        assert_eq!(issuer.fetches(), before + 1, "{mood:?}");
    }
}

async fn an_account_that_is_no_longer_linked_is_out(app: TestApp, issuer: Issuer) {
    const LINKS: &str = "/api/v1/admin/links";
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let account = json!({"link": {"user": "eve", "issuer": issuer.url, "subject": "s"}});
    olga.post(LINKS, account).await.assert_status(201);
    let key = SigningKey::edwards("a", 1);
    issuer.publishes(&[&key]);
    let token = key.signs(&issuer.claims("s"));
    profile(&app, &token).await.assert_status(200);
    let (mut by_token, by_key) = (socket(&app, &token).await, eve.socket().await);
    let unlink = format!("{LINKS}?issuer={}&subject=s", issuer.url);
    olga.delete(&unlink).await.assert_status(200);
    profile(&app, &token).await.assert_error(401, "unauthorized");
    assert_eq!(by_token.closed().await, 1001);
    by_key.close().await;
    olga.delete(&unlink).await.assert_error(404, "not_found");
}

async fn a_stranger_becomes_a_user(app: TestApp, issuer: Issuer) {
    let key = SigningKey::edwards("a", 1);
    issuer.publishes(&[&key]);
    let signs_in = async |subject: &str, more: Value| {
        let token = key.signs(&but(issuer.claims(subject), more));
        let reply = profile(&app, &token).await.assert_status(200);
        let data = reply.data().clone();
        [&data["handle"], &data["email"], &data["first_name"], &data["role"]]
            .map(|value| value.as_str().unwrap().to_owned())
    };
    let known = json!({
        "preferred_username": "Ana.Lee", "given_name": "Ana", "email": "ana@x.org", "email_verified": true,
    });
    assert_eq!(signs_in("1", known.clone()).await, ["ana.lee", "ana@x.org", "Ana", "user"]);
    // The same account is the same user, whatever else its token says by now.
    assert_eq!(signs_in("1", json!({"preferred_username": "Other"})).await[0], "ana.lee");
    // Another account of that name is another user, and an address that nobody verified is none.
    let mut other = known;
    other["email_verified"] = json!(false);
    assert_eq!(signs_in("2", other).await, ["ana.lee-2", "ana.lee-2@localhost", "Ana", "user"]);
    // Nobody becomes somebody who is here already by calling himself so.
    assert_eq!(signs_in("3", json!({"preferred_username": "olga"})).await[0], "olga-2");
    assert_eq!(signs_in("4", json!({"preferred_username": "天気"})).await[0], "user");
    assert_eq!(signs_in("5", json!({"preferred_username": 5})).await[0], "user-2");
}

async fn the_same_stranger_at_once_becomes_one_user(app: TestApp, issuer: Issuer) {
    let key = SigningKey::edwards("a", 1);
    issuer.publishes(&[&key]);
    let many = (0..16).map(|number| {
        let token = key.signs(&but(issuer.claims("s"), json!({"jti": number, "preferred_username": "eve"})));
        let app = app.clone();
        async move { profile(&app, &token).await.assert_status(200).data()["handle"].as_str().unwrap().to_owned() }
    });
    assert_eq!(futures_util::future::join_all(many).await, vec!["eve"; 16]);
    assert_eq!(app.state().services.list_users().await.unwrap().len(), 2);
}

async fn who_was_deleted_does_not_come_back(app: TestApp, issuer: Issuer) {
    let key = SigningKey::edwards("a", 1);
    issuer.publishes(&[&key]);
    profile(&app, &key.signs(&issuer.claims("s"))).await.assert_status(200);
    app.database.execute("UPDATE identities SET deleted_at = 1 WHERE handle = 'user'");
    let again = key.signs(&but(issuer.claims("s"), json!({"jti": "x"})));
    profile(&app, &again).await.assert_error(401, "unauthorized");
}

#[tokio::test]
async fn keys_may_be_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    let (first, second) = (SigningKey::edwards("a", 1), SigningKey::edwards("b", 2));
    let write = |key: &SigningKey| std::fs::write(&file, json!({"keys": [key.published()]}).to_string()).unwrap();
    write(&first);
    let issuer = "https://id.example.org";
    let mut limits = limits(issuer, false);
    limits.sign_in.oidc.keys = Some(file.to_str().unwrap().to_owned());
    limits.sign_in.oidc.refetch = Duration::from_secs(5);
    assert_eq!(limits.sign_in.check(), Ok(()));
    run(TestEngine::Sqlite, limits, async |app| {
        app.user("eve").await;
        app.state().services.link_user("eve", issuer, "s").await.unwrap();
        let claims = json!({"iss": issuer, "aud": AUDIENCE, "sub": "s", "exp": NOW + 3600});
        profile(&app, &first.signs(&claims)).await.assert_status(200);
        write(&second);
        app.clock.advance(5);
        profile(&app, &second.signs(&claims)).await.assert_status(200);
        // A file that was spoilt is like an issuer that is down.
        std::fs::write(&file, "oops").unwrap();
        app.clock.advance(3600 - 10);
        profile(&app, &second.signs(&but(claims, json!({"jti": "x"})))).await.assert_status(200);
    })
    .await;
}
