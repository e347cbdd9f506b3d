use bandstand_wire::ids::IdentityId;
use proptest::option::of as maybe;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::identity::Profile;

const SECOND: i64 = 1_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * SECOND)
}

fn profile() -> Profile {
    Profile {
        id: IdentityId(Uuid::from_u128(1)),
        kind: IdentityKind::User,
        handle: "olga".into(),
        name: "Olga".into(),
        description: None,
    }
}

fn stored() -> DeliveryFacts {
    DeliveryFacts {
        recipient: true,
        state: DeliveryState::Stored,
        stored_at: at(100),
        pushed_at: None,
        served_at: None,
        finished_at: None,
        reason: None,
        expired: false,
        attempts: 0,
        newest: Vec::new(),
        ending: None,
    }
}

fn pushed() -> DeliveryFacts {
    DeliveryFacts { state: DeliveryState::Delivered, pushed_at: Some(at(101)), ..stored() }
}

fn attempt(number: i64, state: AttemptState) -> AttemptFacts {
    AttemptFacts {
        number,
        state,
        started_at: at(110),
        completed_at: (state != AttemptState::Processing).then(|| at(120)),
        lapsed_at: None,
        error: None,
        outcome: Outcome::default(),
    }
}

fn taken() -> DeliveryFacts {
    let newest = vec![attempt(1, AttemptState::Processing)];
    DeliveryFacts { state: DeliveryState::Processing, attempts: 1, newest, ..pushed() }
}

fn facts(delivery: DeliveryFacts, connection: Connection) -> Facts {
    Facts {
        posted_at: at(100),
        kind: Some(IdentityKind::Agent),
        named: Named::Mention,
        stay: Stay::Then,
        delivery: Some(delivery),
        connection,
        superseded_at: None,
        limited: None,
        stopped: None,
        active_at: None,
        busy_with: None,
        activity_ttl: 10 * SECOND,
    }
}

fn online() -> Connection {
    Connection::Online { since: at(10) }
}

fn gone(seconds: i64) -> Connection {
    Connection::Offline { since: at(seconds), latest: None }
}

fn code(facts: &Facts) -> (Stage, Option<ReasonCode>) {
    let account = account(facts, at(1000));
    (account.stage, account.reason.map(|reason| reason.code()))
}

#[test]
fn each_cause_gives_its_reason() {
    let never = Connection::Never { since: at(1) };
    let unknown = Connection::Unknown { missing: Missing::Connection, last_at: Some(at(90)) };
    let served = DeliveryFacts { served_at: Some(at(105)), state: DeliveryState::Delivered, ..stored() };
    let stop = Some(Stopped { at: at(99), by: profile() });
    let limited = |last| Some(Limited { first_at: at(last), last_at: at(last), until: at(last + 1) });
    let dead =
        |expired| DeliveryFacts { state: DeliveryState::DeadLettered, finished_at: Some(at(900)), expired, ..stored() };
    let ended = |state| DeliveryFacts { state, finished_at: Some(at(120)), ..stored() };
    let table = [
        (facts(stored(), never), Stage::Stored, Some(ReasonCode::NeverConnected)),
        (facts(stored(), gone(50)), Stage::Stored, Some(ReasonCode::Offline)),
        (facts(pushed(), gone(102)), Stage::Pushed, Some(ReasonCode::Offline)),
        (facts(stored(), online()), Stage::Stored, Some(ReasonCode::NotTaken)),
        (facts(pushed(), online()), Stage::Pushed, Some(ReasonCode::NotTaken)),
        // A client without a socket, which polls.
        (facts(served.clone(), never), Stage::Served, Some(ReasonCode::NotTaken)),
        (facts(served.clone(), gone(50)), Stage::Served, Some(ReasonCode::NotTaken)),
        (facts(served, gone(106)), Stage::Served, Some(ReasonCode::Offline)),
        (facts(taken(), online()), Stage::PickedUp, Some(ReasonCode::NoActivity)),
        (facts(taken(), never), Stage::PickedUp, Some(ReasonCode::NoActivity)),
        (facts(taken(), gone(111)), Stage::PickedUp, Some(ReasonCode::Offline)),
        // It worked on after its socket was gone.
        (facts(taken(), gone(109)), Stage::PickedUp, Some(ReasonCode::NoActivity)),
        (facts(taken(), unknown), Stage::PickedUp, Some(ReasonCode::Unknown)),
        (facts(stored(), unknown), Stage::Stored, Some(ReasonCode::Unknown)),
        (Facts { active_at: Some(at(995)), ..facts(taken(), gone(111)) }, Stage::PickedUp, None),
        (Facts { stopped: stop.clone(), ..facts(stored(), never) }, Stage::Stored, Some(ReasonCode::Stopped)),
        (Facts { stopped: stop, ..facts(taken(), gone(111)) }, Stage::PickedUp, Some(ReasonCode::Stopped)),
        (Facts { limited: limited(105), ..facts(pushed(), online()) }, Stage::Pushed, Some(ReasonCode::RateLimited)),
        (Facts { limited: limited(105), ..facts(stored(), never) }, Stage::Stored, Some(ReasonCode::RateLimited)),
        // It was let in again since.
        (Facts { limited: limited(105), ..facts(pushed(), gone(106)) }, Stage::Pushed, Some(ReasonCode::Offline)),
        (Facts { limited: limited(99), ..facts(stored(), online()) }, Stage::Stored, Some(ReasonCode::NotTaken)),
        (
            Facts { superseded_at: Some(at(115)), ..facts(taken(), online()) },
            Stage::PickedUp,
            Some(ReasonCode::Superseded),
        ),
        (
            Facts { superseded_at: Some(at(102)), ..facts(pushed(), online()) },
            Stage::Pushed,
            Some(ReasonCode::Superseded),
        ),
        (Facts { superseded_at: Some(at(99)), ..facts(pushed(), online()) }, Stage::Pushed, Some(ReasonCode::NotTaken)),
        (facts(dead(true), online()), Stage::DeadLettered, Some(ReasonCode::Expired)),
        (facts(dead(false), online()), Stage::DeadLettered, None),
        (facts(ended(DeliveryState::Cancelled), online()), Stage::Cancelled, None),
        (facts(ended(DeliveryState::Failed), online()), Stage::Failed, None),
        (facts(ended(DeliveryState::Processed), never), Stage::Processed, None),
        (
            facts(DeliveryFacts { ending: Some((at(130), "recipient removed")), ..stored() }, online()),
            Stage::Cancelled,
            None,
        ),
    ];
    for (facts, stage, reason) in table {
        assert_eq!(code(&facts), (stage, reason), "{facts:?}");
    }
}

#[test]
fn who_has_no_delivery_learns_why() {
    let later = Stay::Not { joined_at: Some(at(200)), left_at: None };
    let (agent, user) = (Some(IdentityKind::Agent), Some(IdentityKind::User));
    let never = Stay::Not { joined_at: None, left_at: None };
    for (kind, named, stay, reason) in [
        (agent, Named::No, Stay::Then, ReasonCode::NotMentioned),
        (agent, Named::Reference, Stay::Then, ReasonCode::NotMentioned),
        (agent, Named::Sender, Stay::Then, ReasonCode::NotMentioned),
        (agent, Named::No, later, ReasonCode::NotAParticipant),
        (user, Named::No, Stay::Then, ReasonCode::NotMentioned),
        (user, Named::Mention, Stay::Then, ReasonCode::Unknown),
        (None, Named::No, never, ReasonCode::NotAParticipant),
    ] {
        let facts = Facts { delivery: None, kind, named, stay, ..facts(stored(), online()) };
        assert_eq!(code(&facts), (Stage::None, Some(reason)), "{facts:?}");
    }
}

#[test]
fn a_lapsed_attempt_is_shown_as_lapsed_until_its_agent_is_back() {
    let mut delivery = taken();
    delivery.newest[0].lapsed_at = Some(at(140));
    let lapsed = facts(delivery, gone(115));
    assert_eq!(code(&lapsed), (Stage::Lapsed, Some(ReasonCode::Offline)));
    let steps: Vec<Stage> = account(&lapsed, at(1000)).steps.iter().map(|step| step.stage).collect();
    assert_eq!(steps, [Stage::Stored, Stage::Pushed, Stage::PickedUp, Stage::Lapsed]);
    let back = Facts { active_at: Some(at(999)), ..lapsed };
    assert_eq!(code(&back), (Stage::PickedUp, None));
}

#[test]
fn every_attempt_is_told_with_its_end() {
    let failed = AttemptFacts { error: Some("it broke".into()), ..attempt(1, AttemptState::Failed) };
    let outcome = Outcome { declined: true, reason: Some("not for me".into()), replied: Some(false) };
    let done = AttemptFacts { started_at: at(130), outcome: outcome.clone(), ..attempt(2, AttemptState::Success) };
    let delivery = DeliveryFacts {
        state: DeliveryState::Processed,
        served_at: Some(at(100)),
        finished_at: Some(at(120)),
        attempts: 2,
        newest: vec![failed, done],
        ..pushed()
    };
    let account = account(&facts(delivery, online()), at(1000));
    let told: Vec<(Stage, Option<i64>, Option<&str>)> =
        account.steps.iter().map(|step| (step.stage, step.attempt, step.note.as_deref())).collect();
    assert_eq!(
        told,
        [
            (Stage::Stored, None, None),
            (Stage::Served, None, None),
            (Stage::Pushed, None, None),
            (Stage::PickedUp, Some(1), None),
            (Stage::Failed, Some(1), Some("it broke")),
            (Stage::PickedUp, Some(2), None),
            (Stage::Processed, Some(2), Some("not for me")),
        ]
    );
    assert_eq!((account.outcome.as_ref(), account.verdict), (Some(&outcome), Verdict::Done));
    assert_eq!(summary(&account, "olga/bob"), "@olga/bob declined it at 1970-01-01T00:02:00.000000Z: not for me.");
}

#[test]
fn a_crash_is_told_as_a_span_and_a_clean_end_as_a_moment() {
    let run = Run { alive_at: at(50), ended_at: None, found_at: None };
    let known = Known { registered_at: at(5), recorded_since: at(0), newest: Some((at(40), None)), run: Some(run) };
    let with = |run| connection(None, Known { run, ..known });
    assert_eq!(with(Some(Run { ended_at: Some(at(60)), ..run })), gone(60));
    let crashed = Connection::Offline { since: at(50), latest: Some(at(70)) };
    assert_eq!(with(Some(Run { found_at: Some(at(70)), ..run })), crashed);
    // Connected after the run last wrote that it lives.
    let late = Known { newest: Some((at(55), None)), run: Some(Run { found_at: Some(at(70)), ..run }), ..known };
    assert_eq!(connection(None, late), Connection::Offline { since: at(55), latest: Some(at(70)) });
    // A clock that went back makes no span that ends before it begins.
    let back = Some(Run { found_at: Some(at(3)), ..run });
    assert_eq!(with(back), Connection::Offline { since: at(50), latest: Some(at(50)) });
    assert!(matches!(with(Some(run)), Connection::Unknown { missing: Missing::Connection, .. }));
    assert!(matches!(with(None), Connection::Unknown { .. }));
    assert_eq!(connection(None, Known { newest: Some((at(40), Some(at(45)))), ..known }), gone(45));
    assert_eq!(connection(Some(Ok(at(80))), known), Connection::Online { since: at(80) });
    assert_eq!(connection(Some(Err(at(80))), known), gone(80));
    assert_eq!(connection(None, Known { newest: None, ..known }), Connection::Never { since: at(5) });
    // An agent that is older than the record may have been connected before.
    let older = Known { newest: None, recorded_since: at(6), ..known };
    assert!(matches!(connection(None, older), Connection::Unknown { missing: Missing::Record, .. }));
}

fn moment() -> impl Strategy<Value = Timestamp> {
    prop_oneof![(0..200_i64).prop_map(at), any::<i64>().prop_map(Timestamp::from_micros)]
}

fn connections() -> impl Strategy<Value = Connection> {
    prop_oneof![
        moment().prop_map(|since| Connection::Never { since }),
        moment().prop_map(|since| Connection::Online { since }),
        (moment(), maybe(moment())).prop_map(|(since, latest)| Connection::Offline { since, latest }),
        (prop::sample::select(Missing::ALL), maybe(moment()))
            .prop_map(|(missing, last_at)| Connection::Unknown { missing, last_at }),
    ]
}

fn attempts() -> impl Strategy<Value = Vec<AttemptFacts>> {
    let states = [AttemptState::Processing, AttemptState::Success, AttemptState::Failed];
    let one = (
        1..50_i64,
        prop::sample::select(states.to_vec()),
        moment(),
        maybe(moment()),
        maybe(moment()),
        maybe(any::<bool>()),
    );
    let one = one.prop_map(|(number, state, started_at, completed_at, lapsed_at, replied)| AttemptFacts {
        number,
        state,
        started_at,
        completed_at,
        lapsed_at,
        error: None,
        outcome: Outcome { declined: false, reason: None, replied },
    });
    prop::collection::vec(one, 0..3)
}

fn deliveries() -> impl Strategy<Value = DeliveryFacts> {
    let times = (moment(), maybe(moment()), maybe(moment()), maybe(moment()), maybe(moment()));
    let states = prop::sample::select(&DeliveryState::ALL[..]);
    (states, any::<bool>(), any::<bool>(), times, attempts()).prop_map(
        |(state, recipient, expired, (stored_at, pushed_at, served_at, finished_at, ending), newest)| DeliveryFacts {
            recipient,
            state,
            stored_at,
            pushed_at,
            served_at,
            finished_at,
            reason: None,
            expired,
            attempts: newest.len() as i64,
            newest,
            ending: ending.map(|at| (at, "room deleted")),
        },
    )
}

fn stays() -> impl Strategy<Value = Stay> {
    let not = (maybe(moment()), maybe(moment())).prop_map(|(joined_at, left_at)| Stay::Not { joined_at, left_at });
    prop_oneof![Just(Stay::Then), not]
}

fn all_facts() -> impl Strategy<Value = Facts> {
    let kinds = maybe(prop::sample::select(&[IdentityKind::User, IdentityKind::Agent][..]));
    let names = [Named::No, Named::Sender, Named::Reference, Named::Mention];
    let limited =
        (moment(), moment(), moment()).prop_map(|(first_at, last_at, until)| Limited { first_at, last_at, until });
    let who = (moment(), kinds, prop::sample::select(names.to_vec()), stays());
    let rest = (maybe(moment()), maybe(limited), maybe(moment()), maybe(moment()), any::<bool>(), 0..i64::MAX);
    (who, maybe(deliveries()), connections(), rest).prop_map(|(who, delivery, connection, rest)| {
        let (posted_at, kind, named, stay) = who;
        let (superseded_at, limited, stopped, active_at, busy, activity_ttl) = rest;
        Facts {
            posted_at,
            kind,
            named,
            stay,
            delivery,
            connection,
            superseded_at,
            limited,
            stopped: stopped.map(|at| Stopped { at, by: profile() }),
            active_at,
            busy_with: busy.then(|| MessageId(Uuid::from_u128(9))),
            activity_ttl,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    // Whatever the facts, even such as cannot be: one answer, with a reason exactly where nothing happened, and what is
    // unknown is never fine.
    #[test]
    fn every_combination_of_facts_has_exactly_one_answer(facts in all_facts(), now in moment()) {
        let account = account(&facts, now);
        let code = account.reason.as_ref().map(Reason::code);
        let expected = match account.verdict {
            Verdict::Done => account.stage == Stage::Processed && code.is_none(),
            Verdict::Working => matches!(account.stage, Stage::PickedUp) && code.is_none(),
            Verdict::Failed => account.stage == Stage::Failed && code.is_none(),
            Verdict::Ended => match account.stage {
                Stage::Cancelled => code.is_none(),
                Stage::DeadLettered => matches!(code, None | Some(ReasonCode::Expired)),
                _ => false,
            },
            Verdict::NotSent => {
                account.stage == Stage::None
                    && matches!(code, Some(ReasonCode::NotMentioned | ReasonCode::NotAParticipant))
            }
            Verdict::Unknown => code == Some(ReasonCode::Unknown),
            Verdict::Waiting => {
                matches!(account.stage, Stage::Stored | Stage::Pushed | Stage::Served | Stage::PickedUp | Stage::Lapsed)
                    && code.is_some_and(|code| !matches!(
                        code,
                        ReasonCode::Unknown | ReasonCode::Expired | ReasonCode::NotMentioned | ReasonCode::NotAParticipant
                    ))
            }
        };
        prop_assert!(expected, "{account:?}");
        prop_assert_eq!(account.stage == Stage::None, facts.delivery.is_none());
        prop_assert_eq!(account.outcome.is_some(), account.stage == Stage::Processed);
        prop_assert_eq!(account.steps.is_empty(), facts.delivery.is_none());
        if let (Connection::Unknown { .. }, Some(delivery)) = (&facts.connection, &facts.delivery)
            && facts.stopped.is_none() && facts.limited.is_none() && delivery.ending.is_none()
            && matches!(delivery.state, DeliveryState::Stored | DeliveryState::Delivered)
        {
            prop_assert_eq!(account.verdict, Verdict::Unknown);
        }
        let text = summary(&account, "olga/bob");
        prop_assert!(text.ends_with('.') && text.contains("@olga/bob"), "{}", text);
    }
}
