//! Brokers that come with the library, and what one of your own has to do.
//!
//! A message waits in the store until its broker has taken it and that is committed. After a crash in between, the
//! broker sees it again, with the same number: a broker that remembers the highest number of each history and bucket
//! takes each message once. [`MemoryBroker`] and [`FileBroker`] do.

mod file;
mod memory;

pub use file::FileBroker;
pub use memory::MemoryBroker;
pub use node::publish::{Message, MessageNumber, Publish, PublishError};
