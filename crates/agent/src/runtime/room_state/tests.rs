//! A room against a model of the platform, under any schedule of faults.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;

/// A message of the model: its id says its place in the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbered(u64);

fn id(number: u64) -> MessageId {
    MessageId(uuid::Uuid::from_u128(u128::from(number)))
}

impl Identified for Numbered {
    fn id(&self) -> MessageId {
        id(self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    Open,
    Processed,
}

/// What a schedule can do.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// A message is posted; its push arrives, is lost, or arrives twice.
    Post {
        pushes: u8,
    },
    /// What is under way succeeds.
    Answer,
    /// It fails before the platform saw it.
    Refuse,
    /// The platform did it, but the answer is lost.
    Lose,
    /// The turn ends in another way than with success.
    EndTurn(u8),
    /// A person intervenes.
    Control(u8),
    /// The signal above never reaches the agent.
    MissedControl(u8),
    /// The timer that was asked for fires.
    Elapse,
    Resync,
    /// The process dies and another one begins.
    Crash,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        4 => (0u8..3).prop_map(|pushes| Move::Post { pushes }),
        12 => Just(Move::Answer),
        2 => Just(Move::Refuse),
        2 => Just(Move::Lose),
        3 => (0u8..4).prop_map(Move::EndTurn),
        2 => (0u8..3).prop_map(Move::Control),
        1 => (0u8..2).prop_map(Move::MissedControl),
        4 => Just(Move::Elapse),
        1 => Just(Move::Resync),
        1 => Just(Move::Crash),
    ];
    prop::collection::vec(one, 0..120)
}

struct World {
    state: RoomState<Numbered>,
    doing: VecDeque<Effect<Numbered>>,
    messages: BTreeMap<u64, Stored>,
    stopped: bool,
    max_attempts: u32,
    /// How often each was handled to completion in the life of one process.
    completed: BTreeMap<u64, u32>,
    /// In which order turns began.
    began: Vec<u64>,
    failed: Vec<u64>,
    own_ran: u32,
}

impl World {
    fn new(max_attempts: u32) -> Self {
        let mut world = Self {
            state: RoomState::new(max_attempts),
            doing: VecDeque::new(),
            messages: BTreeMap::new(),
            stopped: false,
            max_attempts,
            completed: BTreeMap::new(),
            began: Vec::new(),
            failed: Vec::new(),
            own_ran: 0,
        };
        let effects = world.state.start();
        world.take(effects);
        world
    }

    fn feed(&mut self, input: Input<Numbered>) {
        let effects = self.state.step(input);
        self.take(effects);
    }

    fn take(&mut self, effects: Vec<Effect<Numbered>>) {
        for effect in effects {
            match effect {
                Effect::Run(message, _) => {
                    self.began.push(message.0);
                    self.doing.push_back(Effect::Run(message, false));
                }
                Effect::Abort(_) => match self.doing.pop_front() {
                    Some(Effect::Run(..)) => self.feed(Input::TurnEnded(TurnEnd::Aborted)),
                    Some(Effect::Claim(_)) => self.feed(Input::Claimed(Claim::Withdrawn)),
                    Some(Effect::RunOwn) => self.feed(Input::OwnEnded),
                    other => panic!("nothing to give up: {other:?}"),
                },
                // Whatever else is to be done takes the place of a timer.
                effect => {
                    self.doing.retain(|doing| !matches!(doing, Effect::Idle { .. } | Effect::Wait { .. }));
                    self.doing.push_back(effect);
                }
            }
        }
        let busy = self.doing.iter().filter(|doing| !matches!(doing, Effect::Idle { .. })).count();
        assert!(busy <= 1, "more than one thing under way: {:?}", self.doing);
    }

    fn unprocessed(&self) -> Vec<Numbered> {
        self.messages.iter().filter(|(_, state)| **state == Stored::Open).map(|(number, _)| Numbered(*number)).collect()
    }

    /// What is under way reaches the platform; the answer may be lost on its way back.
    fn answer(&mut self, lost: bool) {
        let Some(effect) = self.doing.pop_front() else { return };
        let stopped = self.stopped;
        let input = match effect {
            Effect::FetchNext if lost => Input::Next(Next::Unavailable),
            Effect::FetchNext => Input::Next(match self.unprocessed().first() {
                Some(first) if !stopped => Next::Message(*first),
                _ => Next::Nothing,
            }),
            Effect::List(_) if lost => Input::Listed(Err(Unavailable)),
            // Pages of two, so that paging is walked too.
            Effect::List(cursor) => {
                let from: usize = cursor.map_or(0, |cursor| cursor.parse().expect("our own cursor"));
                let all = self.unprocessed();
                let page: Vec<Numbered> = all.iter().skip(from).take(2).copied().collect();
                let more = (all.len() > from + 2).then(|| (from + 2).to_string());
                Input::Listed(Ok((page, more)))
            }
            Effect::Claim(_) if lost => Input::Claimed(Claim::Unavailable),
            Effect::Claim(_) if stopped => Input::Claimed(Claim::Stopped),
            Effect::Claim(_) => Input::Claimed(Claim::Confirmed),
            Effect::Run(message, _) => {
                *self.completed.entry(message.0).or_insert(0) += 1;
                Input::TurnEnded(TurnEnd::Completed)
            }
            Effect::RunOwn => {
                self.own_ran += 1;
                Input::OwnEnded
            }
            Effect::Mark(..) if stopped && lost => Input::Marked(Marked::Unconfirmed),
            Effect::Mark(..) if stopped => Input::Marked(Marked::Stopped),
            Effect::Mark(message, mark) => {
                let number = message.0.as_u128() as u64;
                let ended = self.messages.get(&number) == Some(&Stored::Processed);
                if mark == Mark::Processed {
                    self.messages.insert(number, Stored::Processed);
                }
                Input::Marked(match (lost, ended) {
                    (true, _) => Marked::Unconfirmed,
                    (false, true) => Marked::Ended,
                    (false, false) => Marked::Accepted,
                })
            }
            effect @ (Effect::Wait { .. } | Effect::Idle { .. }) => {
                self.doing.push_front(effect);
                return;
            }
            effect @ (Effect::Abort(_) | Effect::Closed) => panic!("not to be answered: {effect:?}"),
        };
        self.feed(input);
    }

    fn refuse(&mut self) {
        let input = match self.doing.front() {
            Some(Effect::FetchNext) => Input::Next(Next::Unavailable),
            Some(Effect::List(_)) => Input::Listed(Err(Unavailable)),
            Some(Effect::Claim(_)) => Input::Claimed(Claim::Unavailable),
            Some(Effect::Mark(..)) => Input::Marked(Marked::Unconfirmed),
            _ => return,
        };
        self.doing.pop_front();
        self.feed(input);
    }

    fn end_turn(&mut self, how: u8) {
        let Some(Effect::Run(message, _)) = self.doing.front().cloned() else { return };
        self.doing.pop_front();
        let end = match how {
            0 => TurnEnd::NotAccepted,
            1 => {
                self.stopped = true;
                TurnEnd::Stopped
            }
            _ => {
                self.failed.push(message.0);
                TurnEnd::Failed("no".to_owned())
            }
        };
        self.feed(Input::TurnEnded(end));
    }

    fn elapse(&mut self) {
        let at = self.doing.iter().position(|doing| matches!(doing, Effect::Wait { .. } | Effect::Idle { .. }));
        if let Some(at) = at {
            self.doing.remove(at);
            self.feed(Input::Elapsed);
        }
    }

    fn control(&mut self, which: u8, reaches: bool) {
        let control = match which {
            0 => Control::Stop,
            1 => Control::Play,
            _ => Control::Interrupt,
        };
        match control {
            Control::Stop => self.stopped = true,
            Control::Play => self.stopped = false,
            Control::Interrupt => {}
        }
        if reaches {
            self.feed(Input::Control(control));
        }
    }

    fn crash(&mut self) {
        // What was handled but not marked will be handled again by the next process: nobody else can know.
        for (number, times) in &mut self.completed {
            if self.messages.get(number) == Some(&Stored::Open) {
                *times = 0;
            }
        }
        self.failed.clear();
        self.doing.clear();
        self.state = RoomState::new(self.max_attempts);
        let effects = self.state.start();
        self.take(effects);
    }

    fn go(&mut self, step: Move, posted: &mut u64) {
        match step {
            Move::Post { pushes } => {
                *posted += 1;
                self.messages.insert(*posted, Stored::Open);
                for _ in 0..pushes {
                    self.feed(Input::Pushed);
                }
            }
            Move::Answer => self.answer(false),
            Move::Refuse => self.refuse(),
            Move::Lose => self.answer(true),
            Move::EndTurn(how) => self.end_turn(how),
            Move::Control(which) => self.control(which, true),
            Move::MissedControl(which) => self.control(which, false),
            Move::Elapse => self.elapse(),
            Move::Resync => self.feed(Input::Resync),
            Move::Crash => self.crash(),
        }
        for (number, times) in &self.completed {
            assert!(*times <= 1, "message {number} was handled to completion {times} times");
        }
    }

    /// The faults are over: everything is answered and the agent may go on.
    fn settle(&mut self) {
        self.control(1, true);
        self.feed(Input::Resync);
        for _ in 0..10_000 {
            match self.doing.front() {
                Some(Effect::Idle { .. }) if self.doing.len() == 1 => return,
                Some(Effect::Wait { .. }) => self.elapse(),
                _ => self.answer(false),
            }
        }
        panic!("it never comes to rest: {:?}", self.doing);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn under_any_schedule_nothing_is_lost_and_nothing_is_handled_twice(
        schedule in moves(),
        max_attempts in 1u32..3,
    ) {
        let mut world = World::new(max_attempts);
        let mut posted = 0;
        for step in schedule {
            world.go(step, &mut posted);
        }
        world.settle();
        for (number, times) in &world.completed {
            prop_assert!(*times <= 1, "message {} was handled to completion {} times", number, times);
        }
        for (number, state) in &world.messages {
            let given_up = world.failed.contains(number);
            prop_assert!(*state == Stored::Processed || given_up, "message {} is lost", number);
        }
    }

    #[test]
    fn without_failures_turns_begin_in_the_order_of_the_room(
        schedule in moves().prop_map(|moves| {
            moves.into_iter().filter(|step| !matches!(step, Move::EndTurn(_) | Move::Crash)).collect::<Vec<_>>()
        }),
    ) {
        let mut world = World::new(1);
        let mut posted = 0;
        for step in schedule {
            world.go(step, &mut posted);
        }
        world.settle();
        let mut first: Vec<u64> = Vec::new();
        for number in &world.began {
            if !first.contains(number) {
                first.push(*number);
            }
        }
        prop_assert!(first.is_sorted(), "{:?}", world.began);
    }
}

#[test]
fn closing_sends_what_is_owed_and_begins_nothing() {
    let mut world = World::new(1);
    let mut posted = 0;
    world.go(Move::Post { pushes: 1 }, &mut posted);
    world.go(Move::Post { pushes: 1 }, &mut posted);
    while !world.state.is_running() {
        world.answer(false);
    }
    world.feed(Input::Close);
    world.answer(false);
    assert!(matches!(world.doing.front(), Some(Effect::Mark(_, Mark::Processed))), "{:?}", world.doing);
    world.answer(false);
    assert_eq!(world.doing.front(), Some(&Effect::Closed));
    assert_eq!(world.unprocessed(), [Numbered(2)]);
}

#[test]
fn a_turn_that_is_cut_is_not_marked() {
    let mut world = World::new(1);
    let mut posted = 0;
    world.go(Move::Post { pushes: 1 }, &mut posted);
    while !world.state.is_running() {
        world.answer(false);
    }
    world.feed(Input::Cut);
    assert_eq!(world.doing.front(), Some(&Effect::Closed));
    assert_eq!(world.unprocessed(), [Numbered(1)]);
}

#[test]
fn a_stopped_room_only_looks_whether_it_may_go_on() {
    let mut world = World::new(1);
    while !matches!(world.doing.front(), Some(Effect::Idle { .. })) {
        world.answer(false);
    }
    world.control(0, true);
    assert_eq!(world.doing.front(), Some(&Effect::Idle { checks: 0, stopped: true }));
    let mut posted = 0;
    world.go(Move::Post { pushes: 1 }, &mut posted);
    assert_eq!(world.doing.front(), Some(&Effect::Idle { checks: 0, stopped: true }));
    // The word to go on is missed; the next look finds out.
    world.control(1, false);
    world.elapse();
    world.settle();
    assert_eq!(world.unprocessed(), []);
}

#[test]
fn what_a_running_turn_was_answered_with_gets_no_turn_but_a_mark() {
    let mut world = World::new(1);
    let mut posted = 0;
    world.go(Move::Post { pushes: 1 }, &mut posted);
    while !world.state.is_running() {
        world.answer(false);
    }
    world.go(Move::Post { pushes: 0 }, &mut posted);
    world.feed(Input::Consumed(id(2)));
    world.settle();
    assert_eq!((world.unprocessed(), world.began), (vec![], vec![1]));
}

#[test]
fn the_runtimes_own_turns_run_between_the_others_and_not_while_stopped() {
    let mut world = World::new(1);
    world.control(0, true);
    world.feed(Input::Own);
    world.feed(Input::Own);
    world.answer(false);
    assert_eq!(world.own_ran, 0);
    world.settle();
    assert_eq!(world.own_ran, 2);
}

#[test]
fn an_attempt_that_ended_unheard_counts_as_one_and_the_next_one_runs() {
    let mut world = World::new(2);
    let mut posted = 0;
    world.go(Move::Post { pushes: 1 }, &mut posted);
    while !world.state.is_running() {
        world.answer(false);
    }
    world.doing.clear();
    world.feed(Input::TurnEnded(TurnEnd::Failed("no".to_owned())));
    // The mark is written, and its answer lost.
    world.answer(true);
    world.elapse();
    assert!(matches!(world.doing.pop_front(), Some(Effect::Mark(..))), "it is sent again");
    world.feed(Input::Marked(Marked::Ended));
    world.settle();
    assert_eq!((world.unprocessed(), world.began), (vec![], vec![1, 1]));
}
