//! Lists of contacts and requests cost what they show: each is an index walk, for somebody who has many.

use bandstand_store::testing::{Recorder, TestDatabase, TestEngine};
use bandstand_store::{StoreError, contact_requests, contacts};
use bandstand_wire::ids::IdentityId;
use uuid::Uuid;

use crate::support::on_both_engines;

const ANA: &str = "00000000-0000-0000-0000-000000000001";

/// An id as the engine writes it.
fn id(engine: TestEngine, id: &str) -> String {
    match engine {
        TestEngine::Sqlite => format!("x'{}'", id.replace('-', "")),
        TestEngine::Postgres => format!("'{id}'::uuid"),
    }
}

/// Ana among 10,000 people: all but herself are her contacts, all were asked by her, all asked her; and each of the
/// others knows one.
fn fill(database: &TestDatabase) {
    let (numbers, random) = match database.engine() {
        TestEngine::Sqlite => (
            "(WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) SELECT i FROM n)",
            "randomblob(16)",
        ),
        TestEngine::Postgres => ("(SELECT i FROM generate_series(2, 10000) AS n(i))", "gen_random_uuid()"),
    };
    let ana = id(database.engine(), ANA);
    database.execute(&format!(
        "INSERT INTO identities (id, kind, handle, name, name_folded, inserted_at, updated_at) \
             VALUES ({ana}, 0, 'ana', 'Ana', 'ana', 0, 0); \
         INSERT INTO identities (id, kind, handle, name, name_folded, inserted_at, updated_at) \
             SELECT {random}, 0, 'u' || i, 'U', 'u', 0, 0 FROM {numbers} AS numbers; \
         INSERT INTO contacts (id, identity_key, contact_key, inserted_at) \
             SELECT {random}, 1, i, i FROM {numbers} AS numbers; \
         INSERT INTO contacts (id, identity_key, contact_key, inserted_at) \
             SELECT {random}, i, 1, i FROM {numbers} AS numbers; \
         INSERT INTO contact_requests \
                 (id, requester_key, recipient_key, lower_key, higher_key, status, inserted_at) \
             SELECT {random}, 1, i, 1, i, CASE WHEN i % 10 = 0 THEN 'pending' ELSE 'rejected' END, i \
                 FROM {numbers} AS numbers; \
         INSERT INTO contact_requests \
                 (id, requester_key, recipient_key, lower_key, higher_key, status, inserted_at) \
             SELECT {random}, i, 1, 1, i, CASE WHEN i % 10 = 1 THEN 'pending' ELSE 'cancelled' END, i \
                 FROM {numbers} AS numbers; \
         INSERT INTO contact_tallies (identity_key, contacts, received, pending, rejected) VALUES (1, 9999, 999, 1000, 8999);"
    ));
    database.execute(match database.engine() {
        TestEngine::Sqlite => "ANALYZE",
        TestEngine::Postgres => "VACUUM ANALYZE",
    });
}

async fn contact_lists_walk_indexes(database: TestDatabase) {
    let store = database.open(Recorder::new()).await;
    fill(&database);
    let ana = IdentityId(Uuid::from_u128(1));
    let shown: Result<Vec<usize>, StoreError> = store
        .read("every_list", move |tx| {
            Box::pin(async move {
                Ok(vec![
                    contacts::list(tx, ana, 21, 40).await?.len(),
                    contact_requests::received(tx, ana, 21, 40).await?.len(),
                    contact_requests::sent(tx, ana, None, 21, 40).await?.len(),
                ])
            })
        })
        .await;
    assert_eq!(shown.unwrap(), [21, 21, 21]);
    for sql in [contacts::statements(), contact_requests::statements()].concat() {
        let (explain, forbidden) = match database.engine() {
            TestEngine::Sqlite => ("EXPLAIN QUERY PLAN", ["SCAN", "TEMP B-TREE"]),
            TestEngine::Postgres => ("EXPLAIN (COSTS OFF)", ["Seq Scan on", "Sort"]),
        };
        let values = [id(database.engine(), ANA), "21".to_owned(), "40".to_owned(), "'pending'".to_owned()];
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

on_both_engines!(contact_lists_walk_indexes);
