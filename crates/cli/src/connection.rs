//! How a command reaches a store: over HTTP, or by opening a directory itself.
//!
//! Both are a [`client::Client`]. A directory is served in this process through the same routes as a server's, so every command is
//! written once. Keeps: a call is sent once and outside of a session. A session would turn one write into three commits, and retries
//! would delay the error of an unreachable store. Never: creates a missing directory.

mod opened;
mod streaming;

use std::path::Path;
use std::time::Duration;

use client::tls::TlsFiles;
use client::transport::HttpTransport;
use client::{Call, Client, ClientOptions, Reply};
use serde_json::Value as JsonValue;
use statehouse::Statehouse;
use statehouse::shell::Suggested;
use wire::routes::Route;

use crate::exit::{Exit, Failure};
use crate::raw_json;
use opened::OpenedDirectory;
pub(crate) use streaming::Streaming;

/// A store, and the place in it that the flags name.
pub(crate) struct Connection {
    client: Client,
    group: Option<String>,
    force: bool,
    /// The directory, if this process opened it.
    house: Option<Statehouse>,
}

impl Connection {
    pub(crate) fn remote(url: &str, timeout: Duration) -> Result<Self, Failure> {
        let options = options(timeout).token_of_environment().map_err(Failure::from)?;
        Ok(Self { client: options.over(transport(url)?), group: None, force: false, house: None })
    }

    /// Opens an existing directory; a command never creates one.
    pub(crate) fn directory(directory: &Path, timeout: Duration) -> Result<Self, Failure> {
        if !directory.is_dir() {
            return Err(Failure::new(Exit::NotFound, format!("there is no directory {}", directory.display()))
                .run("create and serve one", serve_command(directory)));
        }
        let house = Statehouse::open(directory)?;
        let client = options(timeout).over(OpenedDirectory::new(house.clone()));
        Ok(Self { client, group: None, force: false, house: Some(house) })
    }

    pub(crate) fn in_place(mut self, space: Option<String>, branch: Option<String>, group: Option<String>) -> Self {
        if let Some(space) = space {
            self.client = self.client.space(space);
        }
        if let Some(branch) = branch {
            self.client = self.client.branch(branch);
        }
        if let Some(group) = &group {
            self.client = self.client.group(group);
        }
        self.group = group;
        self
    }

    /// What the flags show besides: that the caller owns the group, or means to write without a fence.
    pub(crate) fn with_authority(mut self, owner: Option<&str>, force: bool) -> Result<Self, Failure> {
        if let Some(token) = owner {
            let refused =
                |error| Failure::usage(format!("--owner: {error}")).next("give the token of `statehouse group own`");
            self.client = self.client.showing_owner(token).map_err(refused)?;
        }
        if force {
            self.client = self.client.forced();
        }
        self.force = force;
        Ok(self)
    }

    /// The group that the flags name.
    pub(crate) fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// Whether the flags mean to act without what is usually shown.
    pub(crate) fn is_forced(&self) -> bool {
        self.force
    }

    pub(crate) fn is_remote(&self) -> bool {
        self.house.is_none()
    }

    /// The store's address, for people.
    pub(crate) fn named(&self) -> String {
        self.client.named()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Starts a call of a route, in the place that the flags name.
    pub(crate) fn call(&self, route: Route, parts: &[&str]) -> Call {
        self.client.call(route, parts)
    }

    /// Closes the directory, if this process opened one.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        let Self { client, house: Some(house), .. } = self else {
            return Ok(());
        };
        drop(client);
        let closed = tokio::task::spawn_blocking(move || house.close()).await;
        closed.map_err(|error| Failure::other(error.to_string()))?.map_err(Failure::from)
    }
}

fn options(timeout: Duration) -> ClientOptions {
    ClientOptions::default().timeout(timeout).without_retries().without_sessions()
}

/// A transport to a server; it does not connect yet.
pub(crate) fn transport(url: &str) -> Result<HttpTransport, Failure> {
    let transport = HttpTransport::with_tls(url, &TlsFiles::of_environment());
    transport.map_err(|cause| Failure::usage(cause).next("give --url http://HOST:PORT or https://HOST:PORT"))
}

/// The command that serves a directory.
pub(crate) fn serve_command(directory: &Path) -> Suggested {
    Suggested::new(["statehouse", "serve"]).flag("--data", directory.to_string_lossy())
}

/// Calls whose answers are displayed: as trees that keep user JSON as its original text.
pub(crate) trait Ask {
    /// Sends the call; a refusal is a failure.
    async fn ask(self) -> Result<JsonValue, Failure>;

    /// Like `ask`, but "not found" is none.
    async fn ask_if_there(self) -> Result<Option<JsonValue>, Failure>;
}

impl Ask for Call {
    async fn ask(self) -> Result<JsonValue, Failure> {
        tree(&self.send().await?)
    }

    async fn ask_if_there(self) -> Result<Option<JsonValue>, Failure> {
        match self.ask().await {
            Ok(found) => Ok(Some(found)),
            Err(failure) if failure.exit == Exit::NotFound => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

fn tree(reply: &Reply) -> Result<JsonValue, Failure> {
    if reply.body.is_empty() {
        return Ok(JsonValue::Null);
    }
    raw_json::parse(&String::from_utf8_lossy(&reply.body))
        .map_err(|error| Failure::unreadable(&format!("the answer ({}) is not JSON: {error}", reply.status)))
}

#[cfg(test)]
mod tests {
    use wire::routes::{CELLS_WRITE, SERVER_VERSION};

    use super::*;

    #[tokio::test]
    async fn a_store_that_is_not_reached_is_named_with_the_cause_and_what_is_not_known() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let connect = |timeout| Connection::remote(&url, timeout).expect("a URL");
        let read = async |to: &Connection| to.call(SERVER_VERSION, &[]).ask().await.expect_err("nobody answers");
        let written = async |to: &Connection| {
            let call = to.call(CELLS_WRITE, &["a"]).json(&1);
            call.ask().await.expect_err("nobody answers")
        };
        let connection = connect(Duration::from_millis(300));
        let (slow, unknown) = (read(&connection).await, written(&connection).await);
        assert_eq!(
            (slow.exit, slow.detail),
            (Exit::Unavailable, format!("cannot reach {url}: no answer within 300 ms"))
        );
        assert!(slow.next.is_some_and(|next| next.contains("--timeout")));
        assert!(unknown.detail.ends_with("no answer within 300 ms; it may or may not have been done"));
        drop(listener);
        // It has time: what it says is not that time is over.
        let connection = connect(Duration::from_secs(60));
        let (away, refused) = (read(&connection).await, written(&connection).await);
        assert!(away.detail.ends_with("connection refused; nothing listens there"), "{away}");
        assert_eq!((refused.exit, refused.detail), (Exit::Unavailable, away.detail), "nothing can have been done");
    }
}
