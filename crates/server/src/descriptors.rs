//! File descriptors: every connection takes one, and the initial limit is often lower than the system allows.

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::limits::ServerLimits;

/// Descriptors reserved for the store and the process itself.
const OTHERS: u64 = 1024;

/// Raises the descriptor limit as far as the system allows, and lowers the limit of connections if that is not enough.
pub fn raise(limits: &mut ServerLimits) {
    let mut given = getrlimit(Resource::Nofile);
    if given.current != given.maximum {
        given.current = given.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, given) {
            tracing::warn!(%error, "cannot raise the limit of file descriptors");
        }
    }
    let Some(descriptors) = getrlimit(Resource::Nofile).current else {
        return;
    };
    let connections = usize::try_from(descriptors.saturating_sub(OTHERS).max(descriptors / 2)).unwrap_or(usize::MAX);
    if connections < limits.connections_max {
        tracing::warn!(descriptors, connections, "connections_max was lowered: the system allows no more descriptors");
        limits.connections_max = connections.max(1);
    }
}
