//! The table in `authorization.txt`, cell by cell: who may do what, and that nobody else learns of it.

use std::collections::BTreeMap;

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
        let columns = [("agent", as_agent.to_vec()), ("user", as_user.to_vec()), ("admin", as_admin.to_vec())].into();
        Self { olga, mia, adam, via, newcomer, peer, members, columns }
    }

    /// A room with all of them in it, and what the table's placeholders stand for.
    async fn furnish(&self) -> BTreeMap<&'static str, String> {
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
        member.post(&room.path("/tasks"), json!({"subject": "a task"})).await.assert_status(201);
        [
            ("room", room.id.clone()),
            ("message", message),
            ("file", self.uploads(&room).await),
            ("memory", self.remembers().await),
            ("member", member.id.clone()),
            ("person", self.mia.id.clone()),
            ("peer", self.peer.id.clone()),
            ("newcomer", self.newcomer.id.clone()),
            ("agent", member.id.clone()),
        ]
        .into()
    }

    async fn uploads(&self, room: &Room) -> String {
        let hash: String = Sha256::digest(b"bytes").iter().map(|byte| format!("{byte:02x}")).collect();
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

async fn every_cell_of_the_table(app: TestApp) {
    let people = People::gather(&app).await;
    let mut wrong = Vec::new();
    for row in rows() {
        for (column, expected) in &row.expected {
            let (_, caller) = people.columns[row.api].iter().find(|(name, _)| name == column).unwrap();
            let places = people.furnish().await;
            let fill = |text: &str| {
                places.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
            };
            let base = match row.api {
                "agent" => "/api/v1/agent/",
                "admin" => "/api/v1/admin/",
                _ => "/api/v1/me/",
            };
            let path = format!("{base}{}", fill(row.path));
            let url = format!("http://{}{path}", app.address);
            let mut request = app.http.request(row.method.clone(), url);
            if !caller.key.is_empty() {
                request = request.header("x-api-key", &caller.key);
            }
            if let Some(body) = row.body {
                request = request.header("content-type", "application/json").body(fill(body));
            }
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
