//! `bandstand login`, `logout` and `profiles`.

use std::io::{self, BufRead, IsTerminal, Write as _};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;

use crate::cli::{LoginArguments, LogoutArguments, ProfilesArguments};
use crate::environment;
use crate::output::{Failure, columns, say, say_json};
use crate::people::account::{Credentials, address, travels_in_clear};
use crate::people::client::Client;
use crate::people::profiles::{DEFAULT, Profile, Profiles, is_name, path};

/// Keeps an address and a key, after it tried them.
pub(crate) fn login(arguments: &LoginArguments) -> Result<ExitCode, Failure> {
    let account = &arguments.account;
    let name = account.profile.as_deref().unwrap_or(DEFAULT).to_owned();
    if !is_name(&name) {
        return Err(Failure::Usage(format!("{name:?} is no name of a profile: letters, digits, - and _, 64 at most")));
    }
    let mut profiles = Profiles::load()?;
    let set = |name: &str| environment(name).map(|value| value.to_string_lossy().into_owned());
    let known = profiles.profiles.get(&name).map(|profile| profile.url.clone());
    let url = match account.url.clone().or_else(|| set("BANDSTAND_URL")).or(known) {
        Some(url) => address(&url)?,
        None => return Err(Failure::Usage("which server? --url https://band.example.org".into())),
    };
    let key = match account.key.clone().or_else(|| set("BANDSTAND_KEY")) {
        Some(key) => key,
        None => ask_for_key(&url)?,
    };
    let key = key.trim().to_owned();
    if key.is_empty() || key.contains(char::is_whitespace) {
        return Err(Failure::Usage("that is no key; it looks like band_u_…".into()));
    }
    let client = Client::new(Credentials { url: url.clone(), key: key.clone() })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(anyhow::Error::from)?;
    let me = runtime.block_on(Box::pin(client.me()))?;
    profiles.profiles.insert(name.clone(), Profile { url: url.clone(), key, handle: me.handle.clone() });
    profiles.current = Some(name.clone());
    profiles.save()?;
    if account.json {
        say_json(&json!({ "profile": name, "url": url, "handle": me.handle, "id": me.id }))?;
    } else {
        say(&format!("You are @{} on {url}. The profile {name} is in {}.", me.handle, path()?.display()));
        if travels_in_clear(&url) {
            let _ = writeln!(io::stderr(), "warning: {url} is not encrypted; whoever is on the way can read the key");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn ask_for_key(url: &str) -> Result<String, Failure> {
    if io::stdin().is_terminal() {
        let key = rpassword::prompt_password(format!("Your key on {url} (band_u_…): "));
        return Ok(key.context("cannot read the key")?);
    }
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("cannot read the key from standard input")?;
    Ok(line)
}

/// Forgets a profile.
pub(crate) fn logout(arguments: &LogoutArguments) -> Result<ExitCode, Failure> {
    let mut profiles = Profiles::load()?;
    let name = arguments.name.clone().unwrap_or_else(|| profiles.current().to_owned());
    if profiles.profiles.remove(&name).is_none() {
        return Err(Failure::Failed(anyhow::anyhow!("there is no profile {name:?}; `bandstand profiles` lists them")));
    }
    if profiles.current() == name {
        profiles.current = profiles.profiles.keys().next().cloned();
    }
    profiles.save()?;
    if arguments.json {
        say_json(&json!({ "profile": name }))?;
    } else {
        say(&format!("Forgot {name}. The key itself still works; `bandstand key revoke` ends it."));
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists them, or uses another one.
pub(crate) fn profiles(arguments: &ProfilesArguments) -> Result<ExitCode, Failure> {
    let mut profiles = Profiles::load()?;
    if let Some(name) = &arguments.chosen {
        if !profiles.profiles.contains_key(name) {
            return Err(Failure::Failed(anyhow::anyhow!("there is no profile {name:?}")));
        }
        profiles.current = Some(name.clone());
        profiles.save()?;
    }
    let current = profiles.current().to_owned();
    if arguments.json {
        let rows: Vec<_> = profiles
            .profiles
            .iter()
            .map(
                |(name, it)| json!({ "profile": name, "url": it.url, "handle": it.handle, "in_use": *name == current }),
            )
            .collect();
        say_json(&json!({ "profiles": rows }))?;
    } else if profiles.profiles.is_empty() {
        say("None yet: `bandstand login --url URL` makes one.");
    } else {
        let rows: Vec<_> = profiles
            .profiles
            .iter()
            .map(|(name, it)| {
                let mark = if *name == current { "*" } else { "" };
                [mark.to_owned(), name.clone(), format!("@{}", it.handle), it.url.clone()]
            })
            .collect();
        say(&columns(["", "PROFILE", "WHO", "SERVER"], &rows));
    }
    Ok(ExitCode::SUCCESS)
}
