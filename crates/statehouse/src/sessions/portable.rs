//! A user's machine behind the contract of sessions: bytes for commands and answers.

use std::marker::PhantomData;
use std::time::Duration;

use ::session::UserMachine;
use contract::Error;
use contract::sessions::{PushedRequest, SessionCredentials, SessionStore};
use node::sessions::requests::{InSession, Numbers};

use super::hosted::{response_bytes, submit};
use super::{SessionOptions, Sessions};
use crate::admission::Scope;

/// A user's machine behind the contract of sessions; created by
/// [`MachineGroup::portable`](super::MachineGroup::portable).
pub struct PortableSessions<M> {
    scope: Scope,
    group: String,
    machine: PhantomData<fn() -> M>,
}

impl<M: UserMachine> PortableSessions<M> {
    pub(super) fn new(scope: Scope, group: String) -> Self {
        Self { scope, group, machine: PhantomData }
    }

    fn sessions(&self) -> Sessions {
        Sessions { shard: self.scope.shard.clone(), sender: self.scope.sender.clone() }
    }
}

impl<M: UserMachine> SessionStore for PortableSessions<M> {
    fn create(&self, timeout: Duration, capabilities: &[(String, Vec<u8>)]) -> Result<SessionCredentials, Error> {
        self.sessions().create(SessionOptions {
            timeout,
            capabilities: capabilities.to_vec(),
            space: Some(self.scope.space.to_string()),
        })
    }

    fn request(
        &self,
        session: &SessionCredentials,
        request: u64,
        lowest_pending: u64,
        command: &[u8],
    ) -> Result<Vec<u8>, Error> {
        self.sessions().keep_alive(session)?;
        let numbers = Numbers::exactly(request, lowest_pending);
        let scope = Scope { session: Some(InSession { session: session.session, numbers }), ..self.scope.clone() };
        let answer =
            submit(&scope, (M::NUMBER, M::VERSION), &self.group, command, |answer| response_bytes(answer, M::NUMBER));
        answer.wait()
    }

    fn acknowledge(&self, session: &SessionCredentials, upto: u64) -> Result<u64, Error> {
        self.sessions().acknowledge(session, upto)
    }

    fn expire(&self, session: &SessionCredentials) -> Result<bool, Error> {
        self.sessions().end(session)
    }

    fn requests_for_retry(&self, sent_before: u64, limit: u32) -> Result<Vec<PushedRequest>, Error> {
        let pushes = self.sessions().requests_for_retry(sent_before, limit)?;
        let portable = pushes.into_iter().map(|push| PushedRequest {
            session: push.session,
            number: push.number,
            last_sent_at: push.last_sent_us,
            payload: push.payload,
        });
        Ok(portable.collect())
    }

    fn has_pending(&self) -> Result<bool, Error> {
        self.sessions().has_pending()
    }

    fn has_overdue(&self, sent_before: u64) -> Result<bool, Error> {
        self.sessions().has_overdue(sent_before)
    }
}
