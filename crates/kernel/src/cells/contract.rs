//! Cells as one of the contracts.

use contract::{CellRejection, Rejection};
use kv::Key;
use session::Halt;

use super::command::{CellAct, CellGuard};
use super::row::Head;
use super::trim::CellTrim;
use super::{cas, delete, guard, init, set, trim};
use crate::catalogue::FilledType;
use crate::context::Applying;
use crate::contract::{Contract, Outcome};
use crate::counts::Counting;
use crate::keys::{Keys, Kind, ThingId};
use crate::transact::scope::Scope;
use crate::trim::finding::Finding;

/// Cells.
pub(crate) struct Cells;

impl Contract for Cells {
    type Act<'bytes> = CellAct<'bytes>;
    type Guard<'bytes> = CellGuard<'bytes>;
    type Rejection = CellRejection;
    type Trim = CellTrim;

    const NUMBER: u8 = 1;

    const HELD: &'static [Kind] = &[Kind::CellHead, Kind::CellOld];

    const ROWS: &'static [Kind] = &[Kind::CellHead, Kind::CellOld];

    // The walk finds each cell of a deleted branch, and has it removed by a step of its own.
    const ERASED: &'static [Kind] = &[];

    fn exists(row: &[u8]) -> Result<bool, Halt> {
        Ok(Head::decode(row)?.exists())
    }

    fn is_there(applying: &Applying<'_>, cell: &ThingId<'_>) -> Result<bool, Halt> {
        applying.state.get(&applying.keys.cell_head(cell))?.map_or(Ok(false), |row| Self::exists(&row))
    }

    fn act(applying: &mut Applying<'_>, scope: &Scope<'_>, cell: &ThingId<'_>, act: &CellAct<'_>) -> Outcome {
        let context = applying.cell_context(scope.of_space);
        let cells = &mut applying.cells();
        Ok(match act {
            CellAct::Init(value) => Ok(init::init(cells, &context, cell, *value)?),
            CellAct::Set(value) => Ok(set::set(cells, &context, cell, *value)?),
            CellAct::Cas(expected, value) => cas::cas(cells, &context, cell, *expected, *value)?,
            CellAct::Delete => Ok(delete::delete(cells, &context, cell)?),
        })
    }

    fn conflict(_: &Applying<'_>, _: &Scope<'_>, rejection: &CellRejection) -> Result<Option<String>, Halt> {
        // Cells have no type.
        Ok(matches!(rejection, CellRejection::Conflict { .. }).then(String::new))
    }

    fn trim(applying: &mut Applying<'_>, step: &CellTrim) -> Result<Option<FilledType>, Halt> {
        trim::apply(applying, step)?;
        Ok(None)
    }

    fn find_in_bucket(finding: &mut Finding<'_>, bucket: u16) -> Result<(), Halt> {
        trim::find(finding, bucket)
    }

    fn check(
        applying: &Applying<'_>,
        scope: &Scope<'_>,
        guard: &CellGuard<'_>,
        looked_at: &mut usize,
    ) -> Result<Result<(), Rejection>, Halt> {
        guard::check(applying.state, scope, guard, looked_at)
    }

    fn floor(keys: &Keys, bucket: u16, space: u32, branch: u32) -> Option<Key> {
        Some(keys.cell_floor(bucket, space, branch))
    }
}

/// Cells are not counted.
impl Counting for Cells {}
