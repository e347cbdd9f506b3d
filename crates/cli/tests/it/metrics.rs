//! Metrics have their own door, and none unless asked for.

use crate::program::{Installation, Server, http_client};

#[tokio::test]
async fn metrics_are_on_their_own_listener() {
    let installation = Installation::new();
    let arguments = ["up", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"];
    let server = Server::start(installation.command(&arguments));
    let door = server.said().lines().find_map(|line| line.strip_prefix("metrics on ")).unwrap().to_owned();
    let client = http_client();
    let text = client.get(&door).send().await.unwrap().text().await.unwrap();
    assert!(text.contains("# HELP bandstand_build_info"), "{text}");
    assert!(text.contains("bandstand_store_commit_seconds_bucket{le=\"0.001\"}"), "{text}");
    assert_eq!(client.get(server.url("/metrics")).send().await.unwrap().status(), 404);
    server.stop();
}

#[test]
fn there_are_none_unless_configured() {
    let installation = Installation::new();
    let (out, _) = installation.up().stop();
    assert!(!out.contains("metrics"), "{out}");
}
