//! Brings the schema up to date when a store opens: numbered files, each applied once, in its own transaction, under a
//! lock. Old data opens in every newer build; data written by a newer build is refused.

use crate::error::StoreError;

/// One step of the schema: the same change in the SQL of each database.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// Its place in the order, from 1 without a gap.
    pub number: i64,
    /// Its name, as in the file's: `NNNN_name.sql`.
    pub name: &'static str,
    /// The SQL for SQLite.
    pub sqlite: &'static str,
    /// The SQL for PostgreSQL.
    pub postgres: &'static str,
}

/// Where the applied migrations are written down.
pub(crate) const CREATE_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (number BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)";
pub(crate) const APPLIED: &str = "SELECT number, name FROM schema_migrations ORDER BY number";
pub(crate) const NOTE: &str = "INSERT INTO schema_migrations (number, name, applied_at) VALUES (?1, ?2, ?3)";
pub(crate) const VERSION: &str = "SELECT COALESCE(MAX(number), 0) FROM schema_migrations";

/// What remains to be applied, given what the database says was applied. Refuses a database from a newer build, one
/// with another history, and a list that is not in order.
pub(crate) fn pending<'m>(known: &'m [Migration], applied: &[(i64, String)]) -> Result<&'m [Migration], StoreError> {
    for (place, migration) in (1..).zip(known) {
        if migration.number != place {
            return Err(StoreError::Migration(format!(
                "migration {} ({}) stands at place {place} of the list",
                migration.number, migration.name
            )));
        }
    }
    let newest = known.len();
    for (at, (number, name)) in applied.iter().enumerate() {
        match known.get(at) {
            None => {
                let found = applied.last().map_or(*number, |(number, _)| *number);
                return Err(StoreError::Migration(format!(
                    "the database is at schema version {found}, and this build knows only {newest}: \
                     it was written by a newer version of the server; start that one, or restore a backup"
                )));
            }
            Some(migration) if migration.number != *number || migration.name != name => {
                return Err(StoreError::Migration(format!(
                    "the database's migration {number} is \"{name}\", and this build expects {} \"{}\": \
                     it is not a database of this server",
                    migration.number, migration.name
                )));
            }
            Some(_) => {}
        }
    }
    Ok(known.get(applied.len()..).unwrap_or_default())
}

/// Says in the log that a migration was applied: an upgrade is to be seen there, and the making of a new database is not.
pub(crate) fn log_applied(migration: &Migration, new: bool) {
    if new {
        tracing::debug!(migration.number, migration.name, "schema made");
    } else {
        tracing::info!(migration.number, migration.name, "schema migrated");
    }
}

/// Says which migration failed.
pub(crate) fn failed(migration: &Migration, cause: &StoreError) -> StoreError {
    StoreError::Migration(format!("{:04}_{}: {cause}", migration.number, migration.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&'static str]) -> Vec<Migration> {
        (1..).zip(names).map(|(number, name)| Migration { number, name, sqlite: "", postgres: "" }).collect()
    }

    fn applied(names: &[&str]) -> Vec<(i64, String)> {
        (1..).zip(names).map(|(number, name)| (number, (*name).to_owned())).collect()
    }

    #[test]
    fn only_the_rest_is_applied() {
        let known = list(&["a", "b", "c"]);
        let rest = pending(&known, &applied(&["a"])).expect("the same history");
        assert_eq!(rest.iter().map(|migration| migration.name).collect::<Vec<_>>(), ["b", "c"]);
        assert!(pending(&known, &applied(&["a", "b", "c"])).expect("up to date").is_empty());
    }

    #[test]
    fn a_newer_database_is_refused() {
        let error = pending(&list(&["a"]), &applied(&["a", "b", "c"])).expect_err("it is newer");
        assert!(error.to_string().contains("schema version 3, and this build knows only 1"), "{error}");
    }

    #[test]
    fn another_history_and_a_wrong_order_are_refused() {
        assert!(pending(&list(&["a", "b"]), &applied(&["x"])).is_err());
        let mut swapped = list(&["a", "b"]);
        swapped.reverse();
        assert!(pending(&swapped, &[]).is_err());
    }
}
