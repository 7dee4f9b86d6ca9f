//! A transaction with a number: sent again, it gets its first answer, whatever its conditions say by then.
//!
//! One operation of it has the number, and the contract of that operation keeps the answer. Its fences are checked before, so
//! who lost a group learns that first; they are not part of what is compared, because whoever takes over sends the same.

use contract::{RefusalReason, Rejection};
use session::{CommandDigest, Halt};

use super::Transacted;
use super::scope::Scope;
use crate::answer::Answer;
use crate::command::digest::digest_content;
use crate::command::{Op, Transact};
use crate::context::Applying;
use crate::contract::Contract;
use crate::contracts::with_contracts;
use crate::keys::ThingId;

/// A transaction that has a number.
pub(super) struct Numbered<'transact> {
    op: &'transact Op<'transact>,
    thing: ThingId<'transact>,
    number: u64,
    digest: CommandDigest,
}

impl<'transact> Numbered<'transact> {
    /// The number of a transaction, if it has one.
    pub(super) fn of(
        scope: &'transact Scope<'_>,
        transact: &'transact Transact<'transact>,
    ) -> Result<Result<Option<Self>, Rejection>, Halt> {
        let mut numbered = transact.ops.iter().filter_map(|op| Some((op, number_of(op)?)));
        let Some((op, number)) = numbered.next() else { return Ok(Ok(None)) };
        if numbered.next().is_some() {
            let what = "a transaction".to_owned();
            return Ok(Err(Rejection::InvalidDeclaration { what, reason: RefusalReason::TwoNumbers }));
        }
        let thing = match scope.thing(op.name().unwrap_or_default()) {
            Ok(thing) => thing,
            Err(rejection) => return Ok(Err(rejection)),
        };
        Ok(Ok(Some(Self { op, thing, number, digest: digest_content(transact)? })))
    }

    /// Its first answer, if it was applied before.
    pub(super) fn first_answer(&self, applying: &Applying<'_>) -> Result<Result<Option<Transacted>, Rejection>, Halt> {
        let answer = match answered(applying, self)? {
            Ok(Some(answer)) => answer,
            Ok(None) => return Ok(Ok(None)),
            Err(rejection) => return Ok(Err(rejection)),
        };
        match Answer::decode(&answer)? {
            Answer::Done { commit, outcomes } => Ok(Ok(Some(Transacted { commit, outcomes }))),
            Answer::Rejected(_) => Err(Halt::Inconsistent("D2: a commit that was applied was refused".into())),
        }
    }

    /// Keeps its answer.
    pub(super) fn keep(&self, applying: &mut Applying<'_>, done: &Transacted) -> Result<(), Halt> {
        let Transacted { commit, outcomes } = done.clone();
        keep_answer(applying, self, &Answer::Done { commit, outcomes }.encode())
    }
}

macro_rules! dispatch {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        fn number_of(op: &Op<'_>) -> Option<u64> {
            match op {
                $(Op::$kind(_, act) => crate::$folder::contract::$contract::number_of(act),)*
                Op::Send(_) | Op::Push(..) => None,
            }
        }

        fn answered(
            applying: &Applying<'_>,
            numbered: &Numbered<'_>,
        ) -> Result<Result<Option<Vec<u8>>, Rejection>, Halt> {
            let Numbered { op, thing, number, digest } = numbered;
            match op {
                $(Op::$kind(..) => crate::$folder::contract::$contract::answered(applying, thing, *number, digest),)*
                Op::Send(_) | Op::Push(..) => Ok(Ok(None)),
            }
        }

        fn keep_answer(applying: &mut Applying<'_>, numbered: &Numbered<'_>, answer: &[u8]) -> Result<(), Halt> {
            let Numbered { op, thing, number, digest } = numbered;
            match op {
                $(Op::$kind(..) => {
                    crate::$folder::contract::$contract::keep_answer(applying, thing, *number, digest, answer)
                })*
                Op::Send(_) | Op::Push(..) => Ok(()),
            }
        }
    };
}

with_contracts!(dispatch);
