//! File descriptors: every connection takes one, and the system's first offer is often less than it would give.

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::limits::ServerLimits;

/// Descriptors that the store and the process itself need.
const OTHERS: u64 = 1024;

/// Asks the system for as many descriptors as it gives, and lowers the limit of connections if they are not enough.
pub fn raise(limits: &mut ServerLimits) {
    let mut given = getrlimit(Resource::Nofile);
    if given.current != given.maximum {
        given.current = given.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, given) {
            tracing::warn!(%error, "no more file descriptors are given");
        }
    }
    let Some(descriptors) = getrlimit(Resource::Nofile).current else {
        return;
    };
    let connections = usize::try_from(descriptors.saturating_sub(OTHERS).max(descriptors / 2)).unwrap_or(usize::MAX);
    if connections < limits.connections_max {
        tracing::warn!(descriptors, connections, "connections_max is lowered: the system gives no more descriptors");
        limits.connections_max = connections.max(1);
    }
}
