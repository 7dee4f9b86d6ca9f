//! Commands that were refused because something was not as they expected, by what it was, for metrics.

use contract::Rejection;
use session::Halt;

use crate::context::Applying;
use crate::contract::Contract;
use crate::contracts::with_contracts;
use crate::tally::Conflict;
use crate::transact::scope::Scope;

/// Counts a refused command, if it was a conflict. Its effects are already undone.
pub(crate) fn note_conflict(applying: &mut Applying<'_>, scope: &Scope<'_>, rejection: &Rejection) -> Result<(), Halt> {
    let conflict = conflict(applying, scope, rejection)?;
    applying.folded.changes.tally.conflicts.extend(conflict);
    Ok(())
}

macro_rules! conflicts {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        fn conflict(
            applying: &Applying<'_>,
            scope: &Scope<'_>,
            rejection: &Rejection,
        ) -> Result<Option<Conflict>, Halt> {
            match rejection {
                $(Rejection::$kind(rejection) => {
                    let type_name = crate::$folder::contract::$contract::conflict(applying, scope, rejection)?;
                    Ok(type_name.map(|type_name| Conflict { on: stringify!($folder), type_name }))
                })*
                _ => Ok(None),
            }
        }
    };
}

with_contracts!(conflicts);
