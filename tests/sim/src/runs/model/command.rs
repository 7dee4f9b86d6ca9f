//! Commands on runs as the model draws them, and their bytes.

use contract::runs::NewEvent;
use kernel::{Append, Body, CatalogueChange, Duplicates, EventRef, Op, RunAct, Transact};
use kv::Writer;

/// A run's name and place. Its group is none if that is its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) space: u32,
    pub(crate) branch: u32,
    pub(crate) group: Option<String>,
    pub(crate) name: String,
}

impl Id {
    pub(crate) fn new(place: (u32, u32), group: Option<&str>, name: &str) -> Self {
        let group = group.filter(|group| *group != name).map(str::to_owned);
        Self { space: place.0, branch: place.1, group, name: name.to_owned() }
    }

    pub(crate) fn place(&self) -> (u32, u32) {
        (self.space, self.branch)
    }

    /// The name of the group that it is in.
    pub(crate) fn home(&self) -> &str {
        self.group.as_deref().unwrap_or(&self.name)
    }

    /// Another run of its group.
    pub(crate) fn sibling(&self, name: &str) -> Self {
        Self::new(self.place(), Some(self.home()), name)
    }
}

/// One command.
#[derive(Debug)]
pub(crate) enum Command {
    Catalogue(CatalogueChange),
    Tick,
    /// Several acts in one group, all or none.
    Transact(Vec<(Id, Act)>),
}

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

impl Command {
    /// How many operations it counts for.
    pub(crate) fn operations(&self) -> u64 {
        match self {
            Command::Transact(acts) => acts.len() as u64,
            _ => 1,
        }
    }

    /// As it stands in an entry.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        match self {
            Command::Catalogue(change) => Body::Catalogue(change.clone()).encode(&mut writer),
            Command::Tick => Body::Tick.encode(&mut writer),
            Command::Transact(acts) => {
                let Id { space, branch, .. } = acts[0].0;
                // A run that is its own group is named without one, as the library does.
                let alone = acts.iter().all(|(id, act)| *id == acts[0].0 && !matches!(act, Act::Fork { .. }));
                let group = Some(acts[0].0.home()).filter(|_| !alone || acts[0].0.group.is_some());
                let ops = acts.iter().map(|(id, act)| Op::Run(&id.name, act.as_kernel_act())).collect();
                let transact = Transact { space, branch, group, fence: None, guards: Vec::new(), ops };
                Body::Transact(transact).encode(&mut writer);
            }
        }
        writer.finish()
    }
}

impl Act {
    fn as_kernel_act(&self) -> RunAct<'_> {
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
