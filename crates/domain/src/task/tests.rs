use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use TaskStatus::{Blocked, Completed, Failed, InProgress, InReview, Pending};

fn actor(number: u128) -> Actor {
    Actor {
        id: IdentityId(Uuid::from_u128(number)),
        kind: IdentityKind::Agent,
        name: format!("A{number}"),
        handle: format!("o/a{number}"),
    }
}

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

fn new_task() -> (Task, TaskEvent) {
    Task::create(NewTask {
        id: TaskId(Uuid::from_u128(100)),
        room: RoomId(Uuid::from_u128(1)),
        number: 1,
        subject: "Write".into(),
        detail: String::new(),
        supersedes: None,
        created_by: actor(1),
        at: at(0),
    })
}

fn status(status: TaskStatus) -> TaskUpdate {
    TaskUpdate { status: Some(status), ..TaskUpdate::default() }
}

fn state(state: TaskState) -> TaskUpdate {
    TaskUpdate { state: Some(state), ..TaskUpdate::default() }
}

fn payloads(events: &[TaskEvent]) -> Vec<(&'static str, Value)> {
    events.iter().map(|event| (event.change.kind().as_str(), serde_json::to_value(&event.change).unwrap())).collect()
}

#[test]
fn the_table_of_the_roll_up() {
    let table: [(&[TaskStatus], TaskStatus); 18] = [
        (&[], Pending),
        (&[Pending], Pending),
        (&[InProgress], InProgress),
        (&[Blocked], Blocked),
        (&[InReview], InReview),
        (&[Failed], Failed),
        (&[Completed], Completed),
        (&[Completed, Completed], Completed),
        (&[Completed, Pending], Pending),
        (&[Completed, InReview], InReview),
        (&[Completed, InProgress], InProgress),
        (&[InReview, InProgress], InProgress),
        (&[InReview, Pending], InReview),
        (&[InProgress, Blocked], Blocked),
        (&[Blocked, InReview, Completed], Blocked),
        (&[Blocked, Failed], Failed),
        (&[Completed, Completed, Failed], Failed),
        (&[Pending, InProgress, Blocked, InReview, Failed, Completed], Failed),
    ];
    for (statuses, overall) in table {
        assert_eq!(roll_up(statuses.iter().copied()), overall, "{statuses:?}");
        assert_eq!(roll_up(statuses.iter().rev().copied()), overall, "the order does not matter: {statuses:?}");
    }
}

#[test]
fn the_table_of_states() {
    use TaskState::{Active, Archived, Cancelled, Superseded};
    for from in TaskState::ALL.iter().copied() {
        for to in [Active, Cancelled, Archived] {
            let task = Task { state: from, ..new_task().0 };
            let said = task.update(&actor(2), state(to), at(1));
            let told: Result<Vec<&str>, TaskRefusal> =
                said.map(|saved| payloads(&saved.events).iter().map(|(kind, _)| *kind).collect());
            let expected = match (from, to) {
                _ if from == to => Ok(vec![]),
                (Active, Cancelled) => Ok(vec!["cancelled"]),
                (Active, Archived) => Ok(vec!["archived"]),
                (Archived, Active) => Ok(vec!["unarchived"]),
                _ => Err(TaskRefusal::NoWay { from, to }),
            };
            assert_eq!(told, expected, "{from:?} to {to:?}");
        }
        let task = Task { state: from, ..new_task().0 };
        let supersedable = task.supersede(&actor(2), TaskId(Uuid::from_u128(101)), at(1)).is_ok();
        assert_eq!(supersedable, from == Active, "{from:?}");
        for update in [
            status(InProgress),
            TaskUpdate { comment: Some("so".into()), ..TaskUpdate::default() },
            TaskUpdate { subject: Some("so".into()), ..TaskUpdate::default() },
            TaskUpdate { detail: Some("so".into()), ..TaskUpdate::default() },
        ] {
            let field = update.work_field().unwrap();
            let said = Task { state: from, ..new_task().0 }.update(&actor(2), update, at(1)).map(drop);
            let expected = if from == Active { Ok(()) } else { Err(TaskRefusal::NotActive { field, state: from }) };
            assert_eq!(said, expected, "{field} of {from:?}");
        }
    }
    assert_eq!(TaskRefusal::NoWay { from: Superseded, to: Active }.field(), "state");
}

#[test]
fn a_save_tells_each_thing_that_it_does_in_a_row_of_its_own() {
    let (task, created) = new_task();
    assert_eq!(payloads(&[created]), [("created", json!({"subject": "Write", "detail": ""}))]);
    let update = TaskUpdate {
        status: Some(InProgress),
        active_form: Some("Writing".into()),
        linked_native_id: Some("n-1".into()),
        comment: Some("On it".into()),
        subject: Some("Write it".into()),
        detail: Some("All".into()),
        state: None,
    };
    let saved = task.update(&actor(2), update.clone(), at(5)).unwrap();
    assert_eq!(
        payloads(&saved.events),
        [
            ("edited", json!({"subject": {"from": "Write", "to": "Write it"}, "detail": {"from": "", "to": "All"}})),
            ("status_changed", json!({"status": {"from": null, "to": "in_progress"}, "linked_native_id": "n-1"})),
            ("commented", json!({"text": "On it"})),
        ]
    );
    // The same again changes nothing, except that a note is a note each time.
    let again = saved.task.clone().update(&actor(2), update.clone(), at(6)).unwrap();
    assert_eq!(payloads(&again.events), [("commented", json!({"text": "On it"}))]);
    let again = saved.task.clone().update(&actor(2), TaskUpdate { comment: None, ..update }, at(6)).unwrap();
    assert_eq!(again, Updated { task: saved.task.clone(), events: vec![], changed: false });
    // What somebody does right now is no history, but a change.
    let doing = TaskUpdate { active_form: Some("Reading".into()), ..TaskUpdate::default() };
    let doing = saved.task.clone().update(&actor(2), doing, at(7)).unwrap();
    assert_eq!((doing.events.len(), doing.changed, doing.task.updated_at), (0, true, at(7)));
    // A link alone is told with the status that stays.
    let linked = TaskUpdate { linked_native_id: Some("n-2".into()), ..TaskUpdate::default() };
    assert_eq!(
        payloads(&saved.task.clone().update(&actor(2), linked, at(7)).unwrap().events),
        [(
            "status_changed",
            json!({"status": {"from": "in_progress", "to": "in_progress"}, "linked_native_id": "n-2"})
        )]
    );
    // Done and tidied away in one save; back and at work in one as well.
    let done =
        saved.task.update(&actor(2), TaskUpdate { state: Some(TaskState::Archived), ..status(Completed) }, at(8));
    let done = done.unwrap();
    assert_eq!(
        payloads(&done.events),
        [
            ("status_changed", json!({"status": {"from": "in_progress", "to": "completed"}})),
            ("archived", json!({"state": {"from": "active", "to": "archived"}})),
        ]
    );
    assert_eq!((done.task.started_at, done.task.completed_at), (Some(at(5)), Some(at(8))));
    let back = done.task.update(&actor(2), TaskUpdate { state: Some(TaskState::Active), ..status(InReview) }, at(9));
    let back = back.unwrap();
    assert_eq!(
        payloads(&back.events),
        [
            ("unarchived", json!({"state": {"from": "archived", "to": "active"}})),
            ("status_changed", json!({"status": {"from": "completed", "to": "in_review"}})),
        ]
    );
    assert_eq!((back.task.started_at, back.task.completed_at), (Some(at(5)), None));
}

#[test]
fn only_a_status_joins() {
    let (task, _) = new_task();
    for (update, field) in [
        (TaskUpdate { active_form: Some("x".into()), ..TaskUpdate::default() }, "active_form"),
        (TaskUpdate { linked_native_id: Some("x".into()), ..TaskUpdate::default() }, "linked_native_id"),
    ] {
        assert_eq!(task.clone().update(&actor(2), update, at(1)), Err(TaskRefusal::NotAssigned { field }));
    }
    let joined = task.update(&actor(2), status(Pending), at(1)).unwrap();
    assert_eq!(payloads(&joined.events), [("status_changed", json!({"status": {"from": null, "to": "pending"}}))]);
    assert_eq!(joined.task.started_at, None, "nobody has begun");
}

#[test]
fn a_task_takes_a_hundred_and_no_more() {
    let (mut task, _) = new_task();
    for number in 0..100 {
        task = task.update(&actor(1000 + number), status(InProgress), at(1)).unwrap().task;
    }
    assert_eq!(task.clone().update(&actor(1), status(InProgress), at(2)), Err(TaskRefusal::Crowded));
    assert!(task.update(&actor(1000), status(Completed), at(2)).is_ok());
}

#[test]
fn who_leaves_is_dropped_from_what_it_had_not_completed() {
    let (task, _) = new_task();
    let task = task.update(&actor(1), status(Completed), at(1)).unwrap().task;
    let task = task.update(&actor(2), status(Failed), at(2)).unwrap().task;
    let dropped = task.clone().drop_assignee(actor(2).id, "left the room", at(3)).unwrap();
    assert_eq!(payloads(&dropped.events), [("dropped", json!({"reason": "left the room"}))]);
    assert_eq!(dropped.events[0].actor, actor(2), "the row tells whose part it was");
    assert_eq!((dropped.task.overall_status(), dropped.task.completed_at), (Completed, Some(at(3))));
    assert_eq!(task.clone().drop_assignee(actor(1).id, "left the room", at(3)), None, "it had completed its part");
    assert_eq!(task.clone().drop_assignee(actor(3).id, "left the room", at(3)), None);
    let cancelled = task.update(&actor(1), state(TaskState::Cancelled), at(3)).unwrap().task;
    assert_eq!(cancelled.drop_assignee(actor(2).id, "left the room", at(4)), None, "it stays as it was then");
}

#[test]
fn texts_are_checked() {
    assert_eq!(subject("  Write it\n"), Ok("Write it".into()));
    assert_eq!(subject(" \u{200b} "), Err(TextFault::Blank));
    assert_eq!(subject("a\0b"), Err(TextFault::Nul));
    assert_eq!(subject(&"ü".repeat(500)).map(|text| text.chars().count()), Ok(500));
    assert_eq!(subject(&"ü".repeat(501)), Err(TextFault::TooLong(500)));
    assert_eq!((check("", 5), check("123456", 5)), (Ok(()), Err(TextFault::TooLong(5))));
    assert_eq!((comment("so"), comment(" ")), (Ok(()), Err(TextFault::Blank)));
}

#[test]
fn a_task_is_named_by_id_or_number() {
    let id = Uuid::from_u128(7);
    for (text, named) in [
        (id.to_string(), Some(TaskRef::Id(TaskId(id)))),
        (format!("#{id}"), Some(TaskRef::Id(TaskId(id)))),
        ("3".into(), Some(TaskRef::Number(3))),
        ("#3".into(), Some(TaskRef::Number(3))),
    ] {
        assert_eq!(TaskRef::parse(&text), named, "{text}");
    }
    for text in ["", "#", "##1", "0", "-1", "+1", "1.5", "١", "one", "9223372036854775808", " 1"] {
        assert_eq!(TaskRef::parse(text), None, "{text:?}");
    }
}

/// What a history says of its task; written apart from the rules, from what the rows tell alone.
#[derive(Debug, PartialEq)]
struct Told {
    subject: String,
    detail: String,
    state: TaskState,
    superseded_by: Option<TaskId>,
    assignments: Vec<(IdentityId, TaskStatus, String)>,
    started_at: Option<Timestamp>,
    completed_at: Option<Timestamp>,
}

fn replay(events: &[TaskEvent]) -> Told {
    let mut told = Told {
        subject: String::new(),
        detail: String::new(),
        state: TaskState::Active,
        superseded_by: None,
        assignments: Vec::new(),
        started_at: None,
        completed_at: None,
    };
    for TaskEvent { change, actor, at } in events {
        match change {
            TaskChange::Created { subject, detail, .. } => {
                (told.subject, told.detail) = (subject.clone(), detail.clone());
            }
            TaskChange::Edited { subject, detail } => {
                for (field, change) in [(&mut told.subject, subject), (&mut told.detail, detail)] {
                    if let Some(FromTo { from, to }) = change {
                        assert_eq!(field, from);
                        field.clone_from(to);
                    }
                }
            }
            TaskChange::StatusChanged { status, linked_native_id } => {
                let own = told.assignments.iter_mut().find(|(who, _, _)| *who == actor.id);
                assert_eq!(own.as_ref().map(|(_, status, _)| *status), status.from);
                let to = status.to.unwrap();
                match own {
                    Some((_, status, link)) => {
                        *status = to;
                        linked_native_id.iter().for_each(|new| link.clone_from(new));
                    }
                    None => told.assignments.push((actor.id, to, linked_native_id.clone().unwrap_or_default())),
                }
            }
            TaskChange::Commented { .. } => {}
            TaskChange::Dropped { .. } => told.assignments.retain(|(who, _, _)| *who != actor.id),
            TaskChange::Cancelled { state } | TaskChange::Archived { state } | TaskChange::Unarchived { state } => {
                assert_eq!(told.state, state.from);
                told.state = state.to;
            }
            TaskChange::Superseded { state, superseded_by_id } => {
                assert_eq!(told.state, state.from);
                (told.state, told.superseded_by) = (state.to, Some(*superseded_by_id));
            }
        }
        let overall = roll_up(told.assignments.iter().map(|(_, status, _)| *status));
        if overall != Pending && told.started_at.is_none() {
            told.started_at = Some(*at);
        }
        match (overall == Completed, told.completed_at) {
            (true, None) => told.completed_at = Some(*at),
            (false, _) => told.completed_at = None,
            (true, Some(_)) => {}
        }
    }
    told
}

#[derive(Clone, Debug)]
enum Step {
    Save(u128, TaskUpdate),
    Supersede(u128),
    Leave(u128),
}

fn step() -> impl Strategy<Value = Step> {
    let text = || prop::option::of("[ab]{0,1}".prop_map(String::from));
    let update =
        (
            prop::option::of(prop::sample::select(TaskStatus::ALL)),
            (text(), text(), text(), text(), text()),
            prop::option::weighted(
                0.2,
                prop::sample::select(&[TaskState::Active, TaskState::Archived, TaskState::Cancelled]),
            ),
        )
            .prop_map(|(status, (active_form, linked_native_id, comment, subject, detail), state)| {
                TaskUpdate { status, active_form, linked_native_id, comment, subject, detail, state }
            });
    let who = 1..5_u128;
    prop_oneof![
        12 => (who.clone(), update).prop_map(|(who, update)| Step::Save(who, update)),
        1 => who.clone().prop_map(Step::Supersede),
        2 => who.prop_map(Step::Leave),
    ]
}

proptest! {
    #[test]
    fn the_history_replays_to_the_task(steps in prop::collection::vec(step(), 0..40)) {
        let (mut task, created) = new_task();
        let mut history = vec![created];
        for (moment, step) in (1..).zip(steps) {
            let before = task.clone();
            let saved = match step {
                Step::Save(who, update) => task.update(&actor(who), update, at(moment)).ok(),
                Step::Supersede(who) => task.supersede(&actor(who), TaskId(Uuid::from_u128(9)), at(moment)).ok(),
                Step::Leave(who) => task.drop_assignee(actor(who).id, "left", at(moment)),
            };
            // What is refused changes nothing.
            let Some(saved) = saved else { task = before; continue };
            prop_assert_eq!(saved.changed, saved.task != before);
            prop_assert!(saved.changed || saved.events.is_empty());
            task = saved.task;
            history.extend(saved.events);
        }
        let now = Told {
            subject: task.subject.clone(),
            detail: task.detail.clone(),
            state: task.state,
            superseded_by: task.superseded_by,
            assignments: task.assignments.iter().map(|one| (one.assignee.id, one.status, one.linked_native_id.clone())).collect(),
            started_at: task.started_at,
            completed_at: task.completed_at,
        };
        prop_assert_eq!(replay(&history), now);
    }

    #[test]
    fn any_text_is_a_name_of_a_task_or_none(text in ".{0,40}") {
        if let Some(TaskRef::Number(number)) = TaskRef::parse(&text) {
            prop_assert!(number > 0);
        }
    }
}
