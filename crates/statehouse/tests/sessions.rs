//! Sessions through the library: exactly-once requests, ownership, pushes, life and death, with a clock controlled by
//! the test.

mod held;

use std::time::Duration;

use held::{eventually, house};
use statehouse::records::{ClaimOptions, Put, Ttl};
use statehouse::sessions::{Delivery, LifeState, SessionCredentials, SessionOptions, SessionSecret};
use statehouse::{Error, Followed, Reason, Rejection, SessionRejection, Statehouse, Subject};

const TIMEOUT: Duration = Duration::from_secs(30);

fn state(house: &Statehouse, record: &str) -> String {
    let field = house.records().get_field(record, "state").expect("get").expect("a state");
    field.as_text().expect("text").to_owned()
}

fn put_jobs(house: &Statehouse, count: usize) {
    for job in 0..count {
        house.records().put(&format!("jobs.{job}"), [("n", 1)], Put::typed("task")).expect("put");
    }
}

fn is_expired<T: std::fmt::Debug>(result: Result<T, Error>) -> bool {
    matches!(result.expect_err("refused"), Error::Rejected(Rejection::Session(SessionRejection::Expired)))
}

#[test]
fn a_repeat_gets_the_same_answer_and_is_not_executed() {
    let (_directory, _, house) = house();
    let session = house.sessions().open().expect("a session");
    let increment = |request, lowest| session.request(request, lowest).records().increment("r", "n", 1);
    assert_eq!(increment(5, 1).expect("out of order"), 1);
    assert_eq!(increment(2, 1).expect("below"), 2);
    assert_eq!((increment(5, 1), increment(2, 1)), (Ok(1), Ok(2)), "E2: stored");
    let missing = |request| session.request(request, 1).records().update_fields("none", [("a", Some(1.into()))]);
    assert_eq!(missing(6), missing(6), "a rejection is an answer too");
    house.records().put("none", [("a", 1)], Put::default()).expect("put");
    assert!(missing(6).is_err(), "as it was answered");
    assert_eq!(increment(7, 6).expect("raises the floor"), 3);
    let evicted = increment(5, 1).expect_err("nobody waits for it");
    assert_eq!(evicted, Rejection::Session(SessionRejection::Evicted { request: 5, floor: 6 }).into());
    assert_eq!(house.sessions().status(session.id()).expect("a view").expect("a session").answers, 2);
    assert_eq!(house.records().get_field("r", "n").expect("get"), Some(3.into()));
}

#[test]
fn answers_survive_a_restart_and_an_image() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("house");
    let house = Statehouse::open(&path).expect("a house");
    let session = house.sessions().open().expect("a session");
    let (id, credentials) = (session.id(), session.credentials().clone());
    session.request(1, 1).records().increment("r", "n", 1).expect("count");
    let mut image = Vec::new();
    house.write_image(&mut image).expect("an image");
    drop((session, house));
    let restored = directory.path().join("restored");
    Statehouse::restore_image(&restored, &mut image.as_slice()).expect("restored");
    for path in [path, restored] {
        let house = Statehouse::open(&path).expect("a house");
        assert_eq!(house.sessions().state(id), LifeState::Disconnected);
        let session = house.sessions().resume(&credentials, 2).expect("it is there");
        assert_eq!(session.request(1, 1).records().increment("r", "n", 1), Ok(1));
        assert_eq!(session.records().increment("r", "n", 1), Ok(2));
    }
}

#[test]
fn a_session_that_expires_gives_back_what_it_owns_and_nothing_else() {
    let (_directory, clock, house) = house();
    put_jobs(&house, 6);
    let options = || SessionOptions::default().timeout(TIMEOUT);
    let dead = house.sessions().open_with(options()).expect("a session");
    let alive = house.sessions().open_with(options()).expect("a session");
    let hour = ClaimOptions::worker("w").lease(Duration::from_secs(3_600));
    let lost = dead.records().claim_next("jobs.", 3, &hour).expect("claims");
    let kept = alive.records().claim_next("jobs.", 1, &hour).expect("claims");
    let plain = house.records().claim_next("jobs.", 1, &hour).expect("claims");
    let done = lost[0].name.clone();
    dead.records().complete(&lost[0], [("r", "ok")]).expect("complete");
    dead.records().put("presence.w", [("here", true)], Put { ttl: Ttl::WithSession, ..Put::default() }).expect("put");
    let (dead_id, dead_credentials) = (dead.id(), dead.credentials().clone());
    // It ends a moment before the other: when it has ended, the other was looked at.
    let sooner = house.sessions().open_with(options().timeout(TIMEOUT - Duration::from_millis(1))).expect("a session");
    let sooner_id = sooner.id();
    drop((dead, sooner));
    assert_eq!(house.sessions().state(dead_id), LifeState::Disconnected);
    clock.advance(TIMEOUT - Duration::from_millis(1));
    alive.keep_alive().expect("alive");
    eventually("the other ends", || house.sessions().state(sooner_id) == LifeState::Expired);
    assert_eq!(house.sessions().state(dead_id), LifeState::Disconnected, "its time is not over");
    assert_eq!(state(&house, &lost[1].name), "claimed", "its time is not over");
    clock.advance(Duration::from_millis(1));
    eventually("the claims come back", || lost[1..].iter().all(|job| state(&house, &job.name) == "pending"));
    eventually("the record ends", || house.records().get("presence.w").expect("get").is_none());
    assert_eq!(state(&house, &done), "completed");
    assert_eq!((state(&house, &kept[0].name), state(&house, &plain[0].name)), ("claimed".into(), "claimed".into()));
    assert!(is_expired(house.sessions().keep_alive(&dead_credentials)));
    assert!(house.sessions().resume(&dead_credentials, 9).is_err());
    let late = house.records().step(&lost[1], [("n", 2)]).expect_err("fenced");
    assert_eq!(late.code(), "SH-4002");
    let Followed::Page(page) = house.changes().of(Subject::Record).read(0, 1_000).expect("a page") else {
        panic!("a gap");
    };
    let ended: Vec<_> = page.changes.iter().filter(|change| change.reason == Reason::SessionEnded).collect();
    assert_eq!(ended.len(), 3, "E6: two claims and a record: {ended:?}");
    clock.advance(Duration::from_secs(3_600));
    let again = || alive.records().claim_next("jobs.", 10, &hour).expect("claims");
    let mut attempts = Vec::new();
    eventually("they can be claimed", || {
        attempts.extend(again().into_iter().map(|job| job.attempt));
        attempts.len() >= 3
    });
    assert!(attempts.contains(&2));
}

#[test]
fn a_close_is_not_a_disconnect() {
    let (_directory, _, house) = house();
    put_jobs(&house, 1);
    let session = house.sessions().open().expect("a session");
    let (id, credentials) = (session.id(), session.credentials().clone());
    let job = session.records().claim_next("jobs.", 1, &ClaimOptions::worker("w")).expect("a claim").remove(0);
    drop(session);
    let session = house.sessions().resume(&credentials, 100).expect("still there");
    session.records().step(&job, [("n", 2)]).expect("still held");
    session.close().expect("closed");
    assert_eq!(house.sessions().state(id), LifeState::Expired);
    eventually("the claim comes back", || state(&house, &job.name) == "pending");
}

#[test]
fn pushes_arrive_in_order_until_they_are_acknowledged() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("house");
    let house = Statehouse::open(&path).expect("a house");
    let session = house.sessions().open().expect("a session");
    let (id, credentials) = (session.id(), session.credentials().clone());
    let push = |house: &Statehouse, n: u8| {
        house.group("g").commit().set_cell("n", i64::from(n)).push(id, vec![n]).run().expect("a commit");
    };
    for n in 1..=3 {
        push(&house, n);
    }
    let refused = house.group("g").commit().if_cell_absent("n").push(id, b"never".to_vec()).run();
    assert!(refused.is_err());
    let next = |session: &statehouse::Session, wait| {
        let mut deliveries = session.deliveries();
        let mut seen = Vec::new();
        while let Some(Delivery::Push { number, payload }) = deliveries.next(wait).expect("alive") {
            seen.push((number, payload));
        }
        seen
    };
    let none = Duration::ZERO;
    assert_eq!(next(&session, none), [(1, vec![1]), (2, vec![2]), (3, vec![3])]);
    session.deliveries().acknowledge(2).expect("acknowledged");
    assert!(house.sessions().has_pending().expect("a view"));
    assert_eq!(next(&session, none), [(3, vec![3])]);
    let waiter = {
        let mut deliveries = session.deliveries();
        std::thread::spawn(move || {
            deliveries.next(none).expect("the third again");
            deliveries.next(Duration::from_secs(20)).expect("alive")
        })
    };
    push(&house, 4);
    assert_eq!(waiter.join().expect("no panic"), Some(Delivery::Push { number: 4, payload: vec![4] }));
    drop((session, house));
    let house = Statehouse::open(&path).expect("a house");
    let session = house.sessions().resume(&credentials, 1).expect("it is there");
    assert_eq!(next(&session, none), [(3, vec![3]), (4, vec![4])]);
    let retried = house.sessions().requests_for_retry(u64::MAX, 10).expect("a retry");
    assert_eq!(retried.iter().map(|push| push.number).collect::<Vec<_>>(), [3, 4]);
    assert!(!house.sessions().has_overdue(retried[0].last_sent_us).expect("a view"), "they were sent just now");
    session.deliveries().acknowledge(4).expect("acknowledged");
    assert!(!house.sessions().has_pending().expect("a view"));
}

#[test]
fn a_line_that_loses_pushes_gets_them_again() {
    let (_directory, clock, house) = house();
    let session = house.sessions().open().expect("a session");
    house.group("g").commit().push(session.id(), b"a".to_vec()).run().expect("a commit");
    let mut deliveries = session.deliveries().resend_after(Duration::from_secs(5));
    let push = Some(Delivery::Push { number: 1, payload: b"a".to_vec() });
    assert_eq!(deliveries.next(Duration::ZERO).expect("alive"), push);
    assert_eq!(deliveries.next(Duration::ZERO).expect("alive"), None);
    clock.advance(Duration::from_secs(5));
    assert_eq!(deliveries.next(Duration::ZERO).expect("alive"), push, "not acknowledged in time");
    deliveries.acknowledge(1).expect("acknowledged");
    clock.advance(Duration::from_secs(5));
    assert_eq!(deliveries.next(Duration::ZERO).expect("alive"), None);
}

#[test]
fn a_subscription_delivers_changes_with_a_cursor() {
    let (_directory, _, house) = house();
    let session = house.sessions().open().expect("a session");
    let mut deliveries = session.deliveries();
    let changes = house.changes().with_prefix("jobs.");
    let cursor = changes.newest().expect("a view");
    let jobs = deliveries.subscribe(changes, cursor);
    house.cells().set("other", 1).expect("set");
    put_jobs(&house, 1);
    let Some(Delivery::Changes { subscription, page }) = deliveries.next(Duration::from_secs(10)).expect("alive")
    else {
        panic!("changes");
    };
    assert_eq!((subscription, page.changes.len()), (jobs, 1));
    assert_eq!(page.changes[0].name, "jobs.0");
    house.group("g").commit().push(session.id(), b"p".to_vec()).run().expect("a commit");
    assert!(matches!(deliveries.next(Duration::from_secs(10)).expect("alive"), Some(Delivery::Push { .. })));
}

#[test]
fn a_session_that_does_not_take_its_pushes_is_ended() {
    let (_directory, _, house) = house();
    let mut limits = house.limits().expect("limits");
    limits.session_pushes_max = 3;
    house.set_limits(limits).expect("set");
    let session = house.sessions().open().expect("a session");
    for n in 0..5 {
        house.group("g").commit().set_cell("n", n).push(session.id(), b"p".to_vec()).run().expect("a commit");
    }
    assert!(is_expired(session.cells().set("a", 1)));
    eventually("it is ended", || house.sessions().state(session.id()) == LifeState::Expired);
    assert_eq!(house.cells().get("a").expect("get"), None, "E1: it was never executed");
}

#[test]
fn a_session_with_too_many_answers_is_busy_until_it_takes_some() {
    let (_directory, _, house) = house();
    let mut limits = house.limits().expect("limits");
    limits.session_answers_max = 2;
    house.set_limits(limits).expect("set");
    let session = house.sessions().open().expect("a session");
    let set =
        |request, lowest| session.request(request, lowest).cells().set("a", request as i64).map(|set| set.version);
    assert_eq!((set(1, 1), set(2, 1)), (Ok(1), Ok(2)));
    let busy = set(3, 1).expect_err("busy");
    assert!(busy.retryable());
    assert_eq!(busy, Rejection::Session(SessionRejection::Busy { limit: "session_answers_max", max: 2 }).into());
    assert_eq!((set(1, 1), set(2, 1)), (Ok(1), Ok(2)), "what is stored is answered");
    assert_eq!(set(3, 2), Ok(3), "it was not stored as busy");
}

#[test]
fn an_ephemeral_record_needs_a_session() {
    let (_directory, _, house) = house();
    let put = Put { ttl: Ttl::WithSession, ..Put::default() };
    let refused = house.records().put("r", [("a", 1)], put.clone()).expect_err("no session");
    assert_eq!(refused.code(), "SH-1018");
    let session = house.sessions().open().expect("a session");
    session.records().put("r", [("a", 1)], put.clone()).expect("put");
    session.records().put("s", [("a", 1)], put).expect("put");
    house.records().put("r", [("a", 2)], Put::default()).expect("somebody keeps it");
    session.close().expect("closed");
    eventually("what is its own ends", || house.records().get("s").expect("get").is_none());
    assert!(house.records().get("r").expect("get").is_some(), "it does not end with the session any more");
}

#[test]
fn a_worker_that_waits_for_work_is_alive() {
    let (_directory, clock, house) = house();
    let open = || house.sessions().open_with(SessionOptions::default().timeout(TIMEOUT)).expect("a session");
    let (session, silent) = (open(), open());
    let worker = std::thread::spawn(move || {
        let wait = ClaimOptions::worker("w").wait(Duration::from_secs(600));
        session.records().claim_next("jobs.", 1, &wait).map(|jobs| jobs.len())
    });
    eventually("it waits", || house.overview().expect("an overview").claimers_waiting == 1);
    clock.advance(TIMEOUT * 4);
    eventually("one that does not wait ends", || house.sessions().state(silent.id()) == LifeState::Expired);
    put_jobs(&house, 1);
    assert_eq!(worker.join().expect("no panic"), Ok(1));
}

fn code<T>(result: Result<T, Error>) -> String {
    result.err().map_or_else(|| "done".to_owned(), |error| error.code().to_owned())
}

/// What a client can do as a session by its number.
fn acts(house: &Statehouse, shown: &SessionCredentials) -> Vec<(&'static str, String)> {
    let sessions = house.sessions();
    vec![
        ("keep_alive", code(sessions.keep_alive(shown))),
        ("resume", code(sessions.resume(shown, 100).map(drop))),
        ("request_in", code(sessions.request_in(shown, 1, 1, "default").map(drop))),
        ("deliveries", code(sessions.deliveries(shown).map(drop))),
        ("acknowledge", code(sessions.acknowledge(shown, 0))),
        ("end", code(sessions.end(shown))),
    ]
}

#[test]
fn only_the_secret_of_a_session_opens_it() {
    let (_directory, clock, house) = house();
    let sessions = house.sessions();
    let session = sessions.create(SessionOptions::default().timeout(TIMEOUT)).expect("a session");
    let other = sessions.create(SessionOptions::default().timeout(2 * TIMEOUT)).expect("a session");
    assert_ne!(session.secret, other.secret);
    let applied = || house.status().expect("a status").applied_index;
    let before = applied();
    clock.advance(TIMEOUT - Duration::from_millis(1));
    for secret in [&other.secret, &SessionSecret::from_bytes([0; 16])] {
        let shown = SessionCredentials { session: session.session, secret: secret.clone() };
        for (act, code) in acts(&house, &shown) {
            assert_eq!(code, "SH-5007", "{act}");
        }
    }
    assert_eq!(code(sessions.shown(session.session, None)), "SH-5007");
    assert_eq!(sessions.state(session.session), LifeState::Pending, "nobody was there");
    assert_eq!(applied(), before, "nothing was proposed");
    // A number that will be given to the next session, or to none.
    for number in [other.session + 1, u64::MAX] {
        let unknown = SessionCredentials { session: number, ..session.clone() };
        for (act, code) in acts(&house, &unknown) {
            assert_eq!(code, if act == "end" { "done" } else { "SH-5004" }, "{act}");
        }
        assert_eq!(sessions.end(&unknown), Ok(false));
        assert_eq!(code(sessions.shown(number, None)), "SH-5004");
    }
    assert_eq!(applied(), before, "nothing was proposed");
    clock.advance(Duration::from_millis(1));
    eventually("what was refused is no sign of life", || sessions.state(session.session) == LifeState::Expired);
    for (act, code) in acts(&house, &other) {
        assert_eq!(code, "done", "{act}");
    }
    assert_eq!(sessions.state(other.session), LifeState::Expired, "it was ended last");
    let ended_by_an_operator = sessions.create(SessionOptions::default()).expect("a session").session;
    assert_eq!(sessions.list(0, 10), Ok(vec![ended_by_an_operator]));
    assert!(sessions.status(ended_by_an_operator).expect("a status").is_some());
    assert_eq!(sessions.expire(ended_by_an_operator), Ok(true), "without a secret");
}

#[test]
fn a_secret_is_stored_nowhere_and_survives_with_its_digest() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("house");
    let house = Statehouse::open(&path).expect("a house");
    let session = house.sessions().create(SessionOptions::default().capability("name", "marked")).expect("a session");
    let mut image = Vec::new();
    house.write_image(&mut image).expect("an image");
    let status = format!("{:?}", house.sessions().status(session.session).expect("a status"));
    house.close().expect("closed");
    drop(house);
    let mut stored = vec![image, status.into_bytes()];
    let mut folders = vec![path.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { stored.push(std::fs::read(path).expect("a file")) }
        }
    }
    let holds =
        |wanted: &[u8]| stored.iter().filter(|bytes| bytes.windows(wanted.len()).any(|at| at == wanted)).count();
    assert!(holds(b"marked") >= 2, "the image, and the journal or the store");
    assert_eq!((holds(session.secret.as_bytes()), holds(session.secret.to_text().as_bytes())), (0, 0));
    let house = Statehouse::open(&path).expect("a house");
    let stranger = SessionCredentials { secret: SessionSecret::from_bytes([0; 16]), ..session.clone() };
    assert_eq!(code(house.sessions().resume(&stranger, 1)), "SH-5007");
    assert_eq!(house.sessions().resume(&session, 1).expect("its own secret").credentials(), &session);
}
