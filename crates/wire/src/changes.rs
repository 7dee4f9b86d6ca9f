//! The change feed: `changes.get`.

use serde_json::{Value as JsonValue, json};

use crate::reader::read_as_first_of;
use crate::runs::Follow;
use crate::schema::{Described, Schemas, object, words};
use crate::values::FeedCursor;

object! {
    /// Which changes are read.
    request ReadChanges {
        /// Only of names that begin so.
        prefix: Option<String>,
        /// The cursor; left out, from now on.
        from: Option<FeedCursor>,
        /// How many at most.
        limit: Option<u64>,
        /// How long to wait for a change if there is none; `true` for a stream of events.
        follow: Option<Follow>,
    }

    /// A change.
    answer Change {
        /// The commit.
        commit: u64,
        /// When.
        at: String,
        /// Of what.
        kind: SubjectText,
        /// Why.
        reason: ReasonText,
        /// Its group, or null if that is its name.
        group: Option<String>,
        /// Its name.
        name: String,
        /// Its version.
        version: u64,
    }

    /// A page of changes.
    answer ChangePage {
        /// The changes, in order.
        changes: Vec<Change>,
        /// The cursor behind them.
        next: FeedCursor,
        /// Whether there are more already.
        more: bool,
    }

    /// What the feed still has.
    answer GapBounds {
        /// The oldest cursor that can be followed.
        oldest: FeedCursor,
        /// The newest.
        newest: FeedCursor,
    }

    /// The feed does not go back so far.
    answer ChangeGap {
        /// What it still has.
        gap: GapBounds,
    }
}

words! {
    /// What changed.
    SubjectText {
        /// A cell.
        Cell = "cell",
        /// A record.
        Record = "record",
        /// A message.
        Message = "message",
        /// A run.
        Run = "run",
        /// Something newer than this release.
        Other = "other",
    }

    /// Why it changed.
    ReasonText {
        /// It was written.
        Written = "written",
        /// It was deleted.
        Deleted = "deleted",
        /// Its time was over.
        Expired = "expired",
        /// A worker took it.
        Claimed = "claimed",
        /// A worker gave it back.
        Released = "released",
        /// Its worker did not come back.
        Rescued = "rescued",
        /// It was finished.
        Finished = "finished",
        /// Its attempts are used up.
        Exhausted = "exhausted",
        /// A message was applied.
        Delivered = "delivered",
        /// A message was refused.
        Refused = "refused",
        /// Its session ended.
        SessionEnded = "session_ended",
        /// An attempt failed, and the record is to be tried again.
        Failed = "failed",
        /// Something newer than this release.
        Other = "other",
    }
}

/// A page, or that there is a gap.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum ChangesAnswer {
    /// A page.
    Page(ChangePage),
    /// The feed does not go back so far.
    Gap(ChangeGap),
}

read_as_first_of!(ChangesAnswer: Page(ChangePage), Gap(ChangeGap));

impl Described for ChangesAnswer {
    fn schema(schemas: &mut Schemas) -> JsonValue {
        json!({ "anyOf": [ChangePage::schema(schemas), ChangeGap::schema(schemas)] })
    }
}
