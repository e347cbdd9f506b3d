//! Both databases have the same tables, columns and nullability.

use std::collections::BTreeMap;

use bandstand_store::MIGRATIONS;
use bandstand_store::testing::{Recorder, TestDatabase, TestEngine};

/// Table, column, whether it may be NULL.
type Columns = BTreeMap<(String, String), bool>;

fn columns(database: &TestDatabase, sql: &str) -> Columns {
    database.query(sql).into_iter().map(|row| ((row[0].clone(), row[1].clone()), row[2] == "YES")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_schemas_are_alike() {
    let sqlite = TestDatabase::create(TestEngine::Sqlite).await;
    let postgres = TestDatabase::create(TestEngine::Postgres).await;
    for database in [&sqlite, &postgres] {
        let store = database.open(Recorder::new()).await;
        assert_eq!(store.schema_version().await.unwrap(), i64::try_from(MIGRATIONS.len()).unwrap());
        store.close().await;
    }
    // Full text differs by design: SQLite keeps it in a virtual table and its shadows, PostgreSQL in an index.
    // A primary key is never NULL, though SQLite does not say so.
    let on_sqlite = columns(
        &sqlite,
        "SELECT t.name, c.name, CASE WHEN c.\"notnull\" = 1 OR c.pk > 0 THEN 'NO' ELSE 'YES' END \
         FROM pragma_table_list t JOIN pragma_table_info(t.name) c \
         WHERE t.type = 'table' AND t.schema = 'main' AND t.name NOT LIKE 'sqlite_%'",
    );
    let on_postgres = columns(
        &postgres,
        "SELECT table_name, column_name, is_nullable FROM information_schema.columns WHERE table_schema = 'public'",
    );
    assert_eq!(on_sqlite, on_postgres);
    assert!(on_sqlite.contains_key(&("schema_migrations".to_owned(), "number".to_owned())));
}
