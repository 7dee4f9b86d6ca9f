//! What a request would do, collected while its parts are looked at.

use contract::access::{Area, Need, Things, Verb};

#[cfg(feature = "canary")]
use crate::canary::Hole;

/// What a request would do.
pub(crate) struct Needs<'request> {
    space: &'request str,
    all: Vec<Need<'request>>,
}

impl<'request> Needs<'request> {
    /// Nothing yet, in a space.
    pub(super) fn none(space: &'request str) -> Self {
        Self { space, all: Vec::new() }
    }

    pub(super) fn into_vec(self) -> Vec<Need<'request>> {
        self.all
    }

    /// One thing, in its group if it has one.
    pub(crate) fn thing(&mut self, verb: Verb, area: Area, group: Option<&'request str>, name: &'request str) {
        self.add(verb, area, Things::One { group, name });
    }

    /// Things with a name prefix, in one group or in all groups.
    pub(crate) fn prefix(&mut self, verb: Verb, area: Area, group: Option<&'request str>, prefix: &'request str) {
        self.add(verb, area, Things::Prefix { group, prefix });
    }

    /// All things of an area in the space.
    pub(crate) fn everything(&mut self, verb: Verb, area: Area) {
        self.add(verb, area, Things::All);
    }

    /// All things of an area in another space than that of the request.
    pub(crate) fn everything_in(&mut self, space: &'request str, verb: Verb, area: Area) {
        #[cfg(feature = "canary")]
        let space = if Hole::OtherSpaces.is_open() { self.space } else { space };
        self.all.push(Need { space: Some(space), area, verb, things: Things::All });
    }

    /// The whole store, with all its spaces.
    pub(crate) fn store(&mut self, verb: Verb) {
        self.area_of_store(verb, Area::Store);
    }

    /// An area in all spaces.
    pub(crate) fn area_of_store(&mut self, verb: Verb, area: Area) {
        #[cfg(feature = "canary")]
        if Hole::Maintenance.is_open() {
            return;
        }
        self.all.push(Need { space: None, area, verb, things: Things::All });
    }

    /// How many there are, for [`force_from`](Self::force_from).
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// What was added from a place on is done by force, too.
    pub(crate) fn force_from(&mut self, place: usize) {
        let forced = self.all[place..].iter().map(|need| Need { verb: Verb::Force, ..need.clone() });
        let forced: Vec<_> = forced.collect();
        self.all.extend(forced);
    }

    fn add(&mut self, verb: Verb, area: Area, things: Things<'request>) {
        self.all.push(Need { space: Some(self.space), area, verb, things });
    }
}
