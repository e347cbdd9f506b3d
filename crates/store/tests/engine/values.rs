//! Values go in and come out alike on both engines.

use bandstand_store::testing::{Recorder, TestDatabase, TestEngine};
use bandstand_store::{Dialect, Migration, Param, StoreError, params};
use uuid::Uuid;

use crate::support::{announced, numbers, on_both_engines, open};

on_both_engines!(values_come_out_as_they_went_in, mistakes_are_told_apart, many_rows_in_one_call);

const TABLE: &[Migration] = &[Migration {
    number: 1,
    name: "things",
    sqlite: "CREATE TABLE things (id BLOB, number BIGINT, name TEXT, data BLOB);",
    postgres: "CREATE TABLE things (id UUID, number BIGINT, name TEXT, data BYTEA);",
}];

async fn values_come_out_as_they_went_in(database: TestDatabase) {
    let store = database.open_with(Recorder::new(), TABLE).await;
    let id = Uuid::from_u128(0x1234);
    let worked = store.write::<(), StoreError, _>("values", move |tx| {
        Box::pin(async move {
            let insert = "INSERT INTO things (id, number, name, data) VALUES (?1, ?2, ?3, ?4)";
            let name = "Grüße 🎺 'quoted' ?1".to_owned();
            tx.execute(insert, params![id, i64::MIN, &name, &[0_u8, 1, 255]]).await?;
            tx.execute(insert, params![None::<Uuid>, None::<i64>, None::<&str>, None::<&[u8]>]).await?;
            tx.execute(insert, &[Param::Id(id), Param::Int(2), Param::Text(""), Param::Bytes(&[7; 16])]).await?;

            let all = "SELECT id, number, name, data FROM things ORDER BY COALESCE(number, 0)";
            let mut rows = tx.query(all, &[]).await?;
            assert_eq!(rows.len(), 3);
            assert_eq!(rows[0].id(0)?, id);
            assert_eq!(rows[0].int(1)?, i64::MIN);
            assert_eq!(rows[0].text(2)?, name);
            assert_eq!(rows[0].take_text(2)?, name);
            assert_eq!(rows[0].bytes(3)?, [0, 1, 255]);
            assert_eq!(rows[1].opt_id(0)?, None);
            assert_eq!(rows[1].opt_int(1)?, None);
            assert_eq!(rows[1].opt_text(2)?, None);
            assert_eq!(rows[1].take_opt_text(2)?, None);
            assert_eq!(rows[1].opt_bytes(3)?, None);
            assert_eq!(rows[2].text(2)?, "");
            assert_eq!(rows[2].bytes(3)?, [7; 16], "bytes as long as an id");

            let row = tx
                .query_one(
                    "SELECT COUNT(*), EXISTS (SELECT 1 FROM things WHERE number = ?1), ?2 < 3, CAST(SUM(number) AS BIGINT) \
                     FROM things WHERE number > ?3 LIMIT ?4",
                    params![2, 5, i64::MIN, 1],
                )
                .await?;
            assert_eq!((row.int(0)?, row.bool(1)?, row.bool(2)?, row.int(3)?), (1, true, false, 2));

            let updated = tx.execute("UPDATE things SET name = ?1 WHERE name IS NOT NULL", params!["x"]).await?;
            assert_eq!(updated, 2);
            let returned = tx.execute("DELETE FROM things WHERE number = ?1 RETURNING id", params![2]).await?;
            assert_eq!(returned, 1, "rows that nobody looks at are counted");
            assert_eq!(tx.query_opt("SELECT 1 FROM things WHERE number = ?1", params![99]).await?, None);
            let conflict = "INSERT INTO schema_migrations VALUES (?1, 'again', 0) ON CONFLICT (number) DO NOTHING RETURNING name";
            assert_eq!(tx.query_opt(conflict, params![1]).await?, None);
            Ok(())
        })
    });
    worked.await.unwrap();
    let dialect =
        store.read::<_, StoreError, _>("dialect", |tx| Box::pin(async move { Ok(tx.dialect()) })).await.unwrap();
    let wanted = match database.engine() {
        TestEngine::Sqlite => Dialect::Sqlite,
        TestEngine::Postgres => Dialect::Postgres,
    };
    assert_eq!(dialect, wanted);
    store.close().await;
}

async fn mistakes_are_told_apart(database: TestDatabase) {
    let store = database.open_with(Recorder::new(), TABLE).await;
    let query = |sql: &'static str, param: Param<'static>| {
        let store = store.clone();
        async move { store.read("query", move |tx| Box::pin(async move { tx.query_one(sql, &[param]).await })).await }
    };
    let name: Result<_, StoreError> = query("SELECT CAST(?1 AS TEXT)", Param::Text("x")).await;
    let row = name.unwrap();
    assert!(matches!(row.int(0), Err(StoreError::Decode(_))));
    assert!(matches!(row.text(1), Err(StoreError::Decode(_))));
    assert!(matches!(row.id(0), Err(StoreError::Decode(_))));
    for (sql, param) in [
        ("SELECT ?1", Param::Text("a\0b")),
        ("SELECT 1", Param::Int(1)),
        ("SELECT nothing FROM nowhere WHERE ?1 = 1", Param::Int(1)),
        ("SELECT number FROM things WHERE number = ?1", Param::Int(1)),
    ] {
        let error = query(sql, param).await.unwrap_err();
        assert!(matches!(error, StoreError::Bug(_)), "{sql}: {error:?}");
    }
    let fraction = query("SELECT 1.5 WHERE 1 = ?1", Param::Int(1)).await.unwrap_err();
    assert!(matches!(fraction, StoreError::Decode(_)), "{fraction:?}");
    store.close().await;
}

async fn many_rows_in_one_call(database: TestDatabase) {
    let (store, recorder) = open(&database).await;
    let insert = "INSERT INTO notes (number, name) VALUES (?1, ?2) ON CONFLICT (number) DO NOTHING";
    let inserted = store.write::<_, StoreError, _>("many", move |tx| {
        Box::pin(async move {
            let names: Vec<String> = (0..500).map(|number| format!("note {number}")).collect();
            let rows: Vec<_> = (0..).zip(&names).map(|(number, name)| vec![Param::Int(number), name.into()]).collect();
            let first = tx.execute_many(insert, &rows).await?;
            let again = tx.execute_many(insert, &rows).await?;
            Ok((first, again, tx.execute_many(insert, &[]).await?))
        })
    });
    assert_eq!(inserted.await.unwrap(), (500, 0, 0));
    let failed = store.write::<_, StoreError, _>("fails", move |tx| {
        Box::pin(async move {
            let rows = [vec![Param::Int(1000), "x".into()], vec![Param::Int(1001), "x".into()]];
            tx.execute_many(insert, &rows).await
        })
    });
    assert!(matches!(failed.await, Err(StoreError::Conflict(_))));
    assert_eq!(numbers(&store).await.unwrap(), (0..500).collect::<Vec<_>>());
    assert!(announced(&recorder).is_empty());
    store.close().await;
}
