//! Every row of sessions is one that a session needs, and none is missing.

use std::collections::BTreeSet;

use kv::{KeyRange, Order, View};

use crate::model::compare::same;
use crate::model::instance::{Instance, text};
use crate::model::reference::Reference;

/// A row of sessions, as `docs/formats/sessions.md` lays them out: first a byte that says the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Session = 1,
    Head = 2,
    Page = 3,
    Push = 4,
    Sent = 5,
    Count = 6,
}

const KINDS: [Kind; 6] = [Kind::Session, Kind::Head, Kind::Page, Kind::Push, Kind::Sent, Kind::Count];

type FoundKey = (Kind, u64, u64);

/// Whether answers are known with their bytes, which decide what stands in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    Known,
    Unknown,
}

/// Checks all rows of sessions.
pub(crate) fn check(instance: &Instance, view: &dyn View, reference: &Reference, pages: Pages) -> Result<(), String> {
    let prefix = instance.keys.sessions().prefix().to_vec();
    let mut found = BTreeSet::new();
    for row in view.scan(&KeyRange::prefix(&prefix), Order::Ascending) {
        let (key, value) = row.map_err(text)?;
        let read = read_key(&key[prefix.len()..]).ok_or_else(|| format!("(6) a row that is of nobody: {key:?}"))?;
        if read.0 == Kind::Count {
            let count = (reference.sessions.len() as u64).to_le_bytes();
            same(|| "(6) the count of sessions".into(), &value.to_vec(), &count.to_vec())?;
        }
        if read.0 != Kind::Page || pages == Pages::Known {
            found.insert(read);
        }
    }
    let mut expected = BTreeSet::new();
    for (session, known) in &reference.sessions {
        expected.extend([(Kind::Session, *session, 0), (Kind::Head, *session, 0)]);
        if pages == Pages::Known {
            expected.extend(known.pages.keys().map(|page| (Kind::Page, *session, *page)));
        }
        expected.extend(known.pushes.keys().map(|push| (Kind::Push, *session, *push)));
        expected.extend(known.sent_hint_us.map(|sent_us| (Kind::Sent, *session, sent_us)));
    }
    // It stands there from the first session on.
    expected.extend(found.get(&(Kind::Count, 0, 0)));
    if reference.had_sessions {
        expected.insert((Kind::Count, 0, 0));
    }
    if let Some(left) = found.difference(&expected).next() {
        return Err(format!("(6) a row is left that belongs to nothing: {left:?}"));
    }
    match expected.difference(&found).next() {
        Some(missing) => Err(format!("(6) a row is missing: {missing:?}")),
        None => Ok(()),
    }
}

/// How many rows are not of sessions, of what they own, of machines, or of the change feed, beside those that say when what
/// sessions owned is given back. They are there from the beginning and stay.
pub(crate) fn others(instance: &Instance, view: &dyn View, reference: &Reference) -> Result<usize, String> {
    let keys = instance.keys;
    let mut known = vec![KeyRange::prefix(keys.sessions().prefix())];
    known.push(keys.changes_from(0));
    for bucket in 0..reference.buckets.count() {
        known.extend([keys.hosted_of_bucket(bucket), KeyRange::prefix(&keys.owned_of_bucket(bucket))]);
    }
    let mut others = 0;
    for row in view.scan(&keys.all(), Order::Ascending) {
        let (key, _) = row.map_err(text)?;
        others += usize::from(!known.iter().any(|range| range.contains(&key)));
    }
    others.checked_sub(reference.ended.len()).ok_or_else(|| "(6) a row of the agenda is missing".into())
}

/// The kind of a key, and its one or two numbers.
fn read_key(key: &[u8]) -> Option<FoundKey> {
    let (kind, rest) = key.split_first()?;
    let kind = *KINDS.get(usize::from(*kind).checked_sub(1)?)?;
    let numbers: Vec<u64> =
        rest.chunks(8).map(|number| number.try_into().ok().map(u64::from_be_bytes)).collect::<Option<_>>()?;
    match (kind, numbers.as_slice()) {
        (Kind::Session | Kind::Head, [session]) => Some((kind, *session, 0)),
        (Kind::Page | Kind::Push, [session, number]) => Some((kind, *session, *number)),
        (Kind::Sent, [sent_us, session]) => Some((kind, *session, *sent_us)),
        (Kind::Count, []) => Some((kind, 0, 0)),
        _ => None,
    }
}
