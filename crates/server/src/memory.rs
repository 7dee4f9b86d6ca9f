//! The memory budget of the process, and its division.
//!
//! The budget is one number: as configured, or 60 % of what the control group or the machine allows. The rest is for
//! the program itself, the system's buffers for sockets and files, and the unforeseen.
//!
//! Keeps: the parts never add up to more than the budget, unless it is too small to serve a single request.

use std::fmt;
use std::path::Path;

use statehouse::Options;

use crate::limits::ServerLimits;

/// The default share of the allowed memory.
const PERCENT_TAKEN: u64 = 60;

/// The parts of the budget, in percent.
const CACHE_PERCENT: u64 = 25;
const OVERLAY_PERCENT: u64 = 25;
const QUEUE_PERCENT: u64 = 10;
const REQUESTS_PERCENT: u64 = 20;
const CONNECTIONS_PERCENT: u64 = 10;
const STREAMS_PERCENT: u64 = 10;
const _: () = assert!(
    CACHE_PERCENT + OVERLAY_PERCENT + QUEUE_PERCENT + REQUESTS_PERCENT + CONNECTIONS_PERCENT + STREAMS_PERCENT == 100
);

/// The approximate memory of a connection: its task, its socket, and the buffer of the last request.
const CONNECTION_BYTES: u64 = 16 << 10;
/// The additional memory of a stream with a slow client: the write buffers, here and in the system.
const STREAM_BYTES: u64 = 96 << 10;
/// The memory of a request besides its body: the thread that works on it.
const REQUEST_BYTES: u64 = 48 << 10;

/// The usual memory of a parsed body, per byte.
const USUAL_FACTOR: u64 = 8;

/// The smallest useful budget.
pub const BUDGET_BYTES_MIN: u64 = 64 << 20;

/// The origin of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It was configured.
    Said,
    /// A share of the control group's limit.
    ControlGroup,
    /// A share of the machine's memory.
    Machine,
}

/// The memory budget of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of all parts together.
    pub bytes: u64,
    /// Its origin.
    pub source: Source,
}

/// The division of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Split {
    /// The budget.
    pub budget: Budget,
    /// The store's read cache.
    pub cache_bytes: u64,
    /// Written data that is not in the store's files yet.
    pub overlay_bytes: u64,
    /// Commands waiting for the journal.
    pub queue_bytes: u64,
    /// Requests in progress.
    pub request_bytes: u64,
    /// Connections.
    pub connection_bytes: u64,
    /// Streams of events.
    pub stream_bytes: u64,
}

impl Budget {
    /// The budget: as configured, or a share of what this process is allowed.
    pub fn find(said: Option<u64>) -> Self {
        if let Some(bytes) = said {
            return Self { bytes: bytes.max(BUDGET_BYTES_MIN), source: Source::Said };
        }
        let machine = machine_bytes(Path::new("/proc/meminfo")).unwrap_or(1 << 30);
        let part = |bytes: u64| (bytes / 100 * PERCENT_TAKEN).max(BUDGET_BYTES_MIN);
        match control_group_bytes(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup")) {
            Some(limit) if limit < machine => Self { bytes: part(limit), source: Source::ControlGroup },
            _ => Self { bytes: part(machine), source: Source::Machine },
        }
    }

    /// Divides the budget. The cache gets what other parts do not need.
    pub fn split(self, limits: &ServerLimits) -> Split {
        let part = |percent: u64| self.bytes / 100 * percent;
        let defaults = Options::default();
        let overlay_max = defaults.overlay.memory_bytes_max();
        let overlay_bytes = part(OVERLAY_PERCENT).min(overlay_max);
        let queue_bytes = part(QUEUE_PERCENT).min(defaults.journal.queue_bytes_max as u64);
        // A request of maximum size can be processed, if it is the only one and needs no more memory than usual.
        let one_request = limits.body_bytes_max as u64 * USUAL_FACTOR;
        let requests_max = one_request + limits.requests_max as u64 * REQUEST_BYTES;
        let request_bytes = part(REQUESTS_PERCENT).min(4 * requests_max).max(one_request);
        let connection_bytes = part(CONNECTIONS_PERCENT).min(limits.connections_max as u64 * CONNECTION_BYTES);
        let stream_bytes = part(STREAMS_PERCENT).min(limits.streams_max as u64 * STREAM_BYTES);
        let taken = overlay_bytes + queue_bytes + request_bytes + connection_bytes + stream_bytes;
        let cache_bytes = self.bytes.saturating_sub(taken).max(part(CACHE_PERCENT) / 4).min(part(50));
        Split { budget: self, cache_bytes, overlay_bytes, queue_bytes, request_bytes, connection_bytes, stream_bytes }
    }
}

impl Split {
    /// Options of a directory within this budget.
    pub fn options(&self) -> Options {
        let mut options = Options::default();
        options.storage.cache_bytes_max = self.cache_bytes;
        let tables = options.overlay.frozen_tables_max as u64 + 1;
        options.overlay.table_bytes_max = size(self.overlay_bytes / tables);
        options.journal.queue_bytes_max = size(self.queue_bytes);
        options
    }

    /// Lowers limits to fit this budget.
    pub fn lower(&self, limits: &mut ServerLimits) {
        limits.request_memory_bytes_max = size(self.request_bytes);
        limits.connections_max = limits.connections_max.min(size(self.connection_bytes / CONNECTION_BYTES)).max(1);
        limits.streams_max = limits.streams_max.min(size(self.stream_bytes / STREAM_BYTES)).max(1);
    }
}

impl fmt::Display for Split {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = match self.budget.source {
            Source::Said => "as was said",
            Source::ControlGroup => "60 % of the control group's limit",
            Source::Machine => "60 % of the machine's",
        };
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        write!(
            formatter,
            "memory {} MiB ({from}): cache {}, not yet in files {}, journal queue {}, requests {}, connections {}, streams {}",
            mib(self.budget.bytes),
            mib(self.cache_bytes),
            mib(self.overlay_bytes),
            mib(self.queue_bytes),
            mib(self.request_bytes),
            mib(self.connection_bytes),
            mib(self.stream_bytes)
        )
    }
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The lowest limit of this process's control group and its ancestors, in version 2, then 1.
fn control_group_bytes(groups: &Path, mounted: &Path) -> Option<u64> {
    let groups = std::fs::read_to_string(groups).ok()?;
    let path_of = |wanted: &dyn Fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            wanted(controllers).then_some(path)
        })
    };
    let second = path_of(&|controllers| controllers.is_empty()).and_then(|path| {
        least_limit(mounted, path, "memory.max").or_else(|| least_limit(&mounted.join("unified"), path, "memory.max"))
    });
    let first = || {
        let path = path_of(&|controllers| controllers.split(',').any(|controller| controller == "memory"))?;
        least_limit(&mounted.join("memory"), path, "memory.limit_in_bytes")
    };
    second.or_else(first)
}

/// The lowest limit from a group up to the root. In a container the path may not exist below the mount, whose root then
/// is the container's own group.
fn least_limit(mounted: &Path, path: &str, file: &str) -> Option<u64> {
    let limit = |folder: &Path| std::fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
    let mut folder = mounted.join(path.trim_start_matches('/'));
    let mut least = None;
    while folder.starts_with(mounted) {
        least = least.into_iter().chain(limit(&folder)).min();
        if !folder.pop() {
            break;
        }
    }
    least
}

fn machine_bytes(file: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    #[test]
    fn the_least_limit_of_the_groups_counts() {
        let directory = tempfile::tempdir().expect("a directory");
        let (groups, mounted) = (directory.path().join("groups"), directory.path().join("mounted"));
        write(&groups, "0::/a/b\n");
        write(&mounted.join("a/b/memory.max"), "max\n");
        assert_eq!(control_group_bytes(&groups, &mounted), None);
        write(&mounted.join("a/memory.max"), "1000\n");
        write(&mounted.join("memory.max"), "5000\n");
        assert_eq!(control_group_bytes(&groups, &mounted), Some(1000));
        write(&groups, "0::/elsewhere\n");
        assert_eq!(control_group_bytes(&groups, &mounted), Some(5000), "the container's own");

        write(&groups, "3:cpu:/\n2:memory,other:/c\n0::/\n");
        write(&mounted.join("memory.max"), "max\n");
        write(&mounted.join("memory/memory.limit_in_bytes"), "9223372036854771712\n");
        write(&mounted.join("memory/c/memory.limit_in_bytes"), "2000\n");
        assert_eq!(control_group_bytes(&groups, &mounted), Some(2000), "version 1");
        assert_eq!(control_group_bytes(&directory.path().join("none"), &mounted), None);
    }

    #[test]
    fn the_parts_keep_to_the_budget() {
        for mib in [256, 307, 512, 1 << 10, 16 << 10, 1 << 20] {
            let mut limits = ServerLimits::default();
            let budget = Budget { bytes: mib << 20, source: Source::Said };
            let split = budget.split(&limits);
            let parts = split.cache_bytes
                + split.overlay_bytes
                + split.queue_bytes
                + split.request_bytes
                + split.connection_bytes
                + split.stream_bytes;
            assert!(parts <= budget.bytes, "{split}");
            split.lower(&mut limits);
            assert!(limits.request_memory_bytes_max >= limits.body_bytes_max * 8, "{split}");
            assert!(limits.connections_max > 1000 && limits.streams_max > 200, "{split}: {limits:?}");
            let options = split.options();
            assert_eq!(options.storage.cache_bytes_max, split.cache_bytes);
            assert!(options.overlay.table_bytes_max as u64 * 3 <= split.overlay_bytes);
        }
        let ample = Budget { bytes: 16 << 30, source: Source::Said }.split(&ServerLimits::default());
        let mut limits = ServerLimits::default();
        ample.lower(&mut limits);
        assert_eq!(limits.connections_max, ServerLimits::default().connections_max, "nothing is lowered without need");
        assert_eq!(limits.streams_max, ServerLimits::default().streams_max);
    }

    #[test]
    fn this_machine_has_memory() {
        let found = Budget::find(None);
        assert!(found.bytes >= BUDGET_BYTES_MIN && found.source != Source::Said, "{found:?}");
        assert_eq!(Budget::find(Some(100 << 20)), Budget { bytes: 100 << 20, source: Source::Said });
        assert_eq!(Budget::find(Some(1)).bytes, BUDGET_BYTES_MIN);
    }
}
