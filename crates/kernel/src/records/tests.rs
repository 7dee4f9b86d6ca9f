//! Records by script and transcript; `crate::script` says what a script can say.

mod attempts;
mod expiry;
mod fences;
mod leases;
mod moves;
mod types;
mod writes;
