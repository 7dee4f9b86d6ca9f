//! What the change feed reports about jobs whose sessions have ended.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use statehouse::{Error, Followed as Feed, Reason, Statehouse};

/// Changes that are read at a time.
const PAGE: usize = 1_000;

/// How long it is waited for a change before the time is looked at.
const WAIT: Duration = Duration::from_millis(100);

/// The changes of jobs, as the feed reported them.
#[derive(Default)]
pub(super) struct Followed {
    /// How often each job was given back.
    pub(super) jobs: BTreeMap<String, u64>,
    /// How many jobs each command gave back.
    pub(super) by_commit: BTreeMap<u64, usize>,
    /// When the first and the last of them were seen.
    pub(super) first_seen: Option<Instant>,
    pub(super) last_seen: Option<Instant>,
}

/// Follows the feed until so many jobs were given back, or until time is up.
pub(super) fn follow(house: &Statehouse, cursor: u64, jobs: usize, until: Instant) -> Result<Followed, Error> {
    let (changes, mut cursor) = (house.changes(), cursor);
    let mut followed = Followed::default();
    while followed.jobs.len() < jobs && Instant::now() < until {
        let page = match changes.follow(cursor, PAGE, WAIT)? {
            Feed::Page(page) => page,
            Feed::Gap { .. } => panic!("the feed keeps more than this test writes"),
        };
        cursor = page.next;
        for change in page.changes.into_iter().filter(|change| change.reason == Reason::SessionEnded) {
            *followed.jobs.entry(change.name).or_default() += 1;
            *followed.by_commit.entry(change.commit).or_default() += 1;
            followed.last_seen = Some(Instant::now());
            followed.first_seen = followed.first_seen.or(followed.last_seen);
        }
    }
    Ok(followed)
}
