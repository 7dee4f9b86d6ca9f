//! Keyed state by script and transcript; `crate::script` says what a script can say.

mod commits;
mod guards;
mod maps;
mod ordered;
mod versions;
