//! A bounded queue from async callers to threads: putting never waits, taking blocks.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::StoreError;

pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    ready: Condvar,
    limit: usize,
}

struct State<T> {
    waiting: VecDeque<T>,
    closed: bool,
}

impl<T> Queue<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            state: Mutex::new(State { waiting: VecDeque::new(), closed: false }),
            ready: Condvar::new(),
            limit: limit.max(1),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an item at the end: [`StoreError::Busy`] when the queue is full, [`StoreError::Closed`] after closing.
    pub(super) fn put(&self, item: T) -> Result<(), StoreError> {
        let mut state = self.state();
        if state.closed {
            return Err(StoreError::Closed);
        }
        if state.waiting.len() >= self.limit {
            return Err(StoreError::Busy);
        }
        state.waiting.push_back(item);
        drop(state);
        self.ready.notify_one();
        Ok(())
    }

    /// Waits for the first item; none once the queue is closed and empty.
    pub(super) fn take(&self) -> Option<T> {
        let mut state = self.state();
        loop {
            if let Some(item) = state.waiting.pop_front() {
                return Some(item);
            }
            if state.closed {
                return None;
            }
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The first item, if there is one.
    pub(super) fn try_take(&self) -> Option<T> {
        self.state().waiting.pop_front()
    }

    /// Takes no more items; those that wait are still handed out.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.ready.notify_all();
    }

    /// Closes and throws away what waits.
    pub(super) fn abandon(&self) {
        self.close();
        let dropped = std::mem::take(&mut self.state().waiting);
        drop(dropped);
    }
}
