//! Rejections as bytes; `docs/formats/entry.md`. Reasons and names are numbers in an answer. Each contract has those that
//! are about its things, and the limits that only it checks, in a file of its own.

use contract::{RefusalReason, Rejection};
use kv::{DecodeError, Reader, Writer};

use super::access;
use crate::contracts::with_contracts;

/// The limits that the kernel itself checks and that are of no contract, with the numbers of their names in an answer. A contract
/// has its own in its `rejection.rs`; a new one gets the next number that is free in all of these lists.
const LIMITS: &[(u8, &str)] = &[
    (0, "value_bytes_max"),
    (1, "transaction_ops_max"),
    (2, "transaction_bytes_max"),
    (3, "spaces_max"),
    (4, "branches_per_space_max"),
    (5, "name_bytes_max"),
    (11, "worker_bytes_max"),
    (12, "transaction_guards_max"),
    (13, "message_depth_max"),
    (14, "messages_waiting_max"),
    (16, "guards_max"),
    (17, "guard_open_names_max"),
    (22, "principals_max"),
];

/// About principals and tokens.
const ACCESS: u8 = 60;

/// The kinds of things that can already exist.
const EXISTING_KINDS: [&str; 4] = ["space", "branch", "run", "token"];

/// The kinds of things that can be guarded.
const GUARDED_KINDS: [&str; 2] = ["group", "record"];

pub(crate) fn encode_rejection(writer: &mut Writer, rejection: &Rejection) {
    match rejection {
        Rejection::LimitExceeded { limit, max, got } => {
            let listed = all_limits().find(|(_, name)| name == limit);
            let (number, _) = listed.expect("the kernel's limits are listed");
            writer.u8(2).u8(*number).u64(*max).u64(*got);
        }
        Rejection::NoSuchSpace { space } => {
            writer.u8(5).bytes(space.as_bytes());
        }
        Rejection::NoSuchBranch { branch } => {
            writer.u8(6).bytes(branch.as_bytes());
        }
        Rejection::AlreadyExists { what, name } => {
            let number = EXISTING_KINDS.iter().position(|kind| kind == what).expect("the kinds are listed");
            writer.u8(7).u8(small(number)).bytes(name.as_bytes());
        }
        Rejection::MainBranch => {
            writer.u8(8);
        }
        Rejection::CatalogueBehind { needed, have } => {
            writer.u8(9).u64(*needed).u64(*have);
        }
        Rejection::NotHere { bucket } => {
            writer.u8(25).u16(*bucket);
        }
        Rejection::TwoGroups { group, other } => {
            writer.u8(10).bytes(group.as_bytes()).bytes(other.as_bytes());
        }
        Rejection::InvalidDeclaration { what, reason } => {
            writer.u8(16).bytes(what.as_bytes()).u8(reason.number());
        }
        Rejection::Damaged { from, to } => {
            writer.u8(24).bytes(from.as_bytes()).bytes(to.as_bytes());
        }
        Rejection::Unfenced { what, name, holder, until_ms } => {
            let number = GUARDED_KINDS.iter().position(|kind| kind == what).expect("the kinds are listed");
            writer.u8(26).u8(small(number)).bytes(name.as_bytes());
            writer.optional_text(holder.as_deref()).optional_u64(*until_ms);
        }
        Rejection::NoSuchGuard { prefix } => {
            writer.u8(27).bytes(prefix.as_bytes());
        }
        Rejection::NoSuchDeadLetter { group, number } => {
            writer.u8(29).bytes(group.as_bytes()).u64(*number);
        }
        Rejection::Access(rejection) => access::encode(writer.u8(ACCESS), rejection),
        of_contract => encode_of_contract(writer, of_contract),
    }
}

fn small(number: usize) -> u8 {
    u8::try_from(number).expect("a short list")
}

pub(crate) fn refusal_reason(reader: &mut Reader<'_>) -> Result<RefusalReason, DecodeError> {
    RefusalReason::numbered(reader.u8()?).ok_or(DecodeError { what: "a reason of an unknown number" })
}

macro_rules! of_contracts {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        fn encode_of_contract(writer: &mut Writer, rejection: &Rejection) {
            match rejection {
                $(Rejection::$kind(rejection) => crate::$folder::rejection::encode(writer, rejection),)*
                other => unreachable!("the kernel does not give this rejection: {other}"),
            }
        }

        fn decode_of_contract(code: u8, reader: &mut Reader<'_>) -> Result<Rejection, DecodeError> {
            match code {
                $(code if crate::$folder::rejection::CODES.contains(&code) => {
                    crate::$folder::rejection::decode(code, reader).map(Rejection::$kind)
                })*
                _ => Err(DecodeError { what: "a rejection of an unknown kind" }),
            }
        }

        /// Every limit that the kernel checks, with the number of its name.
        fn all_limits() -> impl Iterator<Item = &'static (u8, &'static str)> {
            [LIMITS, $(crate::$folder::rejection::LIMITS),*].into_iter().flatten()
        }

        #[cfg(test)]
        const CODES_OF_CONTRACTS: &[(&str, &[u8])] =
            &[$((stringify!($folder), crate::$folder::rejection::CODES)),*];
    };
}

with_contracts!(of_contracts);

const UNKNOWN_NAME: DecodeError = DecodeError { what: "a name of an unknown number" };

fn limit_numbered(number: u8) -> Result<&'static str, DecodeError> {
    all_limits().find(|(known, _)| *known == number).map(|(_, name)| *name).ok_or(UNKNOWN_NAME)
}

pub(crate) fn decode_rejection(reader: &mut Reader<'_>) -> Result<Rejection, DecodeError> {
    let named = |names: &[&'static str], number: u8| names.get(usize::from(number)).copied().ok_or(UNKNOWN_NAME);
    Ok(match reader.u8()? {
        2 => Rejection::LimitExceeded { limit: limit_numbered(reader.u8()?)?, max: reader.u64()?, got: reader.u64()? },
        5 => Rejection::NoSuchSpace { space: reader.text()?.to_owned() },
        6 => Rejection::NoSuchBranch { branch: reader.text()?.to_owned() },
        7 => Rejection::AlreadyExists { what: named(&EXISTING_KINDS, reader.u8()?)?, name: reader.text()?.to_owned() },
        8 => Rejection::MainBranch,
        9 => Rejection::CatalogueBehind { needed: reader.u64()?, have: reader.u64()? },
        25 => Rejection::NotHere { bucket: reader.u16()? },
        10 => Rejection::TwoGroups { group: reader.text()?.to_owned(), other: reader.text()?.to_owned() },
        16 => Rejection::InvalidDeclaration { what: reader.text()?.to_owned(), reason: refusal_reason(reader)? },
        24 => Rejection::Damaged { from: reader.text()?.to_owned(), to: reader.text()?.to_owned() },
        26 => Rejection::Unfenced {
            what: named(&GUARDED_KINDS, reader.u8()?)?,
            name: reader.text()?.to_owned(),
            holder: reader.optional_text()?.map(str::to_owned),
            until_ms: reader.optional_u64()?,
        },
        27 => Rejection::NoSuchGuard { prefix: reader.text()?.to_owned() },
        29 => Rejection::NoSuchDeadLetter { group: reader.text()?.to_owned(), number: reader.u64()? },
        ACCESS => Rejection::Access(access::decode(reader)?),
        code => return decode_of_contract(code, reader),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// The codes of those that are about no contract.
    const OF_NONE: [u8; 14] = [2, 5, 6, 7, 8, 9, 10, 16, 24, 25, 26, 27, 29, ACCESS];

    #[test]
    fn the_limits_have_the_numbers_from_0_and_each_has_its_own() {
        let numbers: Vec<u8> = all_limits().map(|(number, _)| *number).collect::<BTreeSet<_>>().into_iter().collect();
        let names: BTreeSet<&str> = all_limits().map(|(_, name)| *name).collect();
        assert_eq!((numbers.len(), names.len()), (all_limits().count(), all_limits().count()));
        assert_eq!(numbers, (0..small(numbers.len())).collect::<Vec<u8>>());
    }

    #[test]
    fn no_two_contracts_share_a_code() {
        let mut codes: BTreeMap<u8, &str> = OF_NONE.into_iter().map(|code| (code, "none")).collect();
        assert_eq!(codes.len(), OF_NONE.len());
        for (contract, of_contract) in CODES_OF_CONTRACTS {
            for code in *of_contract {
                assert_eq!(codes.insert(*code, contract), None, "rejection {code} of {contract}");
                let mut reader = Reader::new(&[]);
                let unknown = DecodeError { what: "a rejection of an unknown kind" };
                assert_ne!(decode_of_contract(*code, &mut reader), Err(unknown), "rejection {code} of {contract}");
            }
        }
    }
}
