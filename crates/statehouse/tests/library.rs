//! The library as a user meets it: opening (H1, H2), closing, limits, retention, branches, images.

mod held;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use held::{HeldClock, eventually};
use statehouse::records::{ClaimOptions, Put};
use statehouse::{AsOf, Error, FailureKind, HistoryPage, ListPage, Moment, Options, Rejection, Retention, Statehouse};

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[test]
fn what_was_written_is_there_after_closing_and_after_dropping() {
    let directory = directory();
    let path = directory.path().join("house");
    for round in 1..=6 {
        let house = Statehouse::open(&path).expect("open");
        assert_eq!(house.cells().set("a", round).expect("set").version, u64::try_from(round).expect("small"));
        let before = house.status().expect("status");
        if round % 2 == 0 {
            house.close().expect("close");
        }
        drop(house);
        let house = Statehouse::open(&path).expect("open");
        let after = house.status().expect("status");
        assert_eq!((after.commit, after.effects_hash), (before.commit, before.effects_hash));
        assert_eq!(house.cells().get("a").expect("get"), Some(round.into()));
    }
}

#[test]
fn a_second_opener_is_refused_by_name_and_a_closed_handle_says_so() {
    let directory = directory();
    let path = directory.path().join("house");
    let house = Statehouse::open(&path).expect("open");
    let cells = house.cells();
    let refused = Statehouse::open(&path).err().expect("refused").to_string();
    assert!(refused.contains("house is already open") && refused.contains("SH-2020"), "{refused}");
    house.close().expect("close");
    house.close().expect("closing again does nothing");
    for error in [cells.get("a").err(), cells.set("a", 1).err()] {
        let Some(Error::Failed(failure)) = error else { panic!("closed") };
        assert_eq!(failure.kind, FailureKind::Closed);
    }
    drop((house, cells));
    Statehouse::open(&path).expect("the directory is free again");
}

#[test]
fn a_full_queue_is_a_named_refusal_and_nothing_else_is_lost() {
    let directory = directory();
    let mut options = Options::default();
    options.journal.queue_commands_max = 4;
    let house = options.open(directory.path().join("house")).expect("open");
    let cells = house.cells();
    let pending: Vec<_> = (0..2_000).map(|number| cells.set_later("a", number)).collect();
    let (mut done, mut refused) = (0, 0);
    for answer in pending {
        match answer.wait() {
            Ok(_) => done += 1,
            Err(error) => {
                assert!(error.retryable() && error.to_string().contains("queue_commands_max"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(done > 0 && refused > 0, "{done} done, {refused} refused");
    assert_eq!(cells.get_versioned("a").expect("get").expect("it exists").version, done);
}

#[test]
fn a_pending_answer_can_be_awaited_without_a_runtime() {
    let directory = directory();
    let house = Statehouse::open(directory.path().join("house")).expect("open");
    let mut answer = pin!(async { house.cells().set_later("a", 1).await });
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match answer.as_mut().poll(&mut context) {
            Poll::Ready(written) => break assert_eq!(written.expect("set").version, 1),
            Poll::Pending => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

#[test]
fn limits_hold_at_the_limit_and_refuse_one_more() {
    let directory = directory();
    let house = Statehouse::open(directory.path().join("house")).expect("open");
    let cells = house.cells();
    let max = house.limits().expect("limits").value_bytes_max as usize;
    cells.set("a", vec![0; max]).expect("a value at the limit");
    let refused = cells.set("a", vec![0; max + 1]).expect_err("one more");
    assert!(
        matches!(&refused, Error::Rejected(Rejection::LimitExceeded { limit: "value_bytes_max", .. })),
        "{refused}"
    );
    for page in [1000, 1001] {
        assert_eq!(cells.list("", ListPage { after: None, limit: page }).is_ok(), page == 1000);
        assert_eq!(cells.history("a", HistoryPage { before: None, limit: page }).is_ok(), page == 1000);
    }
    let mut smaller = house.limits().expect("limits");
    smaller.value_bytes_max = 10;
    house.set_limits(smaller).expect("limits are catalogue state");
    assert!(cells.set("a", vec![0; 11]).is_err() && cells.set("a", vec![0; 10]).is_ok());
}

#[test]
fn history_is_given_up_by_count_at_a_write() {
    let directory = directory();
    let house = Statehouse::open(directory.path().join("house")).expect("open");
    let space = house.space("default");
    for (retention, kept) in [(Retention::versions(3), 3), (Retention::NONE, 1), (Retention::ALL, 20)] {
        space.set_retention(retention).expect("retention");
        let cell = format!("cell-{kept}");
        for number in 0..20 {
            house.cells().set(&cell, number).expect("set");
        }
        let history = house.cells().history(&cell, HistoryPage::default()).expect("history");
        assert_eq!(history.versions.len(), kept, "{retention:?}");
        let first = house.cells().at(&cell, Moment::Version(1)).expect("at");
        assert_eq!(matches!(first, AsOf::Value(_)), kept == 20);
    }
}

#[test]
fn history_is_given_up_by_age_by_the_walk_and_versions_current_within_the_age_stay() {
    let directory = directory();
    let clock = Arc::new(HeldClock::default());
    let options = Options::default().clock(clock.clone()).retention_walk_every(Duration::from_secs(3600));
    let house = options.open(directory.path().join("house")).expect("open");
    let cells = house.cells();
    for number in 1..=3 {
        cells.set("a", number).expect("set");
        clock.advance(5 * DAY);
    }
    // Version 1 was displaced ten days ago, version 2 five days ago; version 3 is current.
    house.walk_retention();
    let versions = || {
        let history = cells.history("a", HistoryPage::default()).expect("history");
        history.versions.iter().map(|past| past.version).collect::<Vec<_>>()
    };
    eventually("version 1 is given up", || versions() == [3, 2]);
    assert!(matches!(cells.at("a", Moment::Version(1)).expect("at"), AsOf::Unavailable { oldest: 2 }));
    let before = house.status().expect("status").applied_index;
    let readings = clock.readings("retention-walk");
    house.walk_retention();
    eventually("an idle walk begins", || clock.readings("retention-walk") > readings);
    // The next walk begins when that one is over, and has something to do.
    clock.advance(5 * DAY);
    house.walk_retention();
    eventually("version 2 is given up", || versions() == [3]);
    assert_eq!(house.status().expect("status").applied_index, before + 1, "an idle walk writes nothing");
}

#[test]
fn a_deleted_branch_is_gone_at_once_and_its_rows_behind() {
    let directory = directory();
    let house = Statehouse::open(directory.path().join("house")).expect("open");
    let space = house.space("default");
    // Without rows of the change feed, the remaining rows are those of the catalogue.
    let mut limits = house.limits().expect("limits");
    limits.changes_commits_max = 0;
    house.set_limits(limits).expect("limits are set");
    let rows = || house.write_image(&mut std::io::sink()).expect("an image");
    let empty = rows();
    let branch = space.create_branch("draft").expect("a branch");
    assert!(matches!(
        space.create_branch("draft").err(),
        Some(Error::Rejected(Rejection::AlreadyExists { what: "branch", .. }))
    ));
    for number in 0..300 {
        branch.cells().set(&format!("cell-{}", number % 3), number).expect("set");
        let put = Put { record_type: Some("task".into()), ..Put::expiring(Duration::from_secs(900)) };
        branch.records().put(&format!("jobs.{number}"), [("n", number)], put).expect("put");
    }
    branch.records().claim_next("jobs.", 50, &ClaimOptions::worker("w")).expect("claim");
    let old = branch.cells();
    space.delete_branch("draft").expect("delete");
    assert!(matches!(old.get("cell-1").err(), Some(Error::Rejected(Rejection::NoSuchBranch { .. }))));
    assert!(matches!(old.set("cell-1", 1).err(), Some(Error::Rejected(Rejection::NoSuchBranch { .. }))));
    assert!(matches!(space.delete_branch("main").err(), Some(Error::Rejected(Rejection::MainBranch))));
    eventually("no row of the branch is left", || rows() == empty);
    space.create_branch("draft").expect("the name is free again");
    assert_eq!(space.branch("draft").cells().get("cell-1").expect("get"), None, "it begins empty");
}

#[test]
fn spaces_and_branches_are_apart() {
    let directory = directory();
    let house = Statehouse::open(directory.path().join("house")).expect("open");
    let tenant = house.create_space("tenant").expect("a space");
    house.cells().set("a", "default").expect("set");
    tenant.cells().set("a", "tenant").expect("set");
    assert_eq!(house.cells().get("a").expect("get"), Some("default".into()));
    assert_eq!(tenant.cells().get("a").expect("get"), Some("tenant".into()));
    assert_eq!(house.spaces().expect("spaces"), ["default", "tenant"]);
    assert!(matches!(
        house.space("nowhere").cells().get("a").err(),
        Some(Error::Rejected(Rejection::NoSuchSpace { .. }))
    ));
}

#[test]
fn an_image_restores_to_the_same_bytes_and_goes_on() {
    let directory = directory();
    let house = Options::default().buckets(16).open(directory.path().join("house")).expect("open");
    let order = house.group("order-7");
    for number in 0..50 {
        order.cells().set(&format!("cell-{}", number % 7), number).expect("set");
        house.cells().set("spread", number).expect("set");
    }
    let mut image = Vec::new();
    house.write_image(&mut image).expect("an image");
    let copy_path = directory.path().join("copy");
    Statehouse::restore_image(&copy_path, &mut image.as_slice()).expect("restore");
    assert!(Statehouse::restore_image(&copy_path, &mut image.as_slice()).is_err(), "never over something");
    let copy = Statehouse::open(&copy_path).expect("open");
    let mut again = Vec::new();
    copy.write_image(&mut again).expect("an image");
    assert!(image == again, "an image of the restored image is the same bytes");
    assert_eq!(copy.cells().get("spread").expect("get"), Some(49.into()));
    let (next, next_copy) = (house.cells().set("spread", 50), copy.cells().set("spread", 50));
    assert_eq!(next.expect("set"), next_copy.expect("set"));
    for flipped in [9, image.len() / 2, image.len() - 1] {
        let mut damaged = image.clone();
        damaged[flipped] ^= 1;
        let refused = Statehouse::restore_image(directory.path().join(format!("d{flipped}")), &mut damaged.as_slice());
        assert!(refused.is_err(), "a flip at {flipped} is found");
    }
}

#[test]
fn what_was_cut_short_by_a_damaged_image_can_be_made_anew() {
    let directory = directory();
    let path = directory.path().join("house");
    assert!(Statehouse::restore_image(&path, &mut b"not an image at all".as_slice()).is_err());
    let house = Statehouse::open(&path).expect("a directory that never became one is begun again");
    assert_eq!(house.cells().get("a").expect("get"), None::<statehouse::Value>);
}
