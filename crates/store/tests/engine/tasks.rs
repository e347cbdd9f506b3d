//! Pages of a board and of a history cost what they show: each statement walks indexes, in a room with many tasks, without
//! a scan and without a sort.

use bandstand_domain::task::{TaskRef, TaskState};
use bandstand_store::testing::{Recorder, TestDatabase, TestEngine};
use bandstand_store::walk::Window;
use bandstand_store::{StoreError, boards, tasks};
use bandstand_wire::ids::{RoomId, TaskId};
use uuid::Uuid;

use crate::support::on_both_engines;

/// One room with 20,000 tasks, nearly all archived; each has two who work on it and three rows of history. The first one
/// has 20,000 rows, and the goal as many.
fn fill(database: &TestDatabase) {
    let (numbers, [one, two]) = match database.engine() {
        TestEngine::Sqlite => (
            "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i FROM n)",
            ["x'00000000000000000000000000000001'", "x'00000000000000000000000000000002'"],
        ),
        TestEngine::Postgres => (
            "(SELECT i FROM generate_series(1, 20000) AS n(i))",
            ["'00000000-0000-0000-0000-000000000001'", "'00000000-0000-0000-0000-000000000002'"],
        ),
    };
    let id = match database.engine() {
        TestEngine::Sqlite => "randomblob(16)",
        TestEngine::Postgres => "gen_random_uuid()",
    };
    database.execute(&format!(
        "INSERT INTO identities (id, kind, handle, name, name_folded, inserted_at, updated_at) \
             VALUES ({one}, 0, 'ana', 'Ana', 'ana', 0, 0), ({two}, 1, 'ana/bot', 'Bot', 'bot', 0, 0); \
         INSERT INTO rooms (id, status, kind, creator_key, sequence, participants, inserted_at, updated_at) \
             VALUES ({one}, 'active', 'direct', 1, 1, 2, 0, 0); \
         INSERT INTO participants (room_key, member_key, role, status, joined_sequence, joined_at) \
             VALUES (1, 1, 'owner', 'active', 0, 0), (1, 2, 'member', 'inactive', 0, 0); \
         INSERT INTO boards (room_key, last_number, pending) VALUES (1, 20000, 20); \
         INSERT INTO board_events (room_key, place, kind, actor_key, actor_name, actor_handle, payload, at) \
             SELECT 1, i, 'goal_edited', 1, 'Ana', 'ana', '{{}}', i FROM {numbers} AS numbers; \
         INSERT INTO tasks (room_key, number, id, state, subject, detail, creator_key, creator_name, creator_handle, \
             events, inserted_at, updated_at) \
             SELECT 1, i, {id}, CASE WHEN i % 1000 = 0 THEN 'active' ELSE 'archived' END, 'Do', '', 1, 'Ana', 'ana', 3, \
             i, i FROM {numbers} AS numbers; \
         INSERT INTO task_assignments (room_key, number, member_key, member_name, member_handle, status, active_form, \
             linked_native_id, joined_sequence, sequence, updated_at) \
             SELECT 1, i, k, 'X', 'x', 'pending', '', '', i, i, i FROM {numbers} AS numbers \
             CROSS JOIN (SELECT 1 AS k UNION ALL SELECT 2) AS keys; \
         INSERT INTO task_events (room_key, number, place, kind, actor_key, actor_name, actor_handle, payload, at) \
             SELECT 1, i, k, 'commented', 1, 'Ana', 'ana', '{{}}', i FROM {numbers} AS numbers \
             CROSS JOIN (SELECT 1 AS k UNION ALL SELECT 2 UNION ALL SELECT 3) AS places WHERE i > 1; \
         INSERT INTO task_events (room_key, number, place, kind, actor_key, actor_name, actor_handle, payload, at) \
             SELECT 1, 1, i, 'commented', 1, 'Ana', 'ana', '{{}}', i FROM {numbers} AS numbers;"
    ));
    database.execute(match database.engine() {
        TestEngine::Sqlite => "ANALYZE",
        TestEngine::Postgres => "VACUUM ANALYZE",
    });
}

/// The statement with its parameters written out.
fn written_out(sql: &str, engine: TestEngine) -> String {
    let id = match engine {
        TestEngine::Sqlite => "x'00000000000000000000000000000001'",
        TestEngine::Postgres => "'00000000-0000-0000-0000-000000000001'",
    };
    let number = |number: i64| number.to_string();
    let values: Vec<String> = if sql.contains("t.id = ?2") {
        vec![number(1), id.to_owned()]
    } else if sql.contains("t.state = ?4") {
        vec![number(1), number(100), number(51), "'active'".to_owned()]
    } else if sql.contains("t.number > ?2") {
        vec![number(1), number(100), number(51)]
    } else if sql.contains("e.number = ?2") {
        vec![number(1), number(1), number(100), i64::MAX.to_string(), number(101)]
    } else if sql.contains("board_events") {
        vec![number(1), number(101)]
    } else {
        std::iter::once(1).chain(9_900..10_000).map(number).collect()
    };
    let mut text = sql.to_owned();
    for (place, value) in values.iter().enumerate().rev() {
        text = text.replace(&format!("?{}", place + 1), value);
    }
    text
}

async fn pages_of_a_board_walk_indexes(database: TestDatabase) {
    let store = database.open(Recorder::new()).await;
    fill(&database);
    let room = RoomId(Uuid::from_u128(1));
    let shown: Result<Vec<usize>, StoreError> = store
        .read("every_page", move |tx| {
            Box::pin(async move {
                let one = tasks::one(tx, room, 1, TaskRef::Number(7)).await?.expect("it is there").task;
                assert!(tasks::one(tx, room, 1, TaskRef::Id(one.id)).await?.is_some());
                assert!(tasks::one(tx, room, 2, TaskRef::Id(one.id)).await?.is_none(), "it is of another room");
                assert!(tasks::one(tx, room, 1, TaskRef::Id(TaskId(Uuid::from_u128(1)))).await?.is_none());
                let any = tasks::page(tx, room, 1, None, 100, 150).await?;
                assert!(any.iter().all(|task| task.assignments.len() == 2));
                let active = tasks::page(tx, room, 1, Some(TaskState::Active), 5_000, 51).await?;
                let oldest = tasks::history(tx, 1, 1, Window::oldest(51)).await?;
                let newest = tasks::history(tx, 1, 1, Window::newest(101)).await?;
                assert_eq!((oldest[0].place, newest[0].place), (1, 20_000));
                let trail = boards::trail(tx, 1, 101).await?;
                assert_eq!(boards::overview(tx, 1).await?.agents.len(), 1);
                Ok(vec![any.len(), active.len(), oldest.len(), newest.len(), trail.len()])
            })
        })
        .await;
    assert_eq!(shown.unwrap(), [150, 15, 51, 101, 101]);

    let statements = [tasks::statements(), boards::statements()].concat();
    assert!(statements.len() >= 12, "{} statements", statements.len());
    for sql in statements {
        let (explain, forbidden) = match database.engine() {
            TestEngine::Sqlite => ("EXPLAIN QUERY PLAN", ["SCAN", "TEMP B-TREE"]),
            TestEngine::Postgres => ("EXPLAIN (COSTS OFF)", ["Seq Scan on", "Sort"]),
        };
        let plan = database.query(&format!("{explain} {}", written_out(sql, database.engine())));
        let plan: Vec<String> = plan.into_iter().map(|row| row.join(" ")).collect();
        let plan = plan.join("\n");
        for step in plan.lines().filter(|step| !step.trim_start().starts_with("Sort Key")) {
            // A tiny table may well be read whole.
            let is_tiny = ["identities", "participants", "boards"].iter().any(|table| step.contains(table));
            assert!(
                is_tiny || forbidden.iter().all(|word| !step.contains(word)),
                "{sql}\nis not an index walk:\n{plan}"
            );
        }
    }
    store.close().await;
}

on_both_engines!(pages_of_a_board_walk_indexes);
