//! Pages cost what they show: each statement that reads a room's history walks indexes, in a room with many messages,
//! without a scan and without a sort.

use bandstand_domain::delivery::StatusFilter;
use bandstand_domain::message::MessageKind;
use bandstand_store::testing::{Recorder, TestDatabase, TestEngine};
use bandstand_store::walk::{self, Window};
use bandstand_store::{StoreError, messages};
use bandstand_wire::ids::RoomId;
use bandstand_wire::time::Timestamp;
use uuid::Uuid;

use crate::support::on_both_engines;

/// One room with 40,000 messages from a person to an agent (and some of the agent's own events), nearly all processed.
fn fill(database: &TestDatabase) {
    let (numbers, id) = match database.engine() {
        TestEngine::Sqlite => (
            "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000) SELECT i FROM n)",
            ["x'00000000000000000000000000000001'", "x'00000000000000000000000000000002'"],
        ),
        TestEngine::Postgres => (
            "(SELECT i FROM generate_series(1, 40000) AS n(i))",
            ["'00000000-0000-0000-0000-000000000001'", "'00000000-0000-0000-0000-000000000002'"],
        ),
    };
    let message_id = match database.engine() {
        TestEngine::Sqlite => "randomblob(16)",
        TestEngine::Postgres => "gen_random_uuid()",
    };
    let [one, two] = id;
    database.execute(&format!(
        "INSERT INTO identities (id, kind, handle, name, name_folded, inserted_at, updated_at) \
             VALUES ({one}, 0, 'ana', 'Ana', 'ana', 0, 0), ({two}, 1, 'ana/bot', 'Bot', 'bot', 0, 0); \
         INSERT INTO rooms (id, status, kind, creator_key, sequence, participants, inserted_at, updated_at) \
             VALUES ({one}, 'active', 'direct', 1, 40000, 2, 0, 0); \
         INSERT INTO participants (room_key, member_key, role, status, joined_sequence, joined_at) \
             VALUES (1, 1, 'owner', 'active', 0, 0), (1, 2, 'member', 'inactive', 0, 0); \
         INSERT INTO messages (room_key, sequence, id, kind, sender_key, content, mentions, inserted_at, updated_at) \
             SELECT 1, i, {message_id}, CASE WHEN i % 5 = 0 THEN 1 ELSE 0 END, CASE WHEN i % 5 = 0 THEN 2 ELSE 1 END, \
             'text', '[]', i, i FROM {numbers} AS numbers; \
         INSERT INTO deliveries (room_key, sequence, member_key, recipient, state, stored_at, attempts) \
             SELECT 1, i, 2, 1, CASE WHEN i > 39990 THEN 0 ELSE 4 END, i, 1 FROM {numbers} AS numbers WHERE i % 5 <> 0; \
         INSERT INTO attempts (room_key, sequence, member_key, number, state, started_at) \
             SELECT room_key, sequence, member_key, 1, 1, 0 FROM deliveries;"
    ));
    database.execute(match database.engine() {
        TestEngine::Sqlite => "ANALYZE",
        TestEngine::Postgres => "VACUUM ANALYZE",
    });
}

const FILTERS: [StatusFilter; 6] = [
    StatusFilter::Unprocessed,
    StatusFilter::Pending,
    StatusFilter::Processing,
    StatusFilter::Processed,
    StatusFilter::Failed,
    StatusFilter::All,
];

/// The statement with its parameters written out, as far as it has any: room 1, the agent, a page in the middle.
fn written_out(sql: &str) -> String {
    let is_member_walk = sql.contains("member_key = ?2") || sql.contains("sender_key = ?2");
    let values: Vec<i64> = if is_member_walk {
        vec![1, 2, 100, i64::MAX, 21, 0]
    } else if sql.contains("OFFSET") {
        vec![1, 100, i64::MAX, 21, 0]
    } else {
        std::iter::once(1).chain(20_000..20_100).collect()
    };
    let mut text = sql.to_owned();
    for (place, value) in values.iter().enumerate().rev() {
        text = text.replace(&format!("?{}", place + 1), &value.to_string());
    }
    text
}

async fn pages_walk_indexes(database: TestDatabase) {
    let store = database.open(Recorder::new()).await;
    fill(&database);
    let room = RoomId(Uuid::from_u128(1));
    let shown: Result<usize, StoreError> = store
        .read("every_page", move |tx| {
            Box::pin(async move {
                let mut shown = 0;
                for window in [Window::oldest(21), Window::newest(21)] {
                    for filter in FILTERS {
                        shown += walk::deliveries(tx, 1, 2, filter, window).await?.len();
                    }
                    shown += walk::context(tx, 1, 2, window).await?.len();
                    shown += walk::history(tx, 1, MessageKind::ALL, window).await?.len();
                    let some = [MessageKind::Text, MessageKind::Error];
                    let sequences = walk::history(tx, 1, &some, window).await?;
                    shown += messages::at(tx, room, 1, &sequences).await?.len();
                }
                Ok(shown)
            })
        })
        .await;
    // Four filters show a full page or ten open ones, two show nothing.
    assert_eq!(shown.unwrap(), 2 * (8 + 8 + 21 + 21 + 21 + 21 + 21));

    let statements = [walk::statements(), messages::statements()].concat();
    assert!(statements.len() >= 24, "{} statements", statements.len());
    for sql in statements {
        let (explain, forbidden) = match database.engine() {
            TestEngine::Sqlite => ("EXPLAIN QUERY PLAN", ["SCAN", "TEMP B-TREE"]),
            TestEngine::Postgres => ("EXPLAIN (COSTS OFF)", ["Seq Scan on", "Sort"]),
        };
        let plan = database.query(&format!("{explain} {}", written_out(sql)));
        let plan: Vec<String> = plan.into_iter().map(|row| row.join(" ")).collect();
        let plan = plan.join("\n");
        for step in plan.lines().filter(|step| !step.trim_start().starts_with("Sort Key")) {
            // A look-up of one of two identities may well read the whole tiny table.
            let of_identities = step.contains("identities");
            assert!(
                of_identities || forbidden.iter().all(|word| !step.contains(word)),
                "{sql}\nis not an index walk:\n{plan}"
            );
        }
    }
    store.close().await;
}

async fn a_moment_is_found_without_an_index_of_its_own(database: TestDatabase) {
    let store = database.open(Recorder::new()).await;
    fill(&database);
    for (moment, last) in [(-1, 0), (0, 0), (1, 1), (12_345, 12_345), (40_000, 40_000), (99_999, 40_000)] {
        let found: Result<i64, StoreError> = store
            .read("last_until", move |tx| {
                Box::pin(async move { walk::last_until(tx, 1, Timestamp::from_micros(moment)).await })
            })
            .await;
        assert_eq!(found.unwrap(), last, "at {moment}");
    }
    store.close().await;
}

on_both_engines!(pages_walk_indexes, a_moment_is_found_without_an_index_of_its_own);
