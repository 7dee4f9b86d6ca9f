//! Compares an output with what a page shows.
//!
//! Keeps: no mask that a reader cannot see. Where the output varies, the page has `…`: inside a line for anything up to
//! what follows, alone on a line for any number of lines.

/// Compares; spaces at the ends of lines and empty lines at the end count for nothing.
pub fn matches(shown: &[String], printed: &str) -> bool {
    let shown: Vec<&str> = shown.iter().map(|line| line.trim_end()).collect();
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    lines_match(without_empty_end(&shown), without_empty_end(&printed))
}

fn without_empty_end<'a, 'b>(lines: &'a [&'b str]) -> &'a [&'b str] {
    let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    &lines[..end]
}

fn lines_match(shown: &[&str], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((&"…", shown)) => (0..=printed.len()).any(|skipped| lines_match(shown, &printed[skipped..])),
        Some((first, shown)) => printed
            .split_first()
            .is_some_and(|(line, printed)| line_matches(first, line) && lines_match(shown, printed)),
    }
}

fn line_matches(shown: &str, printed: &str) -> bool {
    let Some((before, after)) = shown.split_once('…') else {
        return shown == printed;
    };
    let Some(printed) = printed.strip_prefix(before) else {
        return false;
    };
    let ends = printed.char_indices().map(|(end, _)| end).chain([printed.len()]);
    ends.into_iter().any(|end| line_matches(after, &printed[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(shown: &str, printed: &str) -> bool {
        let shown: Vec<String> = shown.lines().map(str::to_owned).collect();
        matches(&shown, printed)
    }

    #[test]
    fn what_differs_is_seen() {
        assert!(holds("a\nb", "a\nb\n\n") && holds("a  ", "a"));
        assert!(!holds("a\nb", "a") && !holds("a", "a\nb") && !holds("a", "b") && !holds("", "a"));
    }

    #[test]
    fn the_ellipsis_stands_for_anything() {
        assert!(holds("{\"commit\":…,\"x\":1}", "{\"commit\":17,\"x\":1}"));
        assert!(!holds("{\"commit\":…,\"x\":1}", "{\"commit\":17,\"x\":2}"));
        assert!(holds("a…b…c", "a b b c") && !holds("a…b…c", "a c b"));
        assert!(holds("first\n…\nlast", "first\nlast") && holds("first\n…\nlast", "first\n1\n2\nlast"));
        assert!(!holds("first\n…\nlast", "first\n1\n2"));
    }
}
