//! The behaviour of each call, from a decoded request to an answer that is yet to be encoded. One file or folder per
//! contract; what is asked of every contract is made from the list here.
//!
//! [`Call`]: the request, and its scope. [`Reply`]: the answer. [`Refusal`]: why not.
//!
//! Keeps: no state; every answer comes from the contracts. Writes are awaited, and reads of one thing run inline; calls
//! that read much run on threads that may block.
//!
//! Never: depends on HTTP, except for the `routes.rs` of a contract, which has its entries in the table of routes. `http` decides
//! which headers and status express all this.

pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod catalogue;
mod cells;
pub(crate) mod changes;
mod keyed;
pub(crate) mod letters;
pub(crate) mod machines;
pub(crate) mod principals;
mod records;
pub(crate) mod refusal;
mod runs;
pub(crate) mod scope;
pub(crate) mod sessions;
pub(crate) mod state;
pub(crate) mod transactions;

use contract::access::Area;
use serde_json::Value as JsonValue;
pub use statehouse::keyed::Checkpoints;
use statehouse::{Commit, Counters, Done as StoredDone, Overview};
use wire::contracts::{Done, Guard, Operation};
use wire::operations::ContractVersions;
use wire::transactions::WrittenOperation;

use crate::access::Needs;
use crate::http::entry::Entry;
use crate::metrics::list::Metric;
use crate::metrics::readings::Readings;
use crate::metrics::text::Scrape;
use crate::status::trouble::Trouble;
pub(crate) use keyed::ServerCheckpoints;

use call::{Answered, Call, RawBytes, Reply, duration_or_ms, page_limit, refuse_limit_of_stream, refuse_zero};
use refusal::Refusal;
use scope::RequestScope;
use transactions::{CommitBuilder, Parts};

/// The one list of the contracts: the folder, the name of one thing, and what the contract is called. Expands a macro with it.
macro_rules! with_contracts {
    ($expand:ident) => {
        $expand! {
            cells: Cell = "cells"
            records: Record = "records"
            runs: Run = "runs"
            keyed: Map = "keyed state"
        }
    };
}

/// Generates what is asked of every contract.
macro_rules! of_contracts {
    ($($folder:ident: $kind:ident = $called:literal)*) => {
        /// What the contracts are called.
        pub(crate) const CONTRACTS_CALLED: &[&str] = &[$($called),*];

        /// The areas of the contracts: what can be granted on their things.
        const AREAS: &[Area] = &[$(Area::$kind),*];

        /// The entries of all contracts in the table of routes.
        pub(crate) fn routes() -> Vec<Entry> {
            let routes = [$($folder::routes::routes()),*];
            routes.into_iter().flatten().collect()
        }

        /// Adds an operation to a commit. Returns the operations of the commit that it became.
        fn add_operation(builder: &mut CommitBuilder<'_>, operation: Operation) -> Result<Parts, Refusal> {
            match operation {
                $(Operation::$kind(operation) => $folder::operations::add_operation(builder, operation),)*
                Operation::Message(operation) => builder.send(operation).map(|()| Parts::ONE),
            }
        }

        /// Collects what an operation in a group needs.
        fn operation_needs<'request>(
            operation: &'request Operation,
            group: &'request str,
            needs: &mut Needs<'request>,
        ) {
            match operation {
                $(Operation::$kind(operation) => $folder::operations::operation_needs(operation, group, needs),)*
                Operation::Message(operation) => transactions::needs::of_message(operation, needs),
            }
        }

        /// Collects what a guard on things of a group needs: a refusal tells what is there.
        fn guard_needs<'request>(guard: &'request Guard, group: &'request str, needs: &mut Needs<'request>) {
            match guard {
                $(Guard::$kind(guard) => $folder::operations::guard_needs(guard, group, needs),)*
            }
        }

        /// Adds all conditions of a guard to a commit.
        fn add_guard(commit: Commit, guard: Guard) -> Commit {
            match guard {
                $(Guard::$kind(guard) => $folder::operations::add_guard(commit, guard),)*
            }
        }

        /// Shows a result that only operations of one contract have.
        fn contract_done(done: &StoredDone) -> Done {
            match done {
                $(StoredDone::$kind(done) => $folder::operations::done(done),)*
                other => Done::Written(WrittenOperation::at(other.version().unwrap_or_default())),
            }
        }

        /// The members of the status page about each contract.
        pub(crate) fn contract_status(overview: &Overview) -> Vec<(&'static str, JsonValue)> {
            [$($folder::status::members(&overview.$folder)),*].concat()
        }

        /// The lines of the status page about each contract, with the contract.
        pub(crate) fn contract_lines(overview: &Overview) -> Vec<(&'static str, Vec<String>)> {
            vec![$((stringify!($folder), $folder::status::lines(&overview.$folder))),*]
        }

        /// Problems with the things of each contract.
        pub(crate) fn contract_problems(counters: &Counters, overview: &Overview) -> Vec<Trouble> {
            [$($folder::status::problems(counters, overview)),*].into_iter().flatten().collect()
        }

        /// The metrics of all contracts.
        pub(crate) fn contract_metrics() -> impl Iterator<Item = &'static Metric> {
            [$($folder::metrics::LIST),*].into_iter().flatten()
        }

        /// Writes the samples of these.
        pub(crate) fn write_contract_metrics(readings: &Readings<'_>, scrape: &mut Scrape) {
            $($folder::metrics::write(readings, scrape);)*
        }

        #[cfg(test)]
        const LISTED: &[&str] = &[$(stringify!($folder)),*];
    };
}

with_contracts!(of_contracts);

/// The version of each contract that has one.
pub(crate) fn contract_versions() -> ContractVersions {
    ContractVersions { runs: runs::VERSION.to_owned() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_contract_is_listed() {
        assert_eq!(super::LISTED, contract::CONTRACTS);
    }
}
