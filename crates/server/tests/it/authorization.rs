//! The table in `authorization.txt`, cell by cell: who may do what, and that nobody else learns of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};

use bandstand_server::http::api_document;
use reqwest::Method;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::support::{Caller, Room, TestApp, stories};

stories!(every_cell_of_the_table);

const TABLE: &str = include_str!("authorization.txt");

/// Everybody that the table names, by heading and column.
struct People {
    olga: Caller,
    mia: Caller,
    adam: Caller,
    via: Caller,
    newcomer: Caller,
    peer: Caller,
    members: [Caller; 3],
    /// Users that were made so far to ask Olga, or be asked by her.
    others: AtomicU32,
    columns: BTreeMap<&'static str, Vec<(&'static str, Caller)>>,
}

impl People {
    async fn gather(app: &TestApp) -> Self {
        let olga = app.owner();
        let (mia, adam, vera) = (app.user("mia").await, app.user("adam").await, app.user("vera").await);
        let (stranger, lapsed) = (app.user("stranger").await, app.user("lapsed").await);
        let newcomer = app.user("newcomer").await;
        let services = &app.state().services;
        services.add_organization("Theatre").await.unwrap();
        for who in [&olga, &mia, &adam, &newcomer] {
            services.add_organization_member("Theatre", &who.handle).await.unwrap();
        }
        let members = app.agents(["member", "admin", "owner"]).await;
        let (peer, outside, old) = (app.agent("peer").await, app.agent("outside").await, app.agent("old").await);
        let via = app.global_agent(&vera, "via").await;
        app.revoke_key(&lapsed).await;
        app.revoke_key(&old).await;
        let [member, admin, owner] = members.clone();
        let nobody = app.nobody();
        let as_agent = [
            ("nobody", nobody.clone()),
            ("user", olga.clone()),
            ("revoked", old),
            ("stranger", outside.clone()),
            ("member", member),
            ("admin", admin),
            ("owner", owner),
        ];
        let as_user = [
            ("nobody", nobody),
            ("agent", outside),
            ("revoked", lapsed),
            ("stranger", stranger),
            ("member", mia.clone()),
            ("admin", adam.clone()),
            ("owner", olga.clone()),
            ("via_agent", vera),
        ];
        let as_admin = [
            ("nobody", app.nobody()),
            ("agent", members[0].clone()),
            ("revoked", as_user[2].1.clone()),
            ("user", mia.clone()),
            ("administrator", olga.clone()),
        ];
        let as_anybody = [
            ("nobody", app.nobody()),
            ("agent", members[0].clone()),
            ("revoked", as_user[2].1.clone()),
            ("user", mia.clone()),
        ];
        let columns = [
            ("agent", as_agent.to_vec()),
            ("user", as_user.to_vec()),
            ("admin", as_admin.to_vec()),
            ("person", as_anybody.to_vec()),
            ("anybody", as_anybody.to_vec()),
        ]
        .into();
        Self { olga, mia, adam, via, newcomer, peer, members, others: AtomicU32::new(0), columns }
    }

    /// What the placeholders of a row stand for: made anew for each of its cells, and only what it names.
    async fn furnish(&self, row: &Row) -> BTreeMap<&'static str, String> {
        let [member, ..] = &self.members;
        let mut places: BTreeMap<&'static str, String> = [
            ("member", member.id.clone()),
            ("person", self.mia.id.clone()),
            ("peer", self.peer.id.clone()),
            ("newcomer", self.newcomer.id.clone()),
            ("agent", member.id.clone()),
        ]
        .into();
        if row.names("room") || row.names("execution") {
            let (room, message) = self.meet().await;
            if row.path.contains("/tasks/") {
                member.post(&room.path("/tasks"), json!({"subject": "a task"})).await.assert_status(201);
            }
            if row.names("file") {
                places.insert("file", self.uploads(&room).await);
            }
            if row.names("execution") {
                let list = self.olga.get(&format!("agents/{}/executions", member.id)).await.assert_status(200);
                let here = list.rows().iter().find(|one| one["chat_room_id"] == room.id.as_str());
                places.insert("execution", here.expect("its work here")["id"].as_str().unwrap().to_owned());
            }
            places.extend([("room", room.id), ("message", message)]);
        }
        if row.names("memory") {
            places.insert("memory", self.remembers().await);
        }
        if row.names("job") {
            let job = self.olga.post("chats/bulk-delete", json!({"ids": ["no-uuid"]})).await.assert_status(202);
            places.insert("job", job.id());
        }
        if row.names("request") {
            places.insert("request", self.asks(&self.another().await, &self.olga).await);
        }
        if row.names("sent") {
            places.insert("sent", self.asks(&self.olga, &self.another().await).await);
        }
        places
    }

    /// A room with all of them in it, and a message to its agents.
    async fn meet(&self) -> (Room, String) {
        let room = self.olga.creates_room().await;
        let [member, admin, owner] = &self.members;
        let roles = [
            (&self.mia, "member"),
            (&self.adam, "admin"),
            (member, "member"),
            (admin, "admin"),
            (owner, "owner"),
            (&self.via, "member"),
        ];
        for (who, role) in roles {
            self.olga.adds_as(&room, who, role).await.assert_status(201);
        }
        let message = self.olga.says(&room, "please look", &[member, admin, owner]).await;
        (room, message)
    }

    /// Somebody whom nobody knows yet.
    async fn another(&self) -> Caller {
        self.olga.app.user(&format!("another{}", self.others.fetch_add(1, Ordering::Relaxed))).await
    }

    async fn asks(&self, from: &Caller, to: &Caller) -> String {
        let body = json!({"contact_request": {"recipient_handle": to.handle}});
        from.post("contacts/requests", body).await.assert_status(201).id()
    }

    async fn uploads(&self, room: &Room) -> String {
        let hash = sha256(b"bytes");
        let headers = [("x-api-key", self.olga.key.as_str()), ("x-file-name", "a.txt"), ("x-file-sha256", &hash)];
        let path = self.olga.path(&room.path("/files"));
        self.olga.app.request(Method::PUT, &path, &headers, Some(b"bytes".to_vec())).await.assert_status(201).id()
    }

    /// A private memory of the agent that is the room's member.
    async fn remembers(&self) -> String {
        let memory = json!({"memory": {
            "content": "a secret", "system": "long_term", "type": "semantic", "segment": "user", "thought": "keep",
            "scope": "agent",
        }});
        self.members[0].post("memories", memory).await.assert_status(201).id()
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A line of the table.
struct Row {
    api: &'static str,
    method: Method,
    path: &'static str,
    body: Option<&'static str>,
    expected: Vec<(&'static str, u16)>,
}

fn rows() -> Vec<Row> {
    let (mut rows, mut api, mut columns) = (Vec::new(), "", Vec::new());
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(heading) = line.strip_prefix("= ") {
            let (name, names) = heading.split_once(": ").unwrap();
            (api, columns) = (name, names.split(' ').collect());
            continue;
        }
        let mut words = line.split_whitespace();
        let (method, path, body) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let statuses: Vec<u16> = words.map(|word| word.parse().unwrap()).collect();
        assert_eq!(statuses.len(), columns.len(), "{line}");
        rows.push(Row {
            api,
            method: method.parse().unwrap(),
            path,
            body: (body != "-").then_some(body),
            expected: columns.iter().copied().zip(statuses).collect(),
        });
    }
    rows
}

impl Row {
    /// Whether a placeholder is in it.
    fn names(&self, placeholder: &str) -> bool {
        let placeholder = format!("{{{placeholder}}}");
        self.path.contains(&placeholder) || self.body.is_some_and(|body| body.contains(&placeholder))
    }

    /// The path as it is asked for, with its placeholders.
    fn full_path(&self) -> String {
        let base = match self.api {
            "agent" => "/api/v1/agent/",
            "user" => "/api/v1/me/",
            "admin" => "/api/v1/admin/",
            _ => "",
        };
        format!("{base}{}", self.path)
    }

    /// How many segments of an operation's path it has to the letter; `None` when it is none of that operation.
    fn fits(&self, method: &str, path: &str) -> Option<usize> {
        let own = self.full_path();
        let own: Vec<&str> = own.split('?').next().unwrap_or_default().split('/').collect();
        let of: Vec<&str> = path.split('/').collect();
        let same = own.iter().zip(&of).filter(|(own, of)| own == of).count();
        let fits = own.iter().zip(&of).all(|(own, of)| own == of || of.starts_with('{'));
        (self.method == method && own.len() == of.len() && fits).then_some(same)
    }
}

/// An operation that is added without a row here is one that nobody has thought about whom to let in.
#[test]
fn every_operation_has_a_row_and_every_row_an_operation() {
    let document = api_document();
    let paths = document["paths"].as_object().unwrap();
    let operations: Vec<(String, &str)> = paths
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| (method.to_uppercase(), path.as_str()))
        })
        .collect();
    let mut without: BTreeSet<&(String, &str)> = operations.iter().collect();
    for row in rows() {
        // As in the router, the letter counts before a parameter.
        let of = operations
            .iter()
            .filter_map(|operation| Some((row.fits(&operation.0, operation.1)?, operation)))
            .max_by_key(|(same, _)| *same);
        let (_, operation) = of.unwrap_or_else(|| panic!("no operation is {} {}", row.method, row.full_path()));
        without.remove(operation);
    }
    assert!(without.is_empty(), "operations without a row in authorization.txt: {without:#?}");
}

async fn every_cell_of_the_table(app: TestApp) {
    let people = People::gather(&app).await;
    let mut wrong = Vec::new();
    for row in rows() {
        for (column, expected) in &row.expected {
            let (_, caller) = people.columns[row.api].iter().find(|(name, _)| name == column).unwrap();
            let places = people.furnish(&row).await;
            let fill = |text: &str| {
                places.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
            };
            let url = format!("http://{}{}", app.address, fill(&row.full_path()));
            let mut request = app.http.request(row.method.clone(), url);
            if !caller.key.is_empty() {
                request = request.header("x-api-key", &caller.key);
            }
            request = match row.body.map(|body| (body, body.strip_prefix('@'))) {
                None => request,
                Some((_, Some(file))) => {
                    request.header("x-file-name", "b.txt").header("x-file-sha256", sha256(file.as_bytes())).body(file)
                }
                Some((body, None)) => request.header("content-type", "application/json").body(fill(body)),
            };
            let reply = request.send().await.unwrap();
            let found = reply.status().as_u16();
            if found != *expected {
                let said: String = reply.text().await.unwrap().chars().take(160).collect();
                wrong.push(format!(
                    "{} {} as {} {column}: {expected} expected, {found} {said}",
                    row.method, row.path, row.api
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
