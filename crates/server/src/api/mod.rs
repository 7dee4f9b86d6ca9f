//! The behaviour of each call, from a decoded request to an answer that is yet to be encoded. One file or folder per
//! contract; the functions here are the lists that each contract is in.
//!
//! [`Call`]: the request, and its scope. [`Reply`]: the answer. [`Refusal`]: why not.
//!
//! Keeps: no state; every answer comes from the contracts. Writes are awaited, and reads of one thing run inline; calls
//! that read much run on threads that may block.
//!
//! Never: depends on HTTP. `http` decides which headers and status express all this.

mod call;
pub(crate) mod catalogue;
pub(crate) mod cells;
pub(crate) mod changes;
pub(crate) mod machines;
pub(crate) mod records;
pub(crate) mod runs;
pub(crate) mod scope;
pub(crate) mod sessions;
pub(crate) mod state;
pub(crate) mod transactions;

use serde_json::Value as JsonValue;
use statehouse::{Commit, Done as StoredDone, Overview};
use wire::contracts::{Done, Guard, Operation};
use wire::operations::ContractVersions;
use wire::transactions::WrittenOperation;

pub(crate) use call::{
    Answered, Call, RawBytes, Refusal, Reply, duration_or_ms, page_limit, refuse_limit_of_stream, refuse_zero,
};
pub(crate) use scope::RequestScope;
use transactions::{CommitBuilder, Parts};

/// Adds an operation to a commit. Returns the operations of the commit that it became.
fn add_operation(builder: &mut CommitBuilder<'_>, operation: Operation) -> Result<Parts, Refusal> {
    match operation {
        Operation::Cell(operation) => cells::add_operation(builder, operation),
        Operation::Record(operation) => return records::operations::add_operation(builder, operation),
        Operation::Run(operation) => runs::add_operation(builder, operation)?,
        Operation::Message(operation) => builder.send(operation)?,
    }
    Ok(Parts::ONE)
}

/// Adds all conditions of a guard to a commit.
fn add_guard(commit: Commit, guard: Guard) -> Commit {
    match guard {
        Guard::Cell(guard) => cells::add_guard(commit, guard),
        Guard::Record(guard) => records::operations::add_guard(commit, guard),
        Guard::Run(guard) => runs::add_guard(commit, guard),
    }
}

/// Shows a result that only operations of one contract have.
fn contract_done(done: &StoredDone) -> Done {
    match done {
        StoredDone::Cell(done) => cells::done(done),
        StoredDone::Record(done) => records::operations::done(done),
        StoredDone::Run(done) => runs::done(done),
        other => Done::Written(WrittenOperation::at(other.version().unwrap_or_default())),
    }
}

/// The version of each contract that has one.
pub(crate) fn contract_versions() -> ContractVersions {
    ContractVersions { runs: runs::VERSION.to_owned() }
}

/// The members of the status page about each contract.
pub(crate) fn contract_status(overview: &Overview) -> impl Iterator<Item = (&'static str, JsonValue)> {
    records::status(overview).into_iter().chain(runs::status(overview))
}
