//! A transaction: guards first, then operations in order, all or nothing.
//!
//! Touches: what its operations touch, in one group. Keeps: K7 (a rejected transaction leaves nothing).

use contract::Rejection;
use session::{Call, Halt};

use crate::answer::{Answer, OpOutcome};
use crate::catalogue::Catalogue;
use crate::cells::guard::{self, Place};
use crate::cells::{cas, delete, init, set};
use crate::command::{Op, Transact};
use crate::machine::Applying;

pub(crate) fn transact(applying: &mut Applying<'_>, transact: &Transact<'_>) -> Result<Answer, Halt> {
    Ok(match try_transact(applying, transact)? {
        Ok(outcomes) => Answer::Done { commit: applying.call.commit, outcomes },
        Err(rejection) => {
            applying.undo();
            Answer::Rejected(rejection)
        }
    })
}

fn try_transact(
    applying: &mut Applying<'_>,
    transact: &Transact<'_>,
) -> Result<Result<Vec<OpOutcome>, Rejection>, Halt> {
    let (catalogue, keys) = (applying.catalogue, applying.keys);
    if let Err(rejection) = within_limits(catalogue, applying.call, transact) {
        return Ok(Err(rejection));
    }
    let space = match catalogue.space(transact.space) {
        Ok(space) => space,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let place = Place { catalogue, keys, space: transact.space, branch: transact.branch, group: transact.group };
    for guard in &transact.guards {
        #[cfg(feature = "canary")]
        if crate::canary::guards_are_skipped() {
            break;
        }
        if let Err(rejection) = guard::check(applying.state, &place, guard)? {
            return Ok(Err(rejection));
        }
    }
    let context = applying.cell_context(space);
    let mut outcomes = Vec::with_capacity(transact.ops.len());
    for op in &transact.ops {
        let cell = match place.cell(op.name()) {
            Ok(cell) => cell,
            Err(rejection) => return Ok(Err(rejection)),
        };
        let mut cells = applying.cells();
        let outcome = match op {
            Op::CellInit(_, value) => Ok(init::init(&mut cells, &context, &cell, *value)?),
            Op::CellSet(_, value) => Ok(set::set(&mut cells, &context, &cell, *value)?),
            Op::CellCas(_, expected, value) => cas::cas(&mut cells, &context, &cell, *expected, *value)?,
            Op::CellDelete(_) => Ok(delete::delete(&mut cells, &context, &cell)?),
        };
        match outcome {
            Ok(outcome) => outcomes.push(outcome),
            Err(rejection) => return Ok(Err(rejection)),
        }
    }
    Ok(Ok(outcomes))
}

fn within_limits(catalogue: &Catalogue, call: &Call<'_>, transact: &Transact<'_>) -> Result<(), Rejection> {
    let limits = &catalogue.limits;
    let check = |limit, max: u32, got| Rejection::check_limit(limit, max as usize, got);
    check("transaction_ops_max", limits.transaction_ops_max, transact.ops.len())?;
    check("transaction_bytes_max", limits.transaction_bytes_max, call.body.len())?;
    for value in transact.ops.iter().filter_map(Op::value) {
        check("value_bytes_max", limits.value_bytes_max, value.len())?;
    }
    Ok(())
}
