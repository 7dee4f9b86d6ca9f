//! What a shard does for sessions besides applying their commands: it knows who is alive, ends those who are not, and
//! numbers the requests of its own clients, and lets only those act as a session who know its secret.

pub mod census;
pub(crate) mod expirer;
pub mod keeper;
pub mod register;
pub mod requests;
pub mod secrets;
