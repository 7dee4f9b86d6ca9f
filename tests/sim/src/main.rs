//! Randomised and crash tests at any size: `sim TEST [--option value ...]`.
//!
//! Each test prints the seed it ran with, a command that replays it when it fails, and as its result one or more
//! lines `show TOPIC ITEM FIGURE (goal GOAL) ok|short`. It exits 1 if a line is short.

mod audited;
mod backends;
mod backups;
mod checkpoint_damage;
mod directories;
mod edge;
mod entry_log;
mod exactly_once;
mod fences;
mod flips;
mod fuzz;
mod hostile;
mod http;
mod kills;
mod model;
mod monitoring;
mod objects;
mod one_writer;
mod permissions;
mod power_journal;
mod power_store;
mod pressure;
mod records;
mod revocations;
mod runs;
mod serial;
mod sessions;
mod shell_blocks;
mod stretches;
mod take_overs;
mod tally;
mod tls;
mod tools;
mod two_shards;
mod zombies;

use std::process::ExitCode;

use testkit::arguments::Arguments;

fn main() -> ExitCode {
    let (test, arguments) = match Arguments::from_environment() {
        Ok(parsed) => parsed,
        Err(complaint) => {
            eprintln!("sim: {complaint}");
            return ExitCode::from(2);
        }
    };
    let report = match test.as_str() {
        "commands" => http::run_commands(&arguments),
        "audited" => audited::run(&arguments),
        "revocations" => revocations::run(&arguments),
        "backups" => backups::run(&arguments),
        "edge-files" => edge::run_files(&arguments),
        "edge-names" => edge::run_names(&arguments),
        "dead-workers" => sessions::run_dead_workers(&arguments),
        "doubles" => records::run_doubles(&arguments),
        "edge-fidelity" => edge::run_fidelity(&arguments),
        "edge-gate" => edge::run_gate(&arguments),
        "edge-halts" => edge::run_halts(&arguments),
        "edge-listings" => edge::run_listings(&arguments),
        "edge-reuse" => edge::run_reuse(&arguments),
        "edge-strictness" => edge::run_strictness(&arguments),
        "exactly-once-child" => return exactly_once::child(&arguments),
        "flips" => flips::run(&arguments),
        "http-kills" => kills::run_server(&arguments),
        "http-schemathesis" => http::run_schemathesis(&arguments),
        "http-surface" => http::run_surface(&arguments),
        "fuzz" => fuzz::run(&arguments),
        "handshakes" => tls::run_handshakes(&arguments),
        "hostile" => hostile::run(&arguments),
        "http-suites" => http::run_suites(&arguments),
        "keyed-checkpoint-damage" => checkpoint_damage::run(&arguments),
        "keyed-checkpoint-kills" => kills::run_checkpoints(&arguments),
        "keyed-checkpoint-kills-child" => return kills::checkpoints_child(&arguments),
        "keyed-examples" => shell_blocks::run_keyed_examples(&arguments),
        "keyed-exactly-once" => exactly_once::run(&arguments),
        "keyed-model" => model::keyed::run(&arguments),
        "keyed-suite" => backends::run(&arguments),
        "keyed-zombies" => zombies::run(&arguments),
        "kill" => kills::run_cells(&arguments),
        "kill-child" => return kills::cells_child(&arguments),
        "lossy" => sessions::run_lossy(&arguments),
        "model" => model::cells::run(&arguments),
        "mixed-model" => model::mixed::run(&arguments),
        "monitoring" => monitoring::run(&arguments),
        "objects-s3" => objects::run_s3(&arguments),
        "objects-s3-child" => return objects::child(&arguments),
        "one-writer" => one_writer::run_matrices(&arguments),
        "one-writer-child" => return one_writer::paused_child(&arguments),
        "one-writer-paused" => one_writer::run_paused(&arguments),
        "permissions" => permissions::run(&arguments),
        "one-writer-waiters" => one_writer::run_waiters(&arguments),
        "take-overs" => take_overs::run(&arguments),
        "entry-log" => entry_log::run(&arguments),
        "power-journal" => power_journal::run(&arguments),
        "power-store" => power_store::run(&arguments),
        "pressure-faults" => pressure::run_faults(&arguments),
        "pressure-fill" => pressure::run_fill(&arguments),
        "pressure-rot" => pressure::run_rot(&arguments),
        "pressure-stopped" => pressure::run_stopped(&arguments),
        "pressure-transfers" => pressure::run_transfers(&arguments),
        "power-store-child" => return power_store::child(&arguments),
        "power-syncs" => power_store::run_syncs(&arguments),
        "push-kills" => kills::run_pushes(&arguments),
        "push-kills-child" => return kills::pushes_child(&arguments),
        "projector-child" => return kills::projector_child(&arguments),
        "projector-kills" => kills::run_projector(&arguments),
        "rotations" => tls::run_rotations(&arguments),
        "scanners" => tls::run_scanners(&arguments),
        "records-model" => records::run_model(&arguments),
        "runs-model" => runs::run_model(&arguments),
        "runs-readers" => runs::run_readers(&arguments),
        "serial" => serial::run(&arguments),
        "serve-machine" => return http::serve_machine(&arguments),
        "sessions-model" => sessions::run_model(&arguments),
        "shell-blocks" => shell_blocks::run(&arguments),
        "two-shards" => two_shards::run(&arguments),
        "two-shards-syncs" => {
            // A speed: whoever runs it judges the line.
            two_shards::run_syncs(&arguments).print();
            return ExitCode::SUCCESS;
        }
        other => {
            eprintln!("sim: no test is called {other:?}");
            return ExitCode::from(2);
        }
    };
    if report.print() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
