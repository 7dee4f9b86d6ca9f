//! The suite of `contract::sessions::SessionStore`: call [`suite`] with a function that creates a store with the
//! machine that [`Tally`] describes, and one that stops a store and restarts it from what it has stored.
//!
//! The six invariants of the contract are checked by number.

use std::time::Duration;

use contract::sessions::{PushedRequest, SessionCredentials, SessionSecret, SessionStore};
use contract::{Error, Rejection, SessionRejection};

/// Longer than any check.
const TIMEOUT: Duration = Duration::from_secs(600);
const NEVER_SENT_LATER: u64 = u64::MAX;

/// The commands of the machine that the suite needs. Each answer is text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tally {
    /// Adds 1 to the number at a key of the machine's own, and answers with the sum in decimal.
    Add(String),
    /// Pushes a text to a session and answers `sent`.
    Push(u64, String),
    /// The sender watches: when any session that the machine has seen ends, `gone N` is pushed to the watcher, and also
    /// to the session N itself, where nobody gets it. Answers `watching`.
    Watch,
}

impl Tally {
    /// The command's bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Tally::Add(key) => format!("add {key}"),
            Tally::Push(session, text) => format!("push {session} {text}"),
            Tally::Watch => "watch".to_owned(),
        }
        .into_bytes()
    }

    /// Reads a command; none if it is not one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        match text.split_once(' ') {
            None if text == "watch" => Some(Tally::Watch),
            Some(("add", key)) => Some(Tally::Add(key.to_owned())),
            Some(("push", rest)) => {
                let (session, text) = rest.split_once(' ')?;
                Some(Tally::Push(session.parse().ok()?, text.to_owned()))
            }
            _ => None,
        }
    }
}

/// Runs every check of the suite, each on its own store.
///
/// # Panics
/// If the implementation breaks the contract.
pub fn suite<S: SessionStore + Sync>(make: impl Fn() -> S, restart: impl Fn(S) -> S) {
    a_repeat_gets_the_same_answer(&make());
    another_command_with_the_number_is_refused(&make());
    many_at_once_execute_once(&make());
    a_request_that_nobody_waits_for_is_evicted(&make());
    an_unknown_session_executes_nothing(&make());
    only_the_secret_of_the_session_opens_it(&make());
    sessions_do_not_share_numbers(&make());
    an_acknowledgement_is_cumulative(&make());
    pushes_are_numbered_without_a_gap(&make());
    a_retry_selects_stamps_and_returns(&make());
    the_end_of_a_session_is_told_to_others(&make());
    the_keys_of_the_machine_are_its_own(&make());
    a_restart_changes_nothing(make(), restart);
}

fn open(store: &impl SessionStore) -> SessionCredentials {
    store.create(TIMEOUT, &[("client".to_owned(), b"suite".to_vec())]).expect("a session")
}

fn ask(
    store: &impl SessionStore,
    session: &SessionCredentials,
    request: u64,
    lowest: u64,
    command: &Tally,
) -> Result<String, Error> {
    let answer = store.request(session, request, lowest, &command.encode())?;
    Ok(String::from_utf8(answer).expect("answers are text"))
}

fn add(store: &impl SessionStore, session: &SessionCredentials, request: u64, lowest: u64) -> Result<String, Error> {
    ask(store, session, request, lowest, &Tally::Add("counter".to_owned()))
}

fn push(store: &impl SessionStore, from: &SessionCredentials, request: u64, to: &SessionCredentials, text: &str) {
    let sent = ask(store, from, request, request, &Tally::Push(to.session, text.to_owned()));
    assert_eq!(sent.as_deref(), Ok("sent"));
}

fn pending(store: &impl SessionStore) -> Vec<PushedRequest> {
    store.requests_for_retry(NEVER_SENT_LATER, 1_000).expect("a retry")
}

fn numbers(pushes: &[PushedRequest]) -> Vec<(u64, u64)> {
    pushes.iter().map(|push| (push.session, push.number)).collect()
}

fn expired<T: std::fmt::Debug>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Rejected(Rejection::Session(SessionRejection::Expired))))
}

fn wrong_secret<T: std::fmt::Debug>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Rejected(Rejection::Session(SessionRejection::WrongSecret))))
}

fn reused<T: std::fmt::Debug>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Rejected(Rejection::Session(SessionRejection::RequestReused { .. }))))
}

fn another_command_with_the_number_is_refused(store: &impl SessionStore) {
    let session = open(store);
    let commands = [
        Tally::Add("counter".into()),
        Tally::Add("other".into()),
        Tally::Watch,
        Tally::Push(session.session, "text".into()),
    ];
    for (request, one) in (1..).zip(&commands) {
        let answer = ask(store, &session, request, 1, one).expect("an answer");
        for other in &commands {
            let again = ask(store, &session, request, 1, other);
            match one == other {
                true => assert_eq!(again.as_deref(), Ok(answer.as_str()), "1: {one:?} sent again"),
                false => assert!(reused(again), "1: {other:?} under the number of {one:?}"),
            }
        }
    }
    assert_eq!(add(store, &session, 9, 1).as_deref(), Ok("2"), "1: none of them was executed");
    assert_eq!(pending(store).len(), 1, "1: none of them sent anything");
}

fn a_repeat_gets_the_same_answer(store: &impl SessionStore) {
    let session = open(store);
    for request in [3, 1, 2] {
        let first = add(store, &session, request, 1).expect("an answer");
        for _ in 0..3 {
            assert_eq!(add(store, &session, request, 1), Ok(first.clone()), "1: the same answer each time");
        }
    }
    assert_eq!(add(store, &session, 4, 1).as_deref(), Ok("4"), "1: executed once each");
}

fn many_at_once_execute_once(store: &(impl SessionStore + Sync)) {
    let session = open(store);
    for request in 1..=20 {
        let answers: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| add(store, &session, request, request))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic").expect("an answer")).collect()
        });
        assert!(answers.iter().all(|answer| *answer == request.to_string()), "1: {answers:?}");
    }
}

fn a_request_that_nobody_waits_for_is_evicted(store: &impl SessionStore) {
    let session = open(store);
    for request in 1..=5 {
        add(store, &session, request, 1).expect("an answer");
    }
    assert_eq!(add(store, &session, 6, 4).as_deref(), Ok("6"));
    for request in [1, 3] {
        let evicted = Rejection::Session(SessionRejection::Evicted { request, floor: 4 });
        assert_eq!(add(store, &session, request, 1), Err(evicted.into()), "1: the same answer, or evicted");
    }
    assert_eq!(add(store, &session, 4, 1).as_deref(), Ok("4"), "it is still waited for");
    let never = add(store, &session, 2, 1).expect_err("evicted");
    assert!(matches!(never, Error::Rejected(Rejection::Session(SessionRejection::Evicted { .. }))));
    assert_eq!(add(store, &session, 7, 7).as_deref(), Ok("7"), "an evicted request is never executed");
}

fn an_unknown_session_executes_nothing(store: &impl SessionStore) {
    let session = open(store);
    let other = open(store);
    add(store, &session, 1, 1).expect("an answer");
    assert!(store.expire(&session).expect("an answer"));
    assert!(!store.expire(&session).expect("an answer"), "there is none any more");
    assert!(expired(add(store, &session, 1, 1)), "a stored answer goes with its session");
    assert!(expired(add(store, &session, 2, 1)));
    let unknown = SessionCredentials { session: other.session + 1_000_000, ..other.clone() };
    assert!(expired(add(store, &unknown, 1, 1)));
    assert!(expired(store.acknowledge(&session, 1)));
    assert_eq!(add(store, &other, 1, 1).as_deref(), Ok("2"), "none of these was executed");
}

fn only_the_secret_of_the_session_opens_it(store: &impl SessionStore) {
    let (session, other) = (open(store), open(store));
    assert_ne!(session.secret, other.secret);
    push(store, &session, 1, &session, "text");
    for secret in [other.secret.clone(), SessionSecret::from_bytes([0; 16])] {
        let shown = SessionCredentials { secret, ..session.clone() };
        for request in [1, 2] {
            assert!(wrong_secret(add(store, &shown, request, 1)), "2: whether or not it was executed before");
        }
        assert!(wrong_secret(store.acknowledge(&shown, 1)), "2: nothing is acknowledged");
        assert!(wrong_secret(store.expire(&shown)), "2: it does not end");
    }
    assert_eq!(add(store, &session, 2, 1).as_deref(), Ok("1"), "2: none of these was executed");
    assert_eq!(pending(store).len(), 1, "2: or acknowledged");
    assert_eq!(add(store, &other, 1, 1).as_deref(), Ok("2"));
}

fn sessions_do_not_share_numbers(store: &impl SessionStore) {
    let (one, two) = (open(store), open(store));
    assert_ne!(one, two);
    assert_eq!(add(store, &one, 1, 1).as_deref(), Ok("1"));
    assert_eq!(add(store, &two, 1, 1).as_deref(), Ok("2"));
    assert_eq!(add(store, &one, 1, 1).as_deref(), Ok("1"));
}

fn an_acknowledgement_is_cumulative(store: &impl SessionStore) {
    let (one, two) = (open(store), open(store));
    for request in 1..=5 {
        push(store, &one, request, &two, "text");
    }
    assert_eq!(store.acknowledge(&two, 3), Ok(3));
    assert_eq!(numbers(&pending(store)), [(two.session, 4), (two.session, 5)], "2: all up to it, and no others");
    assert_eq!(store.acknowledge(&two, 2), Ok(0), "an old one changes nothing");
    assert_eq!(store.acknowledge(&two, 99), Ok(2), "one beyond all takes all");
    assert!(!store.has_pending().expect("a hint"));
    push(store, &one, 6, &two, "text");
    assert_eq!(numbers(&pending(store)), [(two.session, 6)], "3: numbers go on above all that were given");
}

fn pushes_are_numbered_without_a_gap(store: &impl SessionStore) {
    let sessions = [open(store), open(store), open(store)];
    for request in 1..=9_u64 {
        let to = &sessions[usize::try_from(request % 3).expect("small")];
        push(store, &sessions[0], request, to, &format!("text {request}"));
    }
    let nobody = SessionCredentials { session: u64::MAX, ..sessions[0].clone() };
    push(store, &sessions[0], 10, &nobody, "for nobody");
    let pushes = pending(store);
    for session in sessions {
        let own: Vec<u64> =
            pushes.iter().filter(|push| push.session == session.session).map(|push| push.number).collect();
        assert_eq!(own, [1, 2, 3], "5: each number once in a session, from 1 on");
    }
    assert_eq!(pushes.len(), 9);
    assert!(pushes.iter().any(|push| push.payload == b"text 4"));
}

fn a_retry_selects_stamps_and_returns(store: &impl SessionStore) {
    let session = open(store);
    push(store, &session, 1, &session, "text");
    assert!(store.has_pending().expect("a hint"));
    let first = pending(store);
    let sent = first[0].last_sent_at;
    assert!(!store.has_overdue(sent).expect("a hint"), "it was sent just now");
    assert_eq!(store.requests_for_retry(sent, 10).expect("a retry"), [], "only what was sent before");
    assert!(store.has_overdue(sent + 1).expect("a hint"));
    let again = store.requests_for_retry(sent + 1, 10).expect("a retry");
    assert_eq!(numbers(&again), [(session.session, 1)]);
    assert!(again[0].last_sent_at > sent, "and it is noted when");
}

fn the_end_of_a_session_is_told_to_others(store: &impl SessionStore) {
    let (watcher, dying) = (open(store), open(store));
    assert_eq!(ask(store, &watcher, 1, 1, &Tally::Watch).as_deref(), Ok("watching"));
    add(store, &dying, 1, 1).expect("the machine has met it");
    push(store, &dying, 2, &dying, "lost with its session");
    assert!(store.expire(&dying).expect("an answer"));
    let told = format!("gone {}", dying.session).into_bytes();
    let mut pushes = Vec::new();
    // The remains of a session may be removed after its end.
    for _ in 0..6_000 {
        pushes = pending(store);
        if !pushes.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(numbers(&pushes), [(watcher.session, 1)], "those of the session itself are dropped");
    assert_eq!(pushes[0].payload, told);
}

fn the_keys_of_the_machine_are_its_own(store: &impl SessionStore) {
    let session = open(store);
    let keys = ["session/metadata/1".to_owned(), format!("session/cache/{}/1", session.session), "\0\u{1}".to_owned()];
    for (request, key) in (1..).zip(&keys) {
        let command = Tally::Add(key.clone());
        assert_eq!(ask(store, &session, request, 1, &command).as_deref(), Ok("1"), "6: {key:?}");
    }
    for (request, key) in (1..).zip(&keys) {
        let command = Tally::Add(key.clone());
        assert_eq!(ask(store, &session, request, 1, &command).as_deref(), Ok("1"), "6: the stored answers are there");
    }
}

fn a_restart_changes_nothing<S: SessionStore>(store: S, restart: impl Fn(S) -> S) {
    let session = open(&store);
    for request in 1..=4 {
        add(&store, &session, request, 1).expect("an answer");
    }
    push(&store, &session, 5, &session, "one");
    push(&store, &session, 6, &session, "two");
    store.acknowledge(&session, 1).expect("acknowledged");
    let before = pending(&store);
    let store = restart(store);
    let two = Tally::Push(session.session, "two".to_owned());
    assert_eq!(ask(&store, &session, 6, 1, &two).as_deref(), Ok("sent"), "4: what was answered is answered");
    assert!(reused(add(&store, &session, 6, 1)), "4: and only to the command that it answers");
    assert!(add(&store, &session, 5, 1).is_err(), "4: what was evicted stays so");
    assert_eq!(add(&store, &session, 7, 7).as_deref(), Ok("5"), "4: the state is the same");
    let after = pending(&store);
    assert_eq!((numbers(&after), &after[0].payload), (numbers(&before), &before[0].payload), "4: pushes are there");
}
