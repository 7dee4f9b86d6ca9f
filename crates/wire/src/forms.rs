//! Requests with every optional member left out, so that a caller sets only what it needs: `Claim { worker:
//! Some("w1".into()), ..Claim::of_queue("jobs.") }`.

use crate::cells::{ListCells, ReadCell};
use crate::changes::ReadChanges;
use crate::claims::Claim;
use crate::records::{CountRecords, PatchRecord, PutRecord, ReadRecord, ScanRecords};
use crate::runs::{AppendEvents, ListRuns, ReadEvents, ReadSnapshot};
use crate::sessions::{ListSessions, OpenSession, ReadPushes};
use crate::transactions::{Operation, Transaction};
use crate::values::{Members, UserJson};

macro_rules! left_out {
    ($($type:ident { $($member:ident),* $(,)? })*) => {$(
        impl Default for $type {
            fn default() -> Self {
                Self { $($member: None),* }
            }
        }
    )*};
}

left_out! {
    ListCells { prefix, cursor, limit }
    ReadCell { at, view, before, limit }
    PatchRecord { set, unset, incr, expect, ttl }
    ReadRecord { field }
    ScanRecords { prefix, filter, record_type, limit, cursor }
    CountRecords { prefix }
    Claim { prefix, name, n, worker, lease, wait }
    ListRuns { prefix, status, run_type, stalled, limit, cursor }
    ReadEvents { after, limit, follow }
    AppendEvents { run_type, strict }
    ReadSnapshot { project }
    OpenSession { timeout, capabilities }
    ListSessions { after, limit }
    ReadPushes { wait, limit, follow }
    ReadChanges { prefix, from, limit, follow }
}

impl Claim {
    /// Claims the next record of the queues with a prefix; `""` means all queues.
    pub fn of_queue(prefix: impl Into<String>) -> Self {
        Self { prefix: Some(prefix.into()), ..Self::default() }
    }

    /// Claims the record with this name.
    pub fn of_record(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }
}

impl PutRecord {
    /// A record with these fields, of the type declared for its name.
    pub fn of(fields: Members<UserJson>) -> Self {
        Self { fields, record_type: None, ttl: None }
    }
}

impl Transaction {
    /// Operations without conditions.
    pub fn of(operations: Vec<Operation>) -> Self {
        Self { guards: None, fence: None, operations }
    }
}
