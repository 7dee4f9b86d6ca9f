//! Access to an open shard: reading it and proposing commands to it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use contract::Error;
use journal::LocalJournal;
use kernel::command::MACHINE;
use kernel::{Answer, Body, Catalogue, Keys};
use kv::{Overlay, OverlayView, View, Writer};
use session::{Envelope, SESSIONS, SessionAnswer, SessionCommand};
use storage::TreeStore;

use crate::apply::proposer::Submission;
use crate::clock::{Clock, Time};
use crate::encoding::encode;
use crate::error::{from_full_queue, from_journal};
use crate::naming_view::NamingView;
use crate::pending::{Decode, Pending, Responder};
use crate::place::ShardPlace;
use crate::shared::Shared;
use crate::space::disk::Disk;
use crate::tenure::Tenure;

/// Reads and proposes. The retention walk has its own: if it held the shard, dropping the last handle during a walk
/// would return before the directory is released.
#[derive(Clone)]
pub struct Access {
    pub(crate) place: ShardPlace,
    /// The history that its entries belong to.
    pub(crate) history: u64,
    pub(crate) shared: Arc<Shared>,
    pub(crate) store: Arc<Overlay>,
    pub(crate) tree: Arc<TreeStore>,
    pub(crate) journal: Arc<LocalJournal<Submission>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) time: Arc<Time>,
    pub(crate) tenure: Arc<Tenure>,
    pub(crate) disk: Arc<Disk>,
}

impl Access {
    /// A view of everything acknowledged so far, with the catalogue.
    pub(crate) fn view(&self) -> Result<(Arc<dyn View>, Arc<Catalogue>), Error> {
        let (view, catalogue) = self.newest()?;
        Ok((self.naming(view, &catalogue), catalogue))
    }

    /// Reads one thing at a view of everything acknowledged so far.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&dyn View, &Arc<Catalogue>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (view, catalogue) = self.newest()?;
        match self.tree.noticed_count() {
            0 => read(&view, &catalogue),
            _ => read(&*self.naming(view, &catalogue), &catalogue),
        }
    }

    fn newest(&self) -> Result<(OverlayView, Arc<Catalogue>), Error> {
        let (view, catalogue) = (self.store.newest(), self.shared.catalogue());
        // After the view was taken: a node that was paused in between must not answer with it.
        self.tenure.check(&*self.clock)?;
        Ok((view, catalogue))
    }

    /// The view, whose errors name what is damaged once something is.
    fn naming(&self, view: OverlayView, catalogue: &Arc<Catalogue>) -> Arc<dyn View> {
        let view = Arc::new(view);
        match self.tree.noticed_count() {
            0 => view,
            _ => Arc::new(NamingView { inner: view, catalogue: catalogue.clone() }),
        }
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(crate) fn time(&self) -> &Time {
        &self.time
    }

    /// Bytes of the entries applied since the store was opened.
    pub(crate) fn entry_bytes(&self) -> u64 {
        self.shared.entry_bytes.load(Ordering::Relaxed)
    }

    /// The keys of its rows.
    pub fn keys(&self) -> Keys {
        self.place.keys
    }

    /// The catalogue in force.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.shared.catalogue()
    }

    /// Accepts no more commands: the store below has failed for good. Those that are waiting are refused.
    pub(crate) fn stop(&self, error: &Error) {
        // First, so that a caller who finds the journal closed can ask why.
        self.shared.fail(error.clone());
        for submission in self.journal.stop() {
            submission.responder.give(Err(error.clone()));
        }
    }

    /// Refuses a command of this size that would make the store larger while space is short.
    pub fn check_space(&self, bytes: usize) -> Result<(), Error> {
        // A store that has stopped frees nothing: that comes first.
        match self.shared.failure() {
            Some(error) => Err(error),
            None => self.disk.check(&*self.clock, bytes),
        }
    }

    /// Proposes a command without a session.
    pub fn propose<T>(
        &self,
        catalogue: &Catalogue,
        body: &Body<'_>,
        decode: fn(Answer) -> Result<T, Error>,
    ) -> Pending<T> {
        let envelope = Envelope::without_session(MACHINE, catalogue.revision, b"");
        self.propose_in(envelope, catalogue, body, Decode::Contracts(decode))
    }

    /// Proposes a command. `envelope` has all but the body.
    pub fn propose_in<T>(
        &self,
        envelope: Envelope<'_>,
        catalogue: &Catalogue,
        body: &Body<'_>,
        decode: Decode<T>,
    ) -> Pending<T> {
        let encoded = encode(&envelope, catalogue, body).and_then(|bytes| {
            if body.grows() {
                self.check_space(bytes.len())?;
            }
            Ok(bytes)
        });
        match encoded {
            Ok(bytes) => self.submit(bytes, decode),
            Err(error) => Pending::refused(error),
        }
    }

    /// Proposes a command of sessions themselves.
    pub fn propose_session<T>(
        &self,
        command: &SessionCommand,
        decode: impl Fn(SessionAnswer) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Pending<T> {
        let mut writer = Writer::new();
        Envelope::without_session(SESSIONS, 0, b"").encode(&mut writer);
        command.encode(&mut writer);
        self.submit(writer.finish(), Decode::Sessions(Box::new(decode)))
    }

    /// Proposes a command, given as the bytes of its envelope.
    pub fn submit<T>(&self, envelope: Vec<u8>, decode: Decode<T>) -> Pending<T> {
        if let Some(error) = self.shared.failure() {
            return Pending::refused(error);
        }
        let (responder, slot) = Responder::new();
        let submission = Submission { envelope, responder };
        if let Err((submission, full)) = self.journal.submit(submission) {
            // The store may have failed since it was asked above.
            let failure =
                self.shared.failure().or_else(|| self.journal.failure().map(|failure| from_journal(&failure)));
            let error = failure.unwrap_or_else(|| from_full_queue(full));
            submission.responder.give(Err(error));
        }
        Pending::waiting(slot, decode)
    }
}
