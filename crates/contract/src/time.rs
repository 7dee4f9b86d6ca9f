//! Times as people write them.

/// A time in µs since 1970 as ISO 8601 in UTC.
///
/// ```
/// assert_eq!(statehouse_contract::time::iso(1_770_804_000_123_456), "2026-02-11T10:00:00.123456Z");
/// ```
pub fn iso(us: u64) -> String {
    let timestamp = i64::try_from(us).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    timestamp.unwrap_or(jiff::Timestamp::MAX).to_string()
}
