//! The entries of records, attempts, types of records and owners of groups in the table of routes.

use contract::access::{Area, Verb};
use contract::guards::OWNER_RECORD;
use wire::owners::OwnGroup;
use wire::query::NoQuery;
use wire::records::claims::Claim;
use wire::records::types::DeclareType;
use wire::records::{
    AttemptToken, CompleteToken, CountRecords, ExtendToken, FailToken, PatchRecord, ReleaseToken, ScanRecords,
    StepToken,
};
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
use super::operations::patch_verbs;
use super::{claims, owners, types};
use crate::access::Permission;
use crate::http::entry::{Asked, Entry, MADE, entry, waiting};

pub(in crate::api) fn routes() -> Vec<Entry> {
    let mut routes = records();
    routes.extend(attempts());
    routes.extend(owned_groups());
    routes.push(entry(TYPES_LIST, reading(), "Lists the record types of a space", types::list));
    routes.push(entry(
        TYPES_DECLARE,
        declaring_type(),
        "Declares the type of records with a name prefix",
        types::declare,
    ));
    routes
}

fn records() -> Vec<Entry> {
    vec![
        entry(
            RECORDS_SCAN,
            Permission::listing(Area::Record, |query: &ScanRecords| query.prefix.as_deref()),
            "Lists matching records, in one group or all groups, from one view",
            super::scan,
        ),
        entry(
            RECORDS_READ,
            Permission::thing(Verb::Read, Area::Record),
            "Reads a record, or one field of it",
            super::read,
        )
        .head(),
        entry(RECORDS_PUT, Permission::write_of(Area::Record), "Replaces a record", super::put)
            .if_match()
            .if_none_match()
            .statuses(MADE),
        entry(RECORDS_PATCH, patch(), "Changes fields of a record in one commit", super::patch)
            .if_match()
            .if_none_match(),
        entry(RECORDS_DELETE, Permission::write_of(Area::Record), "Deletes a record", super::delete).if_match(),
        entry(
            RECORDS_COUNTS,
            Permission::names(Area::Record, |query: &CountRecords| query.prefix.as_deref()),
            "Counts the records of each type and state",
            super::counts,
        ),
        waiting(
            RECORDS_CLAIM,
            claim(),
            "Claims the next ready records, and optionally waits for one",
            |_, claim: &Claim| Asked { wait: claim.wait.map(|wait| wait.0), stream: false },
            claims::claim,
        )
        .prefer_wait(),
    ]
}

fn patch() -> Permission<NoQuery, PatchRecord> {
    let words = "write records, or cas if conditional; read them if it expects or increments";
    Permission::of(words, |asking, needs| {
        let PatchRecord { set: _, unset: _, incr, expect, ttl: _ } = asking.body;
        for verb in patch_verbs(asking.is_conditional, incr.as_ref(), expect.as_ref()) {
            needs.thing(*verb, Area::Record, asking.group, asking.name);
        }
    })
}

fn claim() -> Permission<NoQuery, Claim> {
    Permission::of("claim records", |asking, needs| {
        let Claim { prefix, name, n: _, worker: _, lease: _, wait: _ } = asking.body;
        match name {
            Some(name) => needs.thing(Verb::Claim, Area::Record, asking.group, name),
            None => {
                let prefix = prefix.as_deref().unwrap_or_default();
                needs.prefix(Verb::Claim, Area::Record, asking.group, prefix);
            }
        }
    })
}

fn attempts() -> Vec<Entry> {
    fn named<B>() -> Permission<NoQuery, B> {
        Permission::thing(Verb::Claim, Area::Record)
    }
    vec![
        entry(RECORDS_STEP, named(), "Writes fields, if the attempt is still live", step),
        entry(RECORDS_EXTEND, named(), "Extends the lease of a record", extend),
        entry(RECORDS_RELEASE, named(), "Releases a record so that it can be claimed again", release),
        entry(RECORDS_COMPLETE, named(), "Completes a record", complete),
        entry(RECORDS_FAIL, named(), "Ends the attempt as failed", fail),
        entry(
            ATTEMPTS_STEP,
            of_token(|body: &StepToken| &body.token),
            "Writes fields, if the attempt of the token is still live",
            step_by_token,
        ),
        entry(
            ATTEMPTS_EXTEND,
            of_token(|body: &ExtendToken| &body.token),
            "Extends the lease of the token's record",
            extend_by_token,
        ),
        entry(
            ATTEMPTS_RELEASE,
            of_token(|body: &ReleaseToken| &body.token),
            "Releases the token's record so that it can be claimed again",
            release_by_token,
        ),
        entry(
            ATTEMPTS_COMPLETE,
            of_token(|body: &CompleteToken| &body.token),
            "Completes the token's record",
            complete_by_token,
        ),
        entry(
            ATTEMPTS_FAIL,
            of_token(|body: &FailToken| &body.token),
            "Ends the token's attempt as failed",
            fail_by_token,
        ),
    ]
}

/// Who has a token was allowed to claim once, and must be still.
fn of_token<B: 'static>(token: fn(&B) -> &AttemptToken) -> Permission<NoQuery, B> {
    Permission::of("claim records", move |asking, needs| {
        let AttemptToken(token) = token(asking.body);
        needs.thing(Verb::Claim, Area::Record, token.group.as_deref(), &token.record);
    })
}

fn owned_groups() -> Vec<Entry> {
    vec![
        waiting(
            GROUPS_OWN,
            of_owner(Verb::Claim),
            "Owns a group, and optionally waits for it",
            |_, own: &OwnGroup| Asked { wait: own.wait.map(|wait| wait.0), stream: false },
            owners::own,
        )
        .prefer_wait(),
        entry(GROUPS_OWNER, of_owner(Verb::Read), "Reads who owns a group", owners::owner),
        entry(GROUPS_EXTEND, of_owner(Verb::Claim), "Owns a group longer", owners::extend),
        entry(GROUPS_RELEASE, of_owner(Verb::Claim), "Gives a group up", owners::release),
        entry(GUARDS_LIST, reading(), "Lists the guards of a space", owners::guards),
        entry(
            GUARDS_SET,
            declaring(),
            "Guards the groups with a name prefix: only their owner writes them",
            owners::set_guard,
        ),
        entry(GUARDS_REMOVE, declaring(), "Removes the guard of a name prefix", owners::remove_guard),
    ]
}

/// Who owns a group holds a record in it.
fn of_owner<Q: 'static, B>(verb: Verb) -> Permission<Q, B> {
    Permission::of(format!("{verb} {}", Area::Record), move |asking, needs| {
        needs.thing(verb, Area::Record, asking.group, OWNER_RECORD);
    })
}

fn reading<Q: 'static, B>() -> Permission<Q, B> {
    Permission::everything(Verb::Read, Area::Catalogue)
}

/// Its records are sent to the queues that it names, by nobody in particular.
fn declaring_type() -> Permission<NoQuery, DeclareType> {
    let (verb, area) = (Verb::Operate, Area::Catalogue);
    Permission::of(format!("{verb} {area}; write messages to its queues"), move |asking, needs| {
        needs.prefix(verb, area, None, asking.name);
        let DeclareType { rescued_to, exhausted_to, .. } = asking.body;
        for queue in rescued_to.iter().chain(exhausted_to) {
            needs.thing(Verb::Write, Area::Message, None, queue);
        }
    })
}

/// Declares something for the names that begin with the prefix in the path.
fn declaring<Q: 'static, B>() -> Permission<Q, B> {
    let (verb, area) = (Verb::Operate, Area::Catalogue);
    Permission::of(format!("{verb} {area}"), move |asking, needs| needs.prefix(verb, area, None, asking.name))
}
