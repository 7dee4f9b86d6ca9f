//! What every contract has a part of: the operations of a transaction, their results, conditions, and kinds of things in the
//! change feed. All of it is made from the list in `lib.rs`; the parts are in the contracts' files and folders.

use std::sync::LazyLock;

use contract::Subject;
use serde::de::{self, Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use crate::error::{DecodeError, pass};
use crate::reader::{from_json_text, read_as_first_of};
use crate::schema::{Described, Member, Schemas, words};
use crate::transactions::guards::{self, Guarded, Guards, listed};
use crate::transactions::messages::{MessageOperation, Sent};
use crate::transactions::operation::{OperationHead, Operations};
use crate::transactions::{NothingDone, WrittenOperation};
use crate::with_contracts;

macro_rules! of_contracts {
    ($(
        $(#[doc = $says:literal])*
        $folder:ident: $kind:ident = $word:literal { $operations:ident, $guards:ident $(, $done:ident($result:ident))? }
    )*) => {
        /// One operation of a transaction: an object with its name in `op`.
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[serde(untagged)]
        pub enum Operation {
            $(
                #[doc = concat!("On a thing of the contract `", stringify!($folder), "`.")]
                $kind(crate::$folder::$operations),
            )*
            /// Sends something.
            Message(MessageOperation),
        }

        /// Every operation by name.
        static NAMES: LazyLock<Vec<&'static str>> =
            LazyLock::new(|| [$(crate::$folder::$operations::NAMES,)* MessageOperation::NAMES].concat());

        fn operation(raw: &str) -> Result<Operation, DecodeError> {
            let OperationHead { op } = from_json_text(raw)?;
            $(if let Some(read) = crate::$folder::$operations::read(&op, raw) {
                return read.map(Operation::$kind);
            })*
            if let Some(read) = MessageOperation::read(&op, raw) {
                return read.map(Operation::Message);
            }
            let unknown: DecodeError = de::Error::unknown_variant(&op, &NAMES);
            Err(unknown.in_member("op"))
        }

        impl Described for Operation {
            fn schema(schemas: &mut Schemas) -> JsonValue {
                let mut choices = [$(crate::$folder::$operations::schemas(schemas)),*].concat();
                choices.extend(MessageOperation::schemas(schemas));
                json!({ "oneOf": choices })
            }
        }

        /// The conditions on one thing.
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[serde(untagged)]
        pub enum Guard {
            $(
                #[doc = concat!("On a thing of the contract `", stringify!($folder), "`.")]
                $kind(crate::$folder::$guards),
            )*
        }

        /// Everything that a guard can be about.
        pub(crate) static GUARDED: LazyLock<Vec<Guarded>> =
            LazyLock::new(|| [$(crate::$folder::$guards::GUARDED),*].concat());

        fn guard(raw: &str) -> Result<Guard, DecodeError> {
            let names = guards::names_of(raw, &GUARDED)?;
            let thing = match guards::thing_of(&names, &GUARDED) {
                Ok(thing) => thing,
                Err(wrong) => {
                    // A member of a wrong type is refused by its name, whatever the guard is about.
                    $(from_json_text::<crate::$folder::$guards>(raw)?;)*
                    return Err(wrong);
                }
            };
            // Every contract reads its own members and skips others, which are no conditions of its things.
            let is_of = |guarded: &[Guarded]| guarded.iter().any(|of| of.member == thing.member);
            $(if is_of(crate::$folder::$guards::GUARDED) {
                let guard: crate::$folder::$guards = from_json_text(raw)?;
                guards::check(&guard, &names, thing)?;
                return Ok(Guard::$kind(guard));
            })*
            unreachable!("what a guard can be about is of a contract")
        }

        /// The members of the guards of all contracts.
        fn guard_members(schemas: &mut Schemas) -> Vec<Member> {
            let mut all: Vec<Member> = Vec::new();
            for member in [$(crate::$folder::$guards::members(schemas)),*].concat() {
                match all.iter_mut().find(|known| known.name == member.name) {
                    None => all.push(member),
                    // Where two contracts have a member, the first says what it is, and both what it can be.
                    Some(known) if known.schema != member.schema => {
                        known.schema = json!({ "anyOf": [known.schema.take(), member.schema] });
                    }
                    Some(_) => {}
                }
            }
            all
        }

        /// The result of one operation.
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[serde(untagged)]
        pub enum Done {
            $($(
                #[doc = concat!("A result that only operations of the contract `", stringify!($folder), "` have.")]
                $done(crate::$folder::$result),
            )?)*
            /// A thing was written or deleted, or already existed.
            Written(WrittenOperation),
            /// There was nothing to delete.
            Nothing(NothingDone),
            /// A message or a push was sent.
            Sent(Sent),
        }

        read_as_first_of!(Done:
            $($($done(crate::$folder::$result),)?)* Written(WrittenOperation), Nothing(NothingDone), Sent(Sent)
        );

        impl Described for Done {
            fn schema(schemas: &mut Schemas) -> JsonValue {
                json!({ "anyOf": [
                    WrittenOperation::schema(schemas),
                    $($(crate::$folder::$result::schema(schemas),)?)*
                    NothingDone::schema(schemas),
                    Sent::schema(schemas),
                ] })
            }
        }

        words! {
            /// The kind of thing that changed.
            SubjectText {
                $( $(#[doc = $says])* $kind = $word, )*
                /// A message.
                Message = "message",
                /// Something newer than this release.
                Other = "other",
            }
        }

        impl From<Subject> for SubjectText {
            fn from(subject: Subject) -> Self {
                match subject {
                    $(Subject::$kind => SubjectText::$kind,)*
                    Subject::Message => SubjectText::Message,
                    _ => SubjectText::Other,
                }
            }
        }
    };
}

with_contracts!(of_contracts);

impl Operation {
    /// Every operation by name.
    pub fn names() -> &'static [&'static str] {
        &NAMES
    }
}

impl Guard {
    /// Every member that a guard can have, by name.
    pub fn member_names() -> Vec<&'static str> {
        guard_members(&mut Schemas::default()).into_iter().map(|member| member.name).collect()
    }

    /// Everything that a guard can be about, by the name of its member.
    pub fn things() -> Vec<&'static str> {
        GUARDED.iter().map(|thing| thing.member).collect()
    }
}

impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        operation(raw).map_err(pass)
    }
}

impl<'de> Deserialize<'de> for Guard {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        guard(raw).map_err(pass)
    }
}

impl Described for Guard {
    fn schema(schemas: &mut Schemas) -> JsonValue {
        let things: Vec<&str> = GUARDED.iter().map(|thing| thing.name).collect();
        let says = format!("The conditions on {}. All of them must hold.", listed(&things, "or"));
        schemas.object("GuardMembers", &says, true, guard_members)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use contract::Reason;

    use super::*;
    use crate::changes::ReasonText;

    macro_rules! folders {
        ($($(#[doc = $says:literal])* $folder:ident: $kind:ident = $word:literal { $($part:tt)* })*) => {
            [$(stringify!($folder)),*]
        };
    }

    #[test]
    fn every_contract_is_listed() {
        assert_eq!(with_contracts!(folders), contract::CONTRACTS);
    }

    #[test]
    fn no_two_contracts_share_the_name_of_an_operation() {
        let unique: BTreeSet<_> = NAMES.iter().collect();
        assert_eq!(unique.len(), NAMES.len(), "{:?}", *NAMES);
    }

    #[test]
    fn no_two_contracts_share_what_a_guard_is_about() {
        let unique: BTreeSet<_> = GUARDED.iter().map(|thing| thing.member).collect();
        assert_eq!(unique.len(), GUARDED.len(), "{unique:?}");
    }

    #[test]
    fn every_kind_of_thing_and_every_reason_has_a_word() {
        for subject in Subject::ALL {
            assert_ne!(SubjectText::from(*subject), SubjectText::Other, "{subject:?}");
        }
        for reason in Reason::ALL {
            assert_ne!(ReasonText::from(*reason), ReasonText::Other, "{reason:?}");
        }
    }
}
