//! The state primitive's commands give its outputs, alone and in a transaction.

use statehouse::seed::{Command, Output, Session};
use statehouse::{Statehouse, Value};

#[test]
fn the_seed_commands_give_the_seed_outputs_with_and_without_a_transaction() {
    let directory = tempfile::tempdir().expect("a directory");
    let house = Statehouse::open(directory.path().join("house")).expect("open");
    let mut session = Session::new(&house);
    let (branch, cell) = ("main".to_owned(), "c".to_owned());
    let init = |value: i64| Command::StateInit { branch: branch.clone(), cell: cell.clone(), value: value.into() };
    let get = || Command::StateGet { branch: branch.clone(), cell: cell.clone() };
    let set = |value: i64| Command::StateSet { branch: branch.clone(), cell: cell.clone(), value: value.into() };
    let cas = |expected_counter, value: i64| Command::StateCas {
        branch: branch.clone(),
        cell: cell.clone(),
        expected_counter,
        value: value.into(),
    };
    let run = |session: &mut Session, command| session.execute(command).expect("executed");
    assert_eq!(run(&mut session, get()), Output::Maybe(None));
    assert_eq!(run(&mut session, cas(Some(1), 0)), Output::MaybeVersion(None), "missing is a mismatch");
    assert_eq!(run(&mut session, init(1)), Output::Version(1));
    assert_eq!(run(&mut session, init(2)), Output::Version(1), "init is idempotent");
    assert_eq!(run(&mut session, get()), Output::Maybe(Some(1.into())));
    assert_eq!(run(&mut session, cas(None, 3)), Output::MaybeVersion(None), "it exists");
    assert_eq!(run(&mut session, cas(Some(1), 3)), Output::MaybeVersion(Some(2)));
    assert_eq!(run(&mut session, cas(Some(1), 4)), Output::MaybeVersion(None));
    assert_eq!(run(&mut session, set(5)), Output::Version(3));
    let getv = Command::StateGetv { branch: branch.clone(), cell: cell.clone() };
    let Output::MaybeVersions(Some(versions)) = run(&mut session, getv) else { panic!("versions") };
    let versions: Vec<_> = versions.into_iter().map(|state| (state.version, state.value)).collect();
    assert_eq!(versions, [(3, Value::from(5)), (2, 3.into()), (1, 1.into())]);

    session.begin("main").expect("begin");
    assert!(session.begin("main").is_err(), "one transaction at a time");
    assert_eq!(run(&mut session, set(6)), Output::Version(4));
    assert_eq!(run(&mut session, cas(Some(3), 7)), Output::MaybeVersion(None));
    assert_eq!(run(&mut session, cas(Some(4), 7)), Output::MaybeVersion(Some(5)));
    assert_eq!(run(&mut session, init(8)), Output::Version(5));
    assert_eq!(run(&mut session, get()), Output::Maybe(Some(7.into())), "own writes are read");
    let outside = house.group("state").cells().get("c").expect("get");
    assert_eq!(outside, Some(5.into()), "others see nothing yet");
    let other_branch = Command::StateGet { branch: "other".into(), cell: "c".into() };
    assert!(session.execute(other_branch).is_err(), "a transaction keeps to its branch");
    session.commit().expect("commit");
    assert!(session.commit().is_err() && session.rollback().is_err(), "none is open");
    assert_eq!(run(&mut session, get()), Output::Maybe(Some(7.into())));

    let bad = Command::StateSet { branch: "main".into(), cell: "_strata".into(), value: 1.into() };
    assert!(session.execute(bad).is_err(), "a bad name is an error, not a mismatch");
}
