//! The queue into one connection: filled by anybody, emptied by the connection's own task.
//!
//! It is bounded in frames and bytes. **When one more does not fit, everything that waits is dropped and the connection
//! is closed with 1012**: the client reconnects and finds what it missed through `/messages/next`. Nothing is ever
//! dropped from a connection that stays open.
//!
//! A channel whose join is not answered yet is *held*: its events wait beside the queue until the reply is in it
//! (clients throw away what comes before the reply), or are forgotten when the join is refused.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bandstand_wire::ids::RoomId;
use bandstand_wire::phoenix::close_code;

use super::channel::Channel;
use super::closing::Closing;
use super::locked;
use crate::settings::Limits;

/// Frames that the connection takes at a time. Small enough that the count of what waits stays true while a slow
/// client takes them.
const BATCH: usize = 64;

/// A message whose arrival at an agent is noted once it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Where.
    pub(crate) room: RoomId,
    /// Which message of the room.
    pub(crate) sequence: i64,
}

/// Something for the connection's task to do.
#[derive(Debug)]
pub(crate) enum Item {
    /// A frame that is complete: an answer.
    Frame(String),
    /// An event; its frame is put together when it is written.
    Push {
        /// Where.
        channel: Arc<Channel>,
        /// Its name.
        event: &'static str,
        /// Its payload, shared by all who hear it.
        payload: Arc<str>,
        /// What to note when it was written.
        mark: Option<Mark>,
    },
    /// Look again whether the (held) channel may be heard.
    Recheck(Arc<Channel>),
    /// The end, after all that was queued before.
    Close(Closing),
}

impl Item {
    fn bytes(&self) -> usize {
        match self {
            Self::Frame(text) => text.len(),
            // The prefix is about as long as the topic's name and the event's.
            Self::Push { channel, event, payload, .. } => payload.len() + channel.name.len() + event.len() + 24,
            Self::Recheck(_) | Self::Close(_) => 0,
        }
    }
}

/// What the connection's task is to do next.
#[derive(Debug)]
pub(crate) enum Work {
    /// Write these, then call [`Outbound::written`] with the sums.
    Batch {
        /// In order.
        items: Vec<Item>,
        /// How many.
        frames: usize,
        /// How large.
        bytes: usize,
    },
    /// Stop at once.
    CloseNow(Closing),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Outbound {
    max_frames: usize,
    max_bytes: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    queue: VecDeque<Item>,
    /// Events of held channels, in order.
    held: Vec<(u64, Item)>,
    /// Held channels; one that is held for two reasons is in it twice.
    holding: Vec<u64>,
    /// Frames in `queue`, in `held` and in the batch that is being written.
    frames: usize,
    /// Their bytes.
    bytes: usize,
    /// Set once: the connection ends without writing more.
    close_now: Option<Closing>,
    /// Nothing more is taken.
    sealed: bool,
    waker: Option<Waker>,
}

impl Inner {
    fn enqueue(&mut self, item: Item, max_frames: usize, max_bytes: usize) {
        if self.sealed {
            return;
        }
        let held = match &item {
            Item::Push { channel, .. } => self.holding.contains(&channel.id).then_some(channel.id),
            Item::Frame(_) | Item::Recheck(_) | Item::Close(_) => None,
        };
        self.frames += 1;
        self.bytes += item.bytes();
        if self.frames > max_frames || self.bytes > max_bytes {
            metrics::counter!("socket_overflow_total").increment(1);
            self.end(Closing { code: close_code::RESTART, reason: "client too slow" });
        } else if let Some(channel) = held {
            self.held.push((channel, item));
        } else {
            self.queue.push_back(item);
        }
    }

    fn end(&mut self, closing: Closing) {
        self.sealed = true;
        self.queue = VecDeque::new();
        self.held = Vec::new();
        self.close_now.get_or_insert(closing);
    }

    /// Ends one hold; whether it was the last one.
    fn unhold(&mut self, channel: u64) -> bool {
        if let Some(at) = self.holding.iter().position(|held| *held == channel) {
            self.holding.swap_remove(at);
        }
        !self.holding.contains(&channel)
    }
}

impl Outbound {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { max_frames: limits.socket_queue, max_bytes: limits.socket_queue_bytes, inner: Mutex::default() }
    }

    /// Changes the queue and wakes the connection's task, outside the lock.
    fn change(&self, change: impl FnOnce(&mut Inner)) {
        let waker = {
            let mut inner = locked(&self.inner);
            change(&mut inner);
            if inner.queue.is_empty() && inner.close_now.is_none() { None } else { inner.waker.take() }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Queues something. Never waits; see the module for what happens when it is full.
    pub(crate) fn push(&self, item: Item) {
        self.change(|inner| inner.enqueue(item, self.max_frames, self.max_bytes));
    }

    /// From now on events of this channel wait for [`Self::open`].
    pub(crate) fn hold(&self, channel: u64) {
        locked(&self.inner).holding.push(channel);
    }

    /// Queues the reply, then what the channel heard meanwhile.
    pub(crate) fn open(&self, channel: u64, reply: Option<String>) {
        self.change(|inner| {
            if let Some(reply) = reply {
                inner.enqueue(Item::Frame(reply), self.max_frames, self.max_bytes);
            }
            if inner.unhold(channel) && !inner.sealed {
                let (open, held) = std::mem::take(&mut inner.held).into_iter().partition(|(of, _)| *of == channel);
                inner.held = held;
                inner.queue.extend(Vec::into_iter(open).map(|(_, item)| item));
            }
        });
    }

    /// Queues the reply, and forgets what the channel heard meanwhile, whatever it was held for.
    pub(crate) fn refuse(&self, channel: u64, reply: Option<String>) {
        self.change(|inner| {
            if let Some(reply) = reply {
                inner.enqueue(Item::Frame(reply), self.max_frames, self.max_bytes);
            }
            inner.holding.retain(|held| *held != channel);
            let (mut frames, mut bytes) = (0, 0);
            inner.held.retain(|(of, item)| {
                let keep = *of != channel;
                if !keep {
                    frames += 1;
                    bytes += item.bytes();
                }
                keep
            });
            inner.frames -= frames;
            inner.bytes -= bytes;
        });
    }

    /// Ends the connection after what is queued by now.
    pub(crate) fn close(&self, closing: Closing) {
        self.change(|inner| {
            if !inner.sealed {
                inner.sealed = true;
                inner.queue.push_back(Item::Close(closing));
            }
        });
    }

    /// Ends the connection at once; what waits is forgotten.
    pub(crate) fn close_now(&self, closing: Closing) {
        self.change(|inner| inner.end(closing));
    }

    /// The next work of the connection's task; only that task may poll.
    pub(crate) fn poll_work(&self, cx: &Context<'_>) -> Poll<Work> {
        let mut inner = locked(&self.inner);
        if let Some(closing) = inner.close_now {
            return Poll::Ready(Work::CloseNow(closing));
        }
        if inner.queue.is_empty() {
            inner.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let items: Vec<Item> = if inner.queue.len() <= BATCH {
            // Gives the queue's memory back as well: most connections are quiet most of the time.
            std::mem::take(&mut inner.queue).into()
        } else {
            inner.queue.drain(..BATCH).collect()
        };
        let frames = items.iter().filter(|item| !matches!(item, Item::Close(_))).count();
        let bytes = items.iter().map(Item::bytes).sum();
        Poll::Ready(Work::Batch { items, frames, bytes })
    }

    /// Ready once the connection is to end at once; watched while a write waits for a slow client.
    pub(crate) fn poll_close_now(&self, cx: &Context<'_>) -> Poll<Closing> {
        let mut inner = locked(&self.inner);
        match inner.close_now {
            Some(closing) => Poll::Ready(closing),
            None => {
                inner.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// A batch was written.
    pub(crate) fn written(&self, frames: usize, bytes: usize) {
        let mut inner = locked(&self.inner);
        inner.frames = inner.frames.saturating_sub(frames);
        inner.bytes = inner.bytes.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bandstand_wire::phoenix::{Ref, Topic};
    use proptest::prelude::*;
    use uuid::Uuid;

    fn limits(frames: usize, bytes: usize) -> Limits {
        Limits { socket_queue: frames, socket_queue_bytes: bytes, ..Limits::default() }
    }

    fn channel(id: u64) -> Arc<Channel> {
        let topic = Topic::ChatRoom(RoomId(Uuid::from_u128(u128::from(id))));
        Arc::new(Channel { id, topic, name: topic.to_string().into(), join_ref: Ref::NONE })
    }

    fn event(channel: &Arc<Channel>, payload: &str) -> Item {
        Item::Push { channel: Arc::clone(channel), event: "e", payload: payload.into(), mark: None }
    }

    /// What is queued now, as short words.
    fn words(outbound: &Outbound) -> Vec<String> {
        let mut words = Vec::new();
        let cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(work) = outbound.poll_work(&cx) {
            match work {
                Work::Batch { items, frames, bytes } => {
                    words.extend(items.into_iter().map(|item| match item {
                        Item::Frame(text) => text,
                        Item::Push { channel, payload, .. } => format!("{}:{payload}", channel.id),
                        Item::Recheck(channel) => format!("{}?", channel.id),
                        Item::Close(closing) => closing.code.to_string(),
                    }));
                    outbound.written(frames, bytes);
                }
                Work::CloseNow(closing) => {
                    words.push(format!("now {}", closing.code));
                    break;
                }
            }
        }
        words
    }

    #[test]
    fn events_of_a_held_channel_follow_its_reply() {
        let outbound = Outbound::new(&limits(100, 10_000));
        let (one, two) = (channel(1), channel(2));
        outbound.hold(1);
        outbound.push(event(&one, "a"));
        outbound.push(event(&two, "b"));
        outbound.push(event(&one, "c"));
        assert_eq!(words(&outbound), ["2:b"]);
        outbound.open(1, Some("reply".into()));
        outbound.push(event(&one, "d"));
        assert_eq!(words(&outbound), ["reply", "1:a", "1:c", "1:d"]);
    }

    #[test]
    fn a_channel_held_twice_opens_with_the_second() {
        let outbound = Outbound::new(&limits(100, 10_000));
        let one = channel(1);
        outbound.hold(1);
        outbound.hold(1);
        outbound.push(event(&one, "a"));
        outbound.open(1, Some("reply".into()));
        assert_eq!(words(&outbound), ["reply"]);
        outbound.open(1, None);
        assert_eq!(words(&outbound), ["1:a"]);
    }

    #[test]
    fn a_refused_channel_is_forgotten_and_frees_its_room() {
        let outbound = Outbound::new(&limits(3, 10_000));
        let one = channel(1);
        outbound.hold(1);
        outbound.push(event(&one, "a"));
        outbound.push(event(&one, "b"));
        outbound.refuse(1, Some("no".into()));
        outbound.push(Item::Frame("x".into()));
        outbound.push(Item::Frame("y".into()));
        assert_eq!(words(&outbound), ["no", "x", "y"]);
    }

    #[test]
    fn one_too_many_ends_the_connection() {
        for outbound in [Outbound::new(&limits(2, 10_000)), Outbound::new(&limits(100, 14))] {
            for _ in 0..3 {
                outbound.push(Item::Frame("frame".into()));
            }
            outbound.push(Item::Frame("later".into()));
            assert_eq!(words(&outbound), ["now 1012"]);
        }
    }

    #[test]
    fn what_is_being_written_still_counts() {
        let outbound = Outbound::new(&limits(2, 10_000));
        let cx = Context::from_waker(Waker::noop());
        outbound.push(Item::Frame("a".into()));
        outbound.push(Item::Frame("b".into()));
        assert!(matches!(outbound.poll_work(&cx), Poll::Ready(Work::Batch { frames: 2, .. })));
        assert!(outbound.poll_close_now(&cx).is_pending());
        outbound.push(Item::Frame("c".into()));
        assert!(outbound.poll_close_now(&cx).is_ready());
    }

    #[test]
    fn a_close_comes_after_what_was_queued_and_ends_it() {
        let outbound = Outbound::new(&limits(2, 10_000));
        outbound.hold(1);
        outbound.push(event(&channel(1), "held"));
        outbound.push(Item::Frame("a".into()));
        outbound.close(Closing { code: 1000, reason: "" });
        outbound.push(Item::Frame("b".into()));
        outbound.open(1, Some("reply".into()));
        outbound.close(Closing { code: 1012, reason: "" });
        assert_eq!(words(&outbound), ["a", "1000"]);
    }

    proptest! {
        // Whatever the order of holds and opens: per channel everything arrives, in order, and the count returns to 0.
        #[test]
        fn nothing_is_lost_or_reordered(steps in proptest::collection::vec((0..4_u8, 1..4_u64), 0..60)) {
            let outbound = Outbound::new(&limits(1000, 100_000));
            let mut holds = Vec::new();
            let (mut sent, mut heard) = (Vec::new(), Vec::new());
            for (at, (step, number)) in steps.into_iter().enumerate() {
                match step {
                    0 => { outbound.hold(number); holds.push(number); }
                    1 => if let Some(number) = holds.pop() { outbound.open(number, None); },
                    2 => heard.extend(words(&outbound)),
                    _ => {
                        outbound.push(event(&channel(number), &at.to_string()));
                        sent.push(format!("{number}:{at}"));
                    }
                }
            }
            while let Some(number) = holds.pop() {
                outbound.open(number, None);
            }
            heard.extend(words(&outbound));
            for number in 1..4 {
                let of = |words: &[String]| {
                    words.iter().filter(|w| w.starts_with(&format!("{number}:"))).cloned().collect::<Vec<_>>()
                };
                prop_assert_eq!(of(&heard), of(&sent));
            }
            let inner = locked(&outbound.inner);
            prop_assert_eq!((inner.frames, inner.bytes), (0, 0));
        }
    }
}
