//! Get, claim and append over HTTP, at 1 to 256 connections that are kept alive, beside a bare axum server that takes and
//! gives as many bytes.
//!
//! The two servers are processes of their own with the same runtime; one load generator, in this process, measures them
//! in turns, a second each, so that what else the machine does meets both. The figure is the ratio of the medians.
//! Claims and appends are durable when they are answered, and the bare server's answers cost nothing: at one connection
//! their ratio is mostly the time of a sync.
//!
//! Last, gets and claims by 64 tasks of the typed client, beside the bare load with as many connections: what the client
//! costs is known, and has no goal.

mod batches;
mod earlier;
mod echo;
mod load;
mod protected;
mod reaching;
mod requests;
mod turns;
mod typed;

use statehouse::{Options, Statehouse};
use testkit::arguments::Arguments;
use testkit::http::Client;
use testkit::report::Report;
use testkit::server_process::{Launch, ServerProcess, binary};

pub use batches::run as run_batches;
pub use earlier::run as run_beside_earlier;
pub use echo::serve as serve_echo;
pub use protected::run as run_protected;

use load::Load;
use requests::Operation;
use turns::{Measured, Turns};
use typed::Typed;

use crate::record_work::Work;

const CONNECTIONS: [usize; 4] = [1, 16, 64, 256];
/// Tasks of the typed client.
const TASKS: usize = 64;
/// Cells that gets are spread over.
const CELLS: u64 = 10_000;
/// The queue is filled for so many claims a second as long as is measured; on a faster machine it is filled again.
const CLAIMS_PER_SECOND: u64 = 50_000;

pub fn run(arguments: &Arguments) -> Report {
    let turns = Turns::read(arguments, (5, 1_000), (2, 100));
    let only = arguments.text("only");
    let connections = match arguments.number("connections", 0) {
        0 => CONNECTIONS.to_vec(),
        count => vec![usize::try_from(count).expect("a count")],
    };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("house");
    let claims = (connections.len() as u64 + 2) * turns.all_of(CLAIMS_PER_SECOND);
    fill(&path, if only.is_none_or(|only| only == "claim") { claims } else { 1_000 });
    let house = Launch::serve(binary(), &path).start().expect("a server");
    let mut report = Report::new("server");
    for operation in [Operation::Get, Operation::Claim, Operation::Append] {
        if only.is_some_and(|only| only != operation.name()) {
            continue;
        }
        let echo = start_echo(operation, &house);
        for &connections in &connections {
            let compared = compare([operation; 2], connections, turns, [&house, &echo]);
            print_row(operation, connections, &compared, ["statehouse", "echo"]);
            let (ours, theirs) = (median(&compared.first), median(&compared.second));
            let ratio = ours / theirs;
            let item = format!("speed.{}-{connections}", operation.name());
            let figure = format!("{ratio:.2} {ours:.0}/s of {theirs:.0}/s");
            match operation.goal() {
                Some(goal) => report.add(&item, figure, &format!(">={goal} of a bare axum echo"), ratio >= goal),
                None => report.add(&item, figure, "-", true),
            };
        }
        if operation != Operation::Append {
            let (typed, bare) = beside_the_client(operation, turns, &house);
            let figure = format!("{:.2} {typed:.0}/s of {bare:.0}/s", typed / bare);
            report.add(&format!("speed.client-{}-{TASKS}", operation.name()), figure, "-", true);
        }
    }
    report
}

/// Calls a second of the typed client, and of the bare load with as many connections, in turns.
fn beside_the_client(operation: Operation, turns: Turns, house: &ServerProcess) -> (f64, f64) {
    let client = Typed::connect(house.address(), operation, TASKS);
    let mut load = Load::connect(house.address(), operation, TASKS);
    client.run(turns.length / 2);
    let (mut typed, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..turns.count {
        bare.push(load.run(turns.length));
        typed.push(client.run(turns.length));
    }
    print_one(operation, TASKS, "client", &typed);
    (median(&typed), median(&bare))
}

/// Cells to get and tasks to claim, written by the library, which is faster.
fn fill(path: &std::path::Path, tasks: u64) {
    let house: Statehouse = Options::default().open(path).expect("a house");
    let cells = house.cells();
    let written: Vec<_> = (0..CELLS).map(|number| cells.set_later(&requests::cell(number), requests::VALUE)).collect();
    for pending in written {
        pending.wait().expect("set");
    }
    Work::new(&house, "jobs.email.").fill_and_settle(&house, tasks);
    house.close().expect("closed");
}

/// A bare server that answers with as many bytes as the real one does.
fn start_echo(operation: Operation, house: &ServerProcess) -> ServerProcess {
    let sample = Client::to(house.address()).send(operation.sample()).expect("an answer");
    assert!(sample.is_success(), "{}", sample.text());
    // Headers that only one of them has count as bytes of the body.
    let of_body = |(name, value): &(String, String)| match name.as_str() {
        "content-length" | "content-type" | "date" => 0,
        _ => name.len() + value.len() + 4,
    };
    let bytes = sample.body.len() + sample.headers.iter().map(of_body).sum::<usize>();
    let this = std::env::current_exe().expect("the path of this program");
    let launch = Launch::program(this).arguments(["http-echo", "--bytes", &bytes.to_string()]);
    launch.start().expect("an echo server")
}

/// What two loads measured, one for each turn.
struct Compared {
    first: Vec<Measured>,
    second: Vec<Measured>,
}

fn compare(operations: [Operation; 2], connections: usize, turns: Turns, servers: [&ServerProcess; 2]) -> Compared {
    let mut first = Load::connect(servers[0].address(), operations[0], connections);
    let mut second = Load::connect(servers[1].address(), operations[1], connections);
    first.run(turns.length / 2);
    second.run(turns.length / 2);
    let mut compared = Compared { first: Vec::new(), second: Vec::new() };
    // Every other time the other one is first, since each leaves merges behind that meet the next.
    for number in 0..turns.count {
        if number % 2 == 0 {
            compared.second.push(second.run(turns.length));
            compared.first.push(first.run(turns.length));
        } else {
            compared.first.push(first.run(turns.length));
            compared.second.push(second.run(turns.length));
        }
    }
    compared
}

fn median(measured: &[Measured]) -> f64 {
    let mut rates: Vec<f64> = measured.iter().map(|measured| measured.per_second).collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn print_row(operation: Operation, connections: usize, compared: &Compared, names: [&str; 2]) {
    for (what, rounds) in names.into_iter().zip([&compared.first, &compared.second]) {
        print_one(operation, connections, what, rounds);
    }
}

fn print_one(operation: Operation, connections: usize, what: &str, rounds: &[Measured]) {
    let mut latency = crate::callers::histogram();
    rounds.iter().for_each(|round| latency.add(&round.latency_ns).expect("the same bounds"));
    println!(
        "{:<6} {connections:>3} connections {what:<10} {:>8.0}/s, p50 {:>6.0} us, p99 {:>6.0} us",
        operation.name(),
        median(rounds),
        latency.value_at_quantile(0.5) as f64 / 1000.0,
        latency.value_at_quantile(0.99) as f64 / 1000.0,
    );
}
