//! Many live sessions: what they take in memory, what their keep-alives take of a core, and what is freed when their
//! clients wait for no more answers.
//!
//! Memory and CPU time are those of a process that opens the directory and works in it for a while, less those of one
//! that does the same in a directory without sessions.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use statehouse::records::{FieldSwapped, Put};
use statehouse::sessions::{Session, SessionCredentials, SessionOptions, SessionSecret};
use statehouse::{Options, Records, Statehouse};
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use crate::speed::name;
use bench::resources::{cpu_seconds, resident_bytes};

/// Stored answers of each session.
const ANSWERS: u64 = 10;

/// Answers tell what a field of a record holds: so many random bytes, of so many records that a store cannot make them
/// smaller by much.
const FIELD: &str = "field";
const FIELD_BYTES: usize = 160;
const RECORDS: u64 = 5_000;

/// Threads that send requests.
const CALLERS: u64 = 128;

/// Longer than all of it takes.
const SESSION_TIME: Duration = Duration::from_secs(3_600);

/// Each session gives a sign of life once in this time.
const KEPT_EVERY: Duration = Duration::from_secs(10);

/// Keep-alives come in bursts of this length.
const BURST: Duration = Duration::from_millis(10);

/// Commands that each of the two processes sends before it is measured.
const WARM_UP: u64 = 10_000;

/// Requests of each session after which the store must have got smaller.
const ROUNDS_MAX: u64 = 8;

/// What a process takes.
struct Taken {
    resident: u64,
    /// Part of a core.
    cpu: f64,
}

pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let sessions = arguments.number("sessions", if small { 2_000 } else { 100_000 });
    let seconds = arguments.number("seconds", if small { 2 } else { 10 });
    let directory = tempfile::tempdir().expect("a directory");
    let (with, without) = (directory.path().join("with"), directory.path().join("without"));
    let empty = open(&without);
    put_records(&empty);
    close(&empty);
    drop(empty);
    let house = open(&with);
    put_records(&house);
    let started = Instant::now();
    let ids = create(&house, sessions);
    keep_secrets(&with, &ids);
    keep_secrets(&without, &[]);
    println!("{sessions} sessions after {:.1} s", started.elapsed().as_secs_f64());
    fill(&house, &ids);
    println!("{ANSWERS} answers each after {:.1} s", started.elapsed().as_secs_f64());
    println!("resident of the process that made them: {} MiB", resident_bytes() >> 20);
    let status = house.sessions().status(ids[0].session).expect("status").expect("a session");
    assert_eq!(status.answers as u64, ANSWERS, "all are stored");
    let full = settled_bytes(&house);
    println!("and flushed: {} MiB, the store {:.1} MiB", resident_bytes() >> 20, mebibytes(full));
    close(&house);
    drop(house);

    let baseline = measure(&without, seconds);
    let taken = measure(&with, seconds);
    let house = open(&with);
    let (mut freed, mut rounds) = (full, 0);
    // The store merges what was replaced when there is enough of it, so that it takes some requests of everybody.
    while freed * 2 > full && rounds < ROUNDS_MAX {
        rounds += 1;
        ask_once_more(&house, &ids, ANSWERS + rounds);
        freed = settled_bytes(&house);
        println!("the store after {rounds} more requests of each: {:.1} MiB", mebibytes(freed));
    }
    let status = house.sessions().status(ids[0].session).expect("status").expect("a session");
    close(&house);

    let mut report = Report::new("sessions");
    let more = mebibytes(taken.resident.saturating_sub(baseline.resident));
    report.add("memory.resident", format!("{more:.1}MiB"), "<=64MiB more for 100,000 live sessions", more <= 64.0);
    let cpu = (taken.cpu - baseline.cpu) * 100.0;
    report.add("memory.keep-alive", format!("{cpu:.2}%"), "<5% of a core for 10,000 keep-alives a second", cpu < 5.0);
    let ratio = freed as f64 / full as f64;
    let figure = format!("{}-answers-{ratio:.2}x-after-{rounds}-requests", status.answers);
    let ok = status.answers == 1 && ratio <= 0.5;
    report.add("memory.freed", figure, "<=0.5 of the store when 1 answer is pending and 10 were", ok);
    report
}

fn open(path: &Path) -> Statehouse {
    Options::default().open(path).expect("a house")
}

fn close(house: &Statehouse) {
    house.close().expect("close");
}

fn put_records(house: &Statehouse) {
    let numbers: Vec<u64> = (0..RECORDS).collect();
    from_many(&numbers, |number| {
        let value = Random::new(*number).bytes(FIELD_BYTES);
        house.records().put(&name(*number), [(FIELD, value)], Put::default()).expect("a put");
    });
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn settled_bytes(house: &Statehouse) -> u64 {
    house.flush().expect("flush");
    house.settle().expect("settle");
    house.status().expect("status").store_bytes
}

/// Does something with each of `items` from many threads.
fn from_many<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let share = items.len().div_ceil(usize::try_from(CALLERS).expect("few")).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            items.chunks(share).map(|part| scope.spawn(|| part.iter().map(&work).collect::<Vec<R>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a caller")).collect()
    })
}

fn create(house: &Statehouse, sessions: u64) -> Vec<SessionCredentials> {
    let options = SessionOptions::default().timeout(SESSION_TIME);
    let numbers: Vec<u64> = (0..sessions).collect();
    from_many(&numbers, |_| house.sessions().create(options.clone()).expect("a session"))
}

/// A request that changes nothing and is answered with what a field holds.
fn ask(records: &Records, record: u64) {
    match records.compare_and_swap(&name(record % RECORDS), FIELD, None, None).expect("an answer") {
        FieldSwapped::Conflict { current: Some(_) } => {}
        other => panic!("record {record} gives {other:?}"),
    }
}

fn resume(house: &Statehouse, session: &SessionCredentials) -> Session {
    house.sessions().resume(session, ANSWERS + 1).expect("it is alive")
}

/// Sends the requests whose answers are waited for.
fn fill(house: &Statehouse, ids: &[SessionCredentials]) {
    from_many(ids, |id| {
        let session = resume(house, id);
        for request in 1..=ANSWERS {
            ask(&session.request(request, 1).records(), id.session * ANSWERS + request);
        }
    });
}

/// One more request of each, which waits for none of those before.
fn ask_once_more(house: &Statehouse, ids: &[SessionCredentials], request: u64) {
    from_many(ids, |id| ask(&resume(house, id).request(request, request).records(), id.session + request));
}

/// What a process takes that opens the directory and keeps all its sessions alive.
fn measure(path: &Path, seconds: u64) -> Taken {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program);
    child.arg("sessions-memory-child").arg("--directory").arg(path).args(["--seconds", &seconds.to_string()]);
    let output = child.output().expect("a child");
    assert!(output.status.success(), "the child failed: {}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut words = said.split_whitespace();
    let resident = words.next().and_then(|word| word.parse().ok()).expect("resident bytes");
    let cpu = words.next().and_then(|word| word.parse().ok()).expect("CPU time");
    println!("{}: {} MiB resident, {:.2} % of a core", path.display(), resident >> 20, cpu * 100.0);
    Taken { resident, cpu }
}

/// The process that is measured. It says its resident bytes and its part of a core.
pub fn child(arguments: &Arguments) -> ExitCode {
    let path = Path::new(arguments.text("directory").expect("--directory"));
    let house = open(path);
    let length = Duration::from_secs(arguments.number("seconds", 1));
    let ids = kept_secrets(path);
    let numbers: Vec<u64> = (0..WARM_UP).collect();
    from_many(&numbers, |number| match usize::try_from(*number).ok().and_then(|place| ids.get(place)) {
        // The last request again, word for word, so that its kept answer is read.
        Some(id) => ask(&resume(&house, id).request(ANSWERS, 1).records(), id.session * ANSWERS + ANSWERS),
        None => ask(&house.records(), *number),
    });
    house.flush().expect("flush");
    house.settle().expect("settle");
    let (started, cpu_before) = (Instant::now(), cpu_seconds());
    let mut kept = 0;
    while started.elapsed() < length {
        let due = started.elapsed().as_secs_f64() / KEPT_EVERY.as_secs_f64() * ids.len() as f64;
        while (kept as f64) < due {
            house.sessions().keep_alive(&ids[kept % ids.len()]).expect("it is alive");
            kept += 1;
        }
        std::thread::sleep(BURST);
    }
    let cpu = (cpu_seconds() - cpu_before) / started.elapsed().as_secs_f64();
    println!("{} {cpu}", resident_bytes());
    close(&house);
    ExitCode::SUCCESS
}

/// Writes down the sessions of a directory, beside it, for the process that is measured.
fn keep_secrets(directory: &Path, sessions: &[SessionCredentials]) {
    let lines: String =
        sessions.iter().map(|session| format!("{} {}\n", session.session, session.secret.to_text())).collect();
    std::fs::write(directory.with_extension("secrets"), lines).expect("written");
}

fn kept_secrets(directory: &Path) -> Vec<SessionCredentials> {
    let lines = std::fs::read_to_string(directory.with_extension("secrets")).expect("readable");
    let session = |line: &str| {
        let (session, secret) = line.split_once(' ')?;
        Some(SessionCredentials { session: session.parse().ok()?, secret: SessionSecret::parse(secret)? })
    };
    lines.lines().map(|line| session(line).expect("a session")).collect()
}
