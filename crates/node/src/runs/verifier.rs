//! Compares the projections of all runs with their events, in the background, and counts the differences.
//!
//! It only reads views. It pauses regularly, so that it takes a small share of a core.

use std::sync::atomic::Ordering;
use std::time::Duration;

use contract::Error;
use kernel::runs::read;

use super::findings::Findings;
use super::replay::verify_in;
use crate::access::Access;
use crate::background::repeating::{Pauses, Repeating};
use crate::error::from_halt;
use crate::options::Options;

/// Events after which it pauses, and for how long.
const EVENTS_BETWEEN_PAUSES: u64 = 2_000;
const PAUSE: Duration = Duration::from_millis(50);

/// Runs whose names are read at a time.
const RUNS_AT_ONCE: usize = 100;

/// Starts the thread, if it is wanted.
pub(crate) fn start(access: &Access, options: &Options) -> Result<Option<Repeating>, Error> {
    options.verify_runs_every.map(|every| verify_every(access.clone(), every)).transpose()
}

fn verify_every(access: Access, every: Duration) -> Result<Repeating, Error> {
    Repeating::start("run-verify", every, move |pauses| {
        if let Err(error) = walk(&access, &access.shared.beside.runs.findings, pauses) {
            tracing::warn!(%error, "verifying runs was interrupted");
        }
    })
}

/// Looks at every run once.
fn walk(access: &Access, findings: &Findings, pauses: &Pauses) -> Result<(), Error> {
    let mut since_pause = 0;
    let places: Vec<_> = access
        .catalogue()
        .spaces()
        .flat_map(|(space, found)| {
            let live = found.branches().filter(|(_, branch)| !branch.deleted);
            live.map(|(branch, _)| (space, branch)).collect::<Vec<_>>()
        })
        .collect();
    for place in places {
        let mut after: Option<Vec<u8>> = None;
        loop {
            let (view, catalogue) = access.view()?;
            let page = read::all(&*view, &access.keys(), &catalogue, place, after.as_deref(), RUNS_AT_ONCE);
            let (runs, next) = page.map_err(|halt| from_halt(&halt))?;
            for id in runs {
                // A separate view: a walk over many runs should not keep the store from discarding history.
                let (view, catalogue) = access.view()?;
                let Ok(thing) = catalogue.thing(id.space, id.branch, id.group.as_deref(), &id.name) else {
                    continue;
                };
                let Some(verified) = verify_in(&*view, &access.keys(), &thing)? else {
                    continue;
                };
                findings.verified.fetch_add(1, Ordering::Relaxed);
                if let Some(difference) = &verified.difference {
                    findings.differences.fetch_add(1, Ordering::Relaxed);
                    tracing::error!(
                        run = id.name,
                        upto = verified.upto,
                        ?difference,
                        "L3: a projection differs from its events"
                    );
                }
                since_pause += verified.upto;
                if since_pause >= EVENTS_BETWEEN_PAUSES {
                    since_pause = 0;
                    if !pauses.pause(PAUSE) {
                        return Ok(());
                    }
                }
            }
            after = match next {
                Some(next) => Some(next),
                None => break,
            };
        }
    }
    Ok(())
}
