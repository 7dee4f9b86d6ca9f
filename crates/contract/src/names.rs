//! Which names are allowed, for cells and groups and for spaces and branches.

use crate::error::Rejection;
use crate::limits::NAME_BYTES_MAX;

/// Cell names that begin so are kept for the system.
pub const RESERVED_PREFIXES: [&str; 2] = ["_strata", "_statehouse"];

/// Checks a cell's name: not empty, no NUL, not reserved, at most 1,024 bytes.
///
/// ```
/// use statehouse_contract::names::check_cell;
/// assert!(check_cell("order-7/state").is_ok());
/// assert!(check_cell("").is_err() && check_cell("a\0b").is_err() && check_cell("_strata.x").is_err());
/// assert!(check_cell(&"x".repeat(1024)).is_ok() && check_cell(&"x".repeat(1025)).is_err());
/// ```
pub fn check_cell(name: &str) -> Result<(), Rejection> {
    check(name, "a cell's name")
}

/// Checks a record's name, by the same rules.
pub fn check_record(name: &str) -> Result<(), Rejection> {
    check(name, "a record's name")
}

/// Checks a run's name, by the same rules.
pub fn check_run(name: &str) -> Result<(), Rejection> {
    check(name, "a run's name")
}

/// Checks the name of a broker's queue, by the same rules.
pub fn check_topic(name: &str) -> Result<(), Rejection> {
    check(name, "a queue's name")
}

/// Checks a group's name, by the same rules as a cell's.
pub fn check_group(name: &str) -> Result<(), Rejection> {
    check(name, "a group's name")
}

/// Checks the name of a space, by the same rules.
pub fn check_space(name: &str) -> Result<(), Rejection> {
    check(name, "a space's name")
}

/// Checks the name of a branch, by the same rules.
pub fn check_branch(name: &str) -> Result<(), Rejection> {
    check(name, "a branch's name")
}

fn check(name: &str, what: &'static str) -> Result<(), Rejection> {
    let invalid = |reason| Err(Rejection::InvalidName { what, reason });
    if name.is_empty() {
        return invalid("it is empty");
    }
    if name.contains('\0') {
        return invalid("it contains a NUL byte");
    }
    if RESERVED_PREFIXES.iter().any(|reserved| name.starts_with(reserved)) {
        return invalid("it begins with a prefix that is reserved for the system");
    }
    Rejection::check_limit("name_bytes_max", NAME_BYTES_MAX, name.len())
}
