//! What a server and its store say when they are scraped, read once for all metrics.

use std::collections::BTreeMap;
use std::time::Duration;

use statehouse::{Counters, Overview, Status};

use crate::Server;

/// What the samples of one scrape are taken from.
pub(crate) struct Readings<'server> {
    pub(crate) server: &'server Server,
    pub(crate) counters: Counters,
    /// None once the store is closed.
    pub(crate) status: Option<Status>,
    /// None once the store is closed.
    pub(crate) overview: Option<Overview>,
}

impl<'server> Readings<'server> {
    pub(super) fn take(server: &'server Server) -> Self {
        let house = &server.house;
        let counters = house.counters();
        Self { server, counters, status: house.status().ok(), overview: house.overview().ok() }
    }

    /// The label of a type of records, or of a kind of runs.
    pub(crate) fn type_label(&self, name: &str) -> String {
        self.server.metrics.types.shown(name)
    }

    /// The longest of these times for each label of a type.
    pub(crate) fn longest_by_type<'name>(
        &self,
        times: impl Iterator<Item = (&'name str, Duration)>,
    ) -> BTreeMap<String, Duration> {
        let mut longest: BTreeMap<String, Duration> = BTreeMap::new();
        for (name, time) in times {
            let known = longest.entry(self.type_label(name)).or_default();
            *known = time.max(*known);
        }
        longest
    }
}
