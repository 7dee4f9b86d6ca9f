//! Which route each command calls; `crate::scopes` reads from it which flags a command honours.

use wire::routes::{
    CHANGES_READ, RECORDS_CLAIM, RECORDS_COMPLETE, RECORDS_COUNTS, RECORDS_DELETE, RECORDS_EXTEND, RECORDS_FAIL,
    RECORDS_PATCH, RECORDS_PUT, RECORDS_READ, RECORDS_RELEASE, RECORDS_SCAN, RECORDS_STEP, Route, TYPES_DECLARE,
};

/// The commands, each with the narrowest of the routes that it calls.
pub(crate) const SCOPES: &[(&str, Route)] = &[
    ("rec claim", RECORDS_CLAIM),
    ("rec complete", RECORDS_COMPLETE),
    ("rec count", RECORDS_COUNTS),
    ("rec del", RECORDS_DELETE),
    ("rec extend", RECORDS_EXTEND),
    ("rec fail", RECORDS_FAIL),
    ("rec get", RECORDS_READ),
    ("rec incr", RECORDS_PATCH),
    ("rec patch", RECORDS_PATCH),
    ("rec release", RECORDS_RELEASE),
    ("rec scan", RECORDS_SCAN),
    ("rec set", RECORDS_PUT),
    ("rec step", RECORDS_STEP),
    ("rec ttl", RECORDS_PATCH),
    ("rec type", TYPES_DECLARE),
    ("rec watch", CHANGES_READ),
    ("why job", RECORDS_SCAN),
];
