//! The change feed: the handle that reads it by a cursor and waits for more.
//!
//! Keeps: F1 (a follower of the feed misses no change and sees none twice): each read uses one view, and its cursor
//! states exactly what was seen of that view.

use std::sync::Arc;
use std::time::Duration;

use contract::{Error, Followed, Subject};
use kernel::changes::{Filter, changes_after};
use kernel::names::InGroup;
use node::arrivals::{Listener, Topic};
use node::error::from_halt;
use waiting::Waited;

use crate::admission::Scope;
use crate::group::Group;
use crate::house::{Space, Statehouse};
use crate::paging::check_page;

/// The changes of a branch, as a feed in commit order.
///
/// A cursor is a commit number: everything up to it was seen. Start with 0, with [`newest`](Self::newest), or with the
/// cursor of a [`Watch`](crate::Watch), and continue with the cursor of each page; a stored cursor stays valid across a
/// restart. `changes_commits_max` and `changes_age_us_max` of [`Limits`](crate::Limits) limit the feed; a cursor that
/// can no longer be followed gets [`Followed::Gap`].
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::{Followed, Reason};
/// house.cells().set("order-7", "new")?;
/// house.cells().delete("order-7")?;
/// let Followed::Page(page) = house.changes().with_prefix("order-").read(0, 100)? else { panic!("a gap") };
/// let seen: Vec<_> = page.changes.iter().map(|change| (change.version, change.reason)).collect();
/// assert_eq!(seen, [(1, Reason::Written), (2, Reason::Deleted)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Changes {
    scope: Scope,
    subject: Option<Subject>,
    /// None for all.
    group: Option<Arc<str>>,
    prefix: Arc<str>,
}

impl Changes {
    pub(crate) fn new(scope: Scope, group: Option<Arc<str>>) -> Self {
        Self { scope, subject: None, group, prefix: "".into() }
    }

    /// Only of things in this group.
    pub fn in_group(self, group: &str) -> Self {
        Self { group: Some(group.into()), ..self }
    }

    /// Only things whose names start with `prefix`.
    pub fn with_prefix(self, prefix: &str) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// Only of one kind of thing.
    pub fn of(self, subject: Subject) -> Self {
        Self { subject: Some(subject), ..self }
    }

    /// The current cursor: everything after it has not happened yet.
    pub fn newest(&self) -> Result<u64, Error> {
        let (view, _) = self.scope.shard.view()?;
        Ok(node::image::applied(&*view, &self.scope.shard.keys())?.commit)
    }

    /// A page of changes after the cursor, without waiting. It ends with the command that brings it to `limit` changes.
    /// A page also examines a limited number of rows, so it can be empty although there is more.
    pub fn read(&self, cursor: u64, limit: usize) -> Result<Followed, Error> {
        check_page(limit)?;
        let (view, _, ids) = self.scope.view()?;
        let filter = Filter {
            space: ids.space,
            branch: ids.branch,
            subject: self.subject,
            group: self.group.as_deref().map_or(InGroup::Any, InGroup::Named),
            prefix: &self.prefix,
        };
        changes_after(&*view, &self.scope.shard.keys(), cursor, &filter, limit).map_err(|halt| from_halt(&halt))
    }

    /// The same, but waits until something changes, or until `timeout`. The page may then be empty, and its cursor may
    /// have advanced nevertheless. If the store is closed or fails meanwhile, returns an error.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use std::time::Duration;
    /// use statehouse::Followed;
    /// let changes = house.changes();
    /// let cursor = changes.newest()?;
    /// let follower = std::thread::spawn(move || changes.follow(cursor, 100, Duration::from_secs(10)));
    /// house.cells().set("a", 1)?;
    /// let Followed::Page(page) = follower.join().unwrap()? else { panic!("a gap") };
    /// assert_eq!((page.changes[0].name.as_str(), page.next), ("a", cursor + 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn follow(&self, cursor: u64, limit: usize, timeout: Duration) -> Result<Followed, Error> {
        let shard = &self.scope.shard;
        let began_us = shard.clock().monotonic_us();
        let mut cursor = cursor;
        loop {
            let listener = self.listen()?;
            let page = match self.read(cursor, limit)? {
                Followed::Page(page) if page.changes.is_empty() => page,
                found => return Ok(found),
            };
            let passed = Duration::from_micros(shard.clock().monotonic_us().saturating_sub(began_us));
            let left = timeout.saturating_sub(passed);
            cursor = page.next;
            if left.is_zero() {
                return Ok(Followed::Page(page));
            }
            if page.more {
                continue;
            }
            match listener.wait(left) {
                Waited::Arrived { first_commit } => cursor = unchanged_before(cursor, first_commit),
                Waited::TimeOver => return Ok(Followed::Page(page)),
                Waited::Stopped => return Err(shard.why_stopped()),
            }
        }
    }
}

impl Changes {
    /// The next page with changes, or a gap, as soon as there is one; for any runtime.
    pub async fn follow_async(&self, cursor: u64, limit: usize) -> Result<Followed, Error> {
        let shard = &self.scope.shard;
        let mut cursor = cursor;
        loop {
            let listener = self.listen()?;
            match self.read(cursor, limit)? {
                Followed::Page(page) if page.changes.is_empty() => {
                    cursor = page.next;
                    if page.more {
                        continue;
                    }
                }
                found => return Ok(found),
            }
            match listener.heard().await {
                Waited::Arrived { first_commit } => cursor = unchanged_before(cursor, first_commit),
                Waited::TimeOver | Waited::Stopped => return Err(shard.why_stopped()),
            }
        }
    }

    fn listen(&self) -> Result<Listener<'_>, Error> {
        Ok(self.scope.shard.shared.arrivals.listen(vec![self.topic()?]))
    }

    /// What must change before there can be something new here.
    pub(crate) fn topic(&self) -> Result<Topic, Error> {
        let (_, ids) = self.scope.current()?;
        let place = (ids.space, ids.branch);
        Ok(self.group.as_deref().map_or_else(|| Topic::branch(place), |group| Topic::group(place, group)))
    }
}

/// The cursor of a follower that has read everything up to `cursor` and was woken by an entry whose first command is
/// `first_commit`. Nothing that it follows lies between, so it skips that part of the feed, which may be gone by now.
pub(crate) fn unchanged_before(cursor: u64, first_commit: Option<u64>) -> u64 {
    first_commit.map_or(cursor, |first| cursor.max(first - 1))
}

impl Statehouse {
    /// The changes in the space `default`, branch `main`.
    pub fn changes(&self) -> Changes {
        self.default_space().changes()
    }
}

impl Space {
    /// The changes in this branch, in all groups.
    pub fn changes(&self) -> Changes {
        Changes::new(self.scope.clone(), None)
    }
}

impl Group {
    /// The changes in this group.
    pub fn changes(&self) -> Changes {
        Changes::new(self.scope.clone(), Some(self.name.clone()))
    }
}
