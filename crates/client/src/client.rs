//! The client: a server, a place in it, and how calls are made.

use std::sync::Arc;
use std::time::Duration;

use hyper::http::HeaderValue;
use tokio::sync::Mutex;
use wire::access::TokenText;

use crate::error::Error;
use crate::session::Numbering;
use crate::tls::TlsFiles;
use crate::token;
use crate::transport::{HttpTransport, Transport};

/// How a client makes its calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientOptions {
    /// How long one attempt of a call may take, not counting the wait that it asks for.
    pub timeout: Duration,
    /// How long a call may take, over all attempts.
    pub deadline: Duration,
    /// Whether a failed call is retried where that is harmless. Otherwise the caller gets the first failure.
    pub retries: bool,
    /// Whether writes are sent in a session, so that they can be retried. Without one, a program that writes once makes one
    /// commit instead of three, and a write whose answer is lost is an error with an unknown outcome.
    pub sessions: bool,
    /// How long the client's session lives without a sign of life; its claims are then released.
    pub session_timeout: Duration,
    /// The history that the store must have, as returned by [`Client::history`] before: another store, or one restored
    /// since, refuses every call.
    pub history: Option<String>,
    /// The token that shows who sends the calls.
    pub token: Option<TokenText>,
    /// Whether the token is sent to another machine without TLS, where everybody on the way can read it. Otherwise such a call
    /// fails with [`Error::TokenWithoutTls`], and nothing is sent.
    pub token_without_tls: bool,
    /// The files for servers at `https://`.
    pub tls: TlsFiles,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            deadline: Duration::from_secs(30),
            retries: true,
            sessions: true,
            session_timeout: Duration::from_secs(30),
            history: None,
            token: None,
            token_without_tls: false,
            tls: TlsFiles::default(),
        }
    }
}

impl ClientOptions {
    /// Sets [`timeout`](Self::timeout).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets [`deadline`](Self::deadline).
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Disables retries.
    pub fn without_retries(mut self) -> Self {
        self.retries = false;
        self
    }

    /// Sends writes without a session.
    pub fn without_sessions(mut self) -> Self {
        self.sessions = false;
        self
    }

    /// Sets [`session_timeout`](Self::session_timeout).
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.session_timeout = timeout;
        self
    }

    /// Sets [`history`](Self::history).
    pub fn history(mut self, history: impl Into<String>) -> Self {
        self.history = Some(history.into());
        self
    }

    /// Sets [`token`](Self::token).
    pub fn token(mut self, token: TokenText) -> Self {
        self.token = Some(token);
        self
    }

    /// Sets [`token_without_tls`](Self::token_without_tls): for a network where nobody else can listen, such as between the
    /// containers of a pod.
    pub fn token_without_tls(mut self) -> Self {
        self.token_without_tls = true;
        self
    }

    /// Sets [`token`](Self::token) to that of the environment, if there is one: the first line of the file that
    /// `STATEHOUSE_TOKEN_FILE` names, or else `STATEHOUSE_TOKEN`. `STATEHOUSE_TOKEN_WITHOUT_TLS=allow` sets
    /// [`token_without_tls`](Self::token_without_tls).
    pub fn token_of_environment(self) -> Result<Self, Error> {
        let environment = |name: &str| std::env::var(name).ok();
        let unsendable = |cause| Error::Unsendable { cause };
        let token = token::of_environment(&environment).map_err(unsendable)?;
        let without_tls = token::is_sent_without_tls(&environment).map_err(unsendable)?;
        Ok(Self {
            token: token.or(self.token.clone()),
            token_without_tls: without_tls || self.token_without_tls,
            ..self
        })
    }

    /// Sets [`tls`](Self::tls).
    pub fn tls(mut self, files: TlsFiles) -> Self {
        self.tls = files;
        self
    }

    /// A client of the server at `http://HOST:PORT` or `https://HOST:PORT`. It connects on the first call.
    pub fn connect(self, url: &str) -> Result<Client, Error> {
        let transport = HttpTransport::with_tls(url, &self.tls).map_err(|cause| Error::Unsendable { cause })?;
        self.token_over(&transport)?;
        Ok(self.over(transport))
    }

    /// The token, if there is one. Refuses to send it where others could read it.
    pub(crate) fn token_over(&self, transport: &dyn Transport) -> Result<Option<&TokenText>, Error> {
        match self.token.is_none() || self.token_without_tls || transport.is_private() {
            true => Ok(self.token.as_ref()),
            false => Err(Error::TokenWithoutTls { server: transport.named() }),
        }
    }

    /// A client over another transport.
    pub fn over(self, transport: impl Transport) -> Client {
        let shared = Shared {
            transport: Box::new(transport),
            numbering: Mutex::new(Numbering::default()),
            history: std::sync::Mutex::new(None),
            options: self,
        };
        Client { shared: Arc::new(shared), scope: Scope::default() }
    }
}

/// A server, and a place in it. A clone is the same client: it shares connections and the session.
///
/// ```no_run
/// # async fn example() -> Result<(), statehouse_client::Error> {
/// use statehouse_client::Client;
/// let client = Client::connect("http://127.0.0.1:7420")?;
/// let order = client.space("shop").group("order-7");
/// order.cells().set("state", "new").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
    pub(crate) scope: Scope,
}

pub(crate) struct Shared {
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) options: ClientOptions,
    pub(crate) numbering: Mutex<Numbering>,
    /// The store's history as of the last answer.
    pub(crate) history: std::sync::Mutex<Option<HeaderValue>>,
}

/// The place that calls refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) space: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) group: Option<String>,
    /// The token of the attempt that owns the group.
    pub(crate) owner: Option<String>,
    /// Whether it writes without the fences that a guard requires.
    pub(crate) force: bool,
}

impl Client {
    /// A client of the server at `http://HOST:PORT` or `https://HOST:PORT`. It connects on the first call.
    pub fn connect(url: &str) -> Result<Self, Error> {
        ClientOptions::default().connect(url)
    }

    /// The same client in a space. Who owns a group in one space owns none in another.
    pub fn space(&self, space: impl Into<String>) -> Self {
        let scope = Scope { space: Some(space.into()), owner: None, ..self.scope.clone() };
        Self { scope, ..self.clone() }
    }

    /// The same client in a branch.
    pub fn branch(&self, branch: impl Into<String>) -> Self {
        let scope = Scope { branch: Some(branch.into()), owner: None, ..self.scope.clone() };
        Self { scope, ..self.clone() }
    }

    /// The same client in a group, whose contents can change in one commit.
    pub fn group(&self, group: impl Into<String>) -> Self {
        let scope = Scope { group: Some(group.into()), owner: None, ..self.scope.clone() };
        Self { scope, ..self.clone() }
    }

    /// The server's address, for people.
    pub fn named(&self) -> String {
        self.shared.transport.named()
    }

    /// The store's history as of the last answer; none before the first. A restored store has a new one. Pass it to
    /// [`ClientOptions::history`] later to make sure that a program continues with the same store.
    pub fn history(&self) -> Option<String> {
        let history = self.shared.history.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        history.as_ref().and_then(|history| history.to_str().ok()).map(str::to_owned)
    }

    /// Ends the client's session, so that others can claim at once what it held. If a client is only dropped, its session ends
    /// after [`ClientOptions::session_timeout`].
    pub async fn close(&self) -> Result<(), Error> {
        let ended = self.shared.numbering.lock().await.take();
        match ended {
            None => Ok(()),
            Some(session) => self.sessions().end(&session).await.map(drop),
        }
    }
}
