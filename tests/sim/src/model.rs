//! Model tests: random commands on a kernel and its store, compared with a plain reference, and applied again.
//!
//! One driver (`stretch`) and one `reference` serve cells, records, runs, keyed state, sessions, and everything mixed; each contract has a
//! folder with what it draws, how its reads are compared, and how its rows are checked. The library is compared with the same
//! reference, as far as cells go.
//!
//! The operations are cut into stretches that know nothing of each other, so that they can run side by side and one that
//! fails can be run alone. The same seed gives the same operations; threads decide only when things happen, never which.

pub(crate) mod again;
pub(crate) mod cells;
mod clients;
pub(crate) mod compare;
mod drawn;
mod habits;
pub(crate) mod instance;
pub(crate) mod keyed;
pub(crate) mod mixed;
mod places;
pub(crate) mod records;
mod reference;
pub(crate) mod runs;
pub(crate) mod sessions;
mod stretch;
mod tally;
mod usage;
