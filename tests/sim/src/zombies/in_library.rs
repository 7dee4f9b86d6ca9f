//! Writes of an owner that was replaced, through the handles of the library.

use std::collections::VecDeque;
use std::time::Duration;

use statehouse::keyed::{Checkpoints, MapUpdates, Merge, OwnedPartition, Partition, Policy, StartedCheckpoint};
use statehouse::records::{ClaimOptions, Put};
use statehouse::runs::{AppendOptions, NewEvent};
use statehouse::{Error, Json, Pending, Statehouse};
use tempfile::TempDir;

use super::{Before, CELL, Change, PARTITIONS, RECORD, RUN, Tally, Unfenced, checkpoints, owner_record};
use crate::directories::fast_directory;

pub(super) const OPERATOR: &str = "counts";
/// What the count of the owners is merged into.
const COUNT: &[u8] = b"count";
/// What is merged while the partition changes hands.
const RACED: &[u8] = b"raced";
/// One partition in so many attempts changes hands while its owner has commits on their way.
const ATTEMPTS_PER_RACE: u64 = 5;
/// Commits on their way.
const COMMITS_PENDING: usize = 32;

/// A kind of write.
type Write = fn(&Scene, &mut OwnedPartition) -> Result<(), Error>;

/// It ends what was begun before the partition has changed hands.
const END: &str = "the end of a checkpoint";

/// A house, and where its checkpoints lie.
pub(super) struct Scene {
    pub(super) house: Statehouse,
    pub(super) checkpoints: Checkpoints,
    _directory: TempDir,
}

impl Scene {
    fn new() -> Self {
        let directory = fast_directory().expect("a directory");
        let house = Statehouse::open(directory.path().join("house")).expect("a house");
        let folder = directory.path().join("checkpoints");
        let checkpoints = Checkpoints::open(folder.to_str().expect("text")).expect("a folder");
        Self { house, checkpoints, _directory: directory }
    }

    /// What a kind of write needs of an owner that was not replaced yet.
    fn prepare(&self, name: &str, owner: &OwnedPartition) -> Option<StartedCheckpoint> {
        (name == END).then(|| checkpoints::begin(self, owner).expect("it owns the partition"))
    }

    /// Does it, and says the code of the refusal.
    fn write(&self, write: Write, owner: &mut OwnedPartition, begun: Option<StartedCheckpoint>) -> &'static str {
        let written = begun.map_or_else(|| write(self, owner), checkpoints::end);
        written.err().map_or("done", |error| error.code())
    }
}

/// Each kind once, in a partition of its own.
pub(super) fn without_fences() -> Unfenced {
    let (scene, mut unfenced) = (Scene::new(), Unfenced::default());
    for ((name, write), number) in WRITES.iter().zip(0..) {
        let mut owner = first_owner(&scene, number);
        let begun = scene.prepare(name, &owner);
        replace(&scene.house, &owner, Change::Force).expect("it is forced");
        unfenced.note(name, name, scene.write(*write, &mut owner, begun));
    }
    unfenced
}

pub(super) fn run(attempts: u64) -> Tally {
    let scene = Scene::new();
    let house = scene.house.clone();
    let mut tally = Tally { kinds: WRITES.len(), ..Tally::default() };
    let mut owners: Vec<_> = (0..PARTITIONS).map(|number| first_owner(&scene, number)).collect();
    for attempt in 0..attempts {
        let place = usize::try_from(attempt % u64::from(PARTITIONS)).expect("it is small");
        let nth = usize::try_from(attempt).expect("it is small");
        let (name, write) = WRITES[nth % WRITES.len()];
        let change = Change::of(attempt / WRITES.len() as u64);
        let what = format!("attempt {attempt}, {name} after a change by {change:?}");
        let begun = scene.prepare(name, &owners[place]);
        let mut next = match replace(&house, &owners[place], change) {
            Ok(next) => next,
            Err(error) => {
                tally.wrong.push(format!("{what}: nobody took over: {error}"));
                break;
            }
        };
        let before = Before::look(&house, &next);
        let code = scene.write(write, &mut owners[place], begun);
        before.compare(&what, code, &mut tally);
        if let Err(error) = next.commit().merge(COUNT, Merge::Add, 1).run() {
            tally.wrong.push(format!("{what}: the owner was refused: {error}"));
        }
        if attempt % ATTEMPTS_PER_RACE == 0 {
            match race(next, Duration::from_micros(100 + attempt * 97 % 3_000)) {
                Ok(raced) => next = raced,
                Err(wrong) => {
                    tally.wrong.push(format!("attempt {attempt}: {wrong}"));
                    break;
                }
            }
        }
        owners[place] = next;
    }
    if !tally.wrong.is_empty() {
        return tally;
    }
    let count = |owner: &OwnedPartition| owner.get(COUNT).ok()?.and_then(|found| found.value.as_integer());
    let counted: i64 = owners.iter().filter_map(count).sum();
    if counted != i64::try_from(attempts).expect("it is small") + i64::from(PARTITIONS) {
        tally.wrong.push(format!("the owners have counted {counted} of {attempts} attempts"));
    }
    if house.group("free").cells().get("sent").expect("a cell").is_some() {
        tally.wrong.push("a message of somebody who was replaced has arrived".to_owned());
    }
    tally
}

/// Owns a partition, and puts into it what others will try to change.
fn first_owner(scene: &Scene, number: u32) -> OwnedPartition {
    let partition = scene.house.keyed(OPERATOR).partition(number);
    let mut owner = partition.acquire(&ClaimOptions::worker("first")).expect("it is free");
    owner.commit().merge(COUNT, Merge::Add, 1).put(b"put", 1, 1).advance("input", 1).run().expect("a commit");
    let group = owner.owned_group();
    group.maps().put("other", b"key", 1, 1).expect("a key");
    group.cells().set(CELL, 1).expect("a cell");
    group.records().put(RECORD, [("n", 1)], Put::typed("task")).expect("a record");
    group.runs().append(RUN, &event("first")).expect("an event");
    checkpoints::take_first(scene, &owner).expect("checkpoints");
    owner
}

fn replace(house: &Statehouse, owner: &OwnedPartition, change: Change) -> Result<OwnedPartition, Error> {
    let partition = house.keyed(OPERATOR).partition(owner.number());
    let options = ClaimOptions::worker("next").lease(Duration::from_secs(600)).wait(Duration::from_secs(60));
    match change {
        Change::Force => partition.acquire_by_force(&options),
        Change::Release => {
            owner.owned_group().release_later().wait()?;
            partition.acquire(&options)
        }
        Change::EndOfLease => {
            owner.owned_group().extend(Some(Duration::from_millis(20)))?;
            partition.acquire(&options)
        }
    }
}

/// The handle itself refuses most writes of an owner that was replaced. Those that are on their way meanwhile, the store refuses:
/// none of them comes behind the claim of the next one.
fn race(mut old: OwnedPartition, after: Duration) -> Result<OwnedPartition, String> {
    let partition = Partition::clone(&old);
    let raced = || Ok(partition.get(RACED)?.and_then(|found| found.value.as_integer()).unwrap_or(0));
    let text = |error: Error| error.to_string();
    let before = raced().map_err(text)?;
    std::thread::scope(|scope| {
        let zombie = scope.spawn(move || {
            let mut pending: VecDeque<Pending<_>> = VecDeque::new();
            let mut done = Vec::new();
            loop {
                while pending.len() < COMMITS_PENDING {
                    pending.push_back(old.commit().merge(RACED, Merge::Add, 1).run_later());
                }
                match pending.pop_front().expect("there are some").wait() {
                    Ok((committed, _)) => done.push(committed.commit),
                    Err(error) => {
                        // Those behind it must be refused as well.
                        let rest = pending.into_iter().filter_map(|pending| pending.wait().ok());
                        done.extend(rest.map(|(committed, _)| committed.commit));
                        return (done, error);
                    }
                }
            }
        });
        std::thread::sleep(after);
        let next = partition.acquire_by_force(&ClaimOptions::worker("next").lease(Duration::from_secs(600)));
        let next = next.map_err(text)?;
        let claimed = owner_record(&partition.group()).commit;
        let (done, refused) = zombie.join().map_err(|_| "the zombie panicked")?;
        let late = done.iter().filter(|commit| **commit > claimed).count();
        let counted = raced().map_err(text)? - before;
        let is_right = refused.code() == "SH-4002" && late == 0 && usize::try_from(counted) == Ok(done.len());
        if is_right {
            return Ok(next);
        }
        let done = done.len();
        Err(format!(
            "{done} commits on their way were done, {late} of them behind the claim, {counted} counted: {refused}"
        ))
    })
}

fn event(key: &str) -> NewEvent {
    NewEvent::new("Progress", key, "2026-02-11T10:00:00Z", Json::new("{}").expect("JSON"))
}

const WRITES: &[(&str, Write)] = &[
    ("a commit", |_, owner| owner.commit().merge(COUNT, Merge::Add, 1).advance("input", 2).run().map(drop)),
    ("a commit of puts", |_, owner| owner.commit().put(b"put", 2, 2).delete(b"put", 3).run().map(drop)),
    ("a commit with a seal", |_, owner| owner.commit().seal(9).run().map(drop)),
    ("a commit with a cell", |_, owner| owner.commit().with(|all| all.set_cell(CELL, 2)).run().map(drop)),
    ("a commit with a message", |scene, owner| {
        let message = scene.house.group("free").commit().init_cell("sent", 1);
        owner.commit().with(|all| all.send(message)).run().map(drop)
    }),
    ("a commit answered later", |_, owner| {
        owner.commit().merge(COUNT, Merge::Add, 1).run_later().wait().map(drop)?;
        owner.refresh()
    }),
    ("a put", |_, owner| owner.owned_group().maps().put(OPERATOR, b"put", 2, 2).map(drop)),
    ("an insert into a new map", |_, owner| owner.owned_group().maps().insert("new", b"key", 1).map(drop)),
    ("updates", |_, owner| owner.owned_group().maps().update(OPERATOR, &MapUpdates::new().put(b"put", 2, 2)).map(drop)),
    ("a deletion of a key", |_, owner| owner.owned_group().maps().delete(OPERATOR, b"put", 2).map(drop)),
    ("a seal", |_, owner| owner.owned_group().maps().seal(OPERATOR, 9)),
    ("a new map", |_, owner| owner.owned_group().maps().create("new", Policy::Ordered)),
    ("a deletion of the map", |_, owner| owner.owned_group().maps().delete_map(OPERATOR).map(drop)),
    ("a deletion of another map", |_, owner| owner.owned_group().maps().delete_map("other").map(drop)),
    ("a cell", |_, owner| owner.owned_group().cells().set(CELL, 2).map(drop)),
    ("a new cell", |_, owner| owner.owned_group().cells().init("new", 2).map(drop)),
    ("a deletion of a cell", |_, owner| owner.owned_group().cells().delete(CELL).map(drop)),
    ("a record", |_, owner| owner.owned_group().records().put(RECORD, [("n", 2)], Put::typed("task")).map(drop)),
    ("a field", |_, owner| owner.owned_group().records().set_field(RECORD, "n", 2).map(drop)),
    ("a claim", |_, owner| owner.owned_group().records().claim(RECORD, &ClaimOptions::worker("zombie")).map(drop)),
    ("a deletion of a record", |_, owner| owner.owned_group().records().delete(RECORD).map(drop)),
    ("an event", |_, owner| owner.owned_group().runs().append(RUN, &event("again")).map(drop)),
    ("the end of a run", |_, owner| owner.owned_group().runs().close(RUN).map(drop)),
    ("a deletion of a run", |_, owner| owner.owned_group().runs().delete(RUN).map(drop)),
    ("a message", |scene, owner| {
        let message = scene.house.group("free").commit().init_cell("sent", 1);
        owner.owned_group().commit().send(message).run().map(drop)
    }),
    ("a transaction", |_, owner| owner.owned_group().transact(|all| all.set(CELL, 2)).map(drop)),
    ("a commit of a run and a cell", |_, owner| {
        let all = owner.owned_group().commit().set_cell(CELL, 2);
        all.append(RUN, &event("again"), AppendOptions::default()).run().map(drop)
    }),
    ("an extension", |_, owner| owner.owned_group().extend(Some(Duration::from_secs(900)))),
    ("a release", |_, owner| owner.owned_group().release_later().wait().map(drop)),
    ("the beginning of a checkpoint", |scene, owner| checkpoints::begin(scene, owner).map(drop)),
    (END, |_, _| unreachable!("it is the end of one that was begun before")),
    ("a checkpoint", |scene, owner| checkpoints::take(scene, owner)),
    ("a part of a joint checkpoint", |scene, owner| checkpoints::join(scene, owner)),
    ("a restore", checkpoints::restore),
];
