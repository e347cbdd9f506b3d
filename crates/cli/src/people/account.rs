//! Which server, and as whom: flags, a profile, or the environment.

use crate::cli::Account;
use crate::environment;
use crate::output::Failure;
use crate::people::profiles::{Profiles, path};

/// An address and a key.
#[derive(Clone)]
pub(crate) struct Credentials {
    /// Without a slash at its end.
    pub(crate) url: String,
    pub(crate) key: String,
}

/// The strongest that is there: `--url` with `--key`, `--profile`, the environment, the profile in use.
pub(crate) fn credentials(account: &Account) -> Result<Credentials, Failure> {
    let set = |name: &str| {
        environment(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.trim().is_empty())
    };
    // A key goes nowhere but where it was given for: an address alone never gets the key of a profile.
    match (&account.url, account.key.clone().or_else(|| set("BANDSTAND_KEY"))) {
        (Some(url), Some(key)) => return Ok(Credentials { url: address(url)?, key }),
        (Some(_), None) => return Err(Failure::Usage("--url needs --key, or BANDSTAND_KEY".into())),
        (None, _) => {}
    }
    if account.key.is_some() && set("BANDSTAND_URL").is_none() {
        return Err(Failure::Usage("--key needs --url, or BANDSTAND_URL".into()));
    }
    if account.profile.is_none() {
        match (set("BANDSTAND_URL"), account.key.clone().or_else(|| set("BANDSTAND_KEY"))) {
            (Some(url), Some(key)) => return Ok(Credentials { url: address(&url)?, key }),
            (Some(_), None) => return Err(Failure::Usage("BANDSTAND_URL is set, but not BANDSTAND_KEY".into())),
            (None, Some(_)) => return Err(Failure::Usage("BANDSTAND_KEY is set, but not BANDSTAND_URL".into())),
            (None, None) => {}
        }
    }
    let profiles = Profiles::load()?;
    let wanted = account.profile.clone().or_else(|| set("BANDSTAND_PROFILE"));
    let name = wanted.as_deref().unwrap_or_else(|| profiles.current());
    match profiles.profiles.get(name) {
        Some(profile) => Ok(Credentials { url: profile.url.clone(), key: profile.key.clone() }),
        None if profiles.profiles.is_empty() => Err(Failure::Usage(
            "which server, and as whom? `bandstand login --url URL` keeps both; or set BANDSTAND_URL and BANDSTAND_KEY"
                .into(),
        )),
        None => {
            let known: Vec<&str> = profiles.profiles.keys().map(String::as_str).collect();
            Err(Failure::Usage(format!(
                "there is no profile {name:?} in {}, only {}",
                path()?.display(),
                known.join(", ")
            )))
        }
    }
}

/// An address as it is used: with a scheme, without a path of the API and without a slash at its end.
pub(crate) fn address(url: &str) -> Result<String, Failure> {
    let url = url.trim().trim_end_matches('/');
    let url = url.strip_suffix("/api/v1").unwrap_or(url).trim_end_matches('/');
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.contains(char::is_whitespace) && !rest.contains('@') => {
            Ok(url.to_owned())
        }
        _ => Err(Failure::Usage(format!("{url:?} is no address of a server; it looks like https://band.example.org"))),
    }
}

/// Whether a key would travel in clear to another machine.
pub(crate) fn travels_in_clear(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let local = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    !local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(address(" https://h/api/v1/ ").ok().as_deref(), Some("https://h"));
        assert_eq!(address("http://h:4000/").ok().as_deref(), Some("http://h:4000"));
        for bad in ["h:4000", "http://", "ftp://h", "https://user:secret@h", "http://a b"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_leaves_the_machine_in_clear() {
        for local in ["http://127.0.0.1:4000", "http://localhost", "http://[::1]:4", "https://h"] {
            assert!(!travels_in_clear(local), "{local}");
        }
        assert!(travels_in_clear("http://10.0.0.1:4000") && travels_in_clear("http://localhost.example.org"));
    }
}
