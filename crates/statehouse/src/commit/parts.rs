//! The parts of a commit: guards and operations that own their names and values.

use std::time::Duration;

use contract::limits::NAME_BYTES_MAX;
use contract::records::Put;
use contract::{Error, Rejection, Value, names};
use kernel::catalogue::types::micros;
use kernel::{
    CellAct, CellGuard, Duplicates, Guard, Op, RecordAct, RecordGuard, RunGuard, Send, Target, TtlArgument, ValueRef,
};

use super::Commit;
use crate::records::{Ttl, borrowed, check_fields, ttl_argument};
use crate::runs::{AppendOptions, NewEvent, append_act, check_run_type};

pub(super) enum OwnGuard {
    RecordStateIn(String, Vec<String>),
    RecordVersionIs(String, u64),
    RecordAbsent(String),
    RecordFieldIs(String, String, Option<Value>),
    RecordExists(String),
    RecordAttemptIs(String, u64),
    RecordUnchangedSince(String, u64),
    CellVersionIs(String, u64),
    CellVersionBelow(String, u64),
    CellAbsent(String),
    CellExists(String),
    CellUnchangedSince(String, u64),
    RunLastIs(String, u64),
    CellsUnchangedSince { from: String, before: Option<String>, commit: u64 },
}

pub(super) enum OwnOp {
    SetCell(String, Value),
    InitCell(String, Value),
    DeleteCell(String),
    PutRecord(String, Vec<(String, Value)>, Put),
    Patch(String, Vec<(String, Option<Value>)>),
    Increment(String, String, i64),
    Complete(String, u64, Vec<(String, Option<Value>)>),
    Release(String, u64),
    Fail(String, u64, Vec<(String, Option<Value>)>),
    Touch(String, Ttl),
    DeleteRecord(String),
    Publish { topic: String, payload: Vec<u8>, after: Option<Duration> },
    Send { commit: Box<Commit>, after: Option<Duration> },
    Push(u64, Vec<u8>),
    Append { run: String, event: Box<NewEvent>, options: AppendOptions },
}

impl OwnGuard {
    /// Refuses what nothing can be called: such a condition would say nothing.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self {
            OwnGuard::RecordFieldIs(record, field, _) => {
                names::check_record(record)?;
                check_fields(std::iter::once(field.as_str()))?;
            }
            OwnGuard::RecordStateIn(record, _)
            | OwnGuard::RecordVersionIs(record, _)
            | OwnGuard::RecordAbsent(record)
            | OwnGuard::RecordExists(record)
            | OwnGuard::RecordAttemptIs(record, _)
            | OwnGuard::RecordUnchangedSince(record, _) => names::check_record(record)?,
            OwnGuard::CellVersionIs(cell, _)
            | OwnGuard::CellVersionBelow(cell, _)
            | OwnGuard::CellAbsent(cell)
            | OwnGuard::CellExists(cell)
            | OwnGuard::CellUnchangedSince(cell, _) => names::check_cell(cell)?,
            OwnGuard::RunLastIs(run, _) => names::check_run(run)?,
            OwnGuard::CellsUnchangedSince { from, before, .. } => {
                // The ends of a range need not be names of cells.
                for end in std::iter::once(from).chain(before) {
                    Rejection::check_limit("name_bytes_max", NAME_BYTES_MAX, end.len())?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn guard(&self) -> Guard<'_> {
        match self {
            OwnGuard::RecordStateIn(record, states) => {
                Guard::Record(RecordGuard::StateIn(record, states.iter().map(String::as_str).collect()))
            }
            OwnGuard::RecordVersionIs(record, version) => Guard::Record(RecordGuard::VersionIs(record, *version)),
            OwnGuard::RecordAbsent(record) => Guard::Record(RecordGuard::Absent(record)),
            OwnGuard::RecordFieldIs(record, field, value) => {
                Guard::Record(RecordGuard::FieldIs(record, field, value.as_ref().map(ValueRef::from)))
            }
            OwnGuard::CellVersionIs(cell, version) => Guard::Cell(CellGuard::VersionIs(cell, *version)),
            OwnGuard::CellAbsent(cell) => Guard::Cell(CellGuard::Absent(cell)),
            OwnGuard::RecordExists(record) => Guard::Record(RecordGuard::Exists(record)),
            OwnGuard::RecordAttemptIs(record, attempt) => Guard::Record(RecordGuard::AttemptIs(record, *attempt)),
            OwnGuard::RecordUnchangedSince(record, commit) => {
                Guard::Record(RecordGuard::UnchangedSince(record, *commit))
            }
            OwnGuard::CellVersionBelow(cell, version) => Guard::Cell(CellGuard::VersionBelow(cell, *version)),
            OwnGuard::CellExists(cell) => Guard::Cell(CellGuard::Exists(cell)),
            OwnGuard::CellUnchangedSince(cell, commit) => Guard::Cell(CellGuard::UnchangedSince(cell, *commit)),
            OwnGuard::RunLastIs(run, sequence) => Guard::Run(RunGuard::LastIs(run, *sequence)),
            OwnGuard::CellsUnchangedSince { from, before, commit } => {
                Guard::Cell(CellGuard::RangeUnchangedSince(from, before.as_deref(), *commit))
            }
        }
    }
}

impl OwnOp {
    pub(super) fn check(&self) -> Result<(), Error> {
        match self {
            OwnOp::SetCell(name, _) | OwnOp::InitCell(name, _) | OwnOp::DeleteCell(name) => names::check_cell(name)?,
            OwnOp::PutRecord(name, fields, _) => {
                names::check_record(name)?;
                check_fields(fields.iter().map(|(field, _)| field.as_str()))?;
            }
            OwnOp::Patch(name, fields) | OwnOp::Complete(name, _, fields) | OwnOp::Fail(name, _, fields) => {
                names::check_record(name)?;
                check_fields(fields.iter().map(|(field, _)| field.as_str()))?;
            }
            OwnOp::Increment(name, field, _) => {
                names::check_record(name)?;
                check_fields([field.as_str()].into_iter())?;
            }
            OwnOp::DeleteRecord(name) | OwnOp::Touch(name, _) | OwnOp::Release(name, _) => names::check_record(name)?,
            OwnOp::Publish { topic, .. } => names::check_topic(topic)?,
            OwnOp::Send { .. } | OwnOp::Push(..) => {}
            OwnOp::Append { run, event, options } => {
                names::check_run(run)?;
                event.check()?;
                check_run_type(&options.run_type)?;
            }
        }
        Ok(())
    }

    pub(super) fn op<'commit>(&'commit self, messages: &mut impl Iterator<Item = &'commit Vec<u8>>) -> Op<'commit> {
        match self {
            OwnOp::SetCell(cell, value) => Op::Cell(cell, CellAct::Set(ValueRef::from(value))),
            OwnOp::InitCell(cell, value) => Op::Cell(cell, CellAct::Init(ValueRef::from(value))),
            OwnOp::DeleteCell(cell) => Op::Cell(cell, CellAct::Delete),
            OwnOp::PutRecord(record, fields, put) => {
                let fields = fields.iter().map(|(field, value)| (field.as_str(), ValueRef::from(value))).collect();
                let ttl: TtlArgument = ttl_argument(put.ttl);
                Op::Record(record, RecordAct::Put { record_type: put.record_type.as_deref(), ttl, fields })
            }
            OwnOp::Patch(record, fields) => {
                Op::Record(record, RecordAct::Patch { must_exist: false, fields: borrowed(fields) })
            }
            OwnOp::Increment(record, field, by) => Op::Record(record, RecordAct::Increment { field, by: *by }),
            OwnOp::Complete(record, attempt, fields) => {
                Op::Record(record, RecordAct::Complete { attempt: *attempt, fields: borrowed(fields) })
            }
            OwnOp::Release(record, attempt) => Op::Record(record, RecordAct::Release { attempt: *attempt }),
            OwnOp::Fail(record, attempt, fields) => {
                Op::Record(record, RecordAct::Fail { attempt: *attempt, fields: borrowed(fields) })
            }
            OwnOp::DeleteRecord(record) => Op::Record(record, RecordAct::Delete),
            OwnOp::Touch(record, ttl) => Op::Record(record, RecordAct::Touch { ttl: ttl_argument(*ttl) }),
            OwnOp::Publish { topic, payload, after } => {
                Op::Send(Send { target: Target::Topic { topic, payload }, after_us: after.map(micros) })
            }
            OwnOp::Push(session, payload) => Op::Push(*session, payload),
            OwnOp::Append { run, event, options } => {
                Op::Run(run, append_act(event, options.expected_last, Duplicates::Refuse, &options.run_type))
            }
            OwnOp::Send { after, .. } => {
                let body = messages.next().expect("a body for every message");
                Op::Send(Send { target: Target::Transact(body), after_us: after.map(micros) })
            }
        }
    }
}
