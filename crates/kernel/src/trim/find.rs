//! What the walk finds in a view: the steps that are due, a bounded number at a time. Changes nothing.

use kv::View;
use session::Halt;

use super::branch::buckets_to_erase;
use super::finding::{Finding, Situation};
use crate::catalogue::Catalogue;
use crate::command::trim_step::{TRIM_STEPS_MAX, TrimStep};
use crate::contract::Contract;
use crate::contracts::with_contracts;
use crate::keys::Keys;

/// Examines up to `heads_max` rows after the key `cursor` for steps that are due, without changing anything. With
/// `forgets`, also for what is deleted: it goes before its time. Returns steps, and the key to continue after; none when
/// everything was examined.
pub fn find_due(
    view: &dyn View,
    catalogue: &Catalogue,
    keys: &Keys,
    now_us: u64,
    cursor: Option<&[u8]>,
    heads_max: usize,
    forgets: bool,
) -> Result<(Vec<TrimStep>, Option<Vec<u8>>), Halt> {
    let mut finding = Finding::new(Situation { view, catalogue, keys, now_us, forgets }, cursor, heads_max);
    for bucket in catalogue.buckets_here() {
        in_bucket(&mut finding, bucket)?;
    }
    in_shard(&mut finding)?;
    let Finding { mut steps, stopped_at, .. } = finding;
    if stopped_at.is_some() {
        return Ok((steps, stopped_at));
    }
    for (space, found) in catalogue.spaces() {
        let deleted = || found.branches().filter(|(_, branch)| branch.deleted);
        for (branch, _) in deleted() {
            let buckets = buckets_to_erase(view, keys, catalogue, space, branch)?;
            steps.extend(buckets.into_iter().map(|bucket| TrimStep::Erase { bucket, space, branch }));
        }
        steps.extend(deleted().map(|(branch, _)| TrimStep::Branch { space, branch }));
    }
    // When space is short, nothing is done that takes some.
    steps.extend(find_in_catalogue(catalogue).into_iter().filter(|step| !forgets || !step.grows()));
    steps.truncate(TRIM_STEPS_MAX);
    Ok((steps, None))
}

macro_rules! finding {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        fn in_bucket(finding: &mut Finding<'_>, bucket: u16) -> Result<(), Halt> {
            $(crate::$folder::contract::$contract::find_in_bucket(finding, bucket)?;)*
            Ok(())
        }

        fn in_shard(finding: &mut Finding<'_>) -> Result<(), Halt> {
            $(crate::$folder::contract::$contract::find_in_shard(finding)?;)*
            Ok(())
        }

        /// Steps that the catalogue alone tells of.
        pub fn find_in_catalogue(catalogue: &Catalogue) -> Vec<TrimStep> {
            [$(crate::$folder::contract::$contract::find_in_catalogue(catalogue)),*].concat()
        }
    };
}

with_contracts!(finding);
