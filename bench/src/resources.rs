//! Resources of the process and its directories.

use std::path::Path;

/// Resident bytes of this process.
pub fn resident_bytes() -> u64 {
    bytes_in("/proc/self/status", "VmRSS:")
}

/// The most that was resident since the process started, or since [`forget_resident_peak`].
pub fn resident_peak_bytes() -> u64 {
    bytes_in("/proc/self/status", "VmHWM:")
}

/// Starts a new measurement of [`resident_peak_bytes`].
///
/// # Panics
/// If the system does not allow it: the peak before would hide the one that is to be measured.
pub fn forget_resident_peak() {
    std::fs::write("/proc/self/clear_refs", "5").expect("the peak of resident memory can be reset");
}

/// Resident bytes of another process.
pub fn resident_bytes_of(process: u32) -> u64 {
    bytes_in(&format!("/proc/{process}/status"), "VmRSS:")
}

fn bytes_in(status: &str, name: &str) -> u64 {
    let status = std::fs::read_to_string(status).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

/// CPU time of this process so far, in seconds, in steps of 10 ms.
pub fn cpu_seconds() -> f64 {
    cpu_seconds_of(std::process::id())
}

/// The same of another process.
pub fn cpu_seconds_of(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// Bytes of all files below a directory.
pub fn directory_bytes(path: &Path) -> u64 {
    let Ok(listed) = std::fs::read_dir(path) else {
        return 0;
    };
    let sizes = listed.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => directory_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_forgotten() {
        drop(std::hint::black_box(vec![1_u8; 256 << 20]));
        let before = resident_peak_bytes();
        forget_resident_peak();
        let after = resident_peak_bytes();
        assert!(after + (128 << 20) < before, "{before} B, then {after} B");
        let kept = std::hint::black_box(vec![1_u8; 256 << 20]);
        assert!(resident_peak_bytes() > after + (128 << 20));
        drop(kept);
    }
}
