//! How operators protect what they count: as they should, or with one protection left out, which the check must notice.

/// A way to commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Numbered commits with positions, versions, an owner.
    Protected,
    /// The same, as small and with as many lost answers as the modes below.
    Control,
    /// The server applies puts whatever version the key has.
    Unversioned,
    /// Positions are in a commit of their own, behind that of the counts.
    PositionsApart,
    /// Nobody refuses an owner that was replaced: neither the store nor the handle.
    Unfenced,
    /// A commit whose answer is lost is sent again under the number that is next by then.
    FreshNumbers,
}

impl Mode {
    /// Those that leave something out.
    pub(super) const CANARIES: [Mode; 4] =
        [Mode::Unversioned, Mode::PositionsApart, Mode::Unfenced, Mode::FreshNumbers];

    pub(super) fn word(self) -> &'static str {
        match self {
            Mode::Protected => "protected",
            Mode::Control => "control",
            Mode::Unversioned => "unversioned",
            Mode::PositionsApart => "positions-apart",
            Mode::Unfenced => "unfenced",
            Mode::FreshNumbers => "fresh-numbers",
        }
    }

    pub(super) fn of_word(word: &str) -> Self {
        let all = [Mode::Protected, Mode::Control].into_iter().chain(Self::CANARIES);
        all.into_iter().find(|mode| mode.word() == word).unwrap_or_else(|| panic!("no mode {word:?}"))
    }

    /// The bug of the server, if it is not one of the operators.
    pub(super) fn planted(self) -> &'static [&'static str] {
        match self {
            Mode::Unversioned => &["--skip-versions"],
            Mode::Unfenced => &["--skip-fences"],
            _ => &[],
        }
    }

    /// One answer in so many is lost.
    pub(super) fn answers_per_lost(self) -> u64 {
        if self == Mode::Protected { 20 } else { 5 }
    }

    /// The fewest and the most events of a commit.
    pub(super) fn batch(self) -> (u64, u64) {
        if self == Mode::Protected { (500, 3_000) } else { (100, 600) }
    }
}

/// The operator, and so the map in the group of each partition.
pub(super) const MAP: &str = "wordcount";

/// The group of a partition.
pub(super) fn group_of(partition: u32) -> String {
    format!("{MAP}/{partition}")
}
