//! The session contract over the typed client, for a machine that the server hosts. The contract numbers requests itself, so
//! the client's own session is not used.

use std::time::Duration;

use client::Client;
use contract::Error;
use contract::sessions::{PushedRequest, SessionCredentials, SessionStore};
use wire::sessions::{OpenSession, RetryPushes, WaitingPushes};
use wire::values::{DurationText, Payload};

use super::client::block_on;
use super::refusals::error;

/// Sessions of one machine, in the client's place.
pub struct HttpSessions {
    client: Client,
    machine: u16,
}

impl HttpSessions {
    /// Sessions of the machine with this number.
    pub fn new(client: Client, machine: u16) -> Self {
        Self { client, machine }
    }
}

impl SessionStore for HttpSessions {
    fn create(&self, timeout: Duration, capabilities: &[(String, Vec<u8>)]) -> Result<SessionCredentials, Error> {
        let capabilities = capabilities.iter().map(|(name, value)| (name.clone(), Payload(value.clone()))).collect();
        let open = OpenSession { timeout: Some(DurationText(timeout)), capabilities: Some(capabilities) };
        Ok(block_on(self.client.sessions().open(&open)).map_err(error)?.credentials())
    }

    fn request(
        &self,
        session: &SessionCredentials,
        request: u64,
        lowest_pending: u64,
        command: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let (sessions, numbers) = (self.client.sessions(), (request, lowest_pending));
        let sent = sessions.request(session, numbers, Some(self.machine), command.to_vec());
        Ok(block_on(sent).map_err(error)?.body.into())
    }

    fn acknowledge(&self, session: &SessionCredentials, upto: u64) -> Result<u64, Error> {
        Ok(block_on(self.client.sessions().acknowledge(session, upto)).map_err(error)?.forgotten)
    }

    fn expire(&self, session: &SessionCredentials) -> Result<bool, Error> {
        Ok(block_on(self.client.sessions().end(session)).map_err(error)?.ended)
    }

    fn requests_for_retry(&self, sent_before: u64, limit: u32) -> Result<Vec<PushedRequest>, Error> {
        let retry = RetryPushes { sent_before_us: sent_before, limit: Some(limit) };
        let retried = block_on(self.client.sessions().retry(&retry)).map_err(error)?;
        let pushes = retried.pushes.into_iter().map(|push| PushedRequest {
            session: push.session.0,
            number: push.number,
            last_sent_at: push.last_sent_us,
            payload: push.payload.0,
        });
        Ok(pushes.collect())
    }

    fn has_pending(&self) -> Result<bool, Error> {
        Ok(block_on(self.client.sessions().waiting(&WaitingPushes { sent_before_us: None })).map_err(error)?.pending)
    }

    fn has_overdue(&self, sent_before: u64) -> Result<bool, Error> {
        let query = WaitingPushes { sent_before_us: Some(sent_before) };
        let waiting = block_on(self.client.sessions().waiting(&query)).map_err(error)?;
        Ok(waiting.overdue.expect("an answer to what was asked"))
    }
}
