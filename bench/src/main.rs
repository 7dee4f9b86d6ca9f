//! Measures Statehouse on its own workloads, beside the bare parts it is made of: `bench WORKLOAD [--option value ...]`.
//!
//! - `speed`: durable `set`, `cas` and `get` at 1, 16 and 256 callers, and how long a replay takes.
//! - `profile`: one operation at one number of callers, to run a profiler on; commits of keyed state by thread and part.
//! - `records-due`: sweeps and claims among ever more records, on a queue that was worked off, and after a reopening.
//! - `queues`: claims among few, many and very many queues, writes beside them, and their replay.
//! - `records-speed`: durable `claim`, `step` and `complete`, and `get`, at 1 to 256 callers, and workers on a queue.
//! - `sessions-memory`: what many live sessions take in memory and of a core, and what is freed.
//! - `claim-wait`: how soon a new job reaches one of many workers that wait, and that waiting writes nothing.
//! - `sessions-cost`: the same commands in a session and without one, in turns.
//! - `runs-cliff`: one run of 1,000,000 events: what an append costs at its end, and its projection.
//! - `runs-delivery`: from an append to the tail that has its event, at 5,000 appends a second.
//! - `runs-speed`: durable appends to 1,000 runs at 1 to 256 callers.
//! - `keyed-speed`: commits of 100 puts at 1, 4 and 16 operators of keyed state.
//! - `keyed-checkpoint`: a checkpoint of 10,000,000 keys beside commits, one of changes, a restore and a replay.
//! - `keyed-flat`: puts and gets among 1,000,000 and 20,000,000 keys.
//! - `http-protected`: what tokens and permissions, and TLS, cost gets and claims over HTTP.
//! - `http-speed`: get, claim and append over HTTP at 1 to 256 connections, beside a bare axum server.
//! - `http-batches`: claims and appends over HTTP, one and 64 in each request.
//! - `http-earlier`: get and claim over HTTP, beside the server of an earlier commit.
//! - `new-user`: README's commands from a clean folder, how soon `statehouse dev` is ready, and what it takes.
//! - `growth`: claims, steps and appends among 100,000 to 10,000,000 records: what they cost, and what merging costs.
//! - `claims`: claims from one thread, 256 under way, among 1,000,000 records.
//! - `stores`: the same as `growth` by the kernel on a bare store: what the store costs, and how much it writes and keeps.
//! - `tables`: the tree store beside `lsm-tree`: merges, gets, scans, deletions.
//! - `journal`: durable appends of three sizes to the journal's files, beside bare ones; how long 1 GB takes to open.
//! - `idle-polls`: long polls that get nothing, and the memory of the server after them.
//! - `idle-followers`: what followers of quiet runs take of a core while others commit.
//! - `flat`: many writes over few cells: memory, disk and journal must not grow.
//!
//! Figures are ratios taken in one run, because machines differ and are noisy. The results are lines
//! `show TOPIC ITEM FIGURE (goal GOAL) ok|short`.

mod bare_append;
mod bare_map;
mod callers;
mod claim_wait;
mod flat;
mod http_speed;
mod idle_followers;
mod idle_polls;
mod journal_append;
mod journal_shards;
mod keyed_checkpoint;
mod keyed_flat;
mod keyed_profile;
mod keyed_speed;
mod new_user;
mod profile;
mod queues;
mod record_work;
mod records_due;
mod records_speed;
mod restart;
mod runs_cliff;
mod runs_delivery;
mod runs_speed;
mod sessions_cost;
mod sessions_memory;
mod speed;
mod stores;
mod tables;

use std::process::ExitCode;

use testkit::arguments::Arguments;

/// The one that the command has: the figures are those of what is shipped.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let (workload, arguments) = match Arguments::from_environment() {
        Ok(parsed) => parsed,
        Err(complaint) => {
            eprintln!("bench: {complaint}");
            return ExitCode::from(2);
        }
    };
    let report = match workload.as_str() {
        "speed" => speed::run(&arguments),
        "records-due" => records_due::run(&arguments),
        "queues" => queues::run(&arguments),
        "queues-child" => return queues::child(&arguments),
        "records-speed" => records_speed::run(&arguments),
        "claim-wait" => claim_wait::run(&arguments),
        "sessions-memory" => sessions_memory::run(&arguments),
        "sessions-memory-child" => return sessions_memory::child(&arguments),
        "sessions-cost" => sessions_cost::run(&arguments),
        "runs-cliff" => runs_cliff::run(&arguments),
        "runs-delivery" => runs_delivery::run(&arguments),
        "runs-speed" => runs_speed::run(&arguments),
        "keyed-speed" => keyed_speed::run(&arguments),
        "keyed-checkpoint" => keyed_checkpoint::run(&arguments),
        "keyed-flat" => keyed_flat::run(&arguments),
        "growth" => bench::growth::run(&arguments),
        "claims" => bench::growth::run_claims(&arguments),
        "stores" => return stores::run(&arguments),
        "flat" => flat::run(&arguments),
        "idle-polls" => idle_polls::run(&arguments),
        "idle-followers" => idle_followers::run(&arguments),
        "journal" => journal_append::run(&arguments),
        "http-speed" => http_speed::run(&arguments),
        "http-batches" => http_speed::run_batches(&arguments),
        "http-protected" => http_speed::run_protected(&arguments),
        "http-earlier" => http_speed::run_beside_earlier(&arguments),
        "tables" => tables::run(&arguments),
        "new-user" => new_user::run(&arguments),
        "http-echo" => return http_speed::serve_echo(&arguments),
        "profile" => return profile::run(&arguments),
        "restart-child" => return restart::child(&arguments),
        other => {
            eprintln!("bench: no workload is called {other:?}; see bench/src/main.rs");
            return ExitCode::from(2);
        }
    };
    let all_ok = report.print();
    // A small run checks that the workload works; its speed says nothing.
    if all_ok || arguments.flag("small") { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
