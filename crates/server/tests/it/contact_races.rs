//! Many at once: of those who answer one request one wins, and two who ask each other become contacts.

use futures_util::future::{join, join_all};
use serde_json::{Value, json};

use crate::contacts::{answers, asked, asks, befriend};
use crate::support::{Caller, Reply, TestApp, stories};

stories!(
    of_many_approvals_one_wins,
    of_many_different_answers_one_wins,
    of_many_requests_one_is_made,
    crossing_requests_never_stay_both_pending,
    of_many_removals_one_wins,
    everybody_asks_everybody,
    whoever_asks_an_agent_that_is_being_deleted_is_left_with_nothing,
);

fn statuses(replies: &[Reply]) -> Vec<u16> {
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    statuses
}

async fn of_many_approvals_one_wins(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let eva = eve.registers("eva").await;
    for whom in [&eva, &eve] {
        let request = asked(&olga, whom).await;
        let replies = join_all((0..64).map(|_| answers(whom, &request, "approve"))).await;
        assert_eq!(statuses(&replies), [vec![200], vec![409; 63]].concat());
        assert_eq!(whom.get("contacts").await.rows().len(), 1);
    }
    assert_eq!(olga.get("contacts").await.rows().len(), 2);
}

async fn of_many_different_answers_one_wins(app: TestApp) {
    let ana = app.agent("ana").await;
    let eva = app.user("eve").await.registers("eva").await;
    for _ in 0..4 {
        let request = asked(&ana, &eva).await;
        let some = |number: usize| match number % 3 {
            0 => answers(&eva, &request, "approve"),
            1 => answers(&eva, &request, "reject"),
            _ => answers(&ana, &request, "cancel"),
        };
        let replies = join_all((0..48).map(some)).await;
        assert_eq!(statuses(&replies), [vec![200], vec![409; 47]].concat());
        let winner = replies.iter().find(|reply| reply.status == 200).unwrap();
        let sent = ana.get("contacts/requests?sent_status=all").await;
        assert_eq!(sent.data()["sent"][0]["status"], winner.data()["status"], "the winner's answer is what is kept");
        if winner.data()["status"] == "approved" {
            ana.post("contacts/remove", json!({"handle": eva.handle})).await.assert_status(200);
        }
        assert!(ana.get("contacts").await.rows().is_empty() && eva.get("contacts").await.rows().is_empty());
    }
}

async fn of_many_requests_one_is_made(app: TestApp) {
    let ana = app.agent("ana").await;
    app.user("eve").await;
    let replies = join_all((0..64).map(|_| asks(&ana, "eve", Value::Null))).await;
    assert_eq!(statuses(&replies), [vec![201], vec![409; 63]].concat());
}

/// Two ask each other at once: whichever comes second consents.
async fn crossing_requests_never_stay_both_pending(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let (ana, eva) = (app.agent("ana").await, eve.registers("eva").await);
    let word = |reply: &Reply| reply.data()["status"].as_str().unwrap().to_owned();
    for round in 0..8 {
        let pairs = [(&ana, &eva), (&olga, &eve), (&ana, &eve), (&olga, &eva)];
        let crossing = pairs
            .map(|(one, other)| join(asks(one, &other.handle, Value::Null), asks(other, &one.handle, Value::Null)));
        for (one, other) in join_all(crossing).await {
            let (one, other) = (one.assert_status(201), other.assert_status(201));
            assert_eq!(one.id(), other.id(), "round {round}: one request, not two");
            let mut words = [word(&one), word(&other)];
            words.sort();
            assert_eq!(words, ["approved", "pending"]);
        }
        assert_eq!(app.database.query("SELECT count(*) FROM contact_requests WHERE status = 'pending'"), [["0"]]);
        for (one, other) in pairs {
            one.post("contacts/remove", json!({"handle": other.handle})).await.assert_status(200);
        }
    }
}

async fn of_many_removals_one_wins(app: TestApp) {
    let ana = app.agent("ana").await;
    let eve = app.user("eve").await;
    befriend(&ana, &eve).await;
    let some = |number: usize| {
        let (who, whom) = if number.is_multiple_of(2) { (&ana, &eve) } else { (&eve, &ana) };
        who.post("contacts/remove", json!({"handle": whom.handle}))
    };
    let replies = join_all((0..32).map(some)).await;
    assert_eq!(statuses(&replies), [vec![200], vec![404; 31]].concat());
}

/// No two of these wait for each other for ever, and in the end all are contacts of all.
async fn everybody_asks_everybody(app: TestApp) {
    let mut all: Vec<Caller> = vec![app.owner(), app.user("eve").await];
    for name in ["ana", "bob", "cy", "dee"] {
        all.push(app.agent(name).await);
    }
    let asking = all.iter().flat_map(|one| {
        let others = all.iter().filter(move |other| other.id != one.id);
        others.map(move |other| asks(one, &other.handle, Value::Null))
    });
    let replies = join_all(asking).await;
    assert_eq!(statuses(&replies), [201; 30]);
    for who in &all {
        assert_eq!(who.get("contacts").await.rows().len(), 5);
    }
}

async fn whoever_asks_an_agent_that_is_being_deleted_is_left_with_nothing(app: TestApp) {
    let (olga, eve) = (app.owner(), app.user("eve").await);
    let mut others = Vec::new();
    for number in 0..16 {
        others.push(eve.registers(&format!("eva {number}")).await);
    }
    for round in 0..3 {
        let ana = app.agent(&format!("ana {round}")).await;
        let path = format!("agents/{}?force=true", ana.id);
        let asking = join_all(others.iter().map(|other| asks(other, &ana.handle, Value::Null)));
        let asked_back = join_all(others.iter().map(|other| asks(&ana, &other.handle, Value::Null)));
        let (deleted, (asking, asked_back)) = join(olga.delete(&path), join(asking, asked_back)).await;
        deleted.assert_status(200);
        for reply in asking.iter().chain(&asked_back) {
            assert!(matches!(reply.status, 201 | 401 | 404), "{reply:?}");
        }
        let left =
            "SELECT count(*) FROM contacts UNION ALL SELECT count(*) FROM contact_requests WHERE status = 'pending'";
        assert_eq!(app.database.query(left), [["0"], ["0"]], "round {round}");
    }
}
