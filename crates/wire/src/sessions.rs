//! Sessions and pushes: what their routes are asked, and what they answer.

use crate::schema::{object, words};
use crate::values::{DurationText, Members, Payload, SessionId};

object! {
    /// How a session is opened.
    request OpenSession {
        /// How long it lives without a sign of its client.
        timeout: Option<DurationText>,
        /// What the client says of itself: names and texts.
        capabilities: Option<Members<Payload>>,
    }

    /// A session that was opened.
    answer OpenedSession {
        /// The session.
        session: SessionId,
        /// How long it lives without a sign of its client.
        timeout_ms: u64,
    }

    /// Which sessions are listed.
    request ListSessions {
        /// Only those behind this one.
        after: Option<SessionId>,
        /// How many at most.
        limit: Option<u64>,
    }

    /// How a session is doing.
    answer Session {
        /// The session.
        session: SessionId,
        /// Whether its client is there.
        state: SessionState,
        /// When it was opened.
        "createdAt" created_at: String,
        /// How long it lives without a sign of its client.
        timeout_ms: u64,
        /// What the client says of itself.
        capabilities: Members<Payload>,
        /// The lowest request that is still answered.
        lowest_pending: u64,
        /// The highest request that was executed.
        last_request: Option<u64>,
        /// Answers that are kept.
        stored_answers: u64,
        /// The last push.
        last_push: u64,
        /// The last push that was acknowledged.
        acknowledged: u64,
    }

    /// A page of sessions.
    answer SessionPage {
        /// The sessions.
        sessions: Vec<Session>,
        /// Where the next page begins, if there is one.
        next_after: Option<SessionId>,
    }

    /// How a session ended.
    answer EndedSession {
        /// Whether it existed.
        ended: bool,
    }

    /// Which pushes are read.
    request ReadPushes {
        /// How long to wait for a push if there is none.
        wait: Option<DurationText>,
        /// How many at most.
        limit: Option<u64>,
        /// A stream of events.
        follow: Option<bool>,
    }

    /// A push.
    answer PushedMessage {
        /// Its number in the session.
        number: u64,
        /// What was pushed.
        payload: Payload,
    }

    /// Pushes that are not acknowledged.
    answer PushPage {
        /// The pushes, in order.
        pushes: Vec<PushedMessage>,
    }

    /// Pushes up to this one are dealt with.
    request Acknowledge {
        /// The last one.
        upto: u64,
    }

    /// What was acknowledged.
    answer Acknowledged {
        /// How many pushes were forgotten.
        forgotten: u64,
    }

    /// Which machine a command is for.
    request MachineRequest {
        /// Its number, if there are several.
        machine: Option<u16>,
    }

    /// Whether pushes wait for their acknowledgement.
    request WaitingPushes {
        /// Whether any was last sent before this time, too; µs since 1970 in UTC.
        sent_before_us: Option<u64>,
    }

    /// Whether pushes wait for their acknowledgement: a hint.
    answer PushesWaiting {
        /// Whether any does.
        pending: bool,
        /// Whether any was last sent before the time that was asked for.
        overdue: Option<bool>,
    }

    /// Takes pushes to be sent again.
    request RetryPushes {
        /// Only those that were last sent before; µs since 1970 in UTC.
        sent_before_us: u64,
        /// How many at most.
        limit: Option<u32>,
    }

    /// A push to be sent again.
    answer RetriedPush {
        /// Its session.
        session: SessionId,
        /// Its number in the session.
        number: u64,
        /// When it was last sent; µs since 1970 in UTC.
        last_sent_us: u64,
        /// What was pushed.
        payload: Payload,
    }

    /// Pushes to be sent again.
    answer RetriedPushes {
        /// The pushes.
        pushes: Vec<RetriedPush>,
    }
}

words! {
    /// Whether a session's client is there.
    SessionState {
        /// It has not been seen.
        Pending = "pending",
        /// It is there.
        Connected = "connected",
        /// It may come back.
        Disconnected = "disconnected",
        /// There is no such session.
        Expired = "expired",
    }
}
