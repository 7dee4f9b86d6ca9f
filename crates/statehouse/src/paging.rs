//! Pages of lists: how many rows one may have, and of which groups.

use contract::limits::PAGE_ROWS_MAX;
use contract::{Rejection, names};
use kernel::names::InGroup;

/// Refuses a page of too many rows.
pub(crate) fn check_page(limit: usize) -> Result<(), Rejection> {
    Rejection::check_limit("page_rows_max", PAGE_ROWS_MAX, limit)
}

/// The groups that a handle lists: its own, or all.
pub(crate) fn listed_groups(group: Option<&str>) -> Result<InGroup<'_>, Rejection> {
    match group {
        None => Ok(InGroup::Any),
        Some(group) => names::check_group(group).map(|()| InGroup::Named(group)),
    }
}
