//! The names that the model test writes under: few, so that they meet, and awkward, so that order and escaping count.
//!
//! Some names are also the names of groups, because such a cell is stored under its name alone.

/// Groups. One is a prefix of another.
pub(crate) const GROUPS: [&str; 4] = ["b", "g", "orders", "orders/7"];

/// Names of cells, in byte order.
pub(crate) const NAMES: [&str; 26] = [
    " ",
    "a",
    "a\u{1}",
    "a-",
    "ab",
    "abc",
    "b",
    "b0",
    "b1",
    "g",
    "g0",
    "g1",
    "k",
    "ka",
    "kb",
    "orders",
    "orders/7",
    "orders/70",
    "orders0",
    "p",
    "q",
    LONG,
    "x\u{d7ff}",
    "é",
    "\u{e000}",
    "\u{10ffff}",
];

/// Names that most writes go to, so that histories get long.
pub(crate) const HOT: [&str; 5] = ["a", "ab", "g", "orders", "orders/7"];

/// What a list may ask for.
pub(crate) const PREFIXES: [&str; 9] = ["", "a", "ab", "orders", "orders/7", "b", "\u{10ffff}", "x", "none"];

/// Spaces that may be created.
pub(crate) const SPACES: [&str; 3] = ["alpha", "beta", "beta/7"];

/// Branches that may be created.
pub(crate) const BRANCHES: [&str; 3] = ["draft", "next", "main"];

const LONG: &str = "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr\
                    rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr";

/// The name of this list with the same text.
///
/// # Panics
/// If it is none of ours: then somebody else wrote to the store.
pub(crate) fn known(name: &str) -> &'static str {
    let names = NAMES.iter().chain(&GROUPS);
    names.copied().find(|known| *known == name).expect("only names of this list are written")
}
