//! Cells in commands across the contracts.

use super::Cell;
use crate::contract::Contract;
use crate::equipment::NoFlags;
use crate::next::Next;
use crate::table::{Column, plain};

impl Contract for Cell {
    const NEXT: &'static [(&'static str, Next)] =
        &[("SH-1003", Next::CommandWith("read the cell again, then decide again", &["cell", "get"], "cell"))];

    const EXPORTED: &'static [Column] = &[plain("CELLS", "counts.cell")];

    type ServerFlags = NoFlags;
}
