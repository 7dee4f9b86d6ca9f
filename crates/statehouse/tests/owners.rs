//! One writer: groups that only their owner writes, handles that are lost, and those who wait for a group.

#[path = "export/furnished.rs"]
#[allow(dead_code, reason = "its machine is used here")]
mod furnished;
mod held;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use furnished::{Say, Sayings};
use held::{eventually, house};
use statehouse::guards::GroupGuard;
use statehouse::records::{ClaimOptions, Claimed, Put, RecordType};
use statehouse::runs::NewEvent;
use statehouse::{Error, Group, Json, RecordRejection, Rejection, Statehouse, Value, export, import};

fn worker(name: &str) -> ClaimOptions {
    ClaimOptions::worker(name).lease(Duration::from_secs(10))
}

fn code<T>(answer: Result<T, Error>) -> &'static str {
    answer.err().map_or("done", |error| error.code())
}

fn guard(house: &Statehouse) {
    house.space("default").set_guard("agents.", GroupGuard::new().open("inbox")).expect("a guard");
}

fn event(key: &str) -> NewEvent {
    NewEvent::new("Progress", key, "2026-02-11T10:00:00Z", Json::new("{}").expect("JSON"))
}

#[test]
fn every_kind_of_write_goes_through_an_owned_group_and_not_beside_it() {
    let (_directory, _, house) = house();
    guard(&house);
    let agent = house.group("agents.7");
    let owned = agent.own(&worker("w")).expect("own");
    for (group, expected) in [(&agent, "SH-4003"), (&*owned, "done"), (&agent.forced(), "done")] {
        assert_eq!(code(group.cells().set("a", 1)), expected);
        assert_eq!(code(group.records().put("a", [("n", 1)], Put::typed("task"))), expected);
        assert_eq!(code(group.records().set_field("a", "n", 2)), expected);
        assert_eq!(code(group.runs().append("a", &event("one"))), expected);
        assert_eq!(code(group.commit().set_cell("b", 1).increment("c", "n", 1).run()), expected);
        assert_eq!(code(group.commit().publish("topic", "payload").run()), expected);
        let in_transaction = group.transact(|transaction| {
            let before = transaction.get("a")?;
            transaction.set("a", 2)?;
            transaction.records().increment("c", "n", 1)?;
            Ok(before)
        });
        assert_eq!(code(in_transaction), expected);
        assert_eq!(code(group.cells().get("a")), "done", "anybody reads");
    }
    assert_eq!(owned.cells().get("a").expect("get"), Some(2.into()));
    assert_eq!(code(house.group("free").cells().set("a", 1)), "done");
}

#[test]
fn a_job_of_a_guarded_group_is_claimed_by_its_owner_and_by_name() {
    let (_directory, _, house) = house();
    guard(&house);
    house.space("default").declare_type("jobs.", RecordType::task().named("job")).expect("declare");
    let owned = house.group("agents.7").own(&worker("w")).expect("own");
    owned.records().put("jobs.1", [("n", 1)], Put::default()).expect("put");
    house.records().put("jobs.2", [("n", 1)], Put::default()).expect("put");
    let next = house.records().claim_next("jobs.", 9, &worker("v")).expect("claim");
    assert_eq!(next.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["jobs.2"]);
    assert_eq!(code(house.group("agents.7").records().claim("jobs.1", &worker("v"))), "SH-4003");
    let job = owned.records().claim("jobs.1", &worker("w")).expect("claim");
    owned.records().complete(&job, [("n", 2)]).expect("complete");
}

#[test]
fn a_lost_group_is_lost_at_once_and_for_good() {
    let (_directory, clock, house) = house();
    guard(&house);
    let agent = house.group("agents.7");
    let first = agent.own(&worker("first")).expect("own");
    clock.advance(Duration::from_secs(8));
    first.extend(Some(Duration::from_secs(10))).expect("extend");
    clock.advance(Duration::from_secs(8));
    assert!(!first.is_lost().expect("read"), "it was extended");
    let refused = agent.own(&worker("second")).err().expect("it is held");
    match refused {
        Error::Rejected(Rejection::Record(RecordRejection::Held { attempt: 1, holder, .. })) => {
            assert_eq!(holder.as_deref(), Some("first"));
        }
        other => panic!("{other}"),
    }
    clock.advance(Duration::from_secs(3));
    eventually("its lease is over", || first.is_lost().expect("read"));
    assert_eq!(code(first.cells().set("a", 1)), "SH-4002");
    let second = agent.own(&worker("second")).expect("own");
    assert_eq!((first.attempt(), second.attempt()), (1, 2));
    let applied = house.status().expect("status").applied_index;
    assert_eq!(code(first.cells().set("a", 1)), "SH-4002");
    assert_eq!(code(first.extend(None)), "SH-4002");
    assert_eq!(house.status().expect("status").applied_index, applied, "what is lost does not reach the journal");
    let text = first.cells().set("a", 1).expect_err("lost").to_string();
    assert!(text.contains("held by \"second\""), "{text}");
    second.cells().set("a", 2).expect("set");
    second.release().expect("release");
    assert_eq!(agent.owner().expect("read"), None);
    assert_eq!(code(first.release()), "SH-4002");
}

#[test]
fn a_message_carries_the_fence_or_the_force_of_the_handle_that_made_it() {
    let (_directory, clock, house) = house();
    guard(&house);
    let agent = house.group("agents.7");
    let owned = agent.own(&worker("w")).expect("own");
    let send = |commit| house.group("other").commit().set_cell("sent", 1).send(commit).run().expect("sent");
    send(agent.commit().set_cell("plain", 1));
    send(owned.commit().set_cell("owned", 1));
    send(agent.forced().commit().set_cell("forced", 1));
    eventually("the messages are delivered", || {
        clock.advance(Duration::from_millis(1));
        let there = |name| agent.cells().get(name).expect("get").is_some();
        there("owned") && there("forced")
    });
    assert_eq!(agent.cells().get("plain").expect("get"), None);
}

#[test]
fn a_machine_in_a_guarded_group_takes_commands_of_the_owner_on_main() {
    let directory = tempfile::tempdir().expect("a directory");
    let house = furnished::options().open(directory.path().join("house")).expect("a house");
    guard(&house);
    let space = house.space("default");
    let agent = house.group("agents.7");
    let send = |group: &Group| code(group.machine::<Sayings>().send(&Say(b"x".to_vec())));
    let owned = agent.own(&worker("w")).expect("own");
    assert_eq!(send(&agent), "SH-4003");
    let refused = house.machine::<Sayings>().group("agents.7").send(&Say(Vec::new())).expect_err("refused");
    assert!(refused.to_string().contains("held by \"w\""), "{refused}");
    assert_eq!((send(&owned), send(&agent.forced())), ("done", "done"));
    let draft = space.create_branch("draft").expect("a branch").group("agents.7");
    let elsewhere = draft.own(&worker("v")).expect("own");
    assert_eq!(elsewhere.attempt(), owned.attempt(), "so the number alone tells nothing");
    assert_eq!(send(&elsewhere), "SH-4003", "the owner on another branch");
    drop(agent.forced().own(&worker("u")).expect("own"));
    assert_eq!(send(&owned), "SH-4002");
}

#[test]
fn a_claim_in_a_guarded_group_hears_the_end_of_a_pause() {
    let (_directory, clock, house) = house();
    guard(&house);
    let owned = house.group("agents.7").own(&worker("w").lease(Duration::from_secs(3_600))).expect("own");
    owned.records().put("job", [("n", 1)], Put::typed("task")).expect("put");
    let job = owned.records().claim("job", &worker("w")).expect("claim");
    owned.records().fail(&job, "no").expect("fail");
    std::thread::scope(|scope| {
        let records = owned.records();
        let waits = scope.spawn(move || {
            let options = worker("w");
            let waiting = records.claim_until("job", &options, std::future::pending());
            held::blocked_on(waiting).expect("its pause is over").attempt
        });
        eventually("the pause is over", || {
            clock.advance(Duration::from_millis(100));
            waits.is_finished()
        });
        assert_eq!(waits.join().expect("no panic"), 2);
    });
}

#[test]
fn those_who_wait_get_the_group_one_after_the_other() {
    const WAITERS: usize = 100;
    let (_directory, _, house) = house();
    guard(&house);
    let agent = house.group("agents.7");
    let first = agent.own(&worker("first")).expect("own");
    first.cells().set("turns", 0).expect("set");
    let before = house.status().expect("status").commit;
    let waiting = AtomicUsize::new(0);
    let claimers = || house.overview().expect("an overview").claimers_waiting;
    std::thread::scope(|scope| {
        for number in 0..WAITERS {
            let (agent, waiting) = (&agent, &waiting);
            scope.spawn(move || {
                waiting.fetch_add(1, Ordering::SeqCst);
                let options = worker(&format!("w{number}")).wait(Duration::from_secs(3_600));
                let owned = agent.own(&options).expect("its turn");
                let Some(Value::Integer(turns)) = owned.cells().get("turns").expect("get") else { panic!("a number") };
                owned.cells().set("turns", turns + 1).expect("it is the only writer");
                owned.release().expect("release");
            });
        }
        eventually("all wait", || waiting.load(Ordering::SeqCst) == WAITERS && claimers() == WAITERS);
        assert_eq!(house.status().expect("status").commit, before, "waiting writes nothing");
        first.release().expect("release");
    });
    assert_eq!(agent.cells().get("turns").expect("get"), Some(i64::try_from(WAITERS).expect("few").into()));
    let commands = house.status().expect("status").commit - before;
    assert!(commands < 4 * WAITERS as u64, "{commands} commands: each is woken for its turn, and not for every one");
    assert_eq!(claimers(), 0);
}

/// The branch has its name again, and its owner the same attempt, but it is another branch.
#[test]
fn nobody_owns_in_a_branch_what_they_owned_in_one_of_that_name_before() {
    let (_directory, _, house) = house();
    guard(&house);
    let space = house.space("default");
    let draft = || space.branch("draft").group("agents.7");
    space.create_branch("draft").expect("a branch");
    let before = draft().own(&worker("before")).expect("own");
    before.cells().set("a", 1).expect("it owns the group");
    assert!(!before.is_lost().expect("asked"));
    space.delete_branch("draft").expect("deleted");
    assert!(before.is_lost().expect("asked"), "its branch is gone");
    space.create_branch("draft").expect("again");
    let after = draft().own(&worker("after")).expect("own");
    assert_eq!(before.attempt(), after.attempt());
    assert_ne!(before.token(), after.token());
    assert!(before.is_lost().expect("asked") && !after.is_lost().expect("asked"));
    assert_eq!(code(before.cells().set("a", 2)), "SH-1006");
    assert_eq!(code(before.forced().cells().set("a", 2)), "SH-1006");
    assert_eq!(code(before.cells().get("a")), "SH-1006");
    assert_eq!(code(before.begin()), "SH-1006");
    assert_eq!(code(before.commit().set_cell("a", 2).run()), "SH-1006");
    assert_eq!(code(house.group("free").commit().send(before.commit().set_cell("a", 2)).run()), "SH-1006");
    assert_eq!(code(before.extend(None)), "SH-1006");
    assert_eq!(code(before.release()), "SH-1006");
    after.cells().set("a", 3).expect("it owns the group");
    // Another process knows the attempt alone: it means the branch of now.
    draft().owned(after.attempt()).cells().set("a", 4).expect("it owns the group");
}

/// The same for a job: its attempt has the same number in the branch that came after.
#[test]
fn a_job_is_finished_in_the_branch_of_its_claim() {
    let (_directory, _, house) = house();
    let space = house.space("default");
    let draft = || space.branch("draft").group("order-7");
    let claim = || {
        space.create_branch("draft").expect("a branch");
        draft().records().put("job", [("n", 1)], Put::typed("task")).expect("put");
        draft().records().claim("job", &worker("w")).expect("a claim")
    };
    let before = claim();
    space.delete_branch("draft").expect("deleted");
    let after = claim();
    assert_eq!(before.attempt, after.attempt);
    assert_ne!(before.token, after.token);
    let (group, records) = (draft(), draft().records());
    assert_eq!(code(records.step(&before, [("n", 2)])), "SH-1006");
    assert_eq!(code(records.extend(&before, None)), "SH-1006");
    assert_eq!(code(records.fail(&before, "e")), "SH-1006");
    assert_eq!(code(records.release(&before)), "SH-1006");
    assert_eq!(code(records.complete(&before, [("n", 2)])), "SH-1006");
    assert_eq!(code(group.commit().fence(&before).set_cell("a", 1).run()), "SH-1006");
    assert_eq!(code(group.commit().complete(&before, [("n", 2)]).run()), "SH-1006");
    assert_eq!(code(group.commit().fence(&before).complete(&after, [("n", 2)]).run()), "SH-1006");
    let mut transaction = group.begin().expect("begun");
    assert_eq!(code(transaction.fence(&before)), "SH-1006");
    assert_eq!(code(transaction.records().complete(&before, [("n", 2)])), "SH-1006");
    assert_eq!(code(records.complete(&after, [("n", 2)])), "done");
}

/// Its number alone is no proof: it is given again in another branch and in another history.
#[test]
fn the_attempt_of_an_owner_is_no_fence_of_a_commit() {
    let (_directory, _, house) = house();
    guard(&house);
    let agent = house.group("agents.7");
    let owned = agent.own(&worker("w")).expect("own");
    let guessed = Claimed::of_attempt("_statehouse.owner", Some("agents.7"), owned.attempt());
    let commit = || agent.commit().fence(&guessed).set_cell("a", 1);
    assert_eq!(code(commit().run()), "SH-1001");
    assert_eq!(code(house.group("free").commit().send(commit()).run()), "SH-1001");
    assert_eq!(code(agent.begin().expect("begun").fence(&guessed)), "SH-1001");
    assert_eq!(code(owned.commit().fence(&guessed).set_cell("a", 1).run()), "SH-1001");
    assert_eq!(agent.cells().get("a").expect("get"), None);
}

#[test]
fn guards_are_there_after_a_restart_an_export_and_an_import() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("house");
    let house = Statehouse::open(&path).expect("a house");
    guard(&house);
    house.space("default").set_guard("other.", GroupGuard::new()).expect("a guard");
    house.space("default").remove_guard("other.").expect("removed");
    assert_eq!(code(house.space("default").remove_guard("other.")), "SH-1022");
    let owned = house.group("agents.7").own(&worker("w")).expect("own");
    owned.cells().set("a", 1).expect("set");
    let guards = house.space("default").guards().expect("guards");
    assert_eq!(guards, [("agents.".to_owned(), GroupGuard::new().open("inbox"))]);
    house.close().expect("close");
    drop((owned, house));
    let house = Statehouse::open(&path).expect("again");
    assert_eq!(house.space("default").guards().expect("guards"), guards);
    let mut lines = Vec::new();
    export::write(&house, None, &mut lines, &mut |_| {}).expect("export");
    let copy = directory.path().join("copy");
    import::read(&copy, &mut lines.as_slice(), &mut |_| {}).expect("import");
    let copy = Statehouse::open(&copy).expect("the copy");
    for house in [&house, &copy] {
        assert_eq!(house.space("default").guards().expect("guards"), guards);
        assert_eq!(code(house.group("agents.7").cells().set("a", 2)), "SH-4003");
        assert_eq!(house.group("agents.7").cells().get("a").expect("get"), Some(1.into()));
    }
}

/// A worker of the store before may go on with its attempt; no attempt of the restored store has its number.
#[test]
fn attempts_of_a_restored_store_are_above_all_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let own = |house: &Statehouse| house.group("agents.7").forced().own(&ClaimOptions::worker("w")).unwrap().attempt();
    let mut house = Statehouse::open(path("first")).unwrap();
    assert_eq!((own(&house), own(&house)), (1, 2));
    for epoch in 1..=2_u64 {
        let mut file = Vec::new();
        statehouse::backup::create(&house, &mut file, &mut |_| {}).unwrap();
        drop(house);
        let next = path(&format!("restored-{epoch}"));
        statehouse::backup::restore(&next, &mut file.as_slice(), &mut |_| {}).unwrap();
        house = Statehouse::open(&next).unwrap();
        assert_eq!((own(&house), own(&house)), ((epoch << 40) + 1, (epoch << 40) + 2));
        drop(house);
        // Opening it again is no other history.
        house = Statehouse::open(&next).unwrap();
        assert_eq!(own(&house), (epoch << 40) + 3);
    }
    let mut lines = Vec::new();
    export::write(&house, None, &mut lines, &mut |_| {}).unwrap();
    let imported = path("imported");
    import::read(&imported, &mut lines.as_slice(), &mut |_| {}).unwrap();
    let house = Statehouse::open(&imported).unwrap();
    assert_eq!(own(&house), (3 << 40) + 1);
}
