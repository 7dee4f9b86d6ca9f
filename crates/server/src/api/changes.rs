//! The change feed: a page at a time, waiting for one if it is asked to, or as a stream.

use contract::time::iso;
use contract::{Change as StoredChange, Error, Followed as StoredFollowed, Reason, Subject};
use statehouse::Changes;
use wire::changes::{Change, ChangeGap, ChangePage, ChangesAnswer, GapBounds, ReadChanges, ReasonText, SubjectText};
use wire::operations::NoBody;
use wire::values::FeedCursor;

use super::{Call, Refusal, Reply, page_limit, refuse_limit_of_stream};
use crate::Server;
use crate::metrics::Watcher;
use crate::stream::{Followed, Sent, Source};

/// Changes that a stream reads at a time. One command's are never split, so there can be more.
const CHANGES_AT_ONCE: usize = 16;

/// Changes of a page, if it is not said how many.
const PAGE_ROWS: usize = 100;

pub(crate) async fn read(server: Server, call: Call<ReadChanges, NoBody>) -> Result<Followed<ChangesAnswer>, Refusal> {
    let Call { scope, query, wait, stream, last_event, .. } = call;
    let feed = scope.open(&server.house).space.changes().with_prefix(query.prefix.as_deref().unwrap_or_default());
    let feed = match &scope.group {
        Some(group) => feed.in_group(group),
        None => feed,
    };
    let resumed = match last_event {
        None => None,
        Some(text) => {
            let not_an_id = || Refusal::invalid("Last-Event-ID", "it is no id that was given out");
            Some(FeedCursor::parse(&text).ok_or_else(not_an_id)?)
        }
    };
    let from = match resumed.or(query.from) {
        Some(from) => from.0,
        None => feed.newest()?,
    };
    if stream {
        refuse_limit_of_stream(query.limit)?;
        // That the space and the branch exist is said before the stream begins.
        feed.read(from, 1)?;
        let watcher = server.metrics.watchers.join();
        return Ok(Followed::Stream(server.stream(ChangeFeed { feed, cursor: from, watcher })?));
    }
    let limit = page_limit(query.limit, PAGE_ROWS)?;
    let mut memory = server.reserve_page().await?;
    let (mut followed, feed) = server.call(move |_| Ok((feed.read(from, limit)?, feed))).await?;
    if let StoredFollowed::Page(page) = &followed
        && page.changes.is_empty()
        && !page.more
        && !wait.is_zero()
    {
        memory.give_back();
        if let Some(found) = server.in_time(wait, feed.follow_async(page.next, limit)).await {
            followed = found?;
        }
    }
    let answer = match followed {
        StoredFollowed::Gap { oldest, newest } => ChangesAnswer::Gap(ChangeGap { gap: bounds(oldest, newest) }),
        StoredFollowed::Page(page) => {
            let changes = page.changes.into_iter().map(shown).collect();
            ChangesAnswer::Page(ChangePage { changes, next: FeedCursor(page.next), more: page.more })
        }
    };
    Ok(Followed::Page(Reply::page(answer, memory)))
}

fn bounds(oldest: u64, newest: u64) -> GapBounds {
    GapBounds { oldest: FeedCursor(oldest), newest: FeedCursor(newest) }
}

/// The change feed, for a stream.
struct ChangeFeed {
    feed: Changes,
    cursor: u64,
    /// So that it is seen when its client is behind.
    watcher: Watcher,
}

impl Source for ChangeFeed {
    async fn next(&mut self) -> Result<Vec<Sent>, Error> {
        self.watcher.waits();
        let followed = self.feed.follow_async(self.cursor, CHANGES_AT_ONCE).await?;
        self.watcher.has_upto(self.cursor);
        match followed {
            StoredFollowed::Page(page) => {
                self.cursor = page.next;
                let commits: Vec<_> = page.changes.iter().map(|change| change.commit).collect();
                let id = |place: usize| match commits.get(place + 1) {
                    // All changes of a commit have its number. A client that has not had all of them goes on before it.
                    Some(next) if *next == commits[place] => commits[place] - 1,
                    Some(_) => commits[place],
                    None => page.next,
                };
                let sent = page.changes.into_iter().enumerate();
                Ok(sent.map(|(place, change)| Sent::json(id(place), "change", &shown(change))).collect())
            }
            StoredFollowed::Gap { oldest, newest } => {
                self.cursor = newest;
                Ok(vec![Sent::json(newest, "gap", &bounds(oldest, newest))])
            }
        }
    }

    /// Moves over what is filtered out, so that a client that comes back does not find a gap.
    fn position(&mut self) -> Result<u64, Error> {
        if let StoredFollowed::Page(page) = self.feed.read(self.cursor, 1)?
            && page.changes.is_empty()
        {
            self.cursor = page.next;
        }
        Ok(self.cursor)
    }

    fn id(position: u64) -> String {
        FeedCursor(position).to_string()
    }
}

fn shown(change: StoredChange) -> Change {
    Change {
        commit: change.commit,
        at: iso(change.updated_at),
        kind: match change.subject {
            Subject::Cell => SubjectText::Cell,
            Subject::Record => SubjectText::Record,
            Subject::Message => SubjectText::Message,
            Subject::Run => SubjectText::Run,
            _ => SubjectText::Other,
        },
        reason: match change.reason {
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
            _ => ReasonText::Other,
        },
        group: change.group,
        name: change.name,
        version: change.version,
    }
}
