//! Claims and appends over HTTP from 64 connections, one in each request and many in each request, in turns: how much
//! faster one job or event gets when many share the cost of a request, a commit and a sync.

use testkit::arguments::Arguments;
use testkit::report::Report;
use testkit::server_process::{Launch, binary};

use super::requests::{BATCH, Operation};
use super::turns::Turns;
use super::{compare, fill, median, print_row};

const CONNECTIONS: usize = 64;
/// How much faster a claim or an append should be in a batch.
const GOAL: f64 = 3.0;
/// The queue is filled for so many jobs a second, in both ways together; on a faster machine it is filled again.
const CLAIMS_PER_SECOND: u64 = 250_000;

/// `bench http-batches [--rounds N] [--milliseconds N] [--small]`.
pub fn run(arguments: &Arguments) -> Report {
    let turns = Turns::read(arguments, (25, 200), (2, 50));
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("house");
    fill(&path, turns.all_of(CLAIMS_PER_SECOND));
    let house = Launch::serve(binary(), &path).start().expect("a server");
    let mut report = Report::new("server");
    for (one, many) in [(Operation::Claim, Operation::ClaimMany), (Operation::Append, Operation::AppendMany)] {
        let compared = compare([many, one], CONNECTIONS, turns, [&house, &house]);
        print_row(one, CONNECTIONS, &compared, ["in batches", "one by one"]);
        let (many, single) = (median(&compared.first) * BATCH as f64, median(&compared.second));
        let ratio = many / single;
        let figure = format!("{ratio:.1}x {many:.0}/s of {single:.0}/s");
        let goal = format!(">={GOAL} times as many a second, {BATCH} in each request");
        report.add(&format!("batches.{}", one.name()), figure, &goal, ratio >= GOAL);
    }
    report
}
