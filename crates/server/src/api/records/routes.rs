//! The entries of records, attempts, types of records and owners of groups in the table of routes.

use wire::owners::OwnGroup;
use wire::records::claims::Claim;
use wire::routes::{
    ATTEMPTS_COMPLETE, ATTEMPTS_EXTEND, ATTEMPTS_FAIL, ATTEMPTS_RELEASE, ATTEMPTS_STEP, GROUPS_EXTEND, GROUPS_OWN,
    GROUPS_OWNER, GROUPS_RELEASE, GUARDS_LIST, GUARDS_REMOVE, GUARDS_SET, RECORDS_CLAIM, RECORDS_COMPLETE,
    RECORDS_COUNTS, RECORDS_DELETE, RECORDS_EXTEND, RECORDS_FAIL, RECORDS_PATCH, RECORDS_PUT, RECORDS_READ,
    RECORDS_RELEASE, RECORDS_SCAN, RECORDS_STEP, TYPES_DECLARE, TYPES_LIST,
};

use super::attempts::{
    complete, complete_by_token, extend, extend_by_token, fail, fail_by_token, release, release_by_token, step,
    step_by_token,
};
use super::{claims, owners, types};
use crate::http::entry::{Asked, Entry, MADE, entry, waiting};

pub(in crate::api) fn routes() -> Vec<Entry> {
    let mut routes = records();
    routes.extend(attempts());
    routes.extend(owned_groups());
    routes.push(entry(TYPES_LIST, "Lists the record types of a space", types::list));
    routes.push(entry(TYPES_DECLARE, "Declares the type of records with a name prefix", types::declare).operate());
    routes
}

fn records() -> Vec<Entry> {
    vec![
        entry(RECORDS_SCAN, "Lists matching records, in one group or all groups, from one view", super::scan),
        entry(RECORDS_READ, "Reads a record, or one field of it", super::read).head(),
        entry(RECORDS_PUT, "Replaces a record", super::put).write().if_match().if_none_match().statuses(MADE),
        entry(RECORDS_PATCH, "Changes fields of a record in one commit", super::patch)
            .write()
            .if_match()
            .if_none_match(),
        entry(RECORDS_DELETE, "Deletes a record", super::delete).write().if_match(),
        entry(RECORDS_COUNTS, "Counts the records of each type and state", super::counts),
        waiting(
            RECORDS_CLAIM,
            "Claims the next ready records, and optionally waits for one",
            |_, claim: &Claim| Asked { wait: claim.wait.map(|wait| wait.0), stream: false },
            claims::claim,
        )
        .write()
        .prefer_wait(),
    ]
}

fn attempts() -> Vec<Entry> {
    vec![
        entry(RECORDS_STEP, "Writes fields, if the attempt is still live", step).write(),
        entry(RECORDS_EXTEND, "Extends the lease of a record", extend).write(),
        entry(RECORDS_RELEASE, "Releases a record so that it can be claimed again", release).write(),
        entry(RECORDS_COMPLETE, "Completes a record", complete).write(),
        entry(RECORDS_FAIL, "Ends the attempt as failed", fail).write(),
        entry(ATTEMPTS_STEP, "Writes fields, if the attempt of the token is still live", step_by_token).write(),
        entry(ATTEMPTS_EXTEND, "Extends the lease of the token's record", extend_by_token).write(),
        entry(ATTEMPTS_RELEASE, "Releases the token's record so that it can be claimed again", release_by_token)
            .write(),
        entry(ATTEMPTS_COMPLETE, "Completes the token's record", complete_by_token).write(),
        entry(ATTEMPTS_FAIL, "Ends the token's attempt as failed", fail_by_token).write(),
    ]
}

fn owned_groups() -> Vec<Entry> {
    vec![
        waiting(
            GROUPS_OWN,
            "Owns a group, and optionally waits for it",
            |_, own: &OwnGroup| Asked { wait: own.wait.map(|wait| wait.0), stream: false },
            owners::own,
        )
        .write()
        .prefer_wait(),
        entry(GROUPS_OWNER, "Reads who owns a group", owners::owner),
        entry(GROUPS_EXTEND, "Owns a group longer", owners::extend).write(),
        entry(GROUPS_RELEASE, "Gives a group up", owners::release).write(),
        entry(GUARDS_LIST, "Lists the guards of a space", owners::guards),
        entry(GUARDS_SET, "Guards the groups with a name prefix: only their owner writes them", owners::set_guard)
            .operate(),
        entry(GUARDS_REMOVE, "Removes the guard of a name prefix", owners::remove_guard).operate(),
    ]
}
