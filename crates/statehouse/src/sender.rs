//! Who sends what the handles of a server's request send.

use std::sync::Arc;

use kernel::{Answer, Body, CatalogueChange};
use node::shard::Shard;
use session::Envelope;

use contract::Error;
use kernel::command::MACHINE;
use node::pending::Decode;

/// Who sends a command, and by which permissions it was let in. It stands in the journal, for the audit; nothing that a command
/// does depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The name of the principal.
    pub principal: Arc<str>,
    /// The revision of the catalogue whose permissions let it in.
    pub policy_revision: u64,
}

impl Sender {
    /// As it stands in an envelope.
    pub(crate) fn in_envelope(&self) -> session::Sender<'_> {
        session::Sender { principal: &self.principal, policy_revision: self.policy_revision }
    }
}

/// Changes the catalogue.
pub(crate) fn change(shard: &Shard, sender: Option<&Sender>, change: CatalogueChange) -> Result<(), Error> {
    let (_, catalogue) = shard.view()?;
    let done = |answer| match answer {
        Answer::Done { .. } => Ok(()),
        Answer::Rejected(rejection) => Err(rejection.into()),
    };
    let sender = sender.map(Sender::in_envelope);
    let envelope = Envelope { sender, ..Envelope::without_session(MACHINE, catalogue.revision, b"") };
    shard.access.propose_in(envelope, &catalogue, &Body::Catalogue(change), Decode::Contracts(done)).wait()
}
