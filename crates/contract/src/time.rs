//! Times as people write them.

use std::time::Duration;

/// A time in µs since 1970 as ISO 8601 in UTC.
///
/// ```
/// assert_eq!(statehouse_contract::time::iso(1_770_804_000_123_456), "2026-02-11T10:00:00.123456Z");
/// ```
pub fn iso(us: u64) -> String {
    let timestamp = i64::try_from(us).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    timestamp.unwrap_or(jiff::Timestamp::MAX).to_string()
}

/// The µs since 1970 of a time in RFC 3339; a time before 1970 is 0. None if the text is not such a time.
///
/// ```
/// use statehouse_contract::time::parse_iso;
/// assert_eq!(parse_iso("2026-02-11T10:00:00.123456Z"), Some(1_770_804_000_123_456));
/// assert_eq!((parse_iso("1969-01-01T00:00:00Z"), parse_iso("yesterday")), (Some(0), None));
/// ```
pub fn parse_iso(text: &str) -> Option<u64> {
    let time = text.parse::<jiff::Timestamp>().ok()?;
    Some(u64::try_from(time.as_microsecond()).unwrap_or(0))
}

/// A duration such as `500ms`, `30s`, `10m`, `2h` or `7d`. A bare number is none: 30 could mean seconds or milliseconds.
///
/// ```
/// use statehouse_contract::time::{millis, parse_duration};
/// assert_eq!(parse_duration("7d").map(millis), Some(604_800_000));
/// assert_eq!((parse_duration("1y"), parse_duration("30"), parse_duration("99999999999999999999s")), (None, None, None));
/// ```
pub fn parse_duration(text: &str) -> Option<Duration> {
    let unit = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    in_unit(text[..unit].parse().ok()?, &text[unit..])
}

/// A number of units: `ms`, `s`, `m`, `h` or `d`.
pub fn in_unit(number: u64, unit: &str) -> Option<Duration> {
    let ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(ms).map(Duration::from_millis)
}

/// A duration in whole ms.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
