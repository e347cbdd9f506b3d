//! What the ledger looks up costs what it shows, in a room with many messages, attempts and stays.

use bandstand_store::ledger;
use bandstand_store::testing::{Recorder, TestDatabase, TestEngine};

use crate::support::on_both_engines;

/// A room with a person and an agent that left and came back a thousand times, and 10,000 messages for it, each tried
/// twice; and 10,000 agents that were seen.
fn fill(database: &TestDatabase) {
    let (numbers, random) = match database.engine() {
        TestEngine::Sqlite => (
            "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) SELECT i FROM n)",
            "randomblob(16)",
        ),
        TestEngine::Postgres => ("(SELECT i FROM generate_series(1, 10000) AS n(i))", "gen_random_uuid()"),
    };
    database.execute(&format!(
        "INSERT INTO identities (id, kind, handle, name, name_folded, inserted_at, updated_at) \
             SELECT {random}, 1, 'bot' || i, 'Bot', 'bot' || i, 0, 0 FROM {numbers} AS numbers; \
         INSERT INTO rooms (id, status, kind, creator_key, sequence, participants, inserted_at, updated_at) \
             VALUES ({random}, 'active', 'direct', 1, 1, 2, 0, 0); \
         INSERT INTO participants (room_key, member_key, role, status, joined_sequence, joined_at) \
             SELECT 1, i, 'member', 'active', 0, 0 FROM {numbers} AS numbers; \
         INSERT INTO stays (room_key, member_key, joined_sequence, left_sequence, left_at) \
             SELECT 1, 2, i, i, i FROM {numbers} AS numbers; \
         INSERT INTO messages (room_key, sequence, id, kind, sender_key, content, mentions, inserted_at, updated_at) \
             SELECT 1, i, {random}, 0, 1, 'text', '[]', i, i FROM {numbers} AS numbers; \
         INSERT INTO deliveries (room_key, sequence, member_key, recipient, state, stored_at, attempts) \
             SELECT 1, i, 2, 1, 2, i, 1 FROM {numbers} AS numbers; \
         INSERT INTO attempts (room_key, sequence, member_key, number, state, started_at) \
             SELECT 1, i, 2, 1, 0, i FROM {numbers} AS numbers; \
         INSERT INTO runs (started_at, alive_at) SELECT i, i FROM {numbers} AS numbers; \
         INSERT INTO sightings (agent_key, run_key, connected_at) SELECT i, 1, 0 FROM {numbers} AS numbers;"
    ));
    database.execute(match database.engine() {
        TestEngine::Sqlite => "ANALYZE",
        TestEngine::Postgres => "VACUUM ANALYZE",
    });
}

async fn the_ledger_walks_indexes(database: TestDatabase) {
    let store = database.open(Recorder::new()).await;
    fill(&database);
    let (explain, forbidden) = match database.engine() {
        TestEngine::Sqlite => ("EXPLAIN QUERY PLAN", ["SCAN", "TEMP B-TREE"]),
        TestEngine::Postgres => ("EXPLAIN (COSTS OFF)", ["Seq Scan on", "Sort"]),
    };
    let id = match database.engine() {
        TestEngine::Sqlite => "x'00000000000000000000000000000002'",
        TestEngine::Postgres => "'00000000-0000-0000-0000-000000000002'::uuid",
    };
    let [of_message, by_id, by_handle, attempts, busy_with, stay] = ledger::statements();
    for (sql, values) in [
        (of_message, vec!["1", "5000", "0", "101"]),
        (by_id, vec!["1", "5000", id]),
        (by_handle, vec!["1", "5000", "'bot2'"]),
        (attempts, vec!["1", "5000", "2", "20"]),
        (busy_with, vec!["2", "1"]),
        (stay, vec!["1", "2", "5000"]),
    ] {
        let text =
            (1..).zip(values).fold(sql.to_owned(), |text, (place, value)| text.replace(&format!("?{place}"), value));
        let plan = database.query(&format!("{explain} {text}"));
        let plan = plan.into_iter().map(|row| row.join(" ")).collect::<Vec<_>>().join("\n");
        for step in plan.lines() {
            // Of migrations there are few.
            let harmless = step.contains("schema_migrations");
            assert!(
                harmless || forbidden.iter().all(|word| !step.contains(word)),
                "{sql}\nis not an index walk:\n{plan}"
            );
        }
    }
    store.close().await;
}

on_both_engines!(the_ledger_walks_indexes);
