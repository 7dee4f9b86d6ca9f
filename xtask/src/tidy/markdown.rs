//! Markdown, as far as the rules need it: prose lines, code spans and link targets.
//!
//! Touches: text only. Keeps: line numbers as an editor shows them. Never: understands nesting; a code span or a link
//! that spans two lines is not found.

/// The lines outside fenced code, with their numbers.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let opening = line.trim_start();
        if opening.starts_with("```") || opening.starts_with("~~~") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((index + 1, line))
    })
}

/// The text between single backticks in a line.
pub(super) fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    // Every second part lies inside; the last part lies outside, or is a span that never closes.
    let parts: Vec<&str> = line.split('`').collect();
    let closed = parts.len() - 1;
    parts.into_iter().take(closed).skip(1).step_by(2)
}

/// The targets of `[text](target)` and `[label]: target` in a line, outside of code spans.
pub(super) fn link_targets(line: &str) -> Vec<String> {
    let outside: String = line.split('`').step_by(2).collect::<Vec<_>>().join("_");
    let mut targets = Vec::new();
    let mut rest = outside.as_str();
    while let Some((_, after)) = rest.split_once("](") {
        let (target, next) = after.split_once(')').unwrap_or((after, ""));
        targets.extend(first_word(target));
        rest = next;
    }
    let definition = outside.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    targets.extend(definition.and_then(|(_, target)| first_word(target)));
    targets
}

/// A target without its title and angle brackets.
fn first_word(target: &str) -> Option<String> {
    let word = target.split_whitespace().next()?;
    Some(word.trim_start_matches('<').trim_end_matches('>').to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fenced_lines_are_no_prose() {
        let lines: Vec<_> = prose("one\n```text\ntwo\n```\nthree\n").collect();
        assert_eq!(lines, [(1, "one"), (5, "three")]);
    }

    #[test]
    fn code_spans_are_found_and_an_open_one_is_not() {
        assert_eq!(code_spans("a `b` c `d/e`").collect::<Vec<_>>(), ["b", "d/e"]);
        assert_eq!(code_spans("a `b` c `d").collect::<Vec<_>>(), ["b"]);
        assert_eq!(code_spans("none").count(), 0);
    }

    #[test]
    fn links_are_found_outside_of_code() {
        let line = "[a](b.md) `[c](d.md)` [`e`](<f.md#g> \"title\")";
        assert_eq!(link_targets(line), ["b.md", "f.md#g"]);
        assert_eq!(link_targets("[label]: docs/a.md"), ["docs/a.md"]);
        assert_eq!(link_targets("- [x] done: yes"), [""; 0]);
    }
}
