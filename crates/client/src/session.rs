//! The client's own session: opened on the first write and kept alive while the client lives. It gives every write a number
//! under which it is executed once.
//!
//! Keeps: the lowest pending number is never above one that may still be retried.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use contract::SessionCredentials;
use hyper::http::{HeaderMap, HeaderName, HeaderValue};
use wire::sessions::OpenSession;
use wire::values::{DurationText, SessionId};

use crate::client::{Client, Shared};
use crate::error::Error;

static SESSION: HeaderName = HeaderName::from_static("statehouse-session");
static SECRET: HeaderName = HeaderName::from_static("statehouse-session-secret");
static REQUEST: HeaderName = HeaderName::from_static("statehouse-request");
static LOWEST_PENDING: HeaderName = HeaderName::from_static("statehouse-lowest-pending");

/// The session of a client, if it has one.
#[derive(Default)]
pub(crate) struct Numbering {
    session: Option<Arc<OpenNumbers>>,
}

impl Numbering {
    /// Forgets the session and returns it.
    pub(crate) fn take(&mut self) -> Option<SessionCredentials> {
        self.session.take().map(|open| open.session.clone())
    }
}

/// The numbers of an open session.
struct OpenNumbers {
    session: SessionCredentials,
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

/// Adds the secret of a session to the headers of a request, hidden where headers are printed.
pub(crate) fn show(headers: &mut HeaderMap, session: &SessionCredentials) {
    let mut secret = HeaderValue::from_str(&session.secret.to_text()).expect("hexadecimal digits");
    secret.set_sensitive(true);
    headers.insert(&SECRET, secret);
}

/// The number of a write. It is pending until this is dropped.
pub(crate) struct Number {
    of: Arc<OpenNumbers>,
    number: u64,
}

impl Number {
    pub(crate) fn session(&self) -> SessionId {
        SessionId(self.of.session.session)
    }

    /// Adds the number to the headers of a request.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        let lowest = self.of.lock().pending.first().copied().unwrap_or(self.number);
        let session = HeaderValue::from_str(&self.session().to_string());
        headers.insert(&SESSION, session.unwrap_or_else(|_| HeaderValue::from_static("")));
        show(headers, &self.of.session);
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
        let open = Arc::new(OpenNumbers { session: opened.credentials(), numbers });
        tokio::spawn(keep_alive(Arc::downgrade(&self.shared), Arc::downgrade(&open), timeout / 3));
        numbering.session = Some(open.clone());
        Ok(open.begin())
    }

    /// Notes that a session has ended; the next write opens another.
    pub(crate) async fn forget_session(&self, session: SessionId) {
        let mut numbering = self.shared.numbering.lock().await;
        if numbering.session.as_ref().is_some_and(|open| open.session.session == session.0) {
            numbering.session = None;
        }
    }
}

/// Whether an answer means that the client's own session is gone: it has ended, or a store that was restored has given its number to
/// somebody else.
pub(crate) fn ends_session(error: &Error) -> bool {
    matches!(error.code(), Some("SH-5004" | "SH-5007"))
}

/// Sends signs of life as long as the client and its session exist.
async fn keep_alive(client: Weak<Shared>, open: Weak<OpenNumbers>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let (Some(shared), Some(open)) = (client.upgrade(), open.upgrade()) else {
            return;
        };
        let client = Client { shared, scope: Default::default() };
        if let Err(error) = client.sessions().keep_alive(&open.session).await {
            let session = SessionId(open.session.session);
            if ends_session(&error) {
                client.forget_session(session).await;
                return;
            }
            tracing::warn!(%session, %error, "a sign of life did not arrive");
        }
    }
}

#[cfg(test)]
mod tests {
    use contract::SessionSecret;

    use super::*;

    fn credentials() -> SessionCredentials {
        SessionCredentials { session: 7, secret: SessionSecret::from_bytes([0xab; 16]) }
    }

    #[test]
    fn the_secret_is_sent_and_not_printed() {
        let numbers = Mutex::new(Numbers { next: 1, pending: BTreeSet::new() });
        let number = Arc::new(OpenNumbers { session: credentials(), numbers }).begin();
        let mut headers = HeaderMap::new();
        number.write(&mut headers);
        assert_eq!(headers.get(&SECRET).expect("shown"), credentials().secret.to_text().as_str());
        assert!(!format!("{headers:?}").contains("abab"), "{headers:?}");
    }

    #[test]
    fn the_lowest_number_is_one_that_is_waited_for() {
        let numbers = Mutex::new(Numbers { next: 1, pending: BTreeSet::new() });
        let open = Arc::new(OpenNumbers { session: credentials(), numbers });
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
