//! Text for a terminal: stored data cannot move the cursor, hide or forge a line, or change the reading direction.
//!
//! Keeps: escapes are recognisable (`\u{1b}`), and text without control characters stays unchanged. Never: drops a
//! character.

/// Whether a terminal would act on this character instead of showing it: C0, DEL and C1 controls, bidi controls, and
/// separators of lines and paragraphs.
pub fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text on one line: every control character is escaped, including line ends.
///
/// ```
/// use statehouse_contract::terminal::one_line;
/// assert_eq!(one_line("a\x1b[2J\nb\u{202e}é"), r"a\u{1b}[2J\nb\u{202e}é");
/// ```
pub fn one_line(text: &str) -> String {
    escaped(text, |_| false)
}

/// Our own lines: line ends stay, every other control character is escaped.
///
/// ```
/// use statehouse_contract::terminal::lines;
/// assert_eq!(lines("a\tb\r\n"), "a\\tb\\r\n");
/// ```
pub fn lines(text: &str) -> String {
    escaped(text, |character| character == '\n')
}

/// A JSON text with the control characters that JSON allows (DEL, C1, bidi controls, separators) escaped. It is the
/// same document.
///
/// ```
/// use statehouse_contract::terminal::json;
/// assert_eq!(json("\"a\u{202e}\u{9b}\""), r#""a\u202e\u009b""#);
/// ```
pub fn json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        // JSON escapes C0 itself; only whitespace between members is left.
        match is_control(character) && character > ' ' {
            true => safe.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => safe.push(character),
        }
    }
    safe
}

/// The assumed width where it is unknown.
pub const COLUMNS: usize = 80;

/// Wraps a paragraph to lines of at most `columns` characters, each after `indent`. Longer words are cut and end in
/// `…`. Control characters are escaped.
///
/// ```
/// use statehouse_contract::terminal::wrapped;
/// assert_eq!(wrapped("one two\nthree", "  ", 9), "  one\n  two\\nt…\n");
/// ```
pub fn wrapped(text: &str, indent: &str, columns: usize) -> String {
    let room = columns.saturating_sub(indent.chars().count()).max(2);
    let (mut lines, mut line, mut used) = (String::new(), String::new(), 0);
    let text = one_line(text);
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let word = shortened(word, room);
        let length = word.chars().count();
        if used > 0 && used + 1 + length > room {
            lines += &format!("{indent}{line}\n");
            (line, used) = (String::new(), 0);
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line += &word;
        used += length;
    }
    lines + &format!("{indent}{line}\n")
}

/// At most this many characters; cut text ends in `…`.
pub fn shortened(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        Some(_) => text.chars().take(characters_max.saturating_sub(1)).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match is_control(character) && !stays(character) {
            true => safe.extend(character.escape_default()),
            false => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The characters are listed again here, by number, to catch a mistyped range.
    #[test]
    fn exactly_the_controls_are_escaped() {
        let listed = [0x61c, 0x200e, 0x200f, 0x2028, 0x2029]
            .into_iter()
            .chain(0..0x20)
            .chain(0x7f..0xa0)
            .chain(0x202a..0x202f)
            .chain(0x2066..0x206a);
        let listed: std::collections::BTreeSet<u32> = listed.collect();
        for number in 0..=u32::from(char::MAX) {
            let Some(character) = char::from_u32(number) else { continue };
            assert_eq!(is_control(character), listed.contains(&number), "U+{number:04X}");
        }
    }

    #[test]
    fn an_escaped_document_is_the_same_document() {
        let document = serde_json::json!({ "\u{85}\u{2028}": ["\u{7f}\u{202a}\u{2069}é\u{1f600}\n\x1b", 1.5, null] });
        for text in [document.to_string(), serde_json::to_string_pretty(&document).expect("JSON")] {
            let safe = json(&text);
            assert!(!safe.contains(|character| is_control(character) && character != '\n'), "{safe}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).expect("JSON"), document);
        }
    }
}
