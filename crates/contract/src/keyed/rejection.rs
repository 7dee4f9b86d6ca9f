//! Why a call on keyed state is refused.

use crate::facts::{Class, Facts, Members, members};

/// A deterministic "no" about a map. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyedRejection {
    /// There is no such map.
    #[error("there is no map {map:?} [SH-8001]")]
    NoSuchMap {
        /// Its name.
        map: String,
    },
    /// The key is merged and would be put, or the other way round.
    #[error("key {key:?} of map {map:?} is {}, and a key is put or merged, never both [SH-8002]", how(*.is_merged))]
    WrongUse {
        /// The map.
        map: String,
        /// The key, in words.
        key: String,
        /// Whether it is merged; it is put otherwise.
        is_merged: bool,
    },
    /// The sum does not fit into 64 bits; in an ordered map, it might not, in some order of what waits.
    #[error("key {key:?} of map {map:?} holds {value}, and adding {operand} to it would overflow [SH-8003]")]
    Overflow {
        /// The map.
        map: String,
        /// The key, in words.
        key: String,
        /// What it holds.
        value: i64,
        /// What was to be added.
        operand: i64,
    },
    /// A merge is not repeatable by itself, so it needs a numbered commit.
    #[error(
        "key {key:?} of map {map:?} can be merged in a numbered commit only: sent twice, it would count twice [SH-8004]"
    )]
    MergeOutsideCommit {
        /// The map.
        map: String,
        /// The key, in words.
        key: String,
    },
    /// The map has the other policy, by which such an update is not applied.
    #[error(
        "map {map:?} is {}, so key {key:?} {} [SH-8010]", policy(*.is_ordered), needs(*.is_ordered)
    )]
    WrongPolicy {
        /// The map.
        map: String,
        /// The key, in words.
        key: String,
        /// Whether the map is ordered; it is monotonic otherwise.
        is_ordered: bool,
    },
    /// The map exists with the other policy.
    #[error("map {map:?} exists and is {}; its policy cannot change [SH-8011]", policy(*.is_ordered))]
    OtherPolicy {
        /// The map.
        map: String,
        /// Whether it is ordered; it is monotonic otherwise.
        is_ordered: bool,
    },
    /// The number of the commit was used for another one.
    #[error("commit {number} of map {map:?} was another one; the next number is {} [SH-8005]", .number.saturating_add(1))]
    CommitReused {
        /// The map.
        map: String,
        /// The number.
        number: u64,
    },
    /// The number of the commit is not the next one.
    #[error("map {map:?} takes commit {next} next, not {number} [SH-8006]")]
    CommitOutOfOrder {
        /// The map.
        map: String,
        /// The number that was given.
        number: u64,
        /// The next number.
        next: u64,
    },
    /// The position of an input would go back.
    #[error("input {input:?} of map {map:?} is at {current}, and cannot go back to {given} [SH-8007]")]
    PositionBehind {
        /// The map.
        map: String,
        /// The input.
        input: String,
        /// Where it is.
        current: u64,
        /// The position that was given.
        given: u64,
    },
    /// A key is not as the caller expected it.
    #[error("key {key:?} of map {map:?} is not as expected: it {} [SH-8008]", now(.current))]
    Conflict {
        /// The map.
        map: String,
        /// The key, in words; for a range, one key of it.
        key: String,
        /// Its version now; none if it does not exist, or is merged.
        current: Option<String>,
    },
    /// An input is not where the caller expected it.
    #[error("input {input:?} of map {map:?} is not as expected: it is {} [SH-8009]", at(.current))]
    PositionConflict {
        /// The map.
        map: String,
        /// The input.
        input: String,
        /// Where it is, if it has a position.
        current: Option<u64>,
    },
    /// What a restore has put aside is gone: another one was begun, or the map was deleted.
    #[error(
        "restore {number} of map {map:?} is over: another one was begun, or the map was deleted; begin again [SH-8012]"
    )]
    RestoreLost {
        /// The map.
        map: String,
        /// The number of what was put aside.
        number: u32,
    },
    /// What a restore has put aside is not what was to be restored.
    #[error("restore {number} of map {map:?} is incomplete, and the map stays as it is; restore it again [SH-8013]")]
    RestoreIncomplete {
        /// The map.
        map: String,
        /// The number of what was put aside.
        number: u32,
    },
    /// The map knows of no such checkpoint.
    #[error(
        "map {map:?} has begun no checkpoint {number}, or was restored since; the next one is a full one [SH-8014]"
    )]
    NoSuchCheckpoint {
        /// The map.
        map: String,
        /// The number that its begin was said to have.
        number: u64,
    },
    /// A part of a checkpoint is damaged, incomplete, or in a format that this release does not read.
    #[error("`{object}` of a checkpoint cannot be restored: {what}; restore an earlier checkpoint [SH-8015]")]
    CheckpointDamaged {
        /// The object.
        object: String,
        /// What is wrong.
        what: String,
    },
    /// There is no such checkpoint.
    #[error("there is no committed checkpoint{} of {of}; list its checkpoints to see what is there [SH-8016]", numbered(.number))]
    NoCommittedCheckpoint {
        /// The operator or the partition.
        of: String,
        /// The number that was asked for; none for the last one.
        number: Option<u64>,
    },
    /// A checkpoint was given up: not all partitions had written their parts in time, or another one has a later state.
    #[error(
        "checkpoint {number} of {of} was given up{}; begin another one [SH-8017]", without(.missing)
    )]
    CheckpointGivenUp {
        /// The operator.
        of: String,
        /// The number of the checkpoint.
        number: u64,
        /// How many parts were missing.
        missing: usize,
    },
}

fn without(missing: &usize) -> String {
    match missing {
        0 => String::new(),
        missing => format!(", and {missing} of its partitions had not written their parts"),
    }
}

fn numbered(number: &Option<u64>) -> String {
    number.map_or_else(String::new, |number| format!(" {number}"))
}

fn policy(is_ordered: bool) -> &'static str {
    if is_ordered { "ordered" } else { "monotonic" }
}

fn needs(is_ordered: bool) -> &'static str {
    match is_ordered {
        true => "is merged and removed with versions only",
        false => "is merged and removed without a version, in a numbered commit",
    }
}

fn how(is_merged: bool) -> &'static str {
    if is_merged { "merged" } else { "put" }
}

fn now(current: &Option<String>) -> String {
    match current {
        Some(version) => format!("is at version {version}"),
        None => "has no version".to_owned(),
    }
}

fn at(current: &Option<u64>) -> String {
    current.map_or_else(|| "at no position".to_owned(), |position| format!("at {position}"))
}

impl KeyedRejection {
    /// The code of a map that does not exist.
    pub const NO_SUCH_THING: Option<&'static str> = Some("SH-8001");

    /// What everybody must know of it.
    pub fn facts(&self) -> Facts {
        match self {
            Self::NoSuchMap { .. } => Facts::of("SH-8001", Class::NotFound),
            Self::WrongUse { .. } => Facts::of("SH-8002", Class::Unprocessable),
            Self::Overflow { .. } => Facts::of("SH-8003", Class::Unprocessable),
            Self::MergeOutsideCommit { .. } => Facts::of("SH-8004", Class::Unprocessable),
            Self::WrongPolicy { .. } => Facts::of("SH-8010", Class::Unprocessable),
            Self::OtherPolicy { .. } => Facts::of("SH-8011", Class::Conflict),
            Self::CommitReused { .. } => Facts::of("SH-8005", Class::Unprocessable),
            Self::CommitOutOfOrder { .. } => Facts::of("SH-8006", Class::Conflict),
            Self::PositionBehind { .. } => Facts::of("SH-8007", Class::Conflict),
            Self::Conflict { .. } => Facts::retryable("SH-8008", Class::Conflict),
            Self::PositionConflict { .. } => Facts::retryable("SH-8009", Class::Conflict),
            Self::RestoreLost { .. } => Facts::of("SH-8012", Class::Conflict),
            Self::RestoreIncomplete { .. } => Facts::of("SH-8013", Class::Conflict),
            Self::NoSuchCheckpoint { .. } => Facts::of("SH-8014", Class::NotFound),
            Self::CheckpointDamaged { .. } => Facts::of("SH-8015", Class::Unprocessable),
            Self::NoCommittedCheckpoint { .. } => Facts::of("SH-8016", Class::NotFound),
            Self::CheckpointGivenUp { .. } => Facts::retryable("SH-8017", Class::Conflict),
        }
    }

    /// What a caller needs next, as members of JSON.
    pub fn members(&self) -> Members {
        match self {
            Self::NoSuchMap { map } => members!["map" => map],
            Self::WrongUse { map, key, is_merged } => members!["map" => map, "key" => key, "merged" => is_merged],
            Self::Overflow { map, key, value, operand } => {
                members!["map" => map, "key" => key, "value" => value, "operand" => operand]
            }
            Self::MergeOutsideCommit { map, key } => members!["map" => map, "key" => key],
            Self::WrongPolicy { map, key, is_ordered } => {
                members!["map" => map, "key" => key, "ordered" => is_ordered]
            }
            Self::OtherPolicy { map, is_ordered } => members!["map" => map, "ordered" => is_ordered],
            Self::CommitReused { map, number } => members!["map" => map, "number" => number],
            Self::CommitOutOfOrder { map, number, next } => {
                members!["map" => map, "number" => number, "next" => next]
            }
            Self::PositionBehind { map, input, current, given } => {
                members!["map" => map, "input" => input, "current" => current, "given" => given]
            }
            Self::Conflict { map, key, current } => match current.as_ref().map(|version| version.parse::<u64>()) {
                // As everywhere in JSON, a version without an epoch is a number.
                Some(Ok(round)) => members!["map" => map, "key" => key, "current" => round],
                _ => members!["map" => map, "key" => key, "current" => current],
            },
            Self::PositionConflict { map, input, current } => {
                members!["map" => map, "input" => input, "current" => current]
            }
            Self::RestoreLost { map, number } | Self::RestoreIncomplete { map, number } => {
                members!["map" => map, "number" => number]
            }
            Self::NoSuchCheckpoint { map, number } => members!["map" => map, "number" => number],
            Self::CheckpointDamaged { object, what } => members!["object" => object, "what" => what],
            Self::NoCommittedCheckpoint { of, number } => members!["of" => of, "number" => number],
            Self::CheckpointGivenUp { of, number, missing } => {
                members!["of" => of, "number" => number, "missing" => missing]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_shown_as_everywhere_in_json() {
        let shown = |current: Option<&str>| {
            let (map, key) = ("prices".to_owned(), "apple".to_owned());
            let members = KeyedRejection::Conflict { map, key, current: current.map(str::to_owned) }.members();
            members.into_iter().find(|(name, _)| *name == "current").map(|(_, json)| json)
        };
        let numbers = [Some("7"), Some("18446744073709551615"), Some("1:7"), None].map(shown);
        assert_eq!(numbers.map(Option::unwrap), ["7", "18446744073709551615", "\"1:7\"", "null"]);
    }
}
