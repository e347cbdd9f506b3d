//! How people sign in: tokens that this server issues in exchange for a key, and tokens of a configured OpenID Connect
//! issuer.
//!
//! A token is a JWT. Which keys may verify it follows from its issuer, and which algorithm from the key: nothing that
//! the token says of itself chooses either.

mod crypto;
pub mod issuer;
mod jwt;
mod key_set;
mod people;
pub mod tokens;

pub use self::people::People;

use std::path::PathBuf;
use std::time::Duration;

/// How people sign in; the operator may change it. Each field's default is [`SignIn::default`].
#[derive(Clone, Debug, PartialEq)]
pub struct SignIn {
    /// `iss` and `aud` of the tokens that this server issues.
    pub token_issuer: String,
    /// How long they count.
    pub token_lifetime: Duration,
    /// How far an issuer's clock may be from this server's.
    pub clock_skew: Duration,
    /// The OpenID Connect issuer whose tokens count as well.
    pub oidc: Oidc,
}

/// An OpenID Connect issuer.
#[derive(Clone, Debug, PartialEq)]
pub struct Oidc {
    /// `iss` of its tokens. None are taken when it is `None`.
    pub issuer: Option<String>,
    /// What `aud` must name: this server, as the issuer knows it.
    pub audience: Option<String>,
    /// Where its keys are, a file or an URL; what its configuration document says when `None`.
    pub keys: Option<String>,
    /// How long fetched keys count as current.
    pub keys_lifetime: Duration,
    /// Because of a key that is not known, the keys are fetched again at most once in so long.
    pub refetch: Duration,
    /// Whether somebody who is not linked to a user becomes a new one.
    pub create_users: bool,
    /// The claim from which a new user's handle is made.
    pub handle_claim: String,
}

impl Default for SignIn {
    fn default() -> Self {
        Self {
            token_issuer: "bandstand".to_owned(),
            token_lifetime: Duration::from_secs(15 * 60),
            clock_skew: Duration::from_secs(60),
            oidc: Oidc {
                issuer: None,
                audience: None,
                keys: None,
                keys_lifetime: Duration::from_secs(60 * 60),
                refetch: Duration::from_secs(30),
                create_users: false,
                handle_claim: "preferred_username".to_owned(),
            },
        }
    }
}

impl SignIn {
    /// The skew in microseconds.
    pub(crate) fn skew_micros(&self) -> i64 {
        micros(self.clock_skew)
    }

    /// What must hold between the settings.
    ///
    /// # Errors
    /// What is wrong, for the operator.
    pub fn check(&self) -> Result<(), String> {
        let Some(issuer) = &self.oidc.issuer else {
            return match (&self.oidc.audience, &self.oidc.keys) {
                (None, None) => Ok(()),
                (Some(_), _) => Err("oidc_audience needs oidc_issuer as well".to_owned()),
                (None, Some(_)) => Err("oidc_keys needs oidc_issuer as well".to_owned()),
            };
        };
        if self.oidc.audience.is_none() {
            return Err("oidc_issuer needs oidc_audience as well: a token for another application must not count here"
                .to_owned());
        }
        if *issuer == self.token_issuer {
            return Err("oidc_issuer is this server itself".to_owned());
        }
        match KeyPlace::of(&self.oidc) {
            Some(KeyPlace::Url(url) | KeyPlace::Discovered(url)) => url.map(drop),
            Some(KeyPlace::File(_)) | None => Ok(()),
        }
    }
}

/// Where an issuer's keys are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeyPlace {
    /// A file.
    File(PathBuf),
    /// An address.
    Url(Result<reqwest::Url, String>),
    /// The address of the document that says where.
    Discovered(Result<reqwest::Url, String>),
}

impl KeyPlace {
    /// `None` without an issuer.
    pub(crate) fn of(oidc: &Oidc) -> Option<Self> {
        let issuer = oidc.issuer.as_ref()?;
        Some(match &oidc.keys {
            Some(keys) if keys.contains("://") => Self::Url(safe_url(keys)),
            Some(file) => Self::File(file.into()),
            None => {
                let document = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
                Self::Discovered(safe_url(&document))
            }
        })
    }
}

/// An address from which keys may be fetched: whoever can change what it answers can sign in as anybody, so beyond this
/// machine it must be HTTPS.
pub(crate) fn safe_url(text: &str) -> Result<reqwest::Url, String> {
    let url: reqwest::Url = text.parse().map_err(|_| format!("{text:?} is no URL"))?;
    let local = match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback()),
        None => false,
    };
    match url.scheme() {
        "https" => Ok(url),
        "http" if local => Ok(url),
        _ => Err(format!("{text:?} must be an https URL: keys from it decide who may sign in")),
    }
}

/// Microseconds, as many as there can be.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_over_https_or_from_this_machine() {
        for url in ["https://id.example.org/keys", "http://127.0.0.1:9/k", "http://localhost/k", "http://[::1]:1/k"] {
            assert!(safe_url(url).is_ok(), "{url}");
        }
        for url in [
            "http://id.example.org/keys",
            "http://127.0.0.1.example.org/",
            "http://localhost.example.org/",
            "http://10.0.0.1/",
            "file:///etc/passwd",
            "ftp://127.0.0.1/",
            "keys",
            "",
        ] {
            assert!(safe_url(url).is_err(), "{url}");
        }
    }

    #[test]
    fn an_issuer_needs_an_audience() {
        let mut sign_in = SignIn::default();
        assert_eq!(sign_in.check(), Ok(()));
        sign_in.oidc.audience = Some("bandstand".into());
        assert!(sign_in.check().is_err());
        sign_in.oidc.issuer = Some("https://id.example.org".into());
        assert_eq!(sign_in.check(), Ok(()));
        sign_in.oidc.audience = None;
        assert!(sign_in.check().unwrap_err().contains("oidc_audience"));
        sign_in.oidc.audience = Some("bandstand".into());
        sign_in.oidc.issuer = Some("http://id.example.org".into());
        assert!(sign_in.check().unwrap_err().contains("https"));
        sign_in.oidc.keys = Some("/etc/keys.json".into());
        assert_eq!(sign_in.check(), Ok(()));
        sign_in.oidc.issuer = Some("bandstand".into());
        assert!(sign_in.check().is_err());
    }
}
