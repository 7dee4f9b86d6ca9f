//! What a space takes: for each contract, how many things exist in it, and the bytes of the rows that hold them.
//!
//! The bytes of a row are those of its key, without the generation, and of its value. Counted are the rows that hold things
//! themselves (`HELD` of a contract), in all branches; not indexes and counts, which follow from them. A deleted thing
//! whose row is kept counts its bytes, but is no thing.
//!
//! Touches: the `Usage` rows of the shard, each once per entry. Keeps: U1 (the usage of a space is what a recount of its rows
//! gives).

use std::collections::BTreeMap;

use contract::{SpaceUsage, Usage};
use kv::{DecodeError, Order, Reader, Staging, View, Writer};
use session::Halt;

use crate::catalogue::Catalogue;
use crate::contract::Contract;
use crate::contracts::with_contracts;
use crate::held;
use crate::keys::{Keys, Kind};
use crate::readable::Readable;

const FORMAT: u8 = 1;

/// A contract, as one that takes space.
pub(crate) struct Holder {
    name: &'static str,
    number: u8,
    /// The kinds of rows that hold its things, first the one by which a thing exists.
    pub(crate) held: &'static [Kind],
    /// Whether a thing exists by such a row.
    pub(crate) exists: fn(&[u8]) -> Result<bool, Halt>,
}

macro_rules! holders {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        /// All contracts.
        pub(crate) const HOLDERS: &[Holder] = &[$(Holder {
            name: stringify!($folder),
            number: crate::$folder::contract::$contract::NUMBER,
            held: crate::$folder::contract::$contract::HELD,
            exists: crate::$folder::contract::$contract::exists,
        }),*];
    };
}

with_contracts!(holders);

/// The place in [`HOLDERS`] of the contract that has this kind of row; none if such rows hold no things.
pub(crate) fn holder_of(kind: u8) -> Option<usize> {
    HOLDERS.iter().position(|holder| holder.held.iter().any(|held| *held as u8 == kind))
}

/// By how much the usage of a contract in a space changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageChange {
    pub(crate) things: i64,
    pub(crate) bytes: i64,
}

impl UsageChange {
    pub(crate) fn add(&mut self, other: UsageChange) {
        self.things += other.things;
        self.bytes += other.bytes;
    }
}

/// What each contract takes in a space, by its number.
type ByNumber = BTreeMap<u8, Usage>;

/// Changes the usage of a space. `changes` are in the order of [`HOLDERS`].
pub(crate) fn change(
    state: &mut Staging,
    keys: &Keys,
    space: u32,
    changes: &[UsageChange; HOLDERS.len()],
) -> Result<(), Halt> {
    if changes.iter().all(|change| *change == UsageChange::default()) {
        return Ok(());
    }
    let key = keys.usage(space);
    let mut usage = stored(state, keys, space)?;
    for (holder, change) in HOLDERS.iter().zip(changes) {
        let of = usage.entry(holder.number).or_default();
        let below =
            || Halt::Inconsistent(format!("U1: {} take {of:?} in space {space}, and {change:?} more", holder.name));
        let things = of.things.checked_add_signed(change.things).ok_or_else(below)?;
        let bytes = of.bytes.checked_add_signed(change.bytes).ok_or_else(below)?;
        *of = Usage { things, bytes };
    }
    usage.retain(|_, usage| *usage != Usage::default());
    if usage.is_empty() {
        state.delete(key);
    } else {
        state.put_encoded(key, |writer| encode(writer, &usage));
    }
    Ok(())
}

/// Fails if the usage of a space cannot be read.
pub(crate) fn check(state: &Staging, keys: &Keys, space: u32) -> Result<(), Halt> {
    stored(state, keys, space).map(drop)
}

/// What a space takes.
pub fn read(view: &dyn View, keys: &Keys, space: u32) -> Result<SpaceUsage, Halt> {
    Ok(named(&stored(view, keys, space)?))
}

/// The same, counted from the rows. It takes as long as reading them all.
pub fn recount(view: &dyn View, keys: &Keys, catalogue: &Catalogue, space: u32) -> Result<SpaceUsage, Halt> {
    let mut usage = ByNumber::new();
    for holder in HOLDERS {
        let of = usage.entry(holder.number).or_default();
        for (bucket, kind) in
            catalogue.buckets_here().flat_map(|bucket| holder.held.iter().map(move |kind| (bucket, *kind)))
        {
            for row in view.scan(&keys.rows_of_space(kind, bucket, space), Order::Ascending) {
                let (key, row) = row?;
                if let Some(counted) = held::found(&key, &row)? {
                    of.things += u64::from(counted.exists);
                    of.bytes += (held::counted_bytes(&key) + counted.bytes) as u64;
                }
            }
        }
    }
    Ok(named(&usage))
}

fn named(usage: &ByNumber) -> SpaceUsage {
    let of = |holder: &Holder| usage.get(&holder.number).copied().unwrap_or_default();
    SpaceUsage { by_contract: HOLDERS.iter().map(|holder| (holder.name.to_owned(), of(holder))).collect() }
}

fn stored(state: &(impl Readable + ?Sized), keys: &Keys, space: u32) -> Result<ByNumber, Halt> {
    match keys.get_either(&keys.usage(space), |key| state.read(key))? {
        None => Ok(ByNumber::new()),
        Some(row) => decode(&row).map_err(|error| Halt::Undecodable { what: "the usage of a space", error }),
    }
}

fn encode(writer: &mut Writer, usage: &ByNumber) {
    writer.u8(FORMAT);
    for (number, Usage { things, bytes }) in usage {
        writer.u8(*number).u64(*things).u64(*bytes);
    }
}

fn decode(row: &[u8]) -> Result<ByNumber, DecodeError> {
    let mut reader = Reader::new(row);
    reader.format(FORMAT)?;
    let mut usage = ByNumber::new();
    while !reader.rest().is_empty() {
        let (number, of) = (reader.u8()?, Usage { things: reader.u64()?, bytes: reader.u64()? });
        if HOLDERS.iter().all(|holder| holder.number != number) {
            return Err(DecodeError { what: "a contract of an unknown number" });
        }
        if usage.last_key_value().is_some_and(|(last, _)| *last >= number) {
            return Err(DecodeError { what: "contracts out of order" });
        }
        usage.insert(number, of);
    }
    Ok(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of the stored format; `docs/formats/keys.md`.
    #[test]
    fn golden_row() {
        let usage = ByNumber::from([(1, Usage { things: 2, bytes: 258 }), (3, Usage { things: 0, bytes: 7 })]);
        let mut writer = Writer::new();
        encode(&mut writer, &usage);
        let row = writer.finish();
        let (one, other) =
            ([1, 2, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(row, [&[1][..], &one, &other].concat());
        assert_eq!(decode(&row), Ok(usage));
        assert_eq!(decode(&[1]), Ok(ByNumber::new()));
        for wrong in [[&[2][..], &one].concat(), [&[1][..], &other, &one].concat(), [&[1, 9][..], &one[1..]].concat()] {
            assert!(decode(&wrong).is_err(), "{wrong:?}");
        }
        assert!(decode(&row[..row.len() - 1]).is_err());
    }

    /// The numbers are stored.
    #[test]
    fn each_contract_has_its_number_and_its_rows() {
        let numbers = HOLDERS.iter().map(|holder| (holder.name, holder.number)).collect::<Vec<_>>();
        assert_eq!(numbers, [("cells", 1), ("records", 2), ("runs", 3), ("keyed", 4)]);
        for (place, holder) in HOLDERS.iter().enumerate() {
            assert!(holder.held.iter().all(|kind| holder_of(*kind as u8) == Some(place)), "{}", holder.name);
        }
    }
}
