//! Records: named sets of fields that workers claim, move and finish.

pub(crate) mod counts;
