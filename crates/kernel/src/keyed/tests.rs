//! Keyed state by script and transcript; `crate::script` says what a script can say.

mod checkpoints;
mod commits;
mod guards;
mod maps;
mod ordered;
mod restores;
mod versions;
