//! Lists of memories cost what they show: each walks the index of its audience, among many memories, and none sorts more
//! than its page. A search for words goes through the index of words.

use bandstand_domain::memory::MemoryStatus;
use bandstand_store::memories::{self, Audience, MemoryQuery};
use bandstand_store::testing::{Recorder, TestDatabase, TestEngine};
use bandstand_store::{StoreError, search};
use bandstand_wire::ids::IdentityId;
use uuid::Uuid;

use crate::support::on_both_engines;

const ANA: u128 = 1;

/// A user (1) with two agents (2 and 3) in an organization, and 60,000 memories: of every scope and status, a twentieth
/// about the user, one in a thousand with a rare word.
fn fill(database: &TestDatabase) {
    let id = |number: u128| match database.engine() {
        TestEngine::Sqlite => format!("x'{number:032x}'"),
        TestEngine::Postgres => format!("'{}'", Uuid::from_u128(number)),
    };
    let (numbers, random) = match database.engine() {
        TestEngine::Sqlite => (
            "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) SELECT i FROM n)",
            "randomblob(16)",
        ),
        TestEngine::Postgres => ("(SELECT i FROM generate_series(1, 60000) AS n(i))", "gen_random_uuid()"),
    };
    let (one, two, three) = (id(ANA), id(2), id(3));
    database.execute(&format!(
        "INSERT INTO identities (id, kind, handle, name, name_folded, inserted_at, updated_at) \
             VALUES ({one}, 0, 'ana', 'Ana', 'ana', 0, 0); \
         INSERT INTO identities (id, kind, handle, name, name_folded, owner_key, inserted_at, updated_at) \
             VALUES ({two}, 1, 'ana/a', 'A', 'a', 1, 0, 0), ({three}, 1, 'ana/b', 'B', 'b', 1, 0, 0); \
         INSERT INTO organizations (id, name, name_folded, inserted_at) VALUES ({one}, 'Acme', 'acme', 0); \
         INSERT INTO organization_members (user_key, organization_key, inserted_at) VALUES (1, 1, 0); \
         INSERT INTO memories (id, source_key, owner_key, organization_key, subject_id, scope, status, system, type, \
             segment, content, thought, search_text, inserted_at, updated_at) \
         SELECT {random}, 2 + i % 2, 1, CASE WHEN i % 3 = 0 THEN NULL ELSE 1 END, \
             CASE WHEN i % 20 = 1 THEN {one} ELSE {random} END, \
             CASE i % 3 WHEN 0 THEN 'agent' WHEN 1 THEN 'subject' ELSE 'organization' END, \
             CASE WHEN i % 7 = 0 THEN 'archived' WHEN i % 11 = 0 THEN 'superseded' ELSE 'active' END, \
             'working', 'semantic', 'user', 'text', '', \
             CASE WHEN i % 1000 = 1 THEN 'rare common' ELSE 'common' END, i, i FROM {numbers} AS numbers;"
    ));
    database.execute(match database.engine() {
        TestEngine::Sqlite => "ANALYZE",
        TestEngine::Postgres => "VACUUM ANALYZE",
    });
}

fn audiences() -> Vec<Audience> {
    let (user_key, user) = (1, IdentityId(Uuid::from_u128(ANA)));
    vec![
        Audience::Own { agent_key: 2 },
        Audience::Organization { organization_key: 1 },
        Audience::OwnAndOrganization { agent_key: 2, organization_key: 1 },
        Audience::Subject { organization_key: 1, subject: Uuid::from_u128(ANA) },
        Audience::User { user_key, user, organization_key: None },
        Audience::User { user_key, user, organization_key: Some(1) },
        Audience::AboutUser { user_key, user },
    ]
}

/// The statement with its parameters written out.
fn written_out(database: &TestDatabase, sql: &str) -> String {
    let nobody = match database.engine() {
        TestEngine::Sqlite => "x'00000000000000000000000000000001'",
        TestEngine::Postgres => "CAST('00000000-0000-0000-0000-000000000001' AS UUID)",
    };
    let mut text = sql.to_owned();
    let given = (1..20).rev().filter(|number| sql.contains(&format!("?{number}"))).collect::<Vec<_>>();
    let paging = if sql.starts_with("SELECT count") { 0 } else { 4 };
    let last = given.first().copied().unwrap_or_default();
    for number in given {
        let value = match number {
            1..=6 => "NULL",
            _ if paging == 4 && number == last => "0",
            _ if paging == 4 && number == last - 1 => "21",
            _ if paging == 4 && number == last - 2 => nobody,
            _ if paging == 4 && number == last - 3 => "30000",
            _ if sql.contains(&format!("MATCH ?{number}")) => "'\"rare\"'",
            _ if sql.contains(&format!("CAST(?{number} AS TEXT)")) => "'rare'",
            _ if sql.contains(&format!("m.subject_id = ?{number}")) => nobody,
            _ => "1",
        };
        text = text.replace(&format!("?{number}"), value);
    }
    text
}

async fn lists_walk_indexes(database: TestDatabase) {
    let store = database.open(Recorder::new()).await;
    fill(&database);
    let shown: Result<Vec<(usize, i64)>, StoreError> = store
        .read("every_list", move |tx| {
            Box::pin(async move {
                let mut shown = Vec::new();
                for audience in audiences() {
                    for status in [Some(MemoryStatus::Active), None] {
                        for words in [None, Some(search::query_words("Rare"))] {
                            let query = MemoryQuery {
                                audience,
                                system: None,
                                kind: None,
                                segment: None,
                                scope: None,
                                status,
                                subject: None,
                                source: None,
                                words,
                                after: None,
                                offset: 0,
                                limit: 21,
                            };
                            let page = memories::page(tx, &query).await?;
                            let sorted = page.windows(2).all(|pair| pair[0].inserted_at > pair[1].inserted_at);
                            assert!(sorted, "{audience:?}");
                            shown.push((page.len(), memories::count(tx, &query).await?));
                        }
                    }
                }
                Ok(shown)
            })
        })
        .await;
    let shown = shown.unwrap();
    // Each audience in its order: active, active with the word, all, all with the word.
    assert_eq!(shown[0..4], [(21, 23_377), (0, 0), (21, 30_000), (0, 0)], "what one agent stored");
    assert_eq!(shown[16..20].iter().map(|(_, count)| *count).max(), Some(22_000), "what the user may read");
    let statements = memories::statements();
    assert_eq!(statements.len(), 7 * 2 * 2 * 2, "audiences, statuses, with and without words, pages and counts");
    // Counting may well read a whole audience; PostgreSQL decides how.
    for sql in statements.into_iter().filter(|sql| !sql.starts_with("SELECT count")) {
        let (explain, scan, sort) = match database.engine() {
            TestEngine::Sqlite => ("EXPLAIN QUERY PLAN", "SCAN m", "TEMP B-TREE"),
            TestEngine::Postgres => ("EXPLAIN (COSTS OFF)", "Seq Scan on memories", "Sort"),
        };
        let plan = database.query(&format!("{explain} {}", written_out(&database, sql)));
        let plan: Vec<String> = plan.into_iter().map(|row| row.join(" ")).collect();
        let searches = sql.contains("search");
        for step in plan.iter().filter(|step| !step.contains("Sort Key") && !step.contains("VIRTUAL TABLE INDEX")) {
            // What a search finds may be sorted: it is few.
            let walks = !step.contains(scan) && (searches || !step.contains(sort));
            assert!(walks, "{sql}\nis not an index walk:\n{}", plan.join("\n"));
        }
        if searches {
            assert!(plan.iter().any(|step| step.contains("memories_")), "{sql}\n{}", plan.join("\n"));
        }
    }
    store.close().await;
}

on_both_engines!(lists_walk_indexes);
