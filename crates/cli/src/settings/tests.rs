use std::collections::HashMap;

use super::*;

fn flags(given: &[(&str, &str)]) -> Flags {
    let given = given.iter().map(|(name, text)| {
        let setting = TABLE.iter().find(|setting| setting.name == *name).expect("a setting");
        (setting, (*text).to_owned())
    });
    Flags { config: None, given: given.collect() }
}

fn loaded(flags: &Flags, environment: &[(&str, &str)]) -> Result<Loaded, SettingErrors> {
    let environment: HashMap<_, _> = environment.iter().copied().collect();
    load(flags, &|name| environment.get(name).map(OsString::from))
}

fn folder_with(file: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(FILE_NAME), file).unwrap();
    folder
}

#[test]
fn flag_beats_environment_beats_file_beats_default() {
    let folder = folder_with("listen = \"127.0.0.1:1\"\nlog_level = \"warn\"\nreaders = 3\n");
    let data = folder.path().to_str().unwrap();
    let flags = flags(&[("data", data), ("listen", "127.0.0.1:3")]);
    let environment = [("BANDSTAND_LISTEN", "127.0.0.1:2"), ("BANDSTAND_LOG_LEVEL", "debug")];
    let loaded = loaded(&flags, &environment).unwrap();
    assert_eq!(loaded.settings.listen.port(), 3);
    assert_eq!(loaded.settings.log_level, "debug");
    assert_eq!(loaded.settings.readers, 3);
    assert_eq!(loaded.settings.name_in_force("name_max"), Settings::default().name_in_force("name_max"));
}

impl Settings {
    fn name_in_force(&self, name: &str) -> Option<String> {
        TABLE.iter().find(|setting| setting.name == name).and_then(|setting| setting.text(self))
    }
}

/// Another valid value of each setting, so that a test can tell where a value came from.
fn another(setting: &Setting, number: u8) -> String {
    match setting.form() {
        "ADDR:PORT" => format!("127.0.0.1:{number}"),
        "URL" => format!("postgres://h/{number}"),
        "PATH" => format!("/nowhere/{number}"),
        "true|false" => (number % 2 == 1).to_string(),
        "DURATION" => format!("{number}m"),
        "SIZE" => format!("{number}MiB"),
        "NUMBER" => (u32::from(number) + 70).to_string(),
        "text|json" => if number % 2 == 1 { "json" } else { "text" }.to_owned(),
        "TEXT" if matches!(setting.name, "public_url" | "oidc_issuer") => format!("https://h{number}"),
        "TEXT" if setting.name == "log_level" => ["off", "trace", "debug", "warn"][usize::from(number)].to_owned(),
        "TEXT" => format!("text{number}"),
        other => panic!("no example of {other}"),
    }
}

#[test]
fn every_setting_can_be_given_in_each_way_in_this_order() {
    for setting in TABLE {
        let (in_file, in_environment, in_flag) = (another(setting, 1), another(setting, 2), another(setting, 3));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.toml");
        std::fs::write(&path, format!("{} = {}", setting.name, toml::Value::String(in_file.clone()))).unwrap();
        let read = |flag: &[(&str, &str)], environment: &[(&str, &str)]| {
            let flags = Flags { config: Some(path.clone()), ..flags(flag) };
            let loaded = loaded(&flags, environment).unwrap_or_else(|errors| panic!("{}: {errors}", setting.name));
            setting.text(&loaded.settings).unwrap()
        };
        let variable = setting.environment();
        assert_eq!(read(&[], &[]), in_file, "{}", setting.name);
        assert_eq!(read(&[], &[(&variable, &in_environment)]), in_environment, "{}", setting.name);
        assert_eq!(read(&[(setting.name, &in_flag)], &[(&variable, &in_environment)]), in_flag, "{}", setting.name);
    }
}

/// Fails to compile when a limit is added, as a reminder to put it into the table.
#[test]
fn every_limit_is_a_setting() {
    let Limits {
        body_bytes: _,
        request_timeout: _,
        idempotency_retention: _,
        bulk_deletion_retention: _,
        lease_gone: _,
        lease_silent: _,
        dead_letter_attempts: _,
        dead_letter_age: _,
        agent_reads_per_minute: _,
        agent_writes_per_minute: _,
        user_reads_per_minute: _,
        user_writes_per_minute: _,
        auth_failures_per_minute: _,
        client_address_header: _,
        quota_agents: _,
        quota_rooms: _,
        quota_messages_per_day: _,
        description_min: _,
        description_max: _,
        name_max: _,
        room_participants: _,
        tasks: _,
        memories: _,
        file_bytes: _,
        upload_timeout: _,
        file_retention: _,
        file_types: _,
        frame_bytes: _,
        socket_frames_per_second: _,
        socket_idle: _,
        socket_topics: _,
        socket_queue: _,
        socket_queue_bytes: _,
        upgrades_per_second: _,
        activity_ttl: _,
        delivered_every: _,
        // In a group of its own.
        sign_in: _,
    } = Limits::default();
    // Where files are kept is no limit.
    let groups = ["Requests", "Rates", "Quotas", "Agents and rooms", "Files", "Sockets"];
    let is_limit = |setting: &&Setting| groups.contains(&setting.group) && !setting.name.starts_with("files_");
    assert_eq!(TABLE.iter().filter(is_limit).count(), 32);
}

#[test]
fn what_config_print_prints_reads_back_as_the_defaults() {
    let folder = folder_with(&print_defaults());
    let flags = Flags { config: Some(folder.path().join(FILE_NAME)), given: Vec::new() };
    let loaded = loaded(&flags, &[]).unwrap();
    assert_eq!(loaded.settings, Settings::default());
    for setting in TABLE.iter().filter(|setting| setting.text(&Settings::default()).is_some()) {
        assert!(matches!(loaded.origin(setting), Origin::File { .. }), "{} is not printed", setting.name);
    }
}

#[test]
fn the_printed_file_shows_values_that_are_not_set_as_comments() {
    let printed = print_defaults();
    for setting in TABLE.iter().filter(|setting| setting.text(&Settings::default()).is_none()) {
        assert!(printed.contains(&format!("\n# {} = ", setting.name)), "{}", setting.name);
    }
}

#[test]
fn a_bad_file_names_key_file_and_line_and_tells_all_errors_at_once() {
    let folder = folder_with("# comment\nlisten = \"here\"\nlisen = 1\n\n[limits]\nreaders = 2\n");
    let data = folder.path().to_str().unwrap();
    let errors = loaded(&flags(&[("data", data)]), &[("BANDSTAND_READERS", "many")]).unwrap_err().to_string();
    let file = format!("{data}/{FILE_NAME}");
    assert!(errors.contains("BANDSTAND_READERS: \"many\" is no whole number"), "{errors}");
    assert!(errors.contains(&format!("listen in {file}, line 2: \"here\" is no address")), "{errors}");
    assert!(errors.contains(&format!("lisen in {file}, line 3: there is no such setting")), "{errors}");
    assert!(errors.contains(&format!("limits in {file}, line 5: ")), "{errors}");
}

#[test]
fn a_file_that_is_no_toml_names_the_line() {
    let folder = folder_with("listen = \"127.0.0.1:1\"\nreaders = \n");
    let errors = loaded(&flags(&[("data", folder.path().to_str().unwrap())]), &[]).unwrap_err().to_string();
    assert!(errors.contains(", line 2: "), "{errors}");
}

#[test]
fn a_named_file_must_exist_and_the_usual_one_need_not() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    assert_eq!(loaded(&flags(&[("data", data)]), &[]).unwrap().file, None);
    let missing = folder.path().join("no.toml");
    let errors = loaded(&Flags { config: Some(missing), given: Vec::new() }, &[]).unwrap_err().to_string();
    assert!(errors.contains("cannot read this settings file"), "{errors}");
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let folder = tempfile::tempdir().unwrap();
    let flags = flags(&[("data", folder.path().to_str().unwrap())]);
    assert_eq!(loaded(&flags, &[("BANDSTAND_DATABASE", "")]).unwrap().settings.database, None);
}

#[test]
fn values_below_the_least_are_refused() {
    let error = loaded(&flags(&[("data", "/nowhere"), ("socket_idle", "10ms")]), &[]).unwrap_err().to_string();
    assert_eq!(error, "--socket-idle: 10ms is too small; at least 1s");
}

#[test]
fn beyond_loopback_needs_tls_or_a_proxy() {
    let open = Settings { listen: "0.0.0.0:4000".parse().unwrap(), ..Settings::default() };
    let refused = open.check().unwrap_err();
    assert!(refused.contains("--tls-cert") && refused.contains("--tls-key") && refused.contains("--behind-proxy"));
    assert_eq!(Settings { behind_proxy: true, ..open.clone() }.check(), Ok(()));
    let files = (Some(PathBuf::from("c")), Some(PathBuf::from("k")));
    assert_eq!(Settings { tls_cert: files.0.clone(), tls_key: files.1, ..open.clone() }.check(), Ok(()));
    assert!(Settings { tls_cert: files.0, ..open }.check().unwrap_err().contains("--tls-key"));
    assert_eq!(Settings { listen: "[::1]:4000".parse().unwrap(), ..Settings::default() }.check(), Ok(()));
}

#[test]
fn a_database_address_prints_without_its_password() {
    let shown = |url: &str| {
        let loaded = loaded(&flags(&[("data", "/nowhere"), ("database", url)]), &[]).unwrap();
        assert_eq!(loaded.settings.database.as_ref().unwrap().reveal(), url);
        format!("{:?} {}", loaded.settings, print_effective(&loaded, &|_| None))
    };
    for url in
        ["postgres://u:se@cret@h/d", "postgres://h/d?password=se@cret&x=1", "postgres://u:se@cret@h/d?sslmode=disable"]
    {
        let shown = shown(url);
        assert!(!shown.contains("cret"), "{shown}");
        assert!(shown.contains("h/d"), "{shown}");
    }
}

#[test]
fn durations_and_sizes_read_back_as_written() {
    use super::value::{Bytes, Value};
    for text in ["1ms", "250ms", "30s", "1m", "2h", "1500ms"] {
        assert_eq!(Duration::read(text).unwrap().write().as_deref(), Some(text));
    }
    for text in ["1", "1000", "64KiB", "4MiB", "3GiB"] {
        assert_eq!(Bytes::read(text).unwrap().write().as_deref(), Some(text));
    }
    for bad in ["", "s", "1 parsec", "-1s", "99999999999999999999h"] {
        assert!(Duration::read(bad).is_err(), "{bad}");
    }
}

#[test]
fn every_limit_is_in_the_documentation_with_its_default() {
    const ENDS: [&str; 13] = [
        "_bytes",
        "_max",
        "_min",
        "_timeout",
        "_idle",
        "_topics",
        "_queue",
        "_second",
        "_minute",
        "_day",
        "_participants",
        "_retention",
        "_types",
    ];
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/limits.md");
    let page = std::fs::read_to_string(path).unwrap();
    let rows: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
            Some((cells.next()?.trim_end_matches('`'), cells.next()?))
        })
        .collect();
    let defaults = Settings::default();
    for setting in TABLE {
        let name = setting.name;
        if name.starts_with("quota_") || ENDS.iter().any(|end| name.ends_with(end)) {
            let default = setting.text(&defaults).unwrap_or_else(|| "none".to_owned());
            assert!(rows.contains(&(name, default.as_str())), "{name}, {default} is not in docs/limits.md");
        }
    }
    for (name, _) in rows {
        assert!(TABLE.iter().any(|setting| setting.name == name), "there is no setting {name}");
    }
}

#[test]
fn behind_a_proxy_addresses_count_only_when_it_tells_them() {
    let mut settings = Settings::default();
    assert_eq!(settings.limits_in_force(), settings.limits);
    settings.behind_proxy = true;
    assert_eq!(settings.limits_in_force().auth_failures_per_minute, 0);
    settings.limits.client_address_header = Some("x-real-ip".to_owned());
    assert_eq!(settings.limits_in_force(), settings.limits);
    let error = loaded(&flags(&[("data", "/nowhere"), ("client_address_header", "x: y")]), &[]).unwrap_err();
    assert!(error.to_string().contains("is no name of a header"), "{error}");
}

#[test]
fn the_address_that_is_shown_can_be_connected_to() {
    let plain = Settings::default();
    let tls = Settings { tls_cert: Some("cert.pem".into()), ..Settings::default() };
    let public = Settings { public_url: Some("https://band.example.org".into()), ..Settings::default() };
    for (settings, bound, shown) in [
        (&plain, "127.0.0.1:4000", "http://127.0.0.1:4000"),
        (&plain, "0.0.0.0:4000", "http://127.0.0.1:4000"),
        (&plain, "[::]:4000", "http://[::1]:4000"),
        (&plain, "192.0.2.7:4000", "http://192.0.2.7:4000"),
        (&tls, "0.0.0.0:443", "https://127.0.0.1:443"),
        (&public, "0.0.0.0:4000", "https://band.example.org"),
    ] {
        assert_eq!(settings.url(bound.parse().unwrap()), shown);
    }
}
