//! What the model does to runs, with its own values; and its bytes.

use contract::runs::NewEvent;
use kernel::{Append, Duplicates, EventRef, RunAct};

/// What is done to a run.
#[derive(Debug)]
pub(crate) enum Act {
    Append(Box<NewAppend>),
    Close,
    Delete,
    Fork { from: String, at: u64 },
}

/// An event that is appended.
#[derive(Debug)]
pub(crate) struct NewAppend {
    pub(crate) expected_last: Option<u64>,
    pub(crate) duplicates: Duplicates,
    pub(crate) run_type: &'static str,
    pub(crate) event: NewEvent,
}

impl Act {
    pub(crate) fn as_kernel_act(&self) -> RunAct<'_> {
        match self {
            Act::Append(append) => {
                let NewAppend { expected_last, duplicates, run_type, event } = &**append;
                let (expected_last, duplicates) = (*expected_last, *duplicates);
                RunAct::Append(Box::new(Append { expected_last, duplicates, run_type, event: EventRef::from(event) }))
            }
            Act::Close => RunAct::Close,
            Act::Delete => RunAct::Delete,
            Act::Fork { from, at } => RunAct::Fork { from, at: *at },
        }
    }
}
