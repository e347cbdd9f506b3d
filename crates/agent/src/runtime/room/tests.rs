use std::collections::BTreeMap;
use std::sync::OnceLock;

use tokio::sync::Semaphore;
use uuid::Uuid;

use super::*;
use crate::adapter::Echo;
use crate::client::Client;
use crate::client::model::Me;
use crate::runtime::RuntimeSettings;
use crate::tools::Toolbox;

/// An agent may be in thousands of rooms, most of them quiet.
#[test]
fn a_quiet_room_takes_little_space() {
    let me = Me {
        id: IdentityId(Uuid::nil()),
        name: "Ann".to_owned(),
        handle: None,
        description: None,
        owner_uuid: None,
        feature_flags: BTreeMap::new(),
        inserted_at: None,
        updated_at: None,
    };
    let shared = Arc::new(Shared {
        client: Client::new("http://127.0.0.1:9", "a key").expect("a client"),
        me,
        adapter: Arc::new(Echo),
        toolbox: Arc::new(Toolbox::default()),
        places: Arc::new(Semaphore::new(1)),
        settings: RuntimeSettings::default(),
        looks: Semaphore::new(1),
        hub: OnceLock::new(),
    });
    let (_inputs, told) = mpsc::unbounded_channel();
    let worker = RoomWorker::new(shared, RoomId(Uuid::nil())).run(told);
    assert!(size_of_val(&worker) <= 1536, "the worker takes {} bytes", size_of_val(&worker));
    assert!(size_of::<RoomInput>() <= 16, "what a room is told takes {} bytes", size_of::<RoomInput>());
}
