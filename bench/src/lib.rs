//! The parts of the benchmarks that a program outside of this package can use, to measure a store of its own.
//!
//! - [`growth`]: the cost of claims, steps and appends among ever more records.
//! - [`usage`], [`resources`], [`latency`]: CPU time by thread, memory, disk, histograms.

pub mod growth;
pub mod latency;
pub mod resources;
pub mod usage;
