//! What a server and its store say when they are scraped, read once for all metrics.

use statehouse::{Counters, Overview, Status};

use super::labels::TypeLabels;
use crate::Server;

/// What the samples of one scrape are taken from.
pub(crate) struct Readings<'server> {
    pub(crate) server: &'server Server,
    types: &'server TypeLabels,
    pub(crate) counters: Counters,
    /// None once the store is closed.
    pub(crate) status: Option<Status>,
    /// None once the store is closed.
    pub(crate) overview: Option<Overview>,
}

impl<'server> Readings<'server> {
    pub(super) fn take(server: &'server Server, types: &'server TypeLabels) -> Self {
        let house = &server.house;
        let counters = house.counters();
        Self { server, types, counters, status: house.status().ok(), overview: house.overview().ok() }
    }

    /// The label of a type of records, or of a kind of runs.
    pub(crate) fn type_label(&self, name: &str) -> String {
        self.types.shown(name)
    }
}
