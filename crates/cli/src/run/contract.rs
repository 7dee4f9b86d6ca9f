//! Runs in commands across the contracts.

use statehouse::Statehouse;

use super::{Run, replay};
use crate::checks::Checked;
use crate::contract::Contract;
use crate::equipment::NoFlags;
use crate::next::Next;
use crate::table::{Column, plain};

impl Contract for Run {
    const NEXT: &'static [(&'static str, Next)] =
        &[("SH-3003", Next::CommandWith("continue from there", &["run", "tail"], "run"))];

    const EXPORTED: &'static [Column] = &[plain("RUNS", "counts.run"), plain("EVENTS", "counts.event")];

    type ServerFlags = NoFlags;

    fn examine(house: &Statehouse) -> Option<Checked> {
        Some(replay::check(house))
    }
}
