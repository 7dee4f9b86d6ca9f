//! The store of the clients: a directory, with a session for each of them or without any.

use std::path::PathBuf;
use std::time::Duration;

use statehouse::sessions::{SessionCredentials, SessionOptions};
use statehouse::{Error, Options, Pending, Rejection, Session, SessionRejection, Statehouse, Value};

use super::line::{Answer, Message};

/// Longer than any run takes: sessions end when the test says so.
const TIMEOUT: Duration = Duration::from_secs(6 * 60 * 60);

const FIELD: &str = "count";

/// How clients send their increments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Each in a session of its own.
    InSessions,
    /// As anybody may, which counts an increment as often as it arrives.
    Plain,
}

/// A directory that the clients write to.
pub(super) struct Store {
    path: PathBuf,
    way: Way,
    /// Their sessions.
    ids: Vec<SessionCredentials>,
    open: Open,
}

struct Open {
    house: Statehouse,
    /// None of a session that cannot be resumed.
    sessions: Vec<Option<Session>>,
}

impl Store {
    pub(super) fn create(path: PathBuf, way: Way, clients: usize) -> Result<Self, Error> {
        let house = Options::default().open(&path)?;
        let mut ids = Vec::new();
        if way == Way::InSessions {
            for _ in 0..clients {
                ids.push(house.sessions().create(SessionOptions::default().timeout(TIMEOUT))?);
            }
        }
        let open = Open::resume(house, &ids)?;
        Ok(Self { path, way, ids, open })
    }

    /// A request has arrived; none if there is no way to send it, because its session is not known any more.
    pub(super) fn increment(&self, message: &Message) -> Option<Pending<i64>> {
        let records = match self.way {
            Way::Plain => self.open.house.records(),
            Way::InSessions => {
                let session = self.open.sessions[message.client].as_ref()?;
                session.request(message.request, message.lowest_pending).records()
            }
        };
        Some(records.increment_later(&counter(message.counter), FIELD, 1))
    }

    /// Ends a client's session.
    pub(super) fn end(&self, client: usize) -> Result<bool, Error> {
        self.open.house.sessions().end(&self.ids[client])
    }

    /// What a counter holds.
    pub(super) fn value(&self, number: usize) -> Result<i64, Error> {
        let record = self.open.house.records().get(&counter(number))?;
        Ok(match record.as_ref().and_then(|record| record.value(FIELD)) {
            Some(Value::Integer(value)) => *value,
            _ => 0,
        })
    }

    /// Closes the directory and opens it again, with the same sessions as long as they are known.
    pub(super) fn reopen(self) -> Result<Self, Error> {
        let Self { path, way, ids, open } = self;
        open.house.close()?;
        drop(open);
        let open = Open::resume(Options::default().open(&path)?, &ids)?;
        Ok(Self { path, way, ids, open })
    }
}

impl Open {
    fn resume(house: Statehouse, ids: &[SessionCredentials]) -> Result<Self, Error> {
        let resume = |id: &SessionCredentials| match house.sessions().resume(id, 1) {
            Ok(session) => Ok(Some(session)),
            Err(Error::Rejected(Rejection::Session(SessionRejection::Expired))) => Ok(None),
            Err(error) => Err(error),
        };
        let sessions = ids.iter().map(resume).collect::<Result<_, _>>()?;
        Ok(Self { house, sessions })
    }
}

fn counter(number: usize) -> String {
    format!("counter.{number}")
}

/// What a request was answered.
pub(super) fn read(answer: Result<i64, Error>) -> Result<Answer, Error> {
    match answer {
        Ok(value) => Ok(Answer::Counted(value)),
        Err(Error::Rejected(Rejection::Session(SessionRejection::Evicted { .. }))) => Ok(Answer::Evicted),
        Err(Error::Rejected(Rejection::Session(SessionRejection::Expired))) => Ok(Answer::SessionExpired),
        Err(error) => Err(error),
    }
}
