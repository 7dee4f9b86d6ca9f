//! The change feed: `changes.get`.

use contract::Reason;
use serde_json::{Value as JsonValue, json};

use crate::contracts::SubjectText;
use crate::follow::Follow;
use crate::reader::read_as_first_of;
use crate::schema::{Described, Schemas, left_out, object, words};
use crate::values::FeedCursor;

object! {
    /// Selects changes to read.
    request ReadChanges {
        /// Only names with this prefix.
        prefix: Option<String>,
        /// The cursor; by default, only changes from now on.
        from: Option<FeedCursor>,
        /// Maximum number of changes.
        limit: Option<u64>,
        /// How long to wait for a change if there is none; `true` for a stream of events.
        follow: Option<Follow>,
    }

    /// A change.
    answer Change {
        /// The commit.
        commit: u64,
        /// When it was committed.
        at: String,
        /// The kind of thing.
        kind: SubjectText,
        /// The reason.
        reason: ReasonText,
        /// Its group; left out if it has none.
        group["Option::is_none"]: Option<String>,
        /// Its name.
        name: String,
        /// Its version.
        version: u64,
    }

    /// A page of changes.
    answer ChangePage {
        /// The changes, in order.
        changes: Vec<Change>,
        /// The cursor after them.
        next: FeedCursor,
        /// Whether there are more already.
        more: bool,
    }

    /// The range that the feed still covers.
    answer GapBounds {
        /// The oldest cursor that can be followed.
        oldest: FeedCursor,
        /// The newest.
        newest: FeedCursor,
    }

    /// The feed no longer reaches back that far.
    answer ChangeGap {
        /// The range that the feed still covers.
        gap: GapBounds,
    }
}

left_out! {
    ReadChanges { prefix, from, limit, follow }
}

words! {
    /// The reason for a change.
    ReasonText {
        /// It was written.
        Written = "written",
        /// It was deleted.
        Deleted = "deleted",
        /// It expired.
        Expired = "expired",
        /// A worker claimed it.
        Claimed = "claimed",
        /// A worker released it.
        Released = "released",
        /// Its lease ended, and the store took it back.
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
        /// An attempt failed, and the record will be retried.
        Failed = "failed",
        /// The dead letter of a message was dropped.
        Dropped = "dropped",
        /// A message was refused and could not be kept.
        Lost = "lost",
        /// Something newer than this release.
        Other = "other",
    }
}

impl From<Reason> for ReasonText {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Written => ReasonText::Written,
            Reason::Deleted => ReasonText::Deleted,
            Reason::Expired => ReasonText::Expired,
            Reason::Claimed => ReasonText::Claimed,
            Reason::Released => ReasonText::Released,
            Reason::Rescued => ReasonText::Rescued,
            Reason::Finished => ReasonText::Finished,
            Reason::Exhausted => ReasonText::Exhausted,
            Reason::Delivered => ReasonText::Delivered,
            Reason::Refused => ReasonText::Refused,
            Reason::SessionEnded => ReasonText::SessionEnded,
            Reason::Failed => ReasonText::Failed,
            Reason::Dropped => ReasonText::Dropped,
            Reason::Lost => ReasonText::Lost,
            _ => ReasonText::Other,
        }
    }
}

/// A page, or a gap.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum ChangesAnswer {
    /// A page.
    Page(ChangePage),
    /// The feed no longer reaches back that far.
    Gap(ChangeGap),
}

read_as_first_of!(ChangesAnswer: Page(ChangePage), Gap(ChangeGap));

impl Described for ChangesAnswer {
    fn schema(schemas: &mut Schemas) -> JsonValue {
        json!({ "anyOf": [ChangePage::schema(schemas), ChangeGap::schema(schemas)] })
    }
}
