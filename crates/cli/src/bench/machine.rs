//! A description of the machine that a measurement ran on, from local files only.

/// Cores, processor, memory and kernel.
pub(super) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZeroUsize::get);
    let processor = first_line("/proc/cpuinfo", "model name").unwrap_or("unknown processor".to_owned());
    let memory = first_line("/proc/meminfo", "MemTotal").unwrap_or("unknown memory".to_owned());
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let build = if cfg!(debug_assertions) { "debug build" } else { "release build" };
    format!("{cores} cores, {processor}, {memory}, {} {}, {build}", std::env::consts::OS, kernel.trim())
}

/// The text after the colon of the first line with this prefix.
fn first_line(path: &str, begins: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(begins))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
