//! Looking after attempts that run, after messages that wait, and after dead letters costs what is due, among a long
//! history.

use bandstand_store::testing::{Recorder, TestDatabase, TestEngine};
use bandstand_store::{dead_letters, leases, participants};

use crate::support::on_both_engines;

/// A room with 20,000 messages to an agent, nearly all processed; ten wait, ten are worked on, ten are dead letters.
fn fill(database: &TestDatabase) {
    let (numbers, random) = match database.engine() {
        TestEngine::Sqlite => (
            "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i FROM n)",
            "randomblob(16)",
        ),
        TestEngine::Postgres => ("(SELECT i FROM generate_series(1, 20000) AS n(i))", "gen_random_uuid()"),
    };
    database.execute(&format!(
        "INSERT INTO identities (id, kind, handle, name, name_folded, inserted_at, updated_at) \
             VALUES ({random}, 0, 'ana', 'Ana', 'ana', 0, 0), ({random}, 1, 'ana/bot', 'Bot', 'bot', 0, 0); \
         INSERT INTO rooms (id, status, kind, creator_key, sequence, participants, inserted_at, updated_at) \
             VALUES ({random}, 'active', 'direct', 1, 20000, 2, 0, 0); \
         INSERT INTO participants (room_key, member_key, role, status, joined_sequence, joined_at) \
             VALUES (1, 1, 'owner', 'active', 0, 0), (1, 2, 'member', 'inactive', 0, 0); \
         INSERT INTO messages (room_key, sequence, id, kind, sender_key, content, mentions, inserted_at, updated_at) \
             SELECT 1, i, {random}, 0, 1, 'text', '[]', i, i FROM {numbers} AS numbers; \
         INSERT INTO deliveries (room_key, sequence, member_key, recipient, state, stored_at, waits_since, attempts) \
             SELECT 1, i, 2, 1, CASE WHEN i > 19990 THEN 0 WHEN i > 19980 THEN 2 WHEN i > 19970 THEN 6 ELSE 4 END, \
             i, i, 1 FROM {numbers} AS numbers; \
         INSERT INTO attempts (room_key, sequence, member_key, number, state, started_at, seen_at) \
             SELECT room_key, sequence, member_key, 1, CASE WHEN state = 2 THEN 0 ELSE 1 END, 0, 0 FROM deliveries;"
    ));
    database.execute(match database.engine() {
        TestEngine::Sqlite => "ANALYZE",
        TestEngine::Postgres => "VACUUM ANALYZE",
    });
}

async fn what_is_due_is_an_index_walk(database: TestDatabase) {
    let store = database.open(Recorder::new()).await;
    fill(&database);
    let explain = match database.engine() {
        TestEngine::Sqlite => "EXPLAIN QUERY PLAN",
        TestEngine::Postgres => "EXPLAIN (COSTS OFF)",
    };
    let plan = |sql: &str, values: &[&str]| {
        let text = (1..)
            .zip(values)
            .fold(sql.to_owned(), |text, (place, value): (i32, _)| text.replace(&format!("?{place}"), value));
        let rows = database.query(&format!("{explain} {text}"));
        rows.into_iter().map(|row| row.join(" ")).collect::<Vec<_>>()
    };
    // Each table with a history is entered by a key or by an index that holds only what is looked for.
    let check = |sql: &str, values: &[&str], index: Option<&str>| {
        let steps = plan(sql, values);
        let text = steps.join("\n");
        for step in &steps {
            let walks_all = ["Seq Scan on deliveries", "Seq Scan on attempts", "Seq Scan on messages"];
            assert!(walks_all.iter().all(|word| !step.contains(word)), "{sql}\n{text}");
            let scans = step.contains("SCAN") && index.is_none_or(|index| !step.contains(index));
            assert!(
                // Small tables: participants, rooms and identities.
                !scans || ["SCAN p", "SCAN r", "SCAN i", "SCAN s"].iter().any(|small| step.contains(small)),
                "{sql}\n{text}"
            );
        }
        if let Some(index) = index {
            assert!(text.contains(index), "{index} is not used: {sql}\n{text}");
        }
    };
    for sql in leases::statements() {
        check(sql, &["100", "200"], Some("attempts_running"));
    }
    let [overdue, is_overdue, of_member] = dead_letters::statements();
    check(overdue, &["19999", "100"], Some("deliveries_waiting"));
    check(is_overdue, &["19999", "1", "19995", "2"], None);
    check(of_member, &["2", "1", "0", "21"], Some("deliveries_state"));
    assert_eq!(participants::statements().len(), 4);
    store.close().await;
}

on_both_engines!(what_is_due_is_an_index_walk);
