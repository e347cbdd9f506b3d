//! What is asked of executions and of background work costs what it shows, among many rooms, messages and jobs.

use bandstand_store::testing::{Recorder, TestDatabase, TestEngine};
use bandstand_store::{bulk_deletions, executions, rooms};

use crate::support::on_both_engines;

const BOT: &str = "00000000-0000-0000-0000-000000000002";

/// An id as the engine writes it.
fn id(engine: TestEngine, id: &str) -> String {
    match engine {
        TestEngine::Sqlite => format!("x'{}'", id.replace('-', "")),
        TestEngine::Postgres => format!("'{id}'::uuid"),
    }
}

/// A person and its agent in 10,000 rooms, every tenth deleted; in each the agent worked, in one it missed 10,000
/// messages. And 10,000 jobs that are over.
fn fill(database: &TestDatabase) {
    let (numbers, random) = match database.engine() {
        TestEngine::Sqlite => (
            "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) SELECT i FROM n)",
            "randomblob(16)",
        ),
        TestEngine::Postgres => ("(SELECT i FROM generate_series(1, 10000) AS n(i))", "gen_random_uuid()"),
    };
    let bot = id(database.engine(), BOT);
    database.execute(&format!(
        "INSERT INTO identities (id, kind, handle, name, name_folded, inserted_at, updated_at) \
             VALUES ({random}, 0, 'ana', 'Ana', 'ana', 0, 0), ({bot}, 1, 'ana/bot', 'Bot', 'bot', 0, 0); \
         INSERT INTO rooms (id, status, kind, creator_key, sequence, participants, inserted_at, updated_at, deleted_at) \
             SELECT {random}, 'active', 'direct', 1, 1, CASE WHEN i % 10 = 0 THEN 0 ELSE 2 END, 0, 0, \
             CASE WHEN i % 10 = 0 THEN 1 END FROM {numbers} AS numbers; \
         INSERT INTO participants \
                 (room_key, member_key, role, status, joined_sequence, joined_at, execution_id, worked, left_at) \
             SELECT i, 2, 'member', 'inactive', 0, 0, {random}, 1, CASE WHEN i % 10 = 0 THEN 1 END \
             FROM {numbers} AS numbers; \
         INSERT INTO participants (room_key, member_key, role, status, joined_sequence, joined_at) \
             SELECT i, 1, 'owner', 'active', 0, 0 FROM {numbers} AS numbers; \
         INSERT INTO messages (room_key, sequence, id, kind, sender_key, content, mentions, inserted_at, updated_at) \
             SELECT 1, i, {random}, 0, 1, 'text', '[]', i, i FROM {numbers} AS numbers; \
         INSERT INTO deliveries (room_key, sequence, member_key, recipient, state, stored_at) \
             SELECT 1, i, 2, 1, 0, i FROM {numbers} AS numbers; \
         INSERT INTO bulk_deletions (id, user_key, resource, force, status, inserted_at, completed_at) \
             SELECT {random}, 1, 0, 0, 2, i, i FROM {numbers} AS numbers;"
    ));
    database.execute(match database.engine() {
        TestEngine::Sqlite => "ANALYZE",
        TestEngine::Postgres => "VACUUM ANALYZE",
    });
}

async fn control_walks_indexes(database: TestDatabase) {
    let store = database.open(Recorder::new()).await;
    fill(&database);
    let (explain, forbidden) = match database.engine() {
        // SQLite says SCAN also of a walk over a partial index, which holds only what is looked for.
        TestEngine::Sqlite => ("EXPLAIN QUERY PLAN", ["SCAN", "TEMP B-TREE"]),
        TestEngine::Postgres => ("EXPLAIN (COSTS OFF)", ["Seq Scan on", "Sort"]),
    };
    let bot = id(database.engine(), BOT);
    let [missed, of_agent, exists, worked_in] = executions::statements();
    for (sql, values) in [
        (missed, vec!["2", "1", "100", "101"]),
        (of_agent, vec![&bot, "9000", "101"]),
        (exists, vec![&bot, &bot]),
        (worked_in, vec![&bot]),
        (rooms::NEXT_DELETED, vec![]),
        (bulk_deletions::NEXT_OPEN, vec![]),
        (bulk_deletions::OVER, vec!["5000", "4"]),
    ] {
        let text =
            (1..).zip(values).fold(sql.to_owned(), |text, (place, value)| text.replace(&format!("?{place}"), value));
        let plan = database.query(&format!("{explain} {text}"));
        let plan = plan.into_iter().map(|row| row.join(" ")).collect::<Vec<_>>().join("\n");
        for step in plan.lines() {
            // A look-up of one of two identities may well read the whole tiny table, and who is not found nothing.
            let harmless = step.contains("identities")
                || ["USING INDEX rooms_departing", "USING INDEX bulk_deletions_open"]
                    .iter()
                    .any(|walk| step.contains(walk));
            assert!(
                harmless || forbidden.iter().all(|word| !step.contains(word)),
                "{sql}\nis not an index walk:\n{plan}"
            );
        }
    }
    store.close().await;
}

on_both_engines!(control_walks_indexes);
