//! Which cells the child writes, and how values name the write that they came from.
//!
//! A value is a text `NUMBER TOKEN`: the token is unique to one write of one child; the number is a counter's count or
//! an account's amount, and 0 elsewhere.

use statehouse::{Cells, DEFAULT_SPACE, Statehouse, Value};

/// Written by one thread each, with `set`.
pub(super) const REGISTERS: [&str; 2] = ["register-0", "register-1"];
/// Counted up by two threads, with `cas`.
pub(super) const COUNTERS: [&str; 2] = ["counter-0", "counter-1"];
/// Created and deleted by one thread each.
pub(super) const FLIPS: [&str; 2] = ["flip-0", "flip-1"];
/// The accounts of [`BANK`], between which two threads move amounts. One has the group's name.
pub(super) const ACCOUNTS: [&str; 4] = ["account-0", "account-1", "account-2", "bank"];
pub(super) const BANK: &str = "bank";
/// What all accounts hold together.
pub(super) const TOTAL: i64 = 1_000;
/// In the space [`SHORT_SPACE`], which keeps [`SHORT_VERSIONS`] versions; written by one thread.
pub(super) const SHORT: &str = "short-0";
pub(super) const SHORT_SPACE: &str = "short";
pub(super) const SHORT_VERSIONS: u64 = 3;

/// Every cell whose whole history is kept.
pub(super) fn kept() -> impl Iterator<Item = &'static str> {
    REGISTERS.into_iter().chain(COUNTERS).chain(FLIPS).chain(ACCOUNTS)
}

/// The handle for a cell.
pub(super) fn handle(house: &Statehouse, cell: &str) -> Cells {
    if ACCOUNTS.contains(&cell) {
        house.space(DEFAULT_SPACE).group(BANK).cells()
    } else if cell == SHORT {
        house.space(SHORT_SPACE).cells()
    } else {
        house.cells()
    }
}

/// A value of this write.
pub(super) fn value(number: i64, token: &str) -> String {
    format!("{number} {token}")
}

/// Number and token of a value.
pub(super) fn parse(value: &Value) -> Result<(i64, String), String> {
    let text = value.as_text().ok_or_else(|| format!("{value:?} was never written"))?;
    let parts = text.split_once(' ');
    let (number, token) = parts.ok_or_else(|| format!("{text:?} was never written"))?;
    let number = number.parse().map_err(|_| format!("{text:?} was never written"))?;
    Ok((number, token.to_owned()))
}
