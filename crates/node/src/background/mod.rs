//! The background threads of an open shard: they read views, propose commands, and end before the journal does.

mod imager;
pub mod plans;
pub(crate) mod repeating;
pub mod scrub_progress;
mod scrubber;
pub(crate) mod timer;
mod walker;

use std::sync::Arc;

use contract::Error;

use crate::access::Access;
use crate::background::repeating::Repeating;
use crate::background::timer::{Agenda, Timer};
use crate::background::walker::Walker;
use crate::contracts::with_contracts;
use crate::images::ImageStore;
use crate::options::Options;
use crate::publish::{Outbox, Publisher};
use crate::sessions::expirer;
use crate::sessions::keeper::Keeper;
use crate::space::keeper::SpaceKeeper;

macro_rules! start_for_contracts {
    ($($folder:ident)*) => {
        /// Starts what the contracts want done.
        fn start_for_contracts(access: &Access, options: &Options) -> Result<Vec<Repeating>, Error> {
            let started = [$(crate::$folder::start(access, options)?),*];
            Ok(started.into_iter().flatten().collect())
        }
    };
}

with_contracts!(start_for_contracts);

/// Ends its threads when it is dropped.
pub(crate) struct Background {
    /// Before the walker, which it wakes.
    _space: Repeating,
    walker: Walker,
    _publisher: Option<Publisher>,
    _timer: Timer,
    _repeating: Vec<Repeating>,
}

impl Background {
    pub(crate) fn start(
        access: &Access,
        options: &Options,
        images: Option<Arc<dyn ImageStore>>,
        agenda: Arc<Agenda>,
        outbox: Arc<Outbox>,
        keeper: Arc<Keeper>,
        space: SpaceKeeper,
    ) -> Result<Self, Error> {
        let broker = options.broker.clone();
        let publisher = broker.map(|broker| Publisher::start(access.clone(), outbox, broker)).transpose()?;
        let mut repeating = vec![expirer::start(access.clone(), keeper, options.session_check_every)?];
        repeating.extend(start_for_contracts(access, options)?);
        if let Some(plan) = options.scrub_plan() {
            repeating.push(scrubber::start(access.clone(), plan)?);
        }
        if let (Some(images), Some(plan)) = (images, options.images.clone()) {
            repeating.push(imager::start(access.clone(), images, plan)?);
        }
        let walker = Walker::start(access.clone(), options.retention_walk_every)?;
        Ok(Self {
            _repeating: repeating,
            _space: space.start(walker.waker())?,
            walker,
            _publisher: publisher,
            _timer: Timer::start(access.clone(), agenda)?,
        })
    }

    /// Looks for history to discard now.
    pub(crate) fn wake_walker(&self) {
        self.walker.wake();
    }
}
