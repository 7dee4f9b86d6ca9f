//! The change feed: what every commit changed.

use wire::changes::{ChangesAnswer, ReadChanges};
use wire::follow::Follow;
use wire::routes::CHANGES_READ;
use wire::values::FeedCursor;

use crate::client::Client;
use crate::error::Error;
use crate::events::EventStream;

impl Client {
    /// Changes after a cursor; with [`Follow::Wait`], waits for one.
    pub async fn changes(&self, query: &ReadChanges) -> Result<ChangesAnswer, Error> {
        let wait = match query.follow {
            Some(Follow::Wait(wait)) => Some(wait.0),
            _ => None,
        };
        self.call(CHANGES_READ, &[]).query(query).waiting(wait).read().await
    }

    /// Follows changes by name prefix, across restarts of the server. Without a cursor, only new changes.
    pub fn follow_changes(&self, prefix: &str, from: Option<FeedCursor>) -> EventStream {
        let query =
            ReadChanges { prefix: Some(prefix.to_owned()), follow: Some(Follow::Stream), ..ReadChanges::default() };
        self.call(CHANGES_READ, &[]).query(&query).events(from.map(|from| from.to_string()))
    }
}
