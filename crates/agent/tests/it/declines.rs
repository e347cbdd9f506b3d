//! A turn that ends in silence on purpose, as its sender sees it.

use bandstand_agent::adapter::{Scripted, Step};
use bandstand_agent::runtime::{Agent, RuntimeSettings};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{PATIENCE, World};

#[tokio::test]
async fn the_sender_sees_that_a_message_was_declined_and_why() {
    let world = World::start().await;
    let bob = world.agent("Bob").await;
    let room = world.room(&[&bob]).await;
    let script = Scripted::always([Step::call("band_no_reply", json!({"reason": "it only informs"}))]);
    let settings = RuntimeSettings { single_instance: false, ..RuntimeSettings::default() };
    let stop = CancellationToken::new();
    let running = tokio::spawn(Agent::new(bob.client.clone(), script).settings(settings).run(stop.clone()));
    world.says(room, "for your information", &[&bob]).await;
    let listed = world.person("GET", &format!("chats/{room}/messages"), Value::Null).await;
    let message = listed["data"][0]["id"].as_str().expect("an id").to_owned();
    let told = async {
        loop {
            let path = format!("chats/{room}/messages/{message}/deliveries");
            let rows = world.person("GET", &path, Value::Null).await.to_string();
            if rows.contains("it only informs") {
                break rows;
            }
        }
    };
    let rows = tokio::time::timeout(PATIENCE, told).await.expect("the ledger says so");
    assert!(rows.contains("\"declined\""), "{rows}");
    stop.cancel();
    assert!(running.await.unwrap().unwrap().clean);
    world.end().await;
}
