//! What is counted for a quota costs no more than the quota, and a repeated request is found without a search.

use bandstand_store::testing::{Recorder, TestDatabase, TestEngine};
use bandstand_store::{idempotency, quotas};

use crate::support::on_both_engines;

/// A user with 10,000 agents and rooms among as many others, and as many remembered requests.
fn fill(database: &TestDatabase) {
    let (numbers, random, bytes) = match database.engine() {
        TestEngine::Sqlite => (
            "(WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) SELECT i FROM n)",
            "randomblob(16)",
            "randomblob(32)",
        ),
        TestEngine::Postgres => {
            ("(SELECT i FROM generate_series(2, 10000) AS n(i))", "gen_random_uuid()", "uuid_send(gen_random_uuid())")
        }
    };
    database.execute(&format!(
        "INSERT INTO identities (id, kind, handle, name, name_folded, inserted_at, updated_at) \
             VALUES ({random}, 0, 'ana', 'Ana', 'ana', 0, 0); \
         INSERT INTO identities (id, kind, handle, name, name_folded, owner_key, inserted_at, updated_at) \
             SELECT {random}, 1, 'a' || i, 'A', 'a' || i, 1 + i % 2, 0, 0 FROM {numbers} AS numbers ORDER BY i; \
         INSERT INTO rooms (id, status, kind, creator_key, sequence, participants, inserted_at, updated_at) \
             SELECT {random}, 'active', 'direct', 1 + i % 2, 0, 0, 0, 0 FROM {numbers} AS numbers; \
         INSERT INTO idempotent_requests (caller_id, scope, fingerprint, status, body, inserted_at) \
             SELECT {random}, {bytes}, {bytes}, 201, {bytes}, i FROM {numbers} AS numbers;"
    ));
    database.execute(match database.engine() {
        TestEngine::Sqlite => "ANALYZE",
        TestEngine::Postgres => "VACUUM ANALYZE",
    });
}

async fn quotas_and_repeated_requests_walk_indexes(database: TestDatabase) {
    let store = database.open(Recorder::new()).await;
    fill(&database);
    let (explain, forbidden) = match database.engine() {
        TestEngine::Sqlite => ("EXPLAIN QUERY PLAN", ["SCAN idem", "SCAN rooms", "SCAN ident", "TEMP B-TREE"]),
        TestEngine::Postgres => {
            ("EXPLAIN (COSTS OFF)", ["Seq Scan on idem", "Seq Scan on rooms", "Seq Scan on ident", "Sort"])
        }
    };
    let (id, bytes) = match database.engine() {
        TestEngine::Sqlite => ("x'00000000000000000000000000000001'", "x'01'"),
        TestEngine::Postgres => ("'00000000-0000-0000-0000-000000000001'::uuid", "'\\x01'::bytea"),
    };
    let [agents, rooms] = quotas::statements();
    let statements = [
        (agents, ["1", "20", "0"]),
        (rooms, ["1", "20", "0"]),
        (idempotency::FIND, [id, bytes, "0"]),
        (idempotency::PRUNE, ["5", "500", "0"]),
    ];
    for (sql, values) in statements {
        let mut text = sql.to_owned();
        for (place, value) in values.iter().enumerate() {
            text = text.replace(&format!("?{}", place + 1), value);
        }
        let plan = database.query(&format!("{explain} {text}"));
        let plan = plan.into_iter().map(|row| row.join(" ")).collect::<Vec<_>>().join("\n");
        assert!(forbidden.iter().all(|word| !plan.contains(word)), "{sql}\nis not an index walk:\n{plan}");
    }
    store.close().await;
}

on_both_engines!(quotas_and_repeated_requests_walk_indexes);
