//! Keyed state in the walk: nothing. What is left of a deleted map is due, and goes with ticks.

use kv::{DecodeError, Reader, Writer};

use crate::command::act::unlisted;

/// What a step of the walk does to maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyedTrim {}

impl KeyedTrim {
    /// The codes that steps begin with.
    pub(crate) const CODES: &'static [u8] = &[];

    /// Whether it makes the store larger.
    pub(crate) fn grows(&self) -> bool {
        match *self {}
    }

    pub(crate) fn encode(&self, _: &mut Writer) {
        match *self {}
    }

    /// Reads a step after its code.
    pub(crate) fn decode(code: u8, _: &mut Reader<'_>) -> Result<Self, DecodeError> {
        unlisted(code)
    }
}
