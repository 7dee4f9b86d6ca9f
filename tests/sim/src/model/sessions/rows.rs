//! The numbered checks that look at rows.

use std::collections::BTreeSet;

use kv::{KeyRange, Order, View};
use session::{SessionCommand, pushes, row, status};

use super::command::Drawn;
use super::instance::Places;
use super::machine::OwnRow;
use super::reference::{Known, Reference};
use crate::model::compare::same;
use crate::model::instance::text;

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

/// Checks the sessions that a command was about: (3) and (4).
pub(super) fn check_touched<'drawn>(
    view: &dyn View,
    places: &Places,
    reference: &Reference,
    drawn: impl Iterator<Item = &'drawn Drawn>,
) -> Result<(), String> {
    for drawn in drawn {
        let session = match drawn {
            Drawn::Sessions(SessionCommand::Acknowledge { session, .. }) => *session,
            Drawn::Request(request) => request.session,
            _ => continue,
        };
        check_session(view, places, session, reference.sessions.get(&session))?;
    }
    Ok(())
}

fn check_session(view: &dyn View, places: &Places, session: u64, known: Option<&Known>) -> Result<(), String> {
    let keys = places.keys();
    let status = status::status(view, &keys, session).map_err(text)?;
    let pending = pushes::pushes_after(view, &keys, session, 0, usize::MAX).map_err(text)?;
    let (Some(status), Some(known)) = (&status, known) else {
        same(|| format!("whether session {session} is known"), &status.is_some(), &known.is_some())?;
        return same(|| format!("(6) pushes left of session {session}"), &pending.len(), &0);
    };
    let about = |what: &str| format!("{what} of session {session}");
    same(|| about("the row"), &status.row, &known.row)?;
    same(|| about("the floor"), &status.floor, &known.floor)?;
    same(|| about("(2) how many answers are stored"), &status.answers, &known.answers.len())?;
    same(|| about("the last request"), &status.last_request, &known.answers.keys().next_back().copied())?;
    same(|| about("(3) what is acknowledged"), &status.acknowledged, &known.acknowledged)?;
    same(|| about("(4) the last push"), &status.last_push, &known.last_push)?;
    let numbers: Vec<u64> = pending.iter().map(|push| push.number).collect();
    let without_gap: Vec<u64> = (status.acknowledged + 1..=status.last_push).collect();
    same(|| about("(4) the numbers of pushes"), &numbers, &without_gap)?;
    let expected: Vec<_> =
        known.pushes.iter().map(|(number, (sent_us, payload))| (*number, *sent_us, payload)).collect();
    let found: Vec<_> = pending.iter().map(|push| (push.number, push.last_sent_us, &push.payload)).collect();
    same(|| about("(3) the pending pushes"), &found, &expected)
}

/// Checks all rows.
pub(super) fn check(view: &dyn View, places: &Places, reference: &Reference) -> Result<(), String> {
    let mut found = BTreeSet::new();
    let (mut counters, mut executed) = (0, 0);
    for row in view.scan(&KeyRange::all(), Order::Ascending) {
        let (key, value) = row.map_err(text)?;
        let of_sessions = read_session_key(places, &key);
        let of_machine = key.strip_prefix(places.machine.as_slice()).map(|own| OwnRow::read(own, &value));
        match (of_sessions, of_machine) {
            (Some(key), None) => {
                found.insert(key);
                if key.0 == Kind::Count {
                    let count = (reference.sessions.len() as u64).to_le_bytes();
                    same(|| "(6) the count of sessions".into(), &value.to_vec(), &count.to_vec())?;
                }
            }
            (None, Some(Some(row))) => match &row {
                OwnRow::Counter { .. } => {
                    counters += 1;
                    check_own(&row, reference)?;
                }
                OwnRow::Executed { .. } => {
                    executed += 1;
                    check_own(&row, reference)?;
                }
                _ => check_own(&row, reference)?,
            },
            _ => return Err(format!("(6) a row that is of nobody, or of two: {key:?} in {places:?}")),
        }
    }
    same(|| "(6) the number of counters".into(), &counters, &reference.counters.values.len())?;
    same(|| "(1) how many requests the machine executed".into(), &executed, &reference.counters.executed.len())?;
    check_rows_of_sessions(&found, reference)?;
    for (session, known) in &reference.sessions {
        check_session(view, places, *session, Some(known))?;
    }
    check_hints(view, places, reference)
}

/// The kind of a key, and its one or two numbers.
fn read_session_key(places: &Places, key: &[u8]) -> Option<FoundKey> {
    let [kind, rest @ ..] = key.strip_prefix(places.sessions.as_slice())? else {
        return None;
    };
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

fn check_own(row: &OwnRow, reference: &Reference) -> Result<(), String> {
    let counters = &reference.counters;
    match row {
        OwnRow::Counter { name, value } => {
            same(|| format!("(6) the counter \"{}\"", name.escape_ascii()), &Some(value), &counters.values.get(name))
        }
        OwnRow::Executed { session, request, times } => same(
            || format!("(1) how often request {request} of session {session} was executed"),
            &Some(times),
            &counters.executed.get(&(*session, *request)),
        ),
        OwnRow::Newest(session) => same(|| "the newest session".into(), session, &counters.newest),
        OwnRow::Ended(ended) => same(|| "(1) what sessions that have ended did".into(), ended, &counters.ended),
    }
}

/// There is each row that a session needs, and none besides.
fn check_rows_of_sessions(found: &BTreeSet<FoundKey>, reference: &Reference) -> Result<(), String> {
    let mut expected = BTreeSet::new();
    for (session, known) in &reference.sessions {
        expected.extend([(Kind::Session, *session, 0), (Kind::Head, *session, 0)]);
        expected.extend(known.pages.keys().map(|page| (Kind::Page, *session, *page)));
        expected.extend(known.pushes.keys().map(|push| (Kind::Push, *session, *push)));
        expected.extend(known.sent_hint_us.map(|sent_us| (Kind::Sent, *session, sent_us)));
    }
    // It stands there from the first session on.
    expected.extend(found.get(&(Kind::Count, 0, 0)));
    if reference.counters.newest != 0 {
        expected.insert((Kind::Count, 0, 0));
    }
    if let Some(left) = found.difference(&expected).next() {
        return Err(format!("(6) a row is left that belongs to nothing: {left:?}"));
    }
    match expected.difference(found).next() {
        Some(missing) => Err(format!("(6) a row is missing: {missing:?}")),
        None => Ok(()),
    }
}

/// Hints say nothing less than what is pending.
fn check_hints(view: &dyn View, places: &Places, reference: &Reference) -> Result<(), String> {
    let keys = places.keys();
    let pending = reference.sessions.values().any(|known| !known.pushes.is_empty());
    same(|| "(4) whether a push is pending".into(), &pushes::has_pending(view, &keys).map_err(text)?, &pending)?;
    let all_sent = reference.sessions.values().flat_map(|known| known.pushes.values().map(|(sent_us, _)| *sent_us));
    for before_us in [all_sent.clone().min(), all_sent.max()].into_iter().flatten().flat_map(|at| [at, at + 1]) {
        let may_be = reference.sessions.values().any(|known| known.sent_hint_us.is_some_and(|at| at < before_us));
        let is = reference.sessions.values().any(|known| known.pushes.values().any(|(at, _)| *at < before_us));
        assert!(may_be || !is, "the reference's own hint misses a push");
        let hint = pushes::has_overdue(view, &keys, before_us).map_err(text)?;
        same(|| format!("(4) whether a push was last sent before {before_us}"), &hint, &may_be)?;
    }
    let listed =
        row::sessions(view, &keys, 0).map(|row| row.map(|(session, _)| session)).collect::<Result<Vec<_>, _>>();
    let expected: Vec<u64> = reference.sessions.keys().copied().collect();
    same(|| "the list of sessions".into(), &listed.map_err(text)?, &expected)
}
