//! Replays the runs of a directory and compares them with their projections, for `doctor`.

use statehouse::Statehouse;
use statehouse::runs::RunList;

use crate::checks::{Checked, number};
use crate::doctor::RESTORE;

/// Runs to replay in each branch.
const RUNS_MAX: usize = 1_000;

/// Whether the projections of all replayed runs match their events.
pub(super) fn check(house: &Statehouse) -> Checked {
    match replay(house) {
        Ok((replayed, differing, all)) if differing.is_empty() => {
            Checked::new("runs", true, format!("{replayed} of {all} replayed, all match their projections"))
                .measured(number(replayed), "runs")
        }
        Ok((_, differing, _)) => {
            Checked::new("runs", false, format!("the projections of {} differ from their events", differing.join(", ")))
                .next("keep the directory and report this defect")
        }
        Err(error) => Checked::new("runs", false, error.to_string()).next(RESTORE),
    }
}

/// The number of replayed runs, the names of those that differ, and the number of all runs.
fn replay(house: &Statehouse) -> Result<(u64, Vec<String>, u64), statehouse::Error> {
    let (mut replayed, mut differing, mut all) = (0, Vec::new(), 0);
    for space in house.spaces()? {
        let space = house.space(&space);
        for branch in space.branches()? {
            let branch = space.branch(&branch);
            all += branch.runs().counts()?.values().sum::<u64>();
            let list = RunList::default().limit(RUNS_MAX);
            for run in branch.runs().list(&list)?.runs {
                let runs = match &run.group {
                    Some(group) => branch.group(group).runs(),
                    None => branch.runs(),
                };
                if runs.verify(&run.name)?.difference.is_some() {
                    differing.push(run.name);
                }
                replayed += 1;
            }
        }
    }
    Ok((replayed, differing, all))
}
