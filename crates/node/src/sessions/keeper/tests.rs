//! Sessions live from sign to sign, and their clients are admitted by what they show.

use session::CreatedSession;

use super::*;

fn at(cluster_us: u64) -> Stamp {
    Stamp { wall_us: 0, cluster_us }
}

fn secret_of(session: u64) -> SecretDigest {
    SecretDigest::new([u8::try_from(session).expect("small"); 32])
}

fn keeper(sessions: &[(u64, u64)]) -> Keeper {
    let keeper = Keeper::default();
    let created = sessions.iter().map(|(session, timeout_us)| CreatedSession {
        session: *session,
        timeout_us: *timeout_us,
        secret: secret_of(*session),
        owner: None,
    });
    keeper.changed(&ChangedSessions { created: created.collect(), ..ChangedSessions::default() }, at(0));
    keeper
}

#[test]
fn a_session_lives_from_sign_to_sign() {
    let keeper = keeper(&[(7, 100), (8, 100)]);
    assert_eq!(keeper.state(7), LifeState::Pending);
    assert!(keeper.connect(7, at(10)));
    assert_eq!(keeper.state(7), LifeState::Connected);
    keeper.disconnect(7);
    assert_eq!(keeper.state(7), LifeState::Disconnected);
    assert!(keeper.take_overdue(at(99), 10).is_empty());
    assert!(keeper.contact(7, at(60)));
    assert_eq!(keeper.take_overdue(at(100), 10), [8]);
    assert!(!keeper.contact(8, at(101)), "it is being ended");
    assert!(keeper.take_overdue(at(159), 10).is_empty());
    assert_eq!(keeper.take_overdue(at(160), 10), [7]);
    keeper.spare(&[7]);
    assert_eq!(keeper.take_overdue(at(160), 10), [7]);
    keeper.changed(&ChangedSessions { expired: vec![7], ..ChangedSessions::default() }, at(161));
    assert_eq!(keeper.state(7), LifeState::Expired);
}

#[test]
fn a_client_is_admitted_by_the_secret_of_its_session_only() {
    let keeper = keeper(&[(7, 100), (8, 100)]);
    let admit = |session, secret: Option<SecretDigest>, time| {
        keeper.admit(session, &Shown { secret: secret.as_ref(), ..Shown::default() }, at(time))
    };
    assert_eq!(admit(7, Some(secret_of(7)), 60), Ok(()));
    for shown in [None, Some(secret_of(8)), Some(secret_of(9))] {
        assert_eq!(admit(7, shown, 90), Err(SessionRejection::WrongSecret));
    }
    assert_eq!(admit(8, Some(secret_of(7)), 90), Err(SessionRejection::WrongSecret));
    assert_eq!(admit(9, Some(secret_of(9)), 90), Err(SessionRejection::Expired));
    assert_eq!(keeper.state(8), LifeState::Pending, "what is refused is no sign of life");
    assert_eq!(keeper.take_overdue(at(100), 10), [8]);
    assert_eq!(keeper.take_overdue(at(160), 10), [7]);
    assert_eq!(admit(7, Some(secret_of(7)), 160), Err(SessionRejection::Expired), "it is being ended");
}

#[test]
fn a_session_acts_for_its_principal_and_in_its_space() {
    let keeper = Keeper::default();
    let owner = Some(SessionOwner { principal: "me".into(), space: Some("s".into()) });
    let created = vec![CreatedSession { session: 7, timeout_us: 100, secret: secret_of(7), owner }];
    keeper.changed(&ChangedSessions { created, ..ChangedSessions::default() }, at(0));
    let admit = |secret: SecretDigest, principal, space| {
        keeper.admit(7, &Shown { secret: Some(&secret), principal, space }, at(1))
    };
    for space in [None, Some("s")] {
        assert_eq!(admit(secret_of(7), Some("me"), space), Ok(()));
        assert_eq!(admit(secret_of(7), None, space), Ok(()), "nobody was asked who it is");
        assert_eq!(admit(secret_of(7), Some("you"), space), Err(SessionRejection::Expired), "it has the secret");
        assert_eq!(admit(secret_of(8), Some("you"), space), Err(SessionRejection::Expired));
        assert_eq!(admit(secret_of(8), Some("me"), space), Err(SessionRejection::WrongSecret));
    }
    let elsewhere = Err(SessionRejection::OtherSpace { space: "s".into() });
    assert_eq!(admit(secret_of(7), Some("me"), Some("t")), elsewhere);
    assert_eq!(admit(secret_of(8), Some("me"), Some("t")), Err(SessionRejection::WrongSecret));
}

#[test]
fn a_session_that_takes_no_pushes_is_overdue_at_once() {
    let keeper = keeper(&[(7, 100)]);
    assert!(keeper.take_overdue(at(1), 10).is_empty());
    keeper.changed(&ChangedSessions { broken: vec![7], ..ChangedSessions::default() }, at(1));
    assert_eq!(keeper.take_overdue(at(1), 10), [7]);
}

#[test]
fn a_session_whose_client_waits_is_alive() {
    let keeper = keeper(&[(7, 100)]);
    let now = || at(500);
    let waiting = keeper.wait_in(7, &now);
    assert!(keeper.take_overdue(at(400), 10).is_empty());
    drop(waiting);
    assert!(keeper.take_overdue(at(599), 10).is_empty(), "its time starts anew");
    assert_eq!(keeper.take_overdue(at(600), 10), [7]);
}

#[test]
fn at_most_so_many_are_taken_at_a_time() {
    let keeper = keeper(&[(1, 10), (2, 10), (3, 10)]);
    let first = keeper.take_overdue(at(10), 2);
    let second = keeper.take_overdue(at(10), 2);
    assert_eq!((first.len(), second.len()), (2, 1));
}
