//! How operators protect what they count: as they should, or with one protection left out, which the check must notice.

/// A way to commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Numbered commits with positions, in a guarded group.
    Protected,
    /// A commit whose answer is lost is sent again under the number that is next by then.
    FreshNumbers,
    /// Positions are in a commit of their own, behind that of the counts.
    PositionsApart,
    /// The group has no owner; whoever is refused for a number takes the next one.
    Unfenced,
}

impl Mode {
    pub(super) const ALL: [Mode; 4] = [Mode::Protected, Mode::FreshNumbers, Mode::PositionsApart, Mode::Unfenced];

    pub(super) fn word(self) -> &'static str {
        match self {
            Mode::Protected => "protected",
            Mode::FreshNumbers => "fresh-numbers",
            Mode::PositionsApart => "positions-apart",
            Mode::Unfenced => "unfenced",
        }
    }

    pub(super) fn of_word(word: &str) -> Self {
        Self::ALL.into_iter().find(|mode| mode.word() == word).unwrap_or_else(|| panic!("no mode {word:?}"))
    }

    /// One answer in so many is lost.
    pub(super) fn answers_per_lost(self) -> u64 {
        if self == Mode::FreshNumbers { 5 } else { 20 }
    }

    /// The fewest and the most events of a commit.
    pub(super) fn batch(self) -> (u64, u64) {
        if self == Mode::Protected { (500, 3_000) } else { (100, 600) }
    }

    /// The group of a partition.
    pub(super) fn group(self, partition: u32) -> String {
        if self == Mode::Unfenced { format!("free.{partition}") } else { format!("{MAP}/{partition}") }
    }
}

/// The operator, and so the map in the group of each partition.
pub(super) const MAP: &str = "wordcount";
