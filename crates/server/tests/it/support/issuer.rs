//! An OpenID Connect issuer whose keys, answers and whims a test decides.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bandstand_server::serve::serve_router;
use bandstand_store::testing::NOW_MICROS;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// What the server under test is called there.
pub(crate) const AUDIENCE: &str = "bandstand-test";

/// When tests begin, in seconds.
pub(crate) const NOW: i64 = NOW_MICROS / 1_000_000;

/// How the issuer answers for its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Fine,
    Down,
    Nonsense,
    Huge,
    Redirects,
}

#[derive(Clone)]
pub(crate) struct Issuer(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) url: String,
    keys: Mutex<Vec<Value>>,
    mood: Mutex<Mood>,
    fetches: AtomicUsize,
    stop: CancellationToken,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl std::ops::Deref for Issuer {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Issuer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let stop = CancellationToken::new();
        let (keys, mood, fetches) = (Mutex::default(), Mutex::new(Mood::Fine), AtomicUsize::new(0));
        let issuer = Self(Arc::new(Inner { url, keys, mood, fetches, stop: stop.clone() }));
        let weak = Arc::downgrade(&issuer.0);
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(configuration))
            .route("/keys", get(keys_route))
            .with_state(weak);
        tokio::spawn(serve_router(listener, routes, stop));
        issuer
    }

    pub(crate) fn publishes(&self, keys: &[&SigningKey]) {
        *self.keys.lock().unwrap() = keys.iter().map(|key| key.published()).collect();
    }

    pub(crate) fn publishes_raw(&self, keys: Vec<Value>) {
        *self.keys.lock().unwrap() = keys;
    }

    pub(crate) fn is(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// How often its keys were asked for.
    pub(crate) fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }

    /// Claims that count, for an hour.
    pub(crate) fn claims(&self, subject: &str) -> Value {
        json!({"iss": self.url, "aud": AUDIENCE, "sub": subject, "iat": NOW, "exp": NOW + 3600})
    }
}

type Weak = std::sync::Weak<Inner>;

async fn configuration(State(issuer): State<Weak>) -> Response {
    let Some(issuer) = issuer.upgrade() else { return StatusCode::GONE.into_response() };
    let document = json!({"issuer": issuer.url, "jwks_uri": format!("{}/keys", issuer.url)});
    ([(header::CONTENT_TYPE, "application/json")], document.to_string()).into_response()
}

async fn keys_route(State(issuer): State<Weak>) -> Response {
    let Some(issuer) = issuer.upgrade() else { return StatusCode::GONE.into_response() };
    issuer.fetches.fetch_add(1, Ordering::SeqCst);
    let keys = json!({"keys": *issuer.keys.lock().unwrap()}).to_string();
    let mood = *issuer.mood.lock().unwrap();
    match mood {
        Mood::Fine => keys.into_response(),
        Mood::Down => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Mood::Nonsense => "<html>welcome</html>".into_response(),
        Mood::Huge => format!("{}{keys}", " ".repeat(1024 * 1024)).into_response(),
        Mood::Redirects => {
            (StatusCode::FOUND, [(header::LOCATION, format!("{}/keys?again", issuer.url))]).into_response()
        }
    }
}

/// One of its keys.
pub(crate) struct SigningKey {
    pub(crate) name: &'static str,
    pair: Pair,
}

enum Pair {
    Edwards(Ed25519KeyPair),
    Curve(EcdsaKeyPair),
}

impl SigningKey {
    pub(crate) fn edwards(name: &'static str, seed: u8) -> Self {
        Self { name, pair: Pair::Edwards(Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()) }
    }

    pub(crate) fn curve(name: &'static str) -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap();
        Self { name, pair: Pair::Curve(pair) }
    }

    fn algorithm(&self) -> &'static str {
        match &self.pair {
            Pair::Edwards(_) => "EdDSA",
            Pair::Curve(_) => "ES256",
        }
    }

    pub(crate) fn published(&self) -> Value {
        match &self.pair {
            Pair::Edwards(pair) => {
                let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
                json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": self.name, "use": "sig", "alg": "EdDSA"})
            }
            Pair::Curve(pair) => {
                let point = pair.public_key().as_ref();
                let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
                json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": self.name})
            }
        }
    }

    /// A token with these claims.
    pub(crate) fn signs(&self, claims: &Value) -> String {
        self.signs_with(&json!({"alg": self.algorithm(), "typ": "JWT", "kid": self.name}), claims)
    }

    /// A token with this header and these claims.
    pub(crate) fn signs_with(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = match &self.pair {
            Pair::Edwards(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
            Pair::Curve(pair) => pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap().as_ref().to_vec(),
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}
