//! The edge, attacked: what users name, where files are made.

mod files;
mod names;

pub(crate) use files::run as run_files;
pub(crate) use names::run as run_names;
