//! Commands that were refused because something was not as they expected, by what it was, for metrics.

use contract::{CellRejection, RecordRejection, Rejection, RunRejection};
use session::Halt;

use crate::context::Applying;
use crate::records::row::decode_numbers;
use crate::runs::append::read_head;
use crate::tally::{Conflict, ConflictOn};
use crate::transact::scope::Scope;

/// Counts a refused command, if it was a conflict. Its effects are already undone.
pub(crate) fn note_conflict(applying: &mut Applying<'_>, scope: &Scope<'_>, rejection: &Rejection) -> Result<(), Halt> {
    let (on, name) = match rejection {
        Rejection::Cell(CellRejection::Conflict { .. }) => (ConflictOn::Cells, None),
        Rejection::Record(RecordRejection::Conflict { record, .. })
        | Rejection::Record(RecordRejection::FieldConflict { record, .. })
        | Rejection::Record(RecordRejection::Fenced { record, .. }) => (ConflictOn::Records, Some(record)),
        Rejection::Run(RunRejection::SequenceConflict { run, .. }) => (ConflictOn::Runs, Some(run)),
        _ => return Ok(()),
    };
    let thing = name.and_then(|name| scope.thing(name).ok());
    let type_name = match (on, thing) {
        (ConflictOn::Records, Some(record)) => {
            let row = applying.state.get(&applying.keys.record(&record))?;
            let number = row.map(|row| decode_numbers(&row)).transpose()?.map_or(0, |numbers| numbers.record_type);
            applying.catalogue.record_type(scope.space, number).map(|declared| declared.definition.name.clone())
        }
        (ConflictOn::Runs, Some(run)) => read_head(applying, &run)?.map(|head| head.run_type),
        _ => None,
    };
    let conflict = Conflict { on, type_name: type_name.unwrap_or_default() };
    applying.folded.changes.tally.conflicts.push(conflict);
    Ok(())
}
