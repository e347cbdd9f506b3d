//! Everything that can be set, and where each value came from: flag, environment, file or default, in this order.

mod file;
pub(crate) mod flags;
mod print;
mod table;
mod value;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bandstand_server::service::files::{FileOptions, FilePlace, S3Options};
use bandstand_server::settings::Limits;
use bandstand_store::{Database, StoreOptions};

use self::flags::Flags;
pub(crate) use self::print::{print_defaults, print_effective};
pub(crate) use self::table::{Setting, TABLE};
pub(crate) use self::value::{DatabaseUrl, LogFormat, bytes, duration};

/// The owner's key for a first start without a person who reads it. No flag and no file: it is a secret.
pub(crate) const OWNER_KEY: &str = "BANDSTAND_OWNER_KEY";

/// The server elsewhere that commands administer, and with which key: of the commands, not of a server.
pub(crate) const REMOTE: [&str; 2] = ["BANDSTAND_URL", "BANDSTAND_KEY"];

/// Who the server is at an S3-compatible store. No flags and no file: they are secrets.
pub(crate) const S3_KEY_ID: &str = "BANDSTAND_S3_ACCESS_KEY_ID";
pub(crate) const S3_KEY: &str = "BANDSTAND_S3_SECRET_ACCESS_KEY";

/// Which settings file to read.
pub(crate) const CONFIG: &str = "BANDSTAND_CONFIG";

/// The settings file that is read when it exists in the data folder.
pub(crate) const FILE_NAME: &str = "bandstand.toml";

/// The embedded database inside the data folder.
pub(crate) const DATABASE_FILE: &str = "bandstand.db";

/// The values in force. What each means is said once, in [`TABLE`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) listen: SocketAddr,
    pub(crate) public_url: Option<String>,
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) behind_proxy: bool,
    pub(crate) drain_deadline: Duration,
    pub(crate) metrics_listen: Option<SocketAddr>,
    pub(crate) data: PathBuf,
    pub(crate) database: Option<DatabaseUrl>,
    pub(crate) owner_handle: String,
    pub(crate) readers: usize,
    pub(crate) postgres_connections: usize,
    pub(crate) store_queue: usize,
    pub(crate) slow_operation: Duration,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: String,
    pub(crate) files_bucket: Option<String>,
    pub(crate) files_endpoint: Option<String>,
    pub(crate) files_region: String,
    pub(crate) mcp: bool,
    pub(crate) mcp_hosts: Option<String>,
    pub(crate) mcp_origins: Option<String>,
    pub(crate) mcp_sessions: usize,
    pub(crate) mcp_sessions_per_key: usize,
    pub(crate) mcp_session_idle: Duration,
    pub(crate) limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        let store = StoreOptions::new(Database::Sqlite { path: PathBuf::new() }, 0);
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 4000)),
            public_url: None,
            tls_cert: None,
            tls_key: None,
            behind_proxy: false,
            drain_deadline: Duration::from_secs(10),
            metrics_listen: None,
            data: PathBuf::from("./bandstand-data"),
            database: None,
            owner_handle: "owner".to_owned(),
            readers: store.readers,
            postgres_connections: store.postgres_connections,
            store_queue: store.queue,
            slow_operation: store.slow_operation,
            log_format: LogFormat::Text,
            log_level: "info".to_owned(),
            files_bucket: None,
            files_endpoint: None,
            files_region: "us-east-1".to_owned(),
            mcp: true,
            mcp_hosts: None,
            mcp_origins: None,
            mcp_sessions: 1024,
            mcp_sessions_per_key: 16,
            mcp_session_idle: Duration::from_secs(30 * 60),
            limits: Limits::default(),
        }
    }
}

impl Settings {
    /// How to open the store.
    pub(crate) fn store_options(&self, now_micros: i64) -> StoreOptions {
        let database = match &self.database {
            None => Database::Sqlite { path: self.database_file() },
            Some(url) => Database::Postgres { url: url.reveal().to_owned() },
        };
        StoreOptions {
            readers: self.readers,
            postgres_connections: self.postgres_connections,
            queue: self.store_queue,
            slow_operation: self.slow_operation,
            ..StoreOptions::new(database, now_micros)
        }
    }

    /// The limits as the server has to keep them. Behind a proxy that does not say whose requests it passes on, all come
    /// from one address, and one client's wrong keys would be everybody's.
    pub(crate) fn limits_in_force(&self) -> Limits {
        let mut limits = self.limits.clone();
        if self.behind_proxy && limits.client_address_header.is_none() {
            limits.auth_failures_per_minute = 0;
        }
        limits
    }

    /// Where files of rooms are kept: in the data folder, or in a bucket whose credentials the environment holds.
    pub(crate) fn file_options(&self, environment: impl Fn(&str) -> Option<String>) -> FileOptions {
        let place = match &self.files_bucket {
            None => FilePlace::Folder(self.data.join("files")),
            Some(bucket) => FilePlace::S3(S3Options {
                bucket: bucket.clone(),
                endpoint: self.files_endpoint.clone(),
                region: self.files_region.clone(),
                access_key_id: environment(S3_KEY_ID).unwrap_or_default(),
                secret_access_key: environment(S3_KEY).unwrap_or_default(),
            }),
        };
        FileOptions { spool: self.data.join("uploads"), place }
    }

    /// Where the embedded database is.
    pub(crate) fn database_file(&self) -> PathBuf {
        self.data.join(DATABASE_FILE)
    }

    /// The Unix socket through which a running server is administered.
    pub(crate) fn admin_socket(&self) -> PathBuf {
        self.data.join("admin.sock")
    }

    /// The server's address as clients write it; `bound` is where it really listens. Nobody connects to "all addresses":
    /// of those it names this machine's own.
    pub(crate) fn url(&self, bound: SocketAddr) -> String {
        let ip = match bound.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let reached = SocketAddr::new(ip, bound.port());
        match &self.public_url {
            Some(url) => url.clone(),
            None if self.tls_cert.is_some() => format!("https://{reached}"),
            None => format!("http://{reached}"),
        }
    }

    /// What must hold between settings before a server may start with them.
    pub(crate) fn check(&self) -> Result<(), String> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(_), None) => return Err("--tls-cert needs --tls-key as well".to_owned()),
            (None, Some(_)) => return Err("--tls-key needs --tls-cert as well".to_owned()),
            (Some(_), Some(_)) | (None, None) => {}
        }
        if !self.listen.ip().is_loopback() && self.tls_cert.is_none() && !self.behind_proxy {
            return Err(format!(
                "{} can be reached from other machines, and API keys would travel unencrypted.\n\
                 Give --tls-cert FILE and --tls-key FILE; or say --behind-proxy when a proxy in front of Bandstand \
                 does TLS;\nor listen on 127.0.0.1.",
                self.listen
            ));
        }
        self.limits.sign_in.check()?;
        if self.limits.description_min > self.limits.description_max {
            return Err("description_min is larger than description_max".to_owned());
        }
        Ok(())
    }
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Environment,
    Flag,
}

/// Settings together with where they came from.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) settings: Settings,
    /// The settings file, when there is one.
    pub(crate) file: Option<PathBuf>,
    origins: BTreeMap<&'static str, Origin>,
}

impl Loaded {
    /// Where a setting's value came from.
    pub(crate) fn origin(&self, setting: &Setting) -> &Origin {
        self.origins.get(setting.name).unwrap_or(&Origin::Default)
    }
}

/// One value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingError {
    place: String,
    problem: String,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

/// All values that cannot be used, so that they can be mended in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingErrors(pub(crate) Vec<SettingError>);

impl fmt::Display for SettingErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SettingErrors {}

/// Reads the environment; passed in so that tests have their own.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Puts the settings together. Nothing reads environment or file later.
pub(crate) fn load(flags: &Flags, environment: Environment<'_>) -> Result<Loaded, SettingErrors> {
    let mut loader = Loader { settings: Settings::default(), origins: BTreeMap::new(), errors: Vec::new() };
    // The data folder decides where the file is, so flags and environment come first, and the file fills the gaps.
    loader.take_flags(flags);
    loader.take_environment(environment);
    let file = loader.take_file(flags, environment);
    if loader.errors.is_empty() {
        Ok(Loaded { settings: loader.settings, file, origins: loader.origins })
    } else {
        Err(SettingErrors(loader.errors))
    }
}

struct Loader {
    settings: Settings,
    origins: BTreeMap<&'static str, Origin>,
    errors: Vec<SettingError>,
}

impl Loader {
    fn take_flags(&mut self, flags: &Flags) {
        for (setting, text) in &flags.given {
            self.take(setting, text, Origin::Flag, setting.flag());
        }
    }

    fn take_environment(&mut self, environment: Environment<'_>) {
        for setting in TABLE {
            let name = setting.environment();
            if let Some(text) = text_of(environment, &name, &mut self.errors) {
                self.take(setting, &text, Origin::Environment, name);
            }
        }
    }

    fn take_file(&mut self, flags: &Flags, environment: Environment<'_>) -> Option<PathBuf> {
        let named = match &flags.config {
            Some(path) => Some(path.clone()),
            None => text_of(environment, CONFIG, &mut self.errors).map(PathBuf::from),
        };
        let must_exist = named.is_some();
        let path = named.unwrap_or_else(|| self.settings.data.join(FILE_NAME));
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => return None,
            Err(error) => {
                self.errors.push(SettingError {
                    place: path.display().to_string(),
                    problem: format!("cannot read this settings file: {error}"),
                });
                return None;
            }
        };
        let found_in = self.settings.data.clone();
        match file::parse(&text) {
            Ok(entries) => {
                for entry in entries {
                    self.take_entry(&path, entry);
                }
            }
            Err(error) => {
                let place = format!("{}, line {}", path.display(), error.line);
                self.errors.push(SettingError { place, problem: error.problem });
            }
        }
        if !must_exist && self.settings.data != found_in {
            self.errors.push(SettingError {
                place: format!("data in {}", path.display()),
                problem: "a settings file inside the data folder cannot name another one; use --data or --config"
                    .to_owned(),
            });
        }
        Some(path)
    }

    fn take_entry(&mut self, path: &Path, entry: file::Entry) {
        let place = format!("{} in {}, line {}", entry.key, path.display(), entry.line);
        let Some(setting) = TABLE.iter().find(|setting| setting.name == entry.key) else {
            let problem = "there is no such setting; `bandstand config print` shows all".to_owned();
            return self.errors.push(SettingError { place, problem });
        };
        match entry.text {
            Ok(text) => self.take(setting, &text, Origin::File { path: path.to_owned(), line: entry.line }, place),
            Err(problem) => self.errors.push(SettingError { place, problem }),
        }
    }

    /// Takes a value unless a stronger source gave one. It is checked either way: a bad value in the file is told even
    /// while a flag hides it.
    fn take(&mut self, setting: &'static Setting, text: &str, origin: Origin, place: String) {
        let hidden = self.origins.contains_key(setting.name);
        let mut scratch = hidden.then(|| self.settings.clone());
        match setting.set(scratch.as_mut().unwrap_or(&mut self.settings), text) {
            Ok(()) if hidden => {}
            Ok(()) => {
                self.origins.insert(setting.name, origin);
            }
            Err(problem) => self.errors.push(SettingError { place, problem }),
        }
    }
}

/// A variable's text. An empty one counts as not set: that is how a container's template leaves a value out.
fn text_of(environment: Environment<'_>, name: &str, errors: &mut Vec<SettingError>) -> Option<String> {
    let value = environment(name).filter(|value| !value.is_empty())?;
    value
        .into_string()
        .map_err(|_| errors.push(SettingError { place: name.to_owned(), problem: "is not valid UTF-8".to_owned() }))
        .ok()
}

#[cfg(test)]
mod tests;
