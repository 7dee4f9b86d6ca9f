//! Requests and answers of the routes for sessions and pushes.

use contract::SessionCredentials;

use crate::schema::{left_out, object, words};
use crate::values::{DurationText, Members, Payload, SecretText, SessionId};

object! {
    /// Opens a session.
    request OpenSession {
        /// How long it lives after its client's last activity.
        timeout: Option<DurationText>,
        /// The client's description of itself: names and texts.
        capabilities: Option<Members<Payload>>,
    }

    /// An opened session.
    answer OpenedSession {
        /// The session.
        session: SessionId,
        /// What its client shows, as the header `Statehouse-Session-Secret`, to act as the session. It is not shown again.
        secret: SecretText,
        /// How long it lives after its client's last activity.
        timeout_ms: u64,
    }

    /// Selects sessions to list.
    request ListSessions {
        /// Only sessions after this one.
        after: Option<SessionId>,
        /// Maximum number of sessions.
        limit: Option<u64>,
    }

    /// The state of a session.
    answer Session {
        /// The session.
        session: SessionId,
        /// Whether its client is connected.
        state: SessionState,
        /// When it was opened.
        "createdAt" created_at: String,
        /// How long it lives after its client's last activity.
        timeout_ms: u64,
        /// The client's description of itself.
        capabilities: Members<Payload>,
        /// The lowest request that is still answered.
        lowest_pending: u64,
        /// The highest executed request.
        last_request: Option<u64>,
        /// The number of stored answers.
        stored_answers: u64,
        /// The last push.
        last_push: u64,
        /// The last acknowledged push.
        acknowledged: u64,
    }

    /// A page of sessions.
    answer SessionPage {
        /// The sessions.
        sessions: Vec<Session>,
        /// Where the next page starts, if there is one.
        next_after: Option<SessionId>,
    }

    /// How a session is ended.
    request EndSession {
        /// For operators: ends the session without its secret.
        force: Option<bool>,
    }

    /// The end of a session.
    answer EndedSession {
        /// Whether it existed.
        ended: bool,
    }

    /// Selects pushes to read.
    request ReadPushes {
        /// How long to wait for a push if there is none.
        wait: Option<DurationText>,
        /// Maximum number of pushes.
        limit: Option<u64>,
        /// A stream of events.
        follow: Option<bool>,
    }

    /// A push.
    answer PushedMessage {
        /// Its number in the session.
        number: u64,
        /// Its content.
        payload: Payload,
    }

    /// Unacknowledged pushes.
    answer PushPage {
        /// The pushes, in order.
        pushes: Vec<PushedMessage>,
    }

    /// Acknowledges pushes up to a number.
    request Acknowledge {
        /// The last one.
        upto: u64,
    }

    /// The result of an acknowledgement.
    answer Acknowledged {
        /// The number of discarded pushes.
        forgotten: u64,
    }

    /// Selects the machine of a command.
    request MachineRequest {
        /// Its number, if the server hosts several.
        machine: Option<u16>,
    }

    /// Asks whether any pushes are unacknowledged.
    request WaitingPushes {
        /// Also asks whether any was last sent before this time; µs since 1970 in UTC.
        sent_before_us: Option<u64>,
    }

    /// Whether any pushes are unacknowledged: a hint.
    answer PushesWaiting {
        /// Whether there are any.
        pending: bool,
        /// Whether any was last sent before the given time.
        overdue: Option<bool>,
    }

    /// Takes pushes that are due to be sent again.
    request RetryPushes {
        /// Only those last sent before this time; µs since 1970 in UTC.
        sent_before_us: u64,
        /// Maximum number of pushes.
        limit: Option<u32>,
    }

    /// A push to send again.
    answer RetriedPush {
        /// Its session.
        session: SessionId,
        /// Its number in the session.
        number: u64,
        /// When it was last sent; µs since 1970 in UTC.
        last_sent_us: u64,
        /// Its content.
        payload: Payload,
    }

    /// Pushes to send again.
    answer RetriedPushes {
        /// The pushes.
        pushes: Vec<RetriedPush>,
    }
}

left_out! {
    OpenSession { timeout, capabilities }
    ListSessions { after, limit }
    EndSession { force }
    ReadPushes { wait, limit, follow }
}

words! {
    /// Whether a session's client is connected.
    SessionState {
        /// It has not connected yet.
        Pending = "pending",
        /// It is connected.
        Connected = "connected",
        /// It is not connected, but may return.
        Disconnected = "disconnected",
        /// There is no such session.
        Expired = "expired",
    }
}

impl OpenedSession {
    /// What its client needs to act as the session.
    pub fn credentials(&self) -> SessionCredentials {
        SessionCredentials { session: self.session.0, secret: self.secret.0.clone() }
    }
}
