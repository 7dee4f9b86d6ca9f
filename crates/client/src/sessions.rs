//! Sessions managed by the caller. A client already sends its writes in one; these are for callers that number requests
//! themselves, and for pushes.

use contract::SessionCredentials;
use wire::routes::{
    PUSHES_RETRY, PUSHES_WAITING, Route, SESSIONS_ACKNOWLEDGE, SESSIONS_END, SESSIONS_KEEPALIVE, SESSIONS_LIST,
    SESSIONS_OPEN, SESSIONS_PUSHES, SESSIONS_READ, SESSIONS_REQUEST,
};
use wire::sessions::{
    Acknowledge, Acknowledged, EndSession, EndedSession, ListSessions, MachineRequest, OpenSession, OpenedSession,
    PushPage, PushesWaiting, ReadPushes, RetriedPushes, RetryPushes, Session, SessionPage, WaitingPushes,
};
use wire::values::SessionId;

use crate::call::Call;

use crate::client::{Client, Scope};
use crate::error::Error;
use crate::events::EventStream;
use crate::reply::Reply;

/// The sessions of a server.
#[derive(Clone)]
pub struct Sessions<'client> {
    client: &'client Client,
}

impl Client {
    /// The sessions of the server.
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions { client: self }
    }
}

impl Sessions<'_> {
    /// A call about a session.
    fn about(&self, route: Route, session: SessionId) -> Call {
        self.client.call(route, &[&session.to_string()])
    }

    /// A call as a session.
    fn call(&self, route: Route, session: &SessionCredentials) -> Call {
        self.about(route, SessionId(session.session)).showing(session)
    }

    /// Opens a session. [`OpenedSession::credentials`] is what the other calls need.
    pub async fn open(&self, open: &OpenSession) -> Result<OpenedSession, Error> {
        let call = self.client.call(SESSIONS_OPEN, &[]).json(open);
        call.read().await
    }

    /// Opens a session, and another one if the answer is lost: the first ends by its timeout.
    pub(crate) async fn open_again(&self, open: &OpenSession) -> Result<OpenedSession, Error> {
        // It is shared by the clones of a client, which may be in other spaces.
        let anywhere = Client { scope: Scope::default(), ..self.client.clone() };
        let call = anywhere.call(SESSIONS_OPEN, &[]).json(open);
        call.repeatable().send_alone().await?.read()
    }

    /// The state of a session; none if it does not exist.
    pub async fn get(&self, session: SessionId) -> Result<Option<Session>, Error> {
        self.about(SESSIONS_READ, session).find().await
    }

    /// The sessions, in the order they were opened.
    pub async fn list(&self, query: &ListSessions) -> Result<SessionPage, Error> {
        self.client.call(SESSIONS_LIST, &[]).query(query).read().await
    }

    /// Ends a session as its client: others can claim what it held.
    pub async fn end(&self, session: &SessionCredentials) -> Result<EndedSession, Error> {
        self.call(SESSIONS_END, session).repeatable().read().await
    }

    /// Ends a session without its secret, for operators.
    pub async fn force_end(&self, session: SessionId) -> Result<EndedSession, Error> {
        let query = EndSession { force: Some(true) };
        self.about(SESSIONS_END, session).query(&query).repeatable().read().await
    }

    /// Sends a sign of life.
    pub async fn keep_alive(&self, session: &SessionCredentials) -> Result<(), Error> {
        self.call(SESSIONS_KEEPALIVE, session).repeatable().send_alone().await.map(drop)
    }

    /// The unacknowledged pushes of a session; with [`ReadPushes::wait`], waits for one.
    pub async fn pushes(&self, session: &SessionCredentials, query: &ReadPushes) -> Result<PushPage, Error> {
        let call = self.call(SESSIONS_PUSHES, session).query(query);
        call.waiting(query.wait.map(|wait| wait.0)).read().await
    }

    /// Follows the pushes to a session, across restarts of the server.
    pub fn follow_pushes(&self, session: &SessionCredentials, after: u64) -> EventStream {
        let query = ReadPushes { follow: Some(true), ..ReadPushes::default() };
        self.call(SESSIONS_PUSHES, session).query(&query).events(Some(after.to_string()))
    }

    /// Acknowledges pushes up to this one.
    pub async fn acknowledge(&self, session: &SessionCredentials, upto: u64) -> Result<Acknowledged, Error> {
        let call = self.call(SESSIONS_ACKNOWLEDGE, session).json(&Acknowledge { upto });
        call.repeatable().read().await
    }

    /// Sends a command to a machine that the server hosts, in the machine's own bytes, under the caller's number. Sent again with
    /// the same number, it gets the same answer.
    pub async fn request(
        &self,
        session: &SessionCredentials,
        (request, lowest_pending): (u64, u64),
        machine: Option<u16>,
        command: Vec<u8>,
    ) -> Result<Reply, Error> {
        let call = self.call(SESSIONS_REQUEST, session);
        let call = call.query(&MachineRequest { machine }).bytes(command);
        let call = call.header("statehouse-request", &request.to_string());
        let call = call.header("statehouse-lowest-pending", &lowest_pending.to_string());
        call.repeatable().send().await
    }

    /// Whether some pushes are not acknowledged.
    pub async fn waiting(&self, query: &WaitingPushes) -> Result<PushesWaiting, Error> {
        self.client.call(PUSHES_WAITING, &[]).query(query).read().await
    }

    /// Takes pushes last sent before a given time, to send them again.
    pub async fn retry(&self, retry: &RetryPushes) -> Result<RetriedPushes, Error> {
        let call = self.client.call(PUSHES_RETRY, &[]).json(retry);
        call.read().await
    }
}
