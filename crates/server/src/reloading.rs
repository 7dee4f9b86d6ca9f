//! What changes while a server runs, after its settings were read again, and what is said about it.
//!
//! Keeps: settings are changed together, or not at all. Never: reads a file; who runs the server does, and says here what came of
//! it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use contract::shell::Suggested;

use crate::gate::Hosts;
use crate::status::trouble::{Severity, Trouble};

/// A running server's settings that can change.
#[derive(Clone, Debug, Default)]
pub struct Reloading(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    hosts: ArcSwap<Hosts>,
    done: AtomicU64,
    refused: AtomicU64,
    last: Mutex<Last>,
}

/// What came of the last time.
#[derive(Clone, Debug, Default)]
struct Last {
    /// The file that was refused, and why.
    refused: Option<(PathBuf, String)>,
    /// Settings that are different in the file, and need a new start.
    waiting: Vec<String>,
}

impl Reloading {
    /// The hosts and origins in effect.
    pub(crate) fn hosts(&self) -> Arc<Hosts> {
        self.0.hosts.load_full()
    }

    /// Sets the hosts and origins from now on.
    pub(crate) fn set_hosts(&self, hosts: Hosts) {
        self.0.hosts.store(Arc::new(hosts));
    }

    /// The settings were read: these hosts and origins count from now on, and the settings in `waiting` once the server is started
    /// again.
    pub fn done(&self, hosts: Hosts, waiting: Vec<String>) {
        self.set_hosts(hosts);
        self.0.done.fetch_add(1, Ordering::Relaxed);
        self.set_last(Last { refused: None, waiting });
    }

    /// The settings in `file` were refused: nothing has changed.
    pub fn refused(&self, file: &Path, why: String) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
        let waiting = self.last().waiting;
        self.set_last(Last { refused: Some((file.to_owned(), why)), waiting });
    }

    /// How often settings were taken, and refused.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.0.done.load(Ordering::Relaxed), self.0.refused.load(Ordering::Relaxed))
    }

    fn last(&self) -> Last {
        self.0.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_last(&self, last: Last) {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }

    /// What somebody should know about it.
    pub(crate) fn troubles(&self) -> impl Iterator<Item = Trouble> {
        let Last { refused, waiting } = self.last();
        let refused = refused.map(|(file, why)| {
            let why = why.lines().next().unwrap_or_default().to_owned();
            let file = file.display().to_string();
            Trouble {
                problem: "settings_refused",
                severity: Severity::Warning,
                object: file.clone(),
                text: format!("it was not read again, and the settings from before are in effect: {why}"),
                number: 1.0,
                threshold: 0.0,
                unit: "refusals",
                command: Suggested::new(["statehouse", "config", "check"]).flag("--config", file),
            }
        });
        let waiting = (!waiting.is_empty()).then(|| Trouble {
            problem: "settings_wait",
            severity: Severity::Note,
            object: waiting.join(", "),
            text: "changed in the settings, and in effect once the server is started again".to_owned(),
            number: crate::status::trouble::number(waiting.len() as u64),
            threshold: 0.0,
            unit: "settings",
            command: Suggested::new(["statehouse", "config", "show", "--origins"]),
        });
        refused.into_iter().chain(waiting)
    }
}
