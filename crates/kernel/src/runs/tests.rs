//! Runs by script and transcript; `crate::script` says what a script can say.

mod appends;
mod forks;
mod guards;
mod life;
mod lists;
mod places;
mod projection;
mod reads;
mod steps;
