//! What a contract is to the kernel. `contracts.rs` lists those that there are.

use contract::Rejection;
use session::Halt;

use crate::answer::OpOutcome;
use crate::command::act::{Act, Condition};
use crate::context::Applying;
use crate::keys::ThingId;
use crate::transact::scope::Scope;

/// The outcome of an operation, or its rejection; or that the machine must halt.
pub(crate) type Outcome = Result<Result<OpOutcome, Rejection>, Halt>;

/// A contract: named things, what can be done to them, and what can be a condition.
pub(crate) trait Contract {
    /// What is done to one of its things.
    type Act<'bytes>: Act<'bytes>;
    /// A condition on its things.
    type Guard<'bytes>: Condition<'bytes>;

    /// Does something to a thing. A rejection may leave changes, which its transaction undoes.
    fn act(applying: &mut Applying<'_>, scope: &Scope<'_>, thing: &ThingId<'_>, act: &Self::Act<'_>) -> Outcome;

    /// Checks a condition. `looked_at` counts the things that those of the transaction have looked at in ranges.
    fn check(
        applying: &Applying<'_>,
        scope: &Scope<'_>,
        guard: &Self::Guard<'_>,
        looked_at: &mut usize,
    ) -> Result<Result<(), Rejection>, Halt>;
}
