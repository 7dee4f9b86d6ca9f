//! Names that nobody should trust.

use testkit::random::Random;

/// The text after every line end in a name: an output line that starts with it was forged.
pub(super) const FORGED: &str = "FORGED";

/// The file that a shell substitution would create.
pub(super) const CANARY: &str = "canary";

/// The pieces of names; each of the first names has one of them alone.
fn pieces() -> Vec<String> {
    let mut pieces: Vec<String> = ["\x1b[2J", "\x1b]0;title\x07", "\x08", "\t", "\x7f", "\u{9b}31m", "\u{85}", "\r"]
        .iter()
        .chain(&[
            "\u{202e}", "\u{2066}", "\u{200f}", "\u{61c}", "é", "😀", "'", "\"", "\\", "%n%s", "!!", "*", "~", "#", " ",
        ])
        .chain(&[
            "$HOME", ";", "&", "|", "<", "(", "{a,b}", "=", "%0a", "\\n", "\\033", "/", "..", ".", "-", "--yes", "-o",
        ])
        .map(|piece| (*piece).to_owned())
        .collect();
    for end in ["\n", "\u{2028}", "\u{2029}"] {
        pieces.push(format!("{end}{FORGED}"));
    }
    for substitution in ["$(touch CANARY)", "`touch CANARY`", "'; touch CANARY; '", "\"; touch CANARY #", "$(>CANARY)"]
    {
        pieces.push(substitution.replace("CANARY", CANARY));
    }
    pieces.push("\nFORGED\n\n".to_owned());
    pieces
}

/// This many names: one with each piece, a kilobyte of some, and mixtures.
pub(super) fn names(count: usize, random: &mut Random) -> Vec<String> {
    let pieces = pieces();
    let mut names: Vec<String> = pieces.iter().map(|piece| format!("{piece}jobs.{piece}")).collect();
    names.push(fill("\x1b[2J", 1_024));
    names.push(fill("$(touch canary)", 1_024));
    names.push(fill("x", 1_024));
    names.push(fill("\n\n", 64));
    let mut number = 0;
    while names.len() < count {
        number += 1;
        let length = 1 + random.index(6);
        let middle: String = (0..length).map(|_| random.choose(&pieces).as_str()).collect();
        names.push(format!("{}q{}.{middle}{number}", random.choose(&["", "-", "--", " "]), number % 7));
    }
    // Small runs take some of each kind.
    let step = (names.len() / count.max(1)).max(1);
    let mut taken: Vec<String> = names.into_iter().step_by(step).take(count).collect();
    taken.iter_mut().for_each(|name| *name = name.trim_start_matches('/').to_owned());
    taken
}

fn fill(piece: &str, bytes: usize) -> String {
    piece
        .chars()
        .cycle()
        .scan(0, |used, letter| {
            *used += letter.len_utf8();
            (*used <= bytes).then_some(letter)
        })
        .collect()
}
