//! The change feed: one page at a time, optionally waiting for one, or as a stream.

use contract::access::{Area, Verb};
use contract::time::iso;
use contract::{Change as StoredChange, Error, Followed as StoredFollowed};
use statehouse::Changes;
use wire::changes::{Change, ChangeGap, ChangePage, ChangesAnswer, GapBounds, ReadChanges};
use wire::operations::NoBody;
use wire::values::FeedCursor;

use super::{AREAS, Call, Refusal, Reply, page_limit, refuse_limit_of_stream};
use crate::Server;
use crate::access::Permission;
use crate::metrics::Watcher;
use crate::stream::{Followed, Sent, Source};

/// Changes that a stream reads at a time. Changes of one command are never split, so there can be more.
const CHANGES_AT_ONCE: usize = 16;

/// The default number of changes in a page.
const PAGE_ROWS: usize = 100;

/// What the feed needs: it tells of things of every contract, and of messages.
pub(crate) fn permission() -> Permission<ReadChanges, NoBody> {
    let areas = || AREAS.iter().copied().chain([Area::Message]);
    let named: Vec<_> = areas().map(Area::name).collect();
    Permission::of(format!("{} {}", Verb::Watch, named.join(", ")), move |asking, needs| {
        let ReadChanges { prefix, from: _, limit: _, follow: _ } = asking.query;
        for area in areas() {
            needs.prefix(Verb::Watch, area, asking.group, prefix.as_deref().unwrap_or_default());
        }
    })
}

pub(crate) async fn read(server: Server, call: Call<ReadChanges, NoBody>) -> Result<Followed<ChangesAnswer>, Refusal> {
    let Call { scope, query, wait, stream, last_event, .. } = call;
    let feed = scope.open(&server.house)?.space.changes().with_prefix(query.prefix.as_deref().unwrap_or_default());
    let feed = match &scope.group {
        Some(group) => feed.in_group(group),
        None => feed,
    };
    let resumed = match last_event {
        None => None,
        Some(text) => {
            let not_an_id = || Refusal::invalid("Last-Event-ID", "Last-Event-ID is not an id issued by this server");
            Some(FeedCursor::parse(&text).ok_or_else(not_an_id)?)
        }
    };
    let from = match resumed.or(query.from) {
        Some(from) => from.0,
        None => feed.newest()?,
    };
    if stream {
        refuse_limit_of_stream(query.limit)?;
        // A missing space or branch is reported before the stream starts.
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
    /// Reports how far its client is behind.
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
                    // All changes of a commit share its number. A client that has not received all of them resumes
                    // before it.
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

    /// Advances over filtered changes, so that a returning client does not find a gap.
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
        kind: change.subject.into(),
        reason: change.reason.into(),
        group: change.group,
        name: change.name,
        version: change.version,
    }
}
