//! A private memory never leaks, and every list holds exactly what it should: random agents, organizations, memories and
//! queries, compared with a model that knows nothing of the server.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::memories::body;
use crate::memory_lists::form_urlencoded;
use crate::support::{Caller, TestApp, stories};

stories!(lists_hold_what_the_model_says);

/// Spellings of each word.
const WORDS: [[&str; 3]; 4] = [
    ["Café", "CAFE\u{301}", "cafe"],
    ["Straße", "STRASSE", "straẞe"],
    ["東京", "東京", "東京"],
    ["naïve", "NAÏVE", "naive"],
];
const SYSTEMS: [(&str, &str); 3] = [("sensory", "iconic"), ("working", "semantic"), ("long_term", "semantic")];
const SCOPES: [&str; 3] = ["agent", "subject", "organization"];
const STATUSES: [&str; 3] = ["active", "superseded", "archived"];

/// Users 0 to 2, and two organizations.
const USERS: usize = 3;
const ORGANIZATIONS: usize = 2;

#[derive(Clone, Debug)]
struct Planned {
    author: usize,
    scope: usize,
    subject: Option<usize>,
    system: usize,
    words: Vec<(usize, usize)>,
    status: usize,
}

#[derive(Clone, Debug)]
struct Asked {
    /// A user, or an agent after them.
    who: usize,
    /// `memory_scope=org`.
    org: bool,
    /// One of the scopes, `all` (3), or nothing said.
    scope: Option<usize>,
    subject: Option<usize>,
    source: Option<usize>,
    system: Option<usize>,
    /// One of the statuses, `all` (3), or nothing said.
    status: Option<usize>,
    words: Vec<(usize, usize)>,
    by_number: bool,
}

#[derive(Clone, Debug)]
struct Scenario {
    /// Each user's organization while the first half of the memories is stored, and afterwards.
    organizations: [Vec<Option<usize>>; 2],
    /// Each agent's owner.
    owners: Vec<usize>,
    memories: Vec<Planned>,
    queries: Vec<Asked>,
}

fn words() -> impl Strategy<Value = Vec<(usize, usize)>> {
    vec((0..WORDS.len(), 0..3_usize), 1..3)
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let organizations = || vec(prop::option::weighted(0.8, 0..ORGANIZATIONS), USERS);
    let people = (organizations(), organizations(), vec(0..USERS, 2..5));
    people.prop_flat_map(|(before, after, owners)| {
        let agents = owners.len();
        let somebody = USERS + agents;
        let planned = (0..agents, 0..3_usize, prop::option::of(0..=somebody), 0..3_usize, words(), 0..6_usize)
            .prop_map(|(author, scope, subject, system, words, status)| Planned {
                author,
                scope,
                subject,
                system,
                words,
                // Most of them hold.
                status: status.saturating_sub(3),
            });
        let narrowed = (
            prop::option::weighted(0.2, 0..somebody),
            prop::option::weighted(0.1, 0..agents),
            prop::option::weighted(0.2, 0..3_usize),
            prop::option::weighted(0.5, 0..4_usize),
            prop_oneof![2 => Just(Vec::new()), 1 => words()],
            any::<bool>(),
        );
        let asked = (0..somebody, any::<bool>(), prop::option::of(0..4_usize), narrowed).prop_map(
            |(who, org, scope, (subject, source, system, status, words, by_number))| Asked {
                who,
                org,
                scope,
                subject,
                source,
                system,
                status,
                words,
                by_number,
            },
        );
        (vec(planned, 0..24), vec(asked, 1..24)).prop_map(move |(memories, queries)| Scenario {
            organizations: [before.clone(), after.clone()],
            owners: owners.clone(),
            memories,
            queries,
        })
    })
}

/// A memory as the model knows it.
struct Known {
    id: String,
    author: usize,
    scope: usize,
    subject: Option<usize>,
    organization: Option<usize>,
    system: usize,
    words: Vec<usize>,
    status: usize,
}

/// Everybody: users first, then agents.
struct World {
    everybody: Vec<Caller>,
    owners: Vec<usize>,
    organizations: Vec<Option<usize>>,
    memories: Vec<Known>,
}

impl World {
    /// The organization that somebody belongs to, an agent through its owner.
    fn organization(&self, who: usize) -> Option<usize> {
        let user = if who < USERS { who } else { self.owners[who - USERS] };
        self.organizations[user]
    }

    /// An id: somebody's, or one that nobody has.
    fn id(&self, who: usize) -> &str {
        self.everybody.get(who).map_or("00000000-0000-4000-8000-00000000dead", |caller| &caller.id)
    }

    fn is_shared(&self, memory: &Known, who: usize) -> bool {
        memory.organization.is_some() && memory.organization == self.organization(who)
    }

    fn may_read(&self, memory: &Known, who: usize) -> bool {
        match (SCOPES[memory.scope], who < USERS) {
            ("agent", true) => self.owners[memory.author] == who,
            ("agent", false) => memory.author + USERS == who,
            ("subject", true) => memory.subject == Some(who),
            ("organization", true) => memory.subject == Some(who) || self.is_shared(memory, who),
            _ => memory.author + USERS == who || self.is_shared(memory, who),
        }
    }

    /// Whether a list holds it, as far as the scope parameters say. `None`: the list is refused.
    fn is_listed(&self, memory: &Known, asked: &Asked) -> Option<bool> {
        let scope = SCOPES[memory.scope];
        if asked.who < USERS {
            let about_me = memory.subject == Some(asked.who);
            return Some(match asked.scope {
                Some(0) => self.may_read(memory, asked.who) && about_me,
                Some(1) => scope == "organization" && self.is_shared(memory, asked.who),
                Some(2) => false,
                _ => self.may_read(memory, asked.who),
            });
        }
        let wanted = asked.scope.map(|scope| SCOPES.get(scope).copied().unwrap_or("all"));
        let is_own = memory.author + USERS == asked.who;
        let has_organization = self.organization(asked.who).is_some();
        if !has_organization && (asked.org || wanted == Some("organization")) {
            return None;
        }
        let shared = scope == "organization" && self.is_shared(memory, asked.who);
        Some(match (asked.org, wanted) {
            (false, None | Some("all")) | (true, Some("all")) if is_own => true,
            (true, None | Some("organization" | "all")) => shared,
            (true, Some("subject")) if asked.subject.is_some() => {
                scope == "subject" && self.is_shared(memory, asked.who)
            }
            (_, Some(wanted)) => is_own && scope == wanted,
            (false, None) => false,
        })
    }

    fn fits(&self, memory: &Known, asked: &Asked) -> bool {
        let status = asked.status.unwrap_or(0);
        let is_user = asked.who < USERS;
        (status == 3 || memory.status == status)
            && asked.system.is_none_or(|system| memory.system == system)
            && (is_user || asked.subject.is_none_or(|subject| memory.subject == Some(subject)))
            && (!is_user || asked.source.is_none_or(|source| memory.author == source))
            && asked.words.iter().all(|(word, _)| memory.words.contains(word))
    }

    fn query(&self, asked: &Asked) -> String {
        let mut parameters = vec![if asked.by_number { "page_size=50".to_owned() } else { "limit=100".to_owned() }];
        if asked.who < USERS {
            let views = ["about_me", "organization", "room", "all"];
            parameters.extend(asked.scope.map(|scope| format!("scope={}", views[scope])));
            parameters.extend(asked.source.map(|source| format!("source_agent_id={}", self.id(source + USERS))));
        } else {
            parameters.extend(asked.org.then(|| "memory_scope=org".to_owned()));
            let scope = |scope: usize| format!("scope={}", SCOPES.get(scope).unwrap_or(&"all"));
            parameters.extend(asked.scope.map(scope));
            parameters.extend(asked.subject.map(|subject| format!("subject_id={}", self.id(subject))));
        }
        parameters.extend(asked.system.map(|system| format!("system={}", SYSTEMS[system].0)));
        parameters.extend(asked.status.map(|status| format!("status={}", STATUSES.get(status).unwrap_or(&"all"))));
        if !asked.words.is_empty() {
            parameters.push(format!("content_query={}", form_urlencoded(&spelled(&asked.words, " "))));
        }
        format!("memories?{}", parameters.join("&"))
    }

    async fn remember(&mut self, planned: &Planned) {
        let author = &self.everybody[planned.author + USERS];
        let scope = SCOPES[planned.scope];
        let (system, kind) = SYSTEMS[planned.system];
        let mut fields = json!({
            "content": spelled(&planned.words, ", "), "scope": scope, "system": system, "type": kind,
        });
        if let Some(subject) = planned.subject {
            fields["subject_id"] = json!(self.id(subject));
        }
        let organization = self.organization(planned.author + USERS);
        let reply = author.post("memories", body(&fields)).await;
        match (scope, planned.subject, organization) {
            ("subject", None, _) => {
                reply.assert_invalid(&["/memory/subject_id"]);
                return;
            }
            ("organization", _, None) => {
                reply.assert_error(422, "org_scope_requires_organization");
                return;
            }
            _ => {}
        }
        let id = reply.assert_status(201).id();
        let change = ["", "supersede", "archive"][planned.status];
        if !change.is_empty() {
            author.post_nothing(&format!("memories/{id}/{change}")).await.assert_status(200);
        }
        self.memories.push(Known {
            id,
            author: planned.author,
            scope: planned.scope,
            subject: planned.subject,
            organization: organization.filter(|_| scope != "agent"),
            system: planned.system,
            words: planned.words.iter().map(|(word, _)| *word).collect(),
            status: planned.status,
        });
    }

    async fn ask(&self, asked: &Asked) {
        let query = self.query(asked);
        let caller = &self.everybody[asked.who];
        let reply = caller.get(&query).await;
        let refused = asked.who >= USERS
            && self.organization(asked.who).is_none()
            && (asked.org || asked.scope.is_some_and(|scope| SCOPES.get(scope) == Some(&"organization")));
        if refused {
            reply.assert_error(422, "org_scope_requires_organization");
            return;
        }
        let reply = reply.assert_status(200);
        for row in reply.rows() {
            self.assert_not_leaked(row, asked.who);
        }
        // The newest first; the model's own order is the other way round.
        let expected: Vec<&str> = self
            .memories
            .iter()
            .rev()
            .filter(|memory| self.is_listed(memory, asked) == Some(true) && self.fits(memory, asked))
            .map(|memory| memory.id.as_str())
            .collect();
        assert_eq!(reply.strings("id"), expected, "{} asks {query}", caller.name);
        if asked.by_number {
            assert_eq!(reply.metadata()["total_count"], expected.len(), "{query}");
        }
    }

    /// What must hold whatever the query was.
    fn assert_not_leaked(&self, row: &Value, who: usize) {
        let source = self.everybody.iter().position(|caller| row["source_agent_id"] == caller.id.as_str());
        let source = source.expect("somebody stored it");
        if row["scope"] == "agent" {
            let allowed = if who < USERS { self.owners[source - USERS] == who } else { source == who };
            assert!(allowed, "a private memory leaked to {}: {row}", self.everybody[who].name);
        }
    }
}

fn spelled(words: &[(usize, usize)], between: &str) -> String {
    words.iter().map(|(word, spelling)| WORDS[*word][*spelling]).collect::<Vec<_>>().join(between)
}

async fn join(app: &TestApp, names: &[String], user: &Caller, organization: Option<usize>) {
    if let Some(organization) = organization {
        let joined = app.state().services.add_organization_member(&names[organization], &user.handle).await;
        joined.expect("a user is put into an organization");
    }
}

async fn play(app: &TestApp, scenario: &Scenario) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let names: Vec<String> =
        (0..ORGANIZATIONS).map(|organization| format!("case {number} org {organization}")).collect();
    for name in &names {
        app.organization(name, &[]).await;
    }
    let mut everybody = Vec::new();
    for user in 0..USERS {
        everybody.push(app.user(&format!("case{number}-user{user}")).await);
    }
    for (agent, owner) in scenario.owners.iter().enumerate() {
        let owner = everybody[*owner].clone();
        everybody.push(owner.registers(&format!("agent {agent}")).await);
    }
    let [before, after] = &scenario.organizations;
    for (user, organization) in before.iter().enumerate() {
        join(app, &names, &everybody[user], *organization).await;
    }
    let owners = scenario.owners.clone();
    let mut world = World { everybody, owners, organizations: before.clone(), memories: Vec::new() };
    let (first, second) = scenario.memories.split_at(scenario.memories.len() / 2);
    for planned in first {
        world.remember(planned).await;
    }
    for (user, organization) in after.iter().enumerate().filter(|(user, organization)| before[*user] != **organization)
    {
        let handle = world.everybody[user].handle.clone();
        if let Some(left) = before[user] {
            let left = app.state().services.remove_organization_member(&names[left], &handle).await;
            left.expect("a user leaves an organization");
        }
        join(app, &names, &world.everybody[user], *organization).await;
    }
    world.organizations.clone_from(after);
    for planned in second {
        world.remember(planned).await;
    }
    for asked in &scenario.queries {
        world.ask(asked).await;
    }
    for (at, memory) in world.memories.iter().enumerate() {
        // Everybody in turn, so that a case does not take for ever.
        for who in [at % world.everybody.len(), (at * 7 + 3) % world.everybody.len()] {
            let expected = if world.may_read(memory, who) { 200 } else { 404 };
            let reply = world.everybody[who].get(&format!("memories/{}", memory.id)).await;
            assert_eq!(reply.status, expected, "{} reads {}", world.everybody[who].name, memory.id);
        }
    }
}

async fn lists_hold_what_the_model_says(app: TestApp) {
    let runtime = tokio::runtime::Handle::current();
    let played = tokio::task::spawn_blocking(move || {
        let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(16);
        let config = Config { cases, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
        let played = TestRunner::new(config).run(&scenario(), |scenario| {
            runtime.block_on(play(&app, &scenario));
            Ok(())
        });
        played.map_err(|why| why.to_string())
    });
    if let Err(why) = played.await.expect("the runner does not panic") {
        panic!("{why}");
    }
}
