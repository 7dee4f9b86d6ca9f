//! What tokens and permissions, and TLS, cost: gets and claims at 64 connections, beside a server without them.
//!
//! Three servers of the same program, each with a directory of its own with the same contents, are measured in turns by the
//! same load. Two figures for each: the CPU time of the server for a request, which is what the protection costs, and the rate,
//! which also has what TLS costs the load, since both share the machine.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use statehouse::access::{Grant, Principal};
use statehouse::{Options, Statehouse};
use testkit::arguments::Arguments;
use testkit::report::Report;
use testkit::server_process::{Launch, ServerProcess, binary};

use super::load::Load;
use super::reaching::Reaching;
use super::requests::Operation;
use super::turns::Turns;
use super::{CLAIMS_PER_SECOND, fill};
use bench::resources::cpu_seconds_of;

const CONNECTIONS: usize = 64;

/// How much longer a request may take with a token that is compared and permissions that are asked.
const TOKENS_MAX: f64 = 1.03;

/// The same over TLS.
const TLS_MAX: f64 = 1.15;

/// What the sender of the requests may do: the grants that the requests need come last.
const GRANTS: [&str; 6] = [
    "read@reports",
    "worker@default/records/mails.",
    "append@default/runs/orders/",
    "list@default/cells/config/",
    "worker@default/records/jobs.",
    "reader@default/cells",
];

/// `bench http-protected [--rounds N] [--milliseconds N] [--small]`.
pub fn run(arguments: &Arguments) -> Report {
    let turns = Turns::read(arguments, (40, 500), (2, 100));
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    let filled = |name: &str| {
        let path = folder.join(name);
        fill(&path, turns.all_of(CLAIMS_PER_SECOND));
        Launch::serve(binary(), &path)
    };
    let open = Measured::start(&filled("open"), |address| address);
    let launch = filled("tokens");
    let token = token(&folder.join("tokens"));
    let tokens = Measured::start(&launch.asking_for_tokens(), |address| address.showing(&token));
    let authority = certificates(folder);
    let over_tls = filled("tls").arguments(
        ["--tls-certificate", "--tls-key"]
            .iter()
            .zip(["server.pem", "server.key"])
            .flat_map(|(flag, file)| [flag.into(), folder.join(file).into_os_string()]),
    );
    let tls = Measured::start(&over_tls, |address| address.over_tls(&authority));
    let mut report = Report::new("secure");
    for operation in [Operation::Get, Operation::Claim] {
        for (what, with, max) in [("tokens", &tokens, TOKENS_MAX), ("tls", &tls, TLS_MAX)] {
            let (without, with) = in_turns(operation, turns, [&open, with]);
            println!("{:<6} without {what:<6} {without}", operation.name());
            println!("{:<6} with    {what:<6} {with}", operation.name());
            let percent = (max - 1.0) * 100.0;
            for (item, unit, factor) in [
                (
                    "cpu",
                    format!("{:.1}us of {:.1}us", with.cpu_us(), without.cpu_us()),
                    with.cpu_us() / without.cpu_us(),
                ),
                ("rate", format!("{:.0}/s of {:.0}/s", with.rate(), without.rate()), without.rate() / with.rate()),
            ] {
                let figure = format!("{:+.1}% {unit}", (factor - 1.0) * 100.0);
                let goal = format!("<=+{percent:.0}% at {CONNECTIONS} connections");
                report.add(&format!("cost.{what}-{}-{item}", operation.name()), figure, &goal, factor <= max);
            }
        }
    }
    report
}

/// A server, and how to reach it.
struct Measured {
    server: ServerProcess,
    reaching: Reaching,
}

impl Measured {
    fn start(launch: &Launch, reaching: impl FnOnce(Reaching) -> Reaching) -> Self {
        let server = launch.start().expect("a server");
        let reaching = reaching(Reaching::from(server.address()));
        Self { server, reaching }
    }
}

/// The sum of all turns of one server.
#[derive(Default)]
struct Sum {
    requests: u64,
    seconds: f64,
    cpu_seconds: f64,
}

impl Sum {
    fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    fn cpu_us(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.requests as f64
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:>8.0}/s, {:>5.1} us of CPU of the server", self.rate(), self.cpu_us())
    }
}

fn in_turns(operation: Operation, turns: Turns, servers: [&Measured; 2]) -> (Sum, Sum) {
    let mut loads = servers.map(|server| Load::connect(server.reaching.clone(), operation, CONNECTIONS));
    let mut sums = [Sum::default(), Sum::default()];
    for load in &mut loads {
        load.run(turns.length / 2);
    }
    for number in 0..turns.count {
        // Every other time the other one is first, since each leaves merges behind that meet the next.
        for place in if number % 2 == 0 { [0, 1] } else { [1, 0] } {
            measure(&mut loads[place], servers[place], turns.length, &mut sums[place]);
        }
    }
    let [without, with] = sums;
    (without, with)
}

/// Adds one turn.
fn measure(load: &mut Load, of: &Measured, length: Duration, sum: &mut Sum) {
    let cpu = || cpu_seconds_of(of.server.id());
    loop {
        let (before, began) = (cpu(), Instant::now());
        let turn = load.run(length);
        let (seconds, cpu_seconds) = (began.elapsed().as_secs_f64(), cpu() - before);
        // One in which the queue was filled again is no turn of claims alone.
        if seconds < length.as_secs_f64() * 1.5 {
            sum.requests += turn.latency_ns.len();
            sum.seconds += seconds;
            sum.cpu_seconds += cpu_seconds;
            return;
        }
    }
}

/// A token of somebody who may do what is measured, and some other things.
fn token(path: &Path) -> String {
    let house: Statehouse = Options::default().open(path).expect("a house");
    let grants = GRANTS.iter().map(|grant| Grant::parse(grant).expect("a grant"));
    house.principals().set(&grants.fold(Principal::new("worker"), Principal::granted)).expect("set");
    let token = house.principals().issue_token("worker", Duration::from_secs(86_400)).expect("a token").to_text();
    house.close().expect("closed");
    token
}

/// Certificates of a server on this machine. Returns the file of their authority.
fn certificates(folder: &Path) -> std::path::PathBuf {
    for words in [&["cert", "ca", "--dir", "."][..], &["cert", "server", "127.0.0.1", "--dir", "."]] {
        let made = Command::new(binary()).args(words).current_dir(folder).output().expect("the command");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    folder.join("ca.pem")
}
