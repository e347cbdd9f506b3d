//! The processing lease: an attempt whose agent went away or fell silent has lapsed, and its message is told again.

use std::time::Duration;

use bandstand_server::settings::Limits;
use serde_json::{Value, json};

use crate::support::{Caller, PATIENCE, Room, TestApp, stories};

/// Short enough for a test; and no report is so old on a machine that stands still for a moment.
fn short() -> Limits {
    let lease = Some(Duration::from_millis(400));
    Limits { lease_gone: lease, lease_silent: lease, ..Limits::default() }
}

stories!(limits: short() =>
    an_agent_that_went_away_loses_its_lease,
    an_agent_that_fell_silent_is_told_again,
    who_never_reports_is_left_alone_while_connected,
    an_attempt_may_end_well_after_it_lapsed,
    a_stopped_agent_does_not_lapse,
    the_attempts_of_a_removed_agent_end,
);

stories!(limits: Limits { dead_letter_attempts: Some(2), ..short() } =>
    a_message_that_ends_its_agent_is_given_up,
);

stories!(limits: Limits { lease_gone: None, lease_silent: None, ..Limits::default() } => nothing_lapses_when_it_is_off);

async fn reports(agent: &Caller, room: &Room, working: bool) {
    agent.post(&room.path("/activity"), json!({"working": working})).await.assert_status(200);
}

/// Time goes on until so many attempts have lapsed; `busy` does something meanwhile.
async fn lapsed(app: &TestApp, attempts: usize, mut busy: impl AsyncFnMut()) {
    let all = async {
        while app.database.query("SELECT 1 FROM attempts WHERE lapsed_at IS NOT NULL").len() < attempts {
            app.clock.advance(1);
            app.nobody().get("/healthz").await.assert_status(200);
            busy().await;
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("the attempts lapse");
}

/// Long enough for the lease to end several times over, in the server's own time.
async fn time_passes(app: &TestApp, mut busy: impl AsyncFnMut()) {
    let until = tokio::time::Instant::now() + 3 * Duration::from_millis(400);
    while tokio::time::Instant::now() < until {
        app.clock.advance(1);
        app.nobody().get("/healthz").await.assert_status(200);
        busy().await;
    }
}

async fn an_agent_that_went_away_loses_its_lease(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&app.owner(), &[&ana, &bob]).await;
    let mut socket = bob.socket().await;
    socket.join_room(&room).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    socket.next_event("message_created").await;
    bob.marks(&room, &message, "processing").await.assert_status(200);
    let mut watcher = app.owner().joins(&format!("chat_room:{}", room.id)).await;
    socket.close().await;
    lapsed(&app, 1, async || {}).await;
    let update = watcher.skip_to("message_updated").await;
    let own = &update["metadata"]["delivery_status"][&bob.id];
    assert_eq!((&own["status"], &own["attempts"][0]["status"]), (&json!("processing"), &json!("processing")));

    // It comes back: the message is the first that it is served, and its claim is a new attempt.
    let mut socket = bob.socket().await;
    socket.join_room(&room).await;
    assert_eq!(bob.next_id(&room).await, Some(message.clone()));
    let claim = bob.marks(&room, &message, "processing").await.assert_status(200);
    assert_eq!(claim.data()["attempt_number"], 2);
    bob.marks(&room, &message, "processed").await.assert_status(200);
    assert_eq!(bob.next(&room).await, None);
}

async fn an_agent_that_fell_silent_is_told_again(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let mut socket = bob.socket().await;
    socket.join_room(&room).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    socket.next_event("message_created").await;
    bob.marks(&room, &message, "processing").await.assert_status(200);
    reports(&bob, &room, true).await;
    time_passes(&app, async || reports(&bob, &room, true).await).await;
    assert_eq!(app.database.query("SELECT 1 FROM attempts WHERE lapsed_at IS NOT NULL").len(), 0, "it is at work");
    lapsed(&app, 1, async || {}).await;
    assert_eq!(socket.next_event("message_created").await["id"], json!(message), "told again");
    let once = app.database.query("SELECT lapsed_at FROM attempts");
    time_passes(&app, async || {}).await;
    assert_eq!(app.database.query("SELECT lapsed_at FROM attempts"), once, "it is noted once");
    socket.assert_silent().await;
    bob.marks(&room, &message, "processed").await.assert_status(200);
}

async fn who_never_reports_is_left_alone_while_connected(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let mut socket = bob.socket().await;
    socket.join_room(&room).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    socket.next_event("message_created").await;
    bob.marks(&room, &message, "processing").await.assert_status(200);
    time_passes(&app, async || {}).await;
    assert_eq!(app.database.query("SELECT 1 FROM attempts WHERE lapsed_at IS NOT NULL").len(), 0);
    socket.assert_silent().await;
    bob.marks(&room, &message, "processed").await.assert_status(200);
}

async fn an_attempt_may_end_well_after_it_lapsed(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    bob.marks(&room, &message, "processing").await.assert_status(200);
    lapsed(&app, 1, async || {}).await;
    assert_eq!(bob.next_id(&room).await, Some(message.clone()));
    let done = bob.marks(&room, &message, "processed").await.assert_status(200);
    assert_eq!(done.data()["attempt_number"], 1, "it is still the newest attempt");
    assert_eq!(bob.next(&room).await, None);
}

async fn a_stopped_agent_does_not_lapse(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let olga = app.owner();
    let room = app.room_with(&olga, &[&ana, &bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    bob.marks(&room, &message, "processing").await.assert_status(200);
    olga.post_nothing(&room.path("/agents/stop")).await.assert_status(200);
    time_passes(&app, async || {}).await;
    assert_eq!(app.database.query("SELECT 1 FROM attempts WHERE lapsed_at IS NOT NULL").len(), 0);
    olga.post_nothing(&room.path("/agents/play")).await.assert_status(200);
    lapsed(&app, 1, async || {}).await;
    bob.handles(&room, &message).await;
}

async fn the_attempts_of_a_removed_agent_end(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    bob.marks(&room, &message, "processing").await.assert_status(200);
    // Not a recipient: its attempt runs on when it leaves, until it lapses.
    let own = ana.records(&room, "thought", "hm").await;
    bob.marks(&room, &own, "processing").await.assert_status(200);
    ana.removes(&room, &bob).await.assert_status(200);
    lapsed(&app, 1, async || {}).await;
    let rows: Vec<Value> = app
        .database
        .query("SELECT state, lapsed_at IS NULL FROM attempts ORDER BY sequence")
        .iter()
        .map(|row| json!(row[0]))
        .collect();
    assert_eq!(rows, [json!("2"), json!("0")], "one ended with the removal, the other lapsed");
}

async fn a_message_that_ends_its_agent_is_given_up(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&app.owner(), &[&ana, &bob]).await;
    let message = ana.says(&room, "poison", &[&bob]).await;
    for number in 1..=2 {
        assert_eq!(bob.next_id(&room).await, Some(message.clone()));
        let claim = bob.marks(&room, &message, "processing").await.assert_status(200);
        assert_eq!(claim.data()["attempt_number"], number);
        lapsed(&app, usize::try_from(number).unwrap(), async || {}).await;
    }
    assert_eq!(bob.next_id(&room).await, Some(message.clone()), "a lapse alone gives nothing up");
    bob.marks(&room, &message, "processing").await.assert_invalid(&["/processing_attempt"]);
    assert_eq!(bob.next(&room).await, None);
    let letters = app.owner().get("dead-letters").await.assert_status(200);
    assert_eq!(
        (letters.strings("message_id"), letters.strings("reason")),
        (vec![message], vec!["attempts".to_owned()])
    );
}

async fn nothing_lapses_when_it_is_off(app: TestApp) {
    let [ana, bob] = app.agents(["ana", "bob"]).await;
    let room = app.room_with(&ana, &[&bob]).await;
    let message = ana.says(&room, "work", &[&bob]).await;
    bob.marks(&room, &message, "processing").await.assert_status(200);
    reports(&bob, &room, true).await;
    time_passes(&app, async || {}).await;
    assert_eq!(app.database.query("SELECT 1 FROM attempts WHERE lapsed_at IS NOT NULL").len(), 0);
}
