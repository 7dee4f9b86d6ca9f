//! Blots out what differs from run to run: times, sizes, hashes, commit numbers, where the store is.

/// The units that follow a number of time or bytes.
const TIMES: &[&str] = &["ms", "s", "min", "h", "d"];
const SIZES: &[&str] = &["B", "KiB", "MiB", "GiB"];

/// A text with one space where there were more than two, and with what differs blotted out. `loose` blots out every number.
pub(super) fn masked(text: &str, places: &[(String, &str)], loose: bool) -> String {
    let mut text = text.to_owned();
    for (place, name) in places {
        text = text.replace(place, name);
    }
    let (mut masked, mut commit) = (String::new(), None);
    for line in text.lines() {
        let mut cells: Vec<String> =
            line.split("  ").filter(|cell| !cell.trim().is_empty()).map(|cell| words(cell.trim())).collect();
        // Ticks are commits too, and happen when they are due; later numbers therefore differ.
        match cells.iter().position(|cell| cell == "COMMIT") {
            Some(column) => commit = Some(column),
            None => {
                if let Some(number) = commit.and_then(|column| cells.get_mut(column)).filter(|cell| is_number(cell)) {
                    *number = "COMMIT-NUMBER".into();
                }
            }
        }
        let line = cells.join("  ");
        masked.push_str(&if loose { without_numbers(&line) } else { line });
        masked.push('\n');
    }
    masked
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

fn words(cell: &str) -> String {
    let words: Vec<&str> = cell.split(' ').collect();
    let (mut masked, mut place) = (Vec::new(), 0);
    while let Some(word) = words.get(place) {
        let next = words.get(place + 1).copied().unwrap_or_default();
        let (unit, after) = next.split_at(next.find(|letter: char| !letter.is_alphabetic()).unwrap_or(next.len()));
        place += 1;
        if is_number(word) && (TIMES.contains(&unit) || SIZES.contains(&unit)) {
            place += 1;
            let ago = words.get(place).copied().unwrap_or_default();
            let ended = ago.strip_prefix("ago").filter(|_| after.is_empty());
            place += usize::from(ended.is_some());
            // Whatever was a moment ago is `now` or a second ago.
            let name = if SIZES.contains(&unit) { "SIZE" } else { "SOME-TIME" };
            masked.push(format!("{name}{}", ended.unwrap_or(after)));
            continue;
        }
        let (bare, after) = word.split_at(word.find([',', ';', ')']).unwrap_or(word.len()));
        masked.push(match bare {
            "now" => format!("SOME-TIME{after}"),
            _ if bare.len() >= 16 && bare.bytes().all(|byte| byte.is_ascii_hexdigit()) => format!("HASH{after}"),
            _ if bare.parse::<jiff::Timestamp>().is_ok() => format!("TIMESTAMP{after}"),
            _ => without_moments(word),
        });
    }
    masked.join(" ")
}

/// Times as numbers of ms have 13 digits.
fn without_moments(word: &str) -> String {
    numbers(word, |digits| if digits.len() == 13 { "MOMENT".into() } else { digits.to_owned() })
}

fn without_numbers(line: &str) -> String {
    numbers(line, |_| "N".into())
}

fn numbers(text: &str, change: impl Fn(&str) -> String) -> String {
    let (mut changed, mut rest) = (String::new(), text);
    while let Some(begin) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let digits = &rest[begin..];
        let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
        changed.push_str(&rest[..begin]);
        changed.push_str(&change(&digits[..end]));
        rest = &digits[end..];
    }
    changed + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_blotted_out_and_nothing_else() {
        let same = |text: &str| masked(text, &[], false);
        assert_eq!(same("a   1  now\n"), same("a  1      12 s ago\n"));
        assert_eq!(same("ends in 4 min (1 of 4)"), "ends in SOME-TIME (1 of 4)\n");
        assert_eq!(same("{\"at\":1794741616856}"), "{\"at\":MOMENT}\n");
        assert_eq!(same("2026-11-15T10:00:00.5Z  x"), "TIMESTAMP  x\n");
        assert_eq!(same("VERSION  COMMIT\n1  17"), "VERSION  COMMIT\n1  COMMIT-NUMBER\n");
        assert_eq!(same("STORE  d3c4f5b6b7a80192"), "STORE  HASH\n");
        assert_eq!(same("journal 1.5 KiB, 7 rows"), "journal SIZE, 7 rows\n");
        assert_eq!(masked("7 rows at /tmp/x", &[("/tmp/x".into(), "HERE")], true), "N rows at HERE\n");
        assert_ne!(same("a  1"), same("a  2"));
    }
}
