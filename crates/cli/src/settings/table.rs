//! The one table of settings: flags, environment names, the file's keys, help and `config print` all follow from it.

use std::path::PathBuf;
use std::time::Duration;

use super::Settings;
use super::value::{Bytes, Value};

/// One setting.
pub(crate) struct Setting {
    /// The key in the file. The flag is the same with dashes, the environment variable the same in capitals.
    pub(crate) name: &'static str,
    /// The heading that it stands under.
    pub(crate) group: &'static str,
    /// What it is for.
    pub(crate) doc: &'static str,
    /// The smallest value, written like a value; empty when there is none.
    least: &'static str,
    at: &'static (dyn Access + Sync),
}

impl Setting {
    /// `--socket-idle`
    pub(crate) fn flag(&self) -> String {
        format!("--{}", self.long())
    }

    /// The flag without its dashes.
    pub(crate) fn long(&self) -> String {
        self.name.replace('_', "-")
    }

    /// `BANDSTAND_SOCKET_IDLE`
    pub(crate) fn environment(&self) -> String {
        format!("BANDSTAND_{}", self.name.to_uppercase())
    }

    /// What to write, for help: `ADDR:PORT`.
    pub(crate) fn form(&self) -> &'static str {
        self.at.form()
    }

    /// Whether the flag may stand without a value.
    pub(crate) fn is_switch(&self) -> bool {
        self.at.form() == bool::FORM
    }

    /// Sets it from text, or says what is wrong.
    pub(crate) fn set(&self, settings: &mut Settings, text: &str) -> Result<(), String> {
        let checked = match self.name {
            "log_level" => check_log_level(text),
            "public_url" => check_url(text),
            "oidc_issuer" => check_issuer(text),
            "client_address_header" => check_header(text),
            _ => Ok(()),
        };
        checked.and_then(|()| self.at.set(settings, text, self.least))
    }

    /// Its value as text, passwords cut out; `None` when it is not set.
    pub(crate) fn text(&self, settings: &Settings) -> Option<String> {
        self.at.text(&mut settings.clone())
    }

    /// Its value as TOML, passwords cut out; `None` when it is not set.
    pub(crate) fn toml(&self, settings: &Settings) -> Option<String> {
        let text = self.text(settings)?;
        Some(if self.at.bare() { text } else { toml::Value::String(text).to_string() })
    }
}

fn check_log_level(text: &str) -> Result<(), String> {
    let parsed = tracing_subscriber::EnvFilter::try_new(text);
    parsed.map(drop).map_err(|_| format!("{text:?} is no log level; write error, warn, info, debug or trace"))
}

fn check_header(text: &str) -> Result<(), String> {
    let sound = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if sound { Ok(()) } else { Err(format!("{text:?} is no name of a header; write one such as x-forwarded-for")) }
}

fn check_url(text: &str) -> Result<(), String> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match host {
        Some(host) if !host.is_empty() && !host.ends_with('/') => Ok(()),
        _ => Err(format!("{text:?} must be http://HOST or https://HOST, without a slash at its end")),
    }
}

fn check_issuer(text: &str) -> Result<(), String> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match host {
        Some(host) if !host.is_empty() => Ok(()),
        _ => Err(format!("{text:?} must be the issuer's address, exactly as its tokens name it")),
    }
}

/// Reads and writes one field, whatever its type.
trait Access {
    fn form(&self) -> &'static str;
    fn bare(&self) -> bool;
    fn set(&self, settings: &mut Settings, text: &str, least: &str) -> Result<(), String>;
    fn text(&self, settings: &mut Settings) -> Option<String>;
}

/// A field that is read and written in the way of its type.
struct At<T>(fn(&mut Settings) -> &mut T);

/// A field that is a number of bytes.
struct BytesAt(fn(&mut Settings) -> &mut usize);

/// A span of time that a zero turns off.
struct OptionalAt(fn(&mut Settings) -> &mut Option<Duration>);

impl Access for OptionalAt {
    fn form(&self) -> &'static str {
        Duration::FORM
    }

    fn bare(&self) -> bool {
        Duration::BARE
    }

    fn set(&self, settings: &mut Settings, text: &str, least: &str) -> Result<(), String> {
        let span = read::<Duration>(text, least)?;
        *(self.0)(settings) = Some(span).filter(|span| !span.is_zero());
        Ok(())
    }

    fn text(&self, settings: &mut Settings) -> Option<String> {
        (self.0)(settings).map_or_else(|| Some("0s".to_owned()), |span| span.write())
    }
}

fn read<T: Value>(text: &str, least: &str) -> Result<T, String> {
    let value = T::read(text)?;
    match T::read(least) {
        Ok(smallest) if !least.is_empty() && value < smallest => Err(format!("{text} is too small; at least {least}")),
        _ => Ok(value),
    }
}

impl<T: Value> Access for At<T> {
    fn form(&self) -> &'static str {
        T::FORM
    }

    fn bare(&self) -> bool {
        T::BARE
    }

    fn set(&self, settings: &mut Settings, text: &str, least: &str) -> Result<(), String> {
        *(self.0)(settings) = read(text, least)?;
        Ok(())
    }

    fn text(&self, settings: &mut Settings) -> Option<String> {
        (self.0)(settings).write()
    }
}

impl Access for BytesAt {
    fn form(&self) -> &'static str {
        Bytes::FORM
    }

    fn bare(&self) -> bool {
        Bytes::BARE
    }

    fn set(&self, settings: &mut Settings, text: &str, least: &str) -> Result<(), String> {
        *(self.0)(settings) = read::<Bytes>(text, least)?.0;
        Ok(())
    }

    fn text(&self, settings: &mut Settings) -> Option<String> {
        Bytes(*(self.0)(settings)).write()
    }
}

const LISTENING: &str = "Listening";
const DATA: &str = "Data";
const FILES: &str = "Files";
const LOGS: &str = "Logs";
const REQUESTS: &str = "Requests";
const SIGN_IN: &str = "Sign-in of people";
const RATES: &str = "Rates";
const QUOTAS: &str = "Quotas";
const ROOMS: &str = "Agents and rooms";
const DELIVERY: &str = "Delivery";
const SOCKETS: &str = "Sockets";
const MCP: &str = "MCP";

/// All settings, in the order in which they are printed.
pub(crate) static TABLE: &[Setting] = &[
    Setting {
        name: "listen",
        group: LISTENING,
        doc: "Address and port to serve on. Port 0 takes a free one, which is printed. Beyond this machine it needs \
              tls_cert and tls_key, or behind_proxy.",
        least: "",
        at: &At(|s| &mut s.listen),
    },
    Setting {
        name: "public_url",
        group: LISTENING,
        doc: "The address under which clients reach the server when it differs from listen, such as \
              https://band.example.org. It is only printed, in what `up` and `agent add` say to do next.",
        least: "",
        at: &At::<Option<String>>(|s| &mut s.public_url),
    },
    Setting {
        name: "tls_cert",
        group: LISTENING,
        doc: "Certificate chain, a PEM file. Read at start; restart after renewing it.",
        least: "",
        at: &At::<Option<PathBuf>>(|s| &mut s.tls_cert),
    },
    Setting {
        name: "tls_key",
        group: LISTENING,
        doc: "The certificate's private key, a PEM file.",
        least: "",
        at: &At::<Option<PathBuf>>(|s| &mut s.tls_key),
    },
    Setting {
        name: "behind_proxy",
        group: LISTENING,
        doc: "A proxy in front of the server does TLS: serve unencrypted beyond this machine.",
        least: "",
        at: &At(|s| &mut s.behind_proxy),
    },
    Setting {
        name: "drain_deadline",
        group: LISTENING,
        doc: "After SIGTERM or SIGINT, requests in flight may take so long; then connections are cut. A second signal \
              cuts at once.",
        least: "1s",
        at: &At::<Duration>(|s| &mut s.drain_deadline),
    },
    Setting {
        name: "metrics_listen",
        group: LISTENING,
        doc: "Address and port for Prometheus to fetch /metrics from. Off unless set. No key is asked for: keep it \
              on a private network.",
        least: "",
        at: &At(|s| &mut s.metrics_listen),
    },
    Setting {
        name: "data",
        group: DATA,
        doc: "The data folder: database, lock and admin socket. One server owns it.",
        least: "",
        at: &At(|s| &mut s.data),
    },
    Setting {
        name: "database",
        group: DATA,
        doc: "A PostgreSQL database, postgres://USER:PASSWORD@HOST/DATABASE. Unless set, the data is in an embedded \
              database in the data folder.",
        least: "",
        at: &At(|s| &mut s.database),
    },
    Setting {
        name: "owner_handle",
        group: DATA,
        doc: "The handle of the owner, who is created on the first start.",
        least: "",
        at: &At(|s| &mut s.owner_handle),
    },
    Setting {
        name: "readers",
        group: DATA,
        doc: "Embedded database: threads that read.",
        least: "1",
        at: &At::<usize>(|s| &mut s.readers),
    },
    Setting {
        name: "postgres_connections",
        group: DATA,
        doc: "PostgreSQL: connections of the pool.",
        least: "2",
        at: &At::<usize>(|s| &mut s.postgres_connections),
    },
    Setting {
        name: "store_queue",
        group: DATA,
        doc: "Operations that may wait for the database; one more is answered 503.",
        least: "1",
        at: &At::<usize>(|s| &mut s.store_queue),
    },
    Setting {
        name: "slow_operation",
        group: DATA,
        doc: "A database operation that takes longer is logged with its name.",
        least: "1ms",
        at: &At::<Duration>(|s| &mut s.slow_operation),
    },
    Setting {
        name: "files_bucket",
        group: FILES,
        doc: "A bucket of an S3-compatible store for the files of rooms. Unless set, they are in the data folder. The \
              credentials are in BANDSTAND_S3_ACCESS_KEY_ID and BANDSTAND_S3_SECRET_ACCESS_KEY.",
        least: "",
        at: &At::<Option<String>>(|s| &mut s.files_bucket),
    },
    Setting {
        name: "files_endpoint",
        group: FILES,
        doc: "Where the S3-compatible store is, such as https://s3.example.org. Unless set, AWS in files_region.",
        least: "",
        at: &At::<Option<String>>(|s| &mut s.files_endpoint),
    },
    Setting {
        name: "files_region",
        group: FILES,
        doc: "The region of the bucket.",
        least: "",
        at: &At::<String>(|s| &mut s.files_region),
    },
    Setting {
        name: "file_bytes",
        group: FILES,
        doc: "Largest file of a room.",
        least: "1KiB",
        at: &BytesAt(|s| &mut s.limits.file_bytes),
    },
    Setting {
        name: "file_types",
        group: FILES,
        doc: "Types of files that are taken, as the starts of content types: image/,text/plain. Unless set, all.",
        least: "",
        at: &At::<Option<String>>(|s| &mut s.limits.file_types),
    },
    Setting {
        name: "file_retention",
        group: FILES,
        doc: "Files are removed after so long. Unless set, never.",
        least: "1m",
        at: &At::<Option<Duration>>(|s| &mut s.limits.file_retention),
    },
    Setting {
        name: "upload_timeout",
        group: FILES,
        doc: "Longest time for one upload.",
        least: "1s",
        at: &At::<Duration>(|s| &mut s.limits.upload_timeout),
    },
    Setting {
        name: "log_format",
        group: LOGS,
        doc: "How log lines on standard error look: text for people, json for programs.",
        least: "",
        at: &At(|s| &mut s.log_format),
    },
    Setting {
        name: "log_level",
        group: LOGS,
        doc: "What is logged: error, warn, info, debug or trace; per part as in info,bandstand_store=debug.",
        least: "",
        at: &At::<String>(|s| &mut s.log_level),
    },
    Setting {
        name: "body_bytes",
        group: REQUESTS,
        doc: "Largest request body.",
        least: "1KiB",
        at: &BytesAt(|s| &mut s.limits.body_bytes),
    },
    Setting {
        name: "request_timeout",
        group: REQUESTS,
        doc: "Longest time for one request, from its last header to its reply.",
        least: "1s",
        at: &At::<Duration>(|s| &mut s.limits.request_timeout),
    },
    Setting {
        name: "idempotency_retention",
        group: REQUESTS,
        doc: "A request that is repeated with the same Idempotency-Key is answered as the first time for so long.",
        least: "1m",
        at: &At::<Duration>(|s| &mut s.limits.idempotency_retention),
    },
    Setting {
        name: "bulk_deletion_retention",
        group: REQUESTS,
        doc: "What became of a bulk deletion can be asked for so long after its end.",
        least: "1m",
        at: &At::<Duration>(|s| &mut s.limits.bulk_deletion_retention),
    },
    Setting {
        name: "agent_reads_per_minute",
        group: RATES,
        doc: "GET requests a minute for each key of an agent; more get 429. Unless set, no limit.",
        least: "1",
        at: &At::<Option<u32>>(|s| &mut s.limits.agent_reads_per_minute),
    },
    Setting {
        name: "agent_writes_per_minute",
        group: RATES,
        doc: "Other requests a minute for each key of an agent; more get 429, except what settles a turn. \
              Unless set, no limit.",
        least: "1",
        at: &At::<Option<u32>>(|s| &mut s.limits.agent_writes_per_minute),
    },
    Setting {
        name: "user_reads_per_minute",
        group: RATES,
        doc: "GET requests a minute for each key of a user; more get 429. Unless set, no limit.",
        least: "1",
        at: &At::<Option<u32>>(|s| &mut s.limits.user_reads_per_minute),
    },
    Setting {
        name: "user_writes_per_minute",
        group: RATES,
        doc: "Other requests a minute for each key of a user; more get 429. Unless set, no limit.",
        least: "1",
        at: &At::<Option<u32>>(|s| &mut s.limits.user_writes_per_minute),
    },
    Setting {
        name: "auth_failures_per_minute",
        group: RATES,
        doc: "Unknown keys a minute that one address may show; more get 429. 0 means no limit. Behind a proxy it counts \
              only with client_address_header.",
        least: "",
        at: &At::<u32>(|s| &mut s.limits.auth_failures_per_minute),
    },
    Setting {
        name: "client_address_header",
        group: RATES,
        doc: "The header in which a trusted proxy says whose request it passes on, such as x-forwarded-for; its last \
              address counts. Without a proxy that sets it, anybody could. Unless set, the connection's address counts.",
        least: "",
        at: &At::<Option<String>>(|s| &mut s.limits.client_address_header),
    },
    Setting {
        name: "quota_agents",
        group: QUOTAS,
        doc: "Agents that a user may have; one more gets 403 limit_reached. Unless set, no limit.",
        least: "1",
        at: &At::<Option<u32>>(|s| &mut s.limits.quota_agents),
    },
    Setting {
        name: "quota_rooms",
        group: QUOTAS,
        doc: "Rooms that a user or agent may have created, deleted ones aside. Unless set, no limit.",
        least: "1",
        at: &At::<Option<u32>>(|s| &mut s.limits.quota_rooms),
    },
    Setting {
        name: "quota_messages_per_day",
        group: QUOTAS,
        doc: "Text messages that a user or agent may post in a day (UTC). Unless set, no limit.",
        least: "1",
        at: &At::<Option<u32>>(|s| &mut s.limits.quota_messages_per_day),
    },
    Setting {
        name: "token_issuer",
        group: SIGN_IN,
        doc: "How the server names itself (iss, aud) in the tokens that it issues to people in exchange for a key; an \
              address of its own when others verify them. A change ends all that are out.",
        least: "",
        at: &At::<String>(|s| &mut s.limits.sign_in.token_issuer),
    },
    Setting {
        name: "token_lifetime",
        group: SIGN_IN,
        doc: "Such a token counts for so long. It ends before when its key does.",
        least: "1m",
        at: &At::<Duration>(|s| &mut s.limits.sign_in.token_lifetime),
    },
    Setting {
        name: "clock_skew",
        group: SIGN_IN,
        doc: "How far the clock of whoever issued a token may be from the server's: a token counts so long before its \
              start and after its end.",
        least: "1s",
        at: &At::<Duration>(|s| &mut s.limits.sign_in.clock_skew),
    },
    Setting {
        name: "oidc_issuer",
        group: SIGN_IN,
        doc: "An OpenID Connect issuer whose tokens sign people in, exactly as they name it (iss): \
              https://id.example.org/realms/work. Needs oidc_audience.",
        least: "",
        at: &At::<Option<String>>(|s| &mut s.limits.sign_in.oidc.issuer),
    },
    Setting {
        name: "oidc_audience",
        group: SIGN_IN,
        doc: "What its tokens must be for (aud): the name or client id that the issuer has for this server.",
        least: "",
        at: &At::<Option<String>>(|s| &mut s.limits.sign_in.oidc.audience),
    },
    Setting {
        name: "oidc_keys",
        group: SIGN_IN,
        doc: "Its key set (JWKS): a file, or an https URL. Unless set, what its configuration document says.",
        least: "",
        at: &At::<Option<String>>(|s| &mut s.limits.sign_in.oidc.keys),
    },
    Setting {
        name: "oidc_keys_lifetime",
        group: SIGN_IN,
        doc: "The key set is fetched again after so long. While that fails, the last one counts.",
        least: "1m",
        at: &At::<Duration>(|s| &mut s.limits.sign_in.oidc.keys_lifetime),
    },
    Setting {
        name: "oidc_refetch",
        group: SIGN_IN,
        doc: "It is fetched because of a key that is not in it, or again after a failure, at most once in so long.",
        least: "1s",
        at: &At::<Duration>(|s| &mut s.limits.sign_in.oidc.refetch),
    },
    Setting {
        name: "oidc_create_users",
        group: SIGN_IN,
        doc: "Whether somebody who signs in through the issuer and is not linked to a user becomes a new one. Without \
              it, `bandstand user link` decides who may.",
        least: "",
        at: &At::<bool>(|s| &mut s.limits.sign_in.oidc.create_users),
    },
    Setting {
        name: "oidc_handle_claim",
        group: SIGN_IN,
        doc: "The claim of the first token from which a new user's handle is made.",
        least: "",
        at: &At::<String>(|s| &mut s.limits.sign_in.oidc.handle_claim),
    },
    Setting {
        name: "description_min",
        group: ROOMS,
        doc: "Shortest description of an agent, in characters.",
        least: "1",
        at: &At::<usize>(|s| &mut s.limits.description_min),
    },
    Setting {
        name: "description_max",
        group: ROOMS,
        doc: "Longest description of an agent, in characters.",
        least: "1",
        at: &At::<usize>(|s| &mut s.limits.description_max),
    },
    Setting {
        name: "name_max",
        group: ROOMS,
        doc: "Longest name of an agent, in characters.",
        least: "1",
        at: &At::<usize>(|s| &mut s.limits.name_max),
    },
    Setting {
        name: "room_participants",
        group: ROOMS,
        doc: "Participants that a room may have.",
        least: "2",
        at: &At::<usize>(|s| &mut s.limits.room_participants),
    },
    Setting {
        name: "tasks",
        group: ROOMS,
        doc: "Whether rooms have a task board. Without it, its routes answer 404 and agents are told not to use it.",
        least: "",
        at: &At::<bool>(|s| &mut s.limits.tasks),
    },
    Setting {
        name: "memories",
        group: ROOMS,
        doc: "Whether agents may store memories. Without it, all routes of memories answer 403.",
        least: "",
        at: &At::<bool>(|s| &mut s.limits.memories),
    },
    Setting {
        name: "lease_gone",
        group: DELIVERY,
        doc: "An attempt lapses when its agent has had no connection for so long and gave no other sign of life. The \
              longest ordinary pause of a client that reconnects is 30 s. 0s: never.",
        least: "",
        at: &OptionalAt(|s| &mut s.limits.lease_gone),
    },
    Setting {
        name: "lease_silent",
        group: DELIVERY,
        doc: "An attempt lapses when its agent reported what it does and then no longer for so long; the message is \
              pushed to it again. Agents report every 3 s. 0s: never.",
        least: "",
        at: &OptionalAt(|s| &mut s.limits.lease_silent),
    },
    Setting {
        name: "dead_letter_attempts",
        group: DELIVERY,
        doc: "A message is given up for an agent after so many attempts that failed, or lapsed before a new one began. \
              Unless set, never.",
        least: "1",
        at: &At::<Option<u32>>(|s| &mut s.limits.dead_letter_attempts),
    },
    Setting {
        name: "dead_letter_age",
        group: DELIVERY,
        doc: "A message is given up for an agent that has not processed it after so long. Unless set, never.",
        least: "1s",
        at: &At::<Option<Duration>>(|s| &mut s.limits.dead_letter_age),
    },
    Setting {
        name: "frame_bytes",
        group: SOCKETS,
        doc: "Largest frame that a client may send on a socket.",
        least: "1KiB",
        at: &BytesAt(|s| &mut s.limits.frame_bytes),
    },
    Setting {
        name: "socket_frames_per_second",
        group: SOCKETS,
        doc: "Frames a second that a client may send on a socket, ten seconds' worth at once; more are refused.",
        least: "1",
        at: &At::<u32>(|s| &mut s.limits.socket_frames_per_second),
    },
    Setting {
        name: "socket_idle",
        group: SOCKETS,
        doc: "A socket that sends nothing for so long, not even a heartbeat, is closed with 1001.",
        least: "1s",
        at: &At::<Duration>(|s| &mut s.limits.socket_idle),
    },
    Setting {
        name: "socket_topics",
        group: SOCKETS,
        doc: "Topics that one socket may join.",
        least: "1",
        at: &At::<usize>(|s| &mut s.limits.socket_topics),
    },
    Setting {
        name: "socket_queue",
        group: SOCKETS,
        doc: "Frames that may wait for one slow socket; one more closes it with 1012, and its client catches up.",
        least: "1",
        at: &At::<usize>(|s| &mut s.limits.socket_queue),
    },
    Setting {
        name: "socket_queue_bytes",
        group: SOCKETS,
        doc: "Bytes that may wait for one slow socket; one more closes it with 1012.",
        least: "64KiB",
        at: &BytesAt(|s| &mut s.limits.socket_queue_bytes),
    },
    Setting {
        name: "upgrades_per_second",
        group: SOCKETS,
        doc: "Socket upgrades a second for one key, accepted or not; more get 429.",
        least: "1",
        at: &At::<u32>(|s| &mut s.limits.upgrades_per_second),
    },
    Setting {
        name: "activity_ttl",
        group: SOCKETS,
        doc: "A report that somebody is working or typing counts for so long.",
        least: "1s",
        at: &At::<Duration>(|s| &mut s.limits.activity_ttl),
    },
    Setting {
        name: "delivered_every",
        group: SOCKETS,
        doc: "Marks of pushed messages as delivered are written at least so often.",
        least: "1ms",
        at: &At::<Duration>(|s| &mut s.limits.delivered_every),
    },
    Setting {
        name: "mcp",
        group: MCP,
        doc: "Whether MCP clients are served, at /mcp. Without it, that address answers 404.",
        least: "",
        at: &At::<bool>(|s| &mut s.mcp),
    },
    Setting {
        name: "mcp_hosts",
        group: MCP,
        doc: "Names under which MCP clients reach this server besides this machine's, the address of listen and the one \
              of public_url: band.example.org,10.0.0.5:4000. Requests under other names are refused, unless the server \
              listens beyond this machine and neither this nor public_url is set.",
        least: "",
        at: &At::<Option<String>>(|s| &mut s.mcp_hosts),
    },
    Setting {
        name: "mcp_origins",
        group: MCP,
        doc: "Web pages that may ask at /mcp besides those of this server, as origins: https://app.example.org:443. \
              Clients that are no web pages send none and need none.",
        least: "",
        at: &At::<Option<String>>(|s| &mut s.mcp_origins),
    },
    Setting {
        name: "mcp_sessions",
        group: MCP,
        doc: "MCP sessions that may be open; one more is answered 503.",
        least: "1",
        at: &At::<usize>(|s| &mut s.mcp_sessions),
    },
    Setting {
        name: "mcp_sessions_per_key",
        group: MCP,
        doc: "MCP sessions that one key may have; one more closes the one that was used least recently.",
        least: "1",
        at: &At::<usize>(|s| &mut s.mcp_sessions_per_key),
    },
    Setting {
        name: "mcp_session_idle",
        group: MCP,
        doc: "An MCP session without a request for so long is closed. What it had claimed is served again.",
        least: "1m",
        at: &At::<Duration>(|s| &mut s.mcp_session_idle),
    },
];
