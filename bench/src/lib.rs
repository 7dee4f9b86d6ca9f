//! The parts of the benchmarks that a program outside of this package can use, to measure a store of its own.
//!
//! - [`growth`]: the cost of claims, steps and appends among ever more records; [`growth::stores`] for any store.
//! - [`keyed_work`]: operators that commit puts.
//! - [`store_maker`]: how a store is made. [`bare_kernel`]: the kernel on it.
//! - [`usage`], [`resources`], [`latency`]: CPU time by thread, memory, disk, histograms.

pub mod bare_kernel;
pub mod growth;
pub mod keyed_work;
pub mod latency;
pub mod resources;
pub mod store_maker;
pub mod usage;
