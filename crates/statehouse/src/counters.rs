//! The activity and content of an open directory, as numbers for metrics.
//!
//! - [`Counters`]: activity since it was opened. Only rises.
//! - [`Overview`]: current content: the things of each contract, sessions, messages, waiting workers.
//!
//! Never: decides anything.

use std::time::Duration;

use contract::Error;
use kernel::keys::Keys;
use kernel::{Catalogue, MessageCounts};
use kv::{Readable, View};
use node::background::scrub_progress::ScrubProgress;
use node::error::from_halt;
use node::sessions::census::LivingSessions;

use crate::dead_letters::DeadLetterOverview;
use crate::house::Statehouse;
use crate::with_contracts;
pub use node::meters::{Claims, Counters, OTHER_TYPES, TYPES_COUNTED_MAX};

/// The number of queues examined for their oldest record, and of kinds of runs for their longest idle one. Each costs
/// as many reads as there are buckets.
pub const LOOKED_AT_MAX: usize = 128;

/// One branch, as an overview sees it.
pub(crate) struct Branch<'view> {
    pub(crate) view: &'view dyn View,
    pub(crate) keys: Keys,
    pub(crate) catalogue: &'view Catalogue,
    /// The numbers of the space and the branch.
    pub(crate) place: (u32, u32),
    now_us: u64,
}

impl Branch<'_> {
    /// The names of the space and the branch.
    pub(crate) fn names(&self) -> (String, String) {
        let Ok(space) = self.catalogue.space(self.place.0) else { return Default::default() };
        let branch = space.branches().find(|(number, _)| *number == self.place.1);
        (space.name.clone(), branch.map(|(_, branch)| branch.name.clone()).unwrap_or_default())
    }

    /// How long ago a time is.
    pub(crate) fn since(&self, wall_us: u64) -> Duration {
        Duration::from_micros(self.now_us.saturating_sub(wall_us))
    }
}

/// Generates [`Overview`], with a member for each contract.
macro_rules! overview {
    ($($folder:ident: $kind:ident { $done:ident, $overview:ident })*) => {
        /// The current content.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Overview {
            $(
                #[doc = concat!("The things of the contract `", stringify!($folder), "`.")]
                pub $folder: crate::$folder::$overview,
            )*
            /// Queues and kinds of things that were not examined, because there are more than [`LOOKED_AT_MAX`].
            pub left_out: usize,
            /// The number of waiting messages.
            pub messages: MessageCounts,
            /// More about the dead letters among them.
            pub dead_letters: DeadLetterOverview,
            /// The number of sessions by state.
            pub sessions: LivingSessions,
            /// Workers that wait for something to claim.
            pub claimers_waiting: usize,
        }

        impl Overview {
            /// What is known without looking at branches.
            fn begin(house: &Statehouse, messages: MessageCounts) -> Self {
                Self {
                    $($folder: crate::$folder::$overview::of(house),)*
                    left_out: 0,
                    messages,
                    dead_letters: DeadLetterOverview::default(),
                    sessions: house.shard.keeper.census().0,
                    claimers_waiting: house.shard.waiters.count() + house.shard.named_waiters.count(),
                }
            }

            fn add(&mut self, branch: &Branch<'_>) -> Result<(), Error> {
                $(self.left_out += self.$folder.add(branch)?;)*
                Ok(())
            }
        }
    };
}

with_contracts!(overview);

impl Statehouse {
    /// Activity since the directory was opened. Takes a few short locks, and reads nothing.
    pub fn counters(&self) -> Counters {
        self.shard.counters()
    }

    /// The current content. Reads a row for each queue and type, and some for each queue with something to claim.
    pub fn overview(&self) -> Result<Overview, Error> {
        let (view, catalogue) = self.shard.view()?;
        let (view, keys) = (Readable(&*view), self.shard.keys());
        let now_us = self.shard.now().wall_us;
        let messages = kernel::outbox::waiting::waiting(&view, &keys).map_err(|halt| from_halt(&halt))?;
        let mut overview = Overview::begin(self, messages);
        if messages.dead > 0 {
            overview.dead_letters = DeadLetterOverview::read(&view, &keys, &catalogue)?;
        }
        for (space, found) in catalogue.spaces_of_users() {
            for (branch, _) in found.branches().filter(|(_, branch)| !branch.deleted) {
                let place = (space, branch);
                overview.add(&Branch { view: &view, keys, catalogue: &catalogue, place, now_us })?;
            }
        }
        Ok(overview)
    }

    /// The progress of the scrub.
    pub fn scrub(&self) -> ScrubProgress {
        self.shard.shared.scrub.read()
    }

    /// Why the store has stopped, if it has: it accepts no more writes then, and must be reopened.
    pub fn failure(&self) -> Option<Error> {
        self.shard.failure()
    }
}
