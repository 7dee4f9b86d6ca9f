//! The known name closest to a misspelt one.

/// The known name closest to `written`, if any is close.
///
/// ```
/// use statehouse_contract::suggest::nearest;
/// assert_eq!(nearest("prefx", ["name", "prefix"].into_iter()), Some("prefix"));
/// assert_eq!(nearest("colour", ["name", "prefix"].into_iter()), None);
/// ```
pub fn nearest<'known>(written: &str, known: impl Iterator<Item = &'known str>) -> Option<&'known str> {
    let (distance, name) = known.map(|name| (distance(written, name), name)).min()?;
    (distance <= name.len() / 3 + 1).then_some(name)
}

/// The number of letters to insert, delete or change.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}
