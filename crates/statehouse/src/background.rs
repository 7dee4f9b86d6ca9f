//! The threads that work behind an open shard: they read views, propose commands, and end before the journal does.

use std::sync::Arc;

use contract::Error;

use crate::access::Access;
use crate::imager::Imager;
use crate::options::Options;
use crate::publish::{Outbox, Publisher};
use crate::sessions::expirer::Expirer;
use crate::sessions::keeper::Keeper;
use crate::timer::{Agenda, Timer};
use crate::walker::Walker;

/// Ends its threads when it is dropped.
pub(crate) struct Background {
    walker: Walker,
    _publisher: Option<Publisher>,
    _timer: Timer,
    _expirer: Expirer,
    _imager: Option<Imager>,
}

impl Background {
    pub(crate) fn start(
        access: &Access,
        options: &Options,
        agenda: Arc<Agenda>,
        outbox: Arc<Outbox>,
        keeper: Arc<Keeper>,
    ) -> Result<Self, Error> {
        let broker = options.broker.clone();
        let publisher = broker.map(|broker| Publisher::start(access.clone(), outbox, broker)).transpose()?;
        let imager = options.images.clone().map(|plan| Imager::start(access.clone(), plan)).transpose()?;
        Ok(Self {
            _imager: imager,
            walker: Walker::start(access.clone(), options.retention_walk_every)?,
            _publisher: publisher,
            _timer: Timer::start(access.clone(), agenda)?,
            _expirer: Expirer::start(access.clone(), keeper, options.session_check_every)?,
        })
    }

    /// Looks for history to give up now.
    pub(crate) fn wake_walker(&self) {
        self.walker.wake();
    }
}
