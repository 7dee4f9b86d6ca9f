//! Delivers answers to waiting callers, off the apply loop where that is worth waking a thread.
//!
//! Waking a thread costs the apply loop as much as a third of a command (measured at 256 callers). A separate thread
//! therefore delivers the answers of a large entry while the loop continues; the loop itself delivers those of a small
//! one, because a handover would cost their callers one more wake-up.
//!
//! Keeps: J5, answers are delivered in the order of the entries.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use contract::Error;

use crate::error::cannot_open;
use crate::pending::Responder;

/// Answers that the apply loop delivers itself, if none wait.
const ANSWERS_AT_ONCE_MAX: usize = 8;

/// Entries whose answers may wait.
const ENTRIES_MAX: usize = 4;

/// The answers to the commands of one entry, with their waiting callers.
struct EntryAnswers {
    replies: Vec<Vec<u8>>,
    responders: Vec<Responder>,
}

impl EntryAnswers {
    fn give(self) {
        assert_eq!(self.replies.len(), self.responders.len(), "every command has a reply");
        for (reply, responder) in self.replies.into_iter().zip(self.responders) {
            responder.give(Ok(reply));
        }
    }
}

/// Delivers the answers of entries, in order.
pub(crate) struct Answers {
    /// Gone when the thread is to end.
    queue: Option<SyncSender<EntryAnswers>>,
    /// Entries handed over and not answered yet.
    waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Answers {
    pub(crate) fn start() -> Result<Self, Error> {
        let (queue, entries) = sync_channel::<EntryAnswers>(ENTRIES_MAX);
        let waiting = Arc::new(AtomicUsize::new(0));
        let thread = std::thread::Builder::new()
            .name("answer".into())
            .spawn({
                let waiting = waiting.clone();
                move || {
                    for entry in entries {
                        entry.give();
                        waiting.fetch_sub(1, Ordering::Release);
                    }
                }
            })
            .map_err(|error| cannot_open(format!("could not start the answer thread: {error}")))?;
        Ok(Self { queue: Some(queue), waiting, thread: Some(thread) })
    }

    /// Answers the commands of an entry, now or soon.
    pub(crate) fn give(&self, replies: Vec<Vec<u8>>, responders: Vec<Responder>) {
        let answers = EntryAnswers { replies, responders };
        let none_waits = self.waiting.load(Ordering::Acquire) == 0;
        if answers.replies.len() <= ANSWERS_AT_ONCE_MAX && none_waits {
            answers.give();
        } else if let Some(queue) = &self.queue {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            // If the thread is gone, so are the answers, and each reports that its outcome is unknown.
            let _ = queue.send(answers);
        }
    }
}

impl Drop for Answers {
    /// Delivers what still waits.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A caller's waker may panic; the answers after it report that their outcome is unknown.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::task::{Context, Poll, Wake, Waker};

    use super::*;
    use crate::pending::{Decode, Pending};

    /// Notes when its command was answered.
    struct Note {
        command: usize,
        order: Arc<Mutex<Vec<usize>>>,
    }

    impl Wake for Note {
        fn wake(self: Arc<Self>) {
            self.order.lock().expect("no panic").push(self.command);
        }
    }

    #[test]
    fn small_entries_never_overtake_large_ones() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let answers = Answers::start().expect("a thread");
        let mut pending = Vec::new();
        let mut commands = 0;
        for entry in 0..200 {
            let size = if entry % 2 == 0 { 2 * ANSWERS_AT_ONCE_MAX } else { 1 };
            let mut responders = Vec::new();
            for _ in 0..size {
                let (responder, slot) = Responder::new();
                let mut answer = Box::pin(Pending::waiting(slot, Decode::Contracts(Ok)));
                let waker = Waker::from(Arc::new(Note { command: commands, order: order.clone() }));
                assert_eq!(answer.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending);
                pending.push(answer);
                responders.push(responder);
                commands += 1;
            }
            answers.give(vec![Vec::new(); size], responders);
        }
        drop(answers);
        let order = order.lock().expect("no panic");
        assert_eq!(*order, (0..commands).collect::<Vec<_>>(), "J5: answered in order");
    }
}
