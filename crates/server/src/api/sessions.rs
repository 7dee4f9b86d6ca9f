//! Sessions: open, inspect, keep alive, read pushes, acknowledge, end.

use std::time::Duration;

use contract::access::{Area, Need, Things, Verb};
use contract::limits::PAGE_BYTES_MAX;
use contract::time::{iso, millis};
use contract::{Error, Rejection, SessionCredentials, SessionRejection};
use statehouse::sessions::{Deliveries, Delivery, LifeState, SessionOptions, SessionStatus};
use wire::operations::{NoBody, Nothing};
use wire::query::NoQuery;
use wire::sessions::{
    Acknowledge, Acknowledged, EndSession, EndedSession, ListSessions, OpenSession, OpenedSession, PushPage,
    PushedMessage, ReadPushes, Session, SessionPage, SessionState,
};
use wire::values::{Payload, SecretText, SessionId};

use super::{Answered, Call, Refusal, Reply, page_limit, refuse_limit_of_stream};
use crate::Server;
use crate::access::Permission;
use crate::stream::{Followed, Sent, Source};

/// The default number of sessions or pushes in a page.
const PAGE_ROWS: usize = 100;

/// What the client of a session needs: nothing but its secret, which the session checks.
pub(crate) fn own<Q: 'static, B>() -> Permission<Q, B> {
    Permission::of("its own session", |_, _| {})
}

/// What it needs to end a session. Operators end those of others.
pub(crate) fn ending() -> Permission<EndSession, NoBody> {
    Permission::of("its own session; operate sessions, of every space, if forced", |asking, needs| {
        let EndSession { force } = asking.query;
        if *force == Some(true) {
            needs.area_of_store(Verb::Operate, Area::Session);
        }
    })
}

/// One for a space, or for all spaces in which its principal may have one.
pub(crate) fn opening() -> Permission<NoQuery, OpenSession> {
    Permission::of("session sessions", |asking, needs| {
        if asking.scope.space.is_some() || !asking.caller.has_somewhere(Verb::Session, Area::Session) {
            needs.everything(Verb::Session, Area::Session);
        }
    })
}

/// The session in a path.
pub(crate) fn session_of(name: &str) -> Result<u64, Refusal> {
    let refused = || Refusal::invalid("session", format!("{name:?} is not a session issued by a server"));
    SessionId::parse(name).map(|session| session.0).ok_or_else(refused)
}

/// The session in a path, with the secret that was shown.
pub(crate) fn shown_by<Q, B>(server: &Server, call: &Call<Q, B>) -> Result<SessionCredentials, Refusal> {
    Ok(server.house.sessions().shown(session_of(&call.name)?, call.scope.secret.clone())?)
}

pub(crate) async fn open(server: Server, call: Call<NoQuery, OpenSession>) -> Answered<OpenedSession> {
    let mut options = SessionOptions::default();
    if let Some(timeout) = call.body.timeout {
        options = options.timeout(timeout.0);
    }
    for (name, Payload(value)) in call.body.capabilities.unwrap_or_default().0 {
        options = options.capability(&name, value);
    }
    if let Some(space) = call.scope.space {
        options = options.space(space);
    }
    let timeout_ms = millis(options.timeout);
    let SessionCredentials { session, secret } = server.house.sessions().create_later(options).await?;
    let opened = OpenedSession { session: SessionId(session), secret: SecretText(secret), timeout_ms };
    Ok(Reply::new(opened).created(true))
}

pub(crate) async fn read(server: Server, call: Call<NoQuery, NoBody>) -> Answered<Session> {
    let session = session_of(&call.name)?;
    let sessions = server.house.sessions();
    let status = sessions.status(session)?.filter(|status| may_see(&server, status));
    let status = status.ok_or(Error::from(Rejection::Session(SessionRejection::Expired)))?;
    Ok(Reply::new(status_of(session, status, sessions.state(session))))
}

/// Whether the sender may know of a session: its own, or all of them. To others it does not exist.
fn may_see(server: &Server, status: &SessionStatus) -> bool {
    let all = Need { space: None, area: Area::Session, verb: Verb::Operate, things: Things::All };
    let is_own = status.row.owner.as_ref().is_none_or(|owner| server.caller.is(&owner.principal));
    server.caller.name().is_none() || is_own || server.caller.lacks(&[all]).is_none()
}

fn status_of(session: u64, status: SessionStatus, state: LifeState) -> Session {
    let capabilities = status.row.capabilities.iter().map(|(name, value)| (name.clone(), Payload(value.clone())));
    Session {
        session: SessionId(session),
        state: match state {
            LifeState::Pending => SessionState::Pending,
            LifeState::Connected => SessionState::Connected,
            LifeState::Disconnected => SessionState::Disconnected,
            LifeState::Expired => SessionState::Expired,
        },
        created_at: iso(status.row.created_us),
        timeout_ms: status.row.timeout_us / 1_000,
        capabilities: capabilities.collect(),
        lowest_pending: status.floor,
        last_request: status.last_request,
        stored_answers: status.answers as u64,
        last_push: status.last_push,
        acknowledged: status.acknowledged,
    }
}

pub(crate) async fn keep_alive(server: Server, call: Call<NoQuery, NoBody>) -> Answered<Nothing> {
    server.house.sessions().keep_alive(&shown_by(&server, &call)?)?;
    Ok(Reply::new(Nothing {}))
}

/// A secret that is shown is checked, also if the end is forced.
pub(crate) async fn end(server: Server, call: Call<EndSession, NoBody>) -> Answered<EndedSession> {
    let (session, sessions) = (session_of(&call.name)?, server.house.sessions());
    let ended = match call.scope.secret {
        None if call.query.force == Some(true) => sessions.expire_later(session).await,
        secret => match sessions.shown(session, secret) {
            Ok(shown) => sessions.end_later(&shown).await,
            Err(error) => Err(error),
        },
    };
    let ended = match ended {
        Err(Error::Rejected(Rejection::Session(SessionRejection::Expired))) => false,
        ended => ended?,
    };
    Ok(Reply::new(EndedSession { ended }))
}

pub(crate) async fn list(server: Server, call: Call<ListSessions, NoBody>) -> Answered<SessionPage> {
    let after = call.query.after.map_or(0, |after| after.0);
    let limit = page_limit(call.query.limit, PAGE_ROWS)?;
    let memory = server.reserve_page().await?;
    let found = server.call(move |house| {
        let sessions = house.sessions();
        let numbers = sessions.list(after, limit)?;
        let next_after = numbers.last().copied().filter(|_| numbers.len() == limit);
        let mut found = Vec::with_capacity(numbers.len());
        for session in numbers {
            // It may have ended since.
            found.extend(sessions.status(session)?.map(|status| status_of(session, status, sessions.state(session))));
        }
        Ok(SessionPage { sessions: found, next_after: next_after.map(SessionId) })
    });
    Ok(Reply::page(found.await?, memory))
}

/// The unacknowledged pushes, starting with the first; optionally waits if there is none.
pub(crate) async fn pushes(server: Server, call: Call<ReadPushes, NoBody>) -> Result<Followed<PushPage>, Refusal> {
    let limit = page_limit(call.query.limit, PAGE_ROWS)?;
    if call.stream {
        refuse_limit_of_stream(call.query.limit)?;
    }
    let mut deliveries = server.house.sessions().deliveries(&shown_by(&server, &call)?)?;
    if call.stream {
        let not_an_id = |_| Refusal::invalid("Last-Event-ID", "Last-Event-ID is not an id issued by this server");
        let seen = call.last_event.map(|text| text.parse().map_err(not_an_id)).transpose()?.unwrap_or(0);
        return Ok(Followed::Stream(server.stream(SessionPushes { deliveries, seen })?));
    }
    let mut memory = server.reserve_page().await?;
    let read = server.call(move |_| {
        let (mut pushes, mut bytes) = (Vec::new(), 0);
        while pushes.len() < limit
            && bytes < PAGE_BYTES_MAX
            && let Some(delivery) = deliveries.next(Duration::ZERO)?
        {
            if let Delivery::Push { payload, .. } = &delivery {
                bytes += payload.len();
            }
            pushes.extend(pushed(delivery));
        }
        Ok((pushes, deliveries))
    });
    let (mut pushes, mut deliveries) = read.await?;
    if pushes.is_empty() && !call.wait.is_zero() {
        memory.give_back();
        if let Some(delivery) = server.in_time(call.wait, deliveries.next_async()).await {
            pushes.extend(pushed(delivery?));
        }
    }
    Ok(Followed::Page(Reply::page(PushPage { pushes }, memory)))
}

/// The pushes of a session, for a stream.
struct SessionPushes {
    deliveries: Deliveries,
    seen: u64,
}

impl Source for SessionPushes {
    async fn next(&mut self) -> Result<Vec<Sent>, Error> {
        loop {
            let push = pushed(self.deliveries.next_async().await?);
            if let Some(push) = push.filter(|push| push.number > self.seen) {
                self.seen = push.number;
                return Ok(vec![Sent::json(push.number, "push", &push)]);
            }
        }
    }

    fn position(&mut self) -> Result<u64, Error> {
        Ok(self.seen)
    }
}

fn pushed(delivery: Delivery) -> Option<PushedMessage> {
    match delivery {
        Delivery::Push { number, payload } => Some(PushedMessage { number, payload: Payload(payload) }),
        _ => None,
    }
}

pub(crate) async fn acknowledge(server: Server, call: Call<NoQuery, Acknowledge>) -> Answered<Acknowledged> {
    let shown = shown_by(&server, &call)?;
    let forgotten = server.house.sessions().acknowledge_later(&shown, call.body.upto).await?;
    Ok(Reply::new(Acknowledged { forgotten }))
}
