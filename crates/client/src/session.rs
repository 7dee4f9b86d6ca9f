//! The client's own session: opened on the first write and kept alive while the client lives. It gives every write a number
//! under which it is executed once.
//!
//! Keeps: the lowest pending number is never above one that may still be retried.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use hyper::http::{HeaderMap, HeaderName, HeaderValue};
use wire::sessions::OpenSession;
use wire::values::{DurationText, SessionId};

use crate::client::{Client, Shared};
use crate::error::Error;

static SESSION: HeaderName = HeaderName::from_static("statehouse-session");
static REQUEST: HeaderName = HeaderName::from_static("statehouse-request");
static LOWEST_PENDING: HeaderName = HeaderName::from_static("statehouse-lowest-pending");

/// The session of a client, if it has one.
#[derive(Default)]
pub(crate) struct Numbering {
    session: Option<Arc<OpenNumbers>>,
}

impl Numbering {
    /// Forgets the session and returns it.
    pub(crate) fn take(&mut self) -> Option<SessionId> {
        self.session.take().map(|open| open.session)
    }
}

/// The numbers of an open session.
struct OpenNumbers {
    session: SessionId,
    numbers: Mutex<Numbers>,
}

struct Numbers {
    next: u64,
    /// The numbers that await an answer.
    pending: BTreeSet<u64>,
}

impl OpenNumbers {
    fn lock(&self) -> std::sync::MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(self: &Arc<Self>) -> Number {
        let mut numbers = self.lock();
        let number = numbers.next;
        numbers.next += 1;
        numbers.pending.insert(number);
        drop(numbers);
        Number { of: self.clone(), number }
    }
}

/// The number of a write. It is pending until this is dropped.
pub(crate) struct Number {
    of: Arc<OpenNumbers>,
    number: u64,
}

impl Number {
    pub(crate) fn session(&self) -> SessionId {
        self.of.session
    }

    /// Adds the number to the headers of a request.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        let lowest = self.of.lock().pending.first().copied().unwrap_or(self.number);
        let session = HeaderValue::from_str(&self.of.session.to_string());
        headers.insert(&SESSION, session.unwrap_or_else(|_| HeaderValue::from_static("")));
        headers.insert(&REQUEST, self.number.into());
        headers.insert(&LOWEST_PENDING, lowest.into());
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        self.of.lock().pending.remove(&self.number);
    }
}

impl Client {
    /// The next number; opens a session if there is none.
    pub(crate) async fn number(&self) -> Result<Number, Error> {
        let mut numbering = self.shared.numbering.lock().await;
        if let Some(open) = &numbering.session {
            return Ok(open.begin());
        }
        let timeout = self.shared.options.session_timeout;
        let asked = OpenSession { timeout: Some(DurationText(timeout)), ..OpenSession::default() };
        // A session whose answer was lost ends by its timeout.
        let opened = self.sessions().open_again(&asked).await?;
        let numbers = Mutex::new(Numbers { next: 1, pending: BTreeSet::new() });
        let open = Arc::new(OpenNumbers { session: opened.session, numbers });
        tokio::spawn(keep_alive(Arc::downgrade(&self.shared), Arc::downgrade(&open), timeout / 3));
        numbering.session = Some(open.clone());
        Ok(open.begin())
    }

    /// Notes that a session has ended; the next write opens another.
    pub(crate) async fn forget_session(&self, session: SessionId) {
        let mut numbering = self.shared.numbering.lock().await;
        if numbering.session.as_ref().is_some_and(|open| open.session == session) {
            numbering.session = None;
        }
    }
}

/// Sends signs of life as long as the client and its session exist.
async fn keep_alive(client: Weak<Shared>, open: Weak<OpenNumbers>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let (Some(shared), Some(open)) = (client.upgrade(), open.upgrade()) else {
            return;
        };
        let client = Client { shared, scope: Default::default() };
        if let Err(error) = client.sessions().keep_alive(open.session).await {
            if error.code() == Some("SH-5004") {
                client.forget_session(open.session).await;
                return;
            }
            tracing::warn!(session = %open.session, %error, "a sign of life did not arrive");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_number_is_one_that_is_waited_for() {
        let numbers = Mutex::new(Numbers { next: 1, pending: BTreeSet::new() });
        let open = Arc::new(OpenNumbers { session: SessionId(7), numbers });
        let said = |number: &Number| {
            let mut headers = HeaderMap::new();
            number.write(&mut headers);
            let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
            (text(&REQUEST), text(&LOWEST_PENDING))
        };
        let (first, second) = (open.begin(), open.begin());
        assert_eq!(said(&second), (Some("2".into()), Some("1".into())));
        drop(first);
        assert_eq!(said(&second), (Some("2".into()), Some("2".into())));
        let third = open.begin();
        drop(second);
        assert_eq!(said(&third), (Some("3".into()), Some("3".into())));
    }
}
