//! A shard with two nodes over one log: one owns it, the other follows and takes over.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use journal::memory::MemoryLog;
use journal::{EntryLog, Position};
use node::follower::Follower;
use node::parts::Parts;
use node::place::ShardPlace;
use node::tenure::Tenure;
use statehouse::records::{AttemptToken, ClaimOptions, Claimed, Put};
use statehouse::runs::NewEvent;

use statehouse::{Error, FailureKind, Json, Options, Outcome, Statehouse};

fn follower(path: &Path, log: &MemoryLog) -> Follower {
    let options = Options::default();
    let parts = Parts::beside_log(path, ShardPlace::ALONE, Arc::new(log.clone()), Tenure::always(), &options).unwrap();
    Follower::start(parts, &options).unwrap()
}

/// Writes something of every contract.
fn write(house: &Statehouse, round: i64) {
    house.cells().set("round", round).unwrap();
    let records = house.records();
    records.put(&format!("jobs.{round}"), [("n", round)], Put::typed("task")).unwrap();
    let event = NewEvent::new("RunStarted", format!("start-{round}"), "2026-11-18T10:00:00Z", Json::new("{}").unwrap());
    house.runs().append(&format!("run-{round}"), &event).unwrap();
    let session = house.sessions().open().unwrap();
    session.request(1, 1).cells().set("by a session", round).unwrap();
}

fn image(house: &Statehouse) -> Vec<u8> {
    let mut bytes = Vec::new();
    house.write_image(&mut bytes).unwrap();
    bytes
}

fn image_of(follower: &Follower) -> Vec<u8> {
    let mut bytes = Vec::new();
    follower.write_image(&mut bytes).unwrap();
    bytes
}

fn is_not_owner(error: &Error) -> bool {
    matches!(error, Error::Failed(failure) if failure.kind == FailureKind::NotOwner)
}

#[test]
fn a_follower_is_equal_to_the_owner_after_the_same_entry() {
    let (scratch, log) = (tempfile::tempdir().unwrap(), MemoryLog::default());
    let owner = Statehouse::over(follower(&scratch.path().join("a"), &log).own(1).unwrap());
    let mut other = follower(&scratch.path().join("b"), &log);
    for round in 0..5 {
        write(&owner, round);
        let status = owner.status().unwrap();
        other.follow_until(status.applied_index).unwrap();
        let applied = other.applied();
        assert_eq!(
            (applied.index, applied.commit, applied.hash),
            (status.applied_index, status.commit, status.effects_hash)
        );
        assert_eq!(image_of(&other), image(&owner), "round {round}");
    }
    assert_eq!(other.follow().unwrap(), 0, "nothing is applied twice");
}

#[test]
fn whoever_appends_the_fence_first_owns_the_shard_and_the_one_before_answers_no_more() {
    let (scratch, log) = (tempfile::tempdir().unwrap(), MemoryLog::default());
    let old = Statehouse::over(follower(&scratch.path().join("a"), &log).own(1).unwrap());
    write(&old, 1);
    let (mut slow, mut fast) =
        (follower(&scratch.path().join("slow"), &log), follower(&scratch.path().join("fast"), &log));
    slow.follow().unwrap();
    fast.follow().unwrap();
    assert!(fast.fence(2).unwrap());
    assert!(!slow.fence(3).unwrap(), "it has not seen the other one's fence");
    let new = Statehouse::over(fast.own_fenced(2, Tenure::always()).unwrap());
    let refused = old.cells().set("round", 7).unwrap_err();
    assert!(is_not_owner(&refused), "{refused}");
    assert!(matches!(&refused, Error::Failed(failure) if failure.outcome == Outcome::NotApplied));
    assert!(is_not_owner(&old.cells().get("round").unwrap_err()), "nor does it answer reads");
    assert!(is_not_owner(&old.cells().set("round", 8).unwrap_err()));
    assert_eq!(new.cells().get("round").unwrap().unwrap().as_integer(), Some(1));
    write(&new, 2);
    assert!(old.close().is_err(), "it says why it has stopped");
    assert!(slow.follow().unwrap() > 0);
    assert_eq!(image_of(&slow), image(&new));
}

/// They are of the history of the log, not of the directory of whoever issued them.
#[test]
fn tokens_are_good_with_whoever_takes_over() {
    let (scratch, log) = (tempfile::tempdir().unwrap(), MemoryLog::default());
    let old = Statehouse::over(follower(&scratch.path().join("a"), &log).own(1).unwrap());
    let worker = ClaimOptions::worker("w").lease(Duration::from_secs(600));
    old.records().put("job", [("n", 1)], Put::typed("task")).unwrap();
    let (claimed, owned) = (old.records().claim("job", &worker).unwrap(), old.group("agents.7").own(&worker).unwrap());
    let (attempt, token) = (owned.attempt(), owned.token());
    let mut follower = follower(&scratch.path().join("b"), &log);
    follower.follow().unwrap();
    assert!(follower.fence(2).unwrap());
    let new = Statehouse::over(follower.own_fenced(2, Tenure::always()).unwrap());
    assert_ne!(new.id(), old.id());
    assert_eq!(new.history(), old.history());
    assert_eq!(new.group("agents.7").owned(attempt).token(), token);
    let shown = AttemptToken::parse(&claimed.token).unwrap();
    assert_eq!(shown.place.history, new.history());
    new.records().complete(&Claimed::of_token(shown), [("n", 2)]).unwrap();
}

#[test]
fn an_owner_steps_down_and_another_takes_over_again_and_again() {
    let (scratch, log) = (tempfile::tempdir().unwrap(), MemoryLog::default());
    let mut followers = ["a", "b"].map(|name| Some(follower(&scratch.path().join(name), &log)));
    for term in 1..=10_usize {
        let (here, there) = (term % 2, 1 - term % 2);
        let mut taking = followers[here].take().unwrap();
        taking.follow().unwrap();
        assert!(taking.fence(term as u64).unwrap());
        let shard = taking.own_fenced(term as u64, Tenure::always()).unwrap();
        let house = Statehouse::over(shard.clone());
        write(&house, term as i64);
        let before = image(&house);
        let follower = shard.step_down().unwrap();
        assert_eq!(image_of(&follower), before);
        assert!(house.cells().get("round").is_err(), "its handles are closed");
        followers[here] = Some(follower);
        let other = followers[there].as_mut().unwrap();
        other.follow().unwrap();
        assert_eq!(image_of(other), before);
    }
}

#[test]
fn a_store_that_has_applied_what_the_log_has_lost_goes_no_further() {
    let (scratch, log) = (tempfile::tempdir().unwrap(), MemoryLog::default());
    let owner = Statehouse::over(follower(&scratch.path().join("a"), &log).own(1).unwrap());
    write(&owner, 1);
    let mut other = follower(&scratch.path().join("b"), &log);
    other.follow().unwrap();
    log.forget(ShardPlace::ALONE.id, 1);
    let refused = other.follow().unwrap_err();
    assert!(is_not_owner(&refused), "{refused}");
    assert!(is_not_owner(&owner.cells().set("round", 2).unwrap_err()));
}

#[test]
fn a_fence_is_worth_nothing_once_there_is_another_behind_it() {
    let (scratch, log) = (tempfile::tempdir().unwrap(), MemoryLog::default());
    let mut first = follower(&scratch.path().join("a"), &log);
    assert!(first.fence(2).unwrap());
    let mut second = follower(&scratch.path().join("b"), &log);
    second.follow().unwrap();
    assert!(second.fence(3).unwrap());
    let refused = first.own_fenced(2, Tenure::always()).map(|_| ()).unwrap_err();
    assert!(is_not_owner(&refused), "{refused}");
    let owner = Statehouse::over(second.own_fenced(3, Tenure::always()).unwrap());
    write(&owner, 1);
}

#[test]
fn an_owner_that_was_deposed_follows_and_can_own_again() {
    let (scratch, log) = (tempfile::tempdir().unwrap(), MemoryLog::default());
    let shard = follower(&scratch.path().join("a"), &log).own(1).unwrap();
    let old = Statehouse::over(shard.clone());
    write(&old, 1);
    let session = old.sessions().open().unwrap().credentials().clone();
    let mut other = follower(&scratch.path().join("b"), &log);
    other.follow().unwrap();
    assert!(other.fence(2).unwrap());
    let between = other.own_fenced(2, Tenure::always()).unwrap();
    write(&Statehouse::over(between.clone()), 2);
    assert!(is_not_owner(&old.cells().set("round", 3).unwrap_err()));
    assert!(is_not_owner(&old.sessions().keep_alive(&session).unwrap_err()), "it keeps no session alive");
    let mut again = shard.step_down().unwrap();
    again.follow().unwrap();
    assert!(again.fence(3).unwrap());
    let house = Statehouse::over(again.own_fenced(3, Tenure::always()).unwrap());
    assert_eq!(house.cells().get("round").unwrap().unwrap().as_integer(), Some(2));
    write(&house, 4);
    assert!(is_not_owner(&Statehouse::over(between).cells().set("round", 5).unwrap_err()));
}

#[test]
fn a_log_that_begins_somewhere_is_moved_by_nobody() {
    let (scratch, log) = (tempfile::tempdir().unwrap(), MemoryLog::default());
    log.start_after(ShardPlace::ALONE.id, Position { index: 7, hash: 9 }, 1).unwrap();
    let options = Options::default();
    let parts = Parts::beside_log(scratch.path(), ShardPlace::ALONE, Arc::new(log.clone()), Tenure::always(), &options)
        .unwrap();
    let refused = Follower::start(parts, &options).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("begins behind entry 7"), "{refused}");
    assert_eq!(log.ends(ShardPlace::ALONE.id).unwrap().last, Position { index: 7, hash: 9 });
}

/// The applied row says which entry it was: its number alone would fit any log that is long enough.
#[test]
fn a_store_is_not_opened_over_the_log_of_another() {
    let scratch = tempfile::tempdir().unwrap();
    let logs = [MemoryLog::default(), MemoryLog::default()];
    for (name, log) in ["a", "b"].into_iter().zip(&logs) {
        let shard = follower(&scratch.path().join(name), log).own(1).unwrap();
        write(&Statehouse::over(shard.clone()), 1);
        shard.flush().unwrap();
        let follower = shard.step_down().unwrap();
        let (applied, at) = (*follower.applied(), follower.at());
        let history = log.ends(ShardPlace::ALONE.id).unwrap().history;
        assert_eq!((applied.index, applied.entry_hash), (at.index, at.hash));
        assert_eq!((applied.term, Some(applied.history)), (1, history));
    }
    let options = Options::default();
    let open = |name: &str, log: &MemoryLog| {
        let (path, log) = (scratch.path().join(name), Arc::new(log.clone()));
        Follower::start(Parts::beside_log(&path, ShardPlace::ALONE, log, Tenure::always(), &options)?, &options)
    };
    let refused = open("a", &logs[1]).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("do not belong together"), "{refused}");
    open("a", &logs[0]).unwrap();
    open("b", &logs[1]).unwrap();
}

/// Whoever owns a shard cuts its log; a node that was away for long learns what it needs.
#[test]
fn a_store_that_is_behind_the_log_is_made_again() {
    let (scratch, log) = (tempfile::tempdir().unwrap(), MemoryLog::default());
    let owner = follower(&scratch.path().join("a"), &log).own(1).unwrap();
    for round in 0..3 {
        write(&Statehouse::over(owner.clone()), round);
    }
    let last = log.ends(ShardPlace::ALONE.id).unwrap().last.index;
    log.cut(ShardPlace::ALONE.id, last).unwrap();
    let options = Options::default();
    let path = scratch.path().join("b");
    let parts = Parts::beside_log(&path, ShardPlace::ALONE, Arc::new(log.clone()), Tenure::always(), &options).unwrap();
    let refused = Follower::start(parts, &options).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("make the store again from an image"), "{refused}");
}
