//! Fresh PostgreSQL databases beside the one that was named.

use anyhow::{Context, Result, anyhow};
use tokio_postgres::NoTls;

/// `url` with another database's name.
fn named(url: &str, name: &str) -> Result<String> {
    let (address, parameters) = url.split_once('?').map_or((url, None), |(address, rest)| (address, Some(rest)));
    let (server, _) = address.rsplit_once('/').ok_or_else(|| anyhow!("{url} names no database"))?;
    Ok(match parameters {
        Some(parameters) => format!("{server}/{name}?{parameters}"),
        None => format!("{server}/{name}"),
    })
}

async fn run(url: &str, statements: &[String]) -> Result<()> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.context("cannot connect to PostgreSQL")?;
    // Ends with the client.
    tokio::spawn(connection);
    for statement in statements {
        client.execute(statement.as_str(), &[]).await.with_context(|| statement.clone())?;
    }
    Ok(())
}

/// Makes an empty database; its URL.
pub(crate) async fn create(url: &str, name: &str) -> Result<String> {
    drop(url, name).await?;
    run(url, &[format!("CREATE DATABASE {name}")]).await?;
    named(url, name)
}

/// Removes it, whoever is connected.
pub(crate) async fn drop(url: &str, name: &str) -> Result<()> {
    run(url, &[format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")]).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_changes() {
        assert_eq!(named("postgres://u:p@h:1/postgres", "b").unwrap(), "postgres://u:p@h:1/b");
        assert_eq!(named("postgres://u@h/x?sslmode=disable", "b").unwrap(), "postgres://u@h/b?sslmode=disable");
    }
}
