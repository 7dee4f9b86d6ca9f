//! Records by script and transcript; `crate::script` says what a script can say.

mod attempts;
mod expiry;
mod fences;
mod guards;
mod indexes;
mod leases;
mod messages;
mod moves;
mod places;
mod queues;
mod reads;
mod types;
mod writes;
