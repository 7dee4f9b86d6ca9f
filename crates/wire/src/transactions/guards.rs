//! The conditions of a transaction: what those of every contract have in common, and how they are read.
//!
//! A guard is an object. One of its members names the thing that it is about, the others are conditions of that thing. Conditions
//! of different contracts share names; the thing tells whose they are. A member that is null is not there, except beside the
//! condition that it belongs to.
//!
//! Keeps: every member of a guard is honoured or refused; none is skipped. Every condition that the store knows has one.

use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};

use crate::error::DecodeError;
use crate::reader::from_json_text;
use crate::schema::{Member, Schemas};

/// What a guard can be about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guarded {
    /// Its member.
    pub(crate) member: &'static str,
    /// Its name in a sentence.
    pub(crate) name: &'static str,
    /// The conditions that it can have.
    pub(crate) conditions: &'static [&'static str],
    /// Members that belong to a condition, each after its condition.
    pub(crate) companions: &'static [(&'static str, &'static str)],
}

/// The guards of a contract. `guards!` generates them.
pub(crate) trait Guards: DeserializeOwned {
    /// What they can be about.
    const GUARDED: &'static [Guarded];

    /// Their members, for a schema.
    fn members(schemas: &mut Schemas) -> Vec<Member>;

    /// Refuses conditions that could never hold.
    fn check(&self) -> Result<(), DecodeError>;
}

/// What can hold of something that does not exist.
const OF_WHAT_IS_ABSENT: [&str; 2] = ["absent", "unchanged_since"];

/// The names of a guard's members, which are known and not repeated.
pub(crate) fn names_of(raw: &str, all: &[Guarded]) -> Result<MemberNames, DecodeError> {
    let names: MemberNames = from_json_text(raw)?;
    names.check(&known(all))?;
    Ok(names)
}

/// What a guard with these members is about.
pub(crate) fn thing_of(names: &MemberNames, all: &[Guarded]) -> Result<Guarded, DecodeError> {
    let wrong = |reason: String| Err(DecodeError::wrong_value(reason));
    let things: Vec<&str> = all.iter().map(|thing| thing.name).collect();
    let mut about = all.iter().filter(|thing| names.has(thing.member));
    match (about.next(), about.next()) {
        (Some(thing), None) => Ok(*thing),
        (None, _) => wrong(format!("a guard names {}", listed(&things, "or"))),
        (Some(_), Some(_)) => wrong(format!("a guard names one of {}", listed(&things, "and"))),
    }
}

/// Refuses a guard with other conditions than this thing has, or with some that could never hold.
pub(crate) fn check(guard: &impl Guards, names: &MemberNames, thing: Guarded) -> Result<(), DecodeError> {
    let Guarded { member: what, conditions: possible, companions, .. } = thing;
    let wrong = |reason: String| Err(DecodeError::wrong_value(reason));
    let belongs = |name: &str| name == what || companions.iter().any(|(_, with)| *with == name);
    let conditions: Vec<&str> = names.set().filter(|name| !belongs(name)).collect();
    if let Some(other) = conditions.iter().find(|name| !possible.contains(name)) {
        return wrong(format!("{other} is no condition of {what}, which has {}", listed(possible, "or")));
    }
    if conditions.is_empty() {
        return wrong(format!("a guard of {what} has {}", listed(possible, "or")));
    }
    guard.check()?;
    if conditions.contains(&"absent")
        && let Some(other) = conditions.iter().find(|name| !OF_WHAT_IS_ABSENT.contains(name))
    {
        return wrong(format!("absent excludes {other}"));
    }
    for (condition, with) in companions {
        match (names.has(condition), names.mentions(with)) {
            (true, false) => return Err(DecodeError::missing_member(with)),
            (false, true) => return Err(DecodeError::missing_member(condition)),
            _ => {}
        }
    }
    Ok(())
}

/// Refuses a flag that is false: it would say nothing.
pub(crate) fn only_true(flags: &[(&str, Option<bool>)]) -> Result<(), DecodeError> {
    match flags.iter().find(|(_, flag)| *flag == Some(false)) {
        Some((name, _)) => Err(DecodeError::wrong_value(format!("{name} can only be true"))),
        None => Ok(()),
    }
}

/// Every member that a guard can have: things first, then conditions, each with what belongs to it.
fn known(all: &[Guarded]) -> Vec<&'static str> {
    let mut known: Vec<&str> = all.iter().map(|thing| thing.member).collect();
    for thing in all {
        for condition in thing.conditions {
            let with = thing.companions.iter().filter(|(of, _)| of == condition).map(|(_, with)| *with);
            for name in std::iter::once(*condition).chain(with) {
                if !known.contains(&name) {
                    known.push(name);
                }
            }
        }
    }
    known
}

/// The names as a list: `a, b or c`.
pub(crate) fn listed(names: &[&str], word: &str) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} {word} {last}", rest.join(", ")),
        names => names.concat(),
    }
}

/// The names of an object's members, and which of them are not null.
pub(crate) struct MemberNames(Vec<(String, bool)>);

impl MemberNames {
    fn check(&self, known: &[&'static str]) -> Result<(), DecodeError> {
        for (place, (name, _)) in self.0.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                return Err(DecodeError::unknown_member(name, known));
            }
            if self.0[..place].iter().any(|(earlier, _)| earlier == name) {
                return Err(DecodeError::repeated_member(name));
            }
        }
        Ok(())
    }

    fn set(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name.as_str())
    }

    fn has(&self, name: &str) -> bool {
        self.set().any(|set| set == name)
    }

    fn mentions(&self, name: &str) -> bool {
        self.0.iter().any(|(mentioned, _)| mentioned == name)
    }
}

impl<'de> Deserialize<'de> for MemberNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl<'de> Visitor<'de> for Reading {
            type Value = MemberNames;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MemberNames, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = map.next_key()? {
                    let value: Option<de::IgnoredAny> = map.next_value()?;
                    names.push((name, value.is_some()));
                }
                Ok(MemberNames(names))
            }
        }

        deserializer.deserialize_map(Reading)
    }
}

/// Generates the guards of a contract: what they can be about, each with its name in a sentence and its conditions; then all
/// conditions, some with a member that belongs to them and may be null.
macro_rules! guards {
    (
        $(#[doc = $says:literal])*
        $type:ident about {
            $( $(#[doc = $thing_says:literal])* $thing:ident: $thing_type:ty = $name:literal, if $($of:ident)|+; )*
        } conditions {
            $(
                $(#[doc = $condition_says:literal])*
                $condition:ident: $condition_type:ty
                $(, with { $(#[doc = $with_says:literal])* $with:ident: $with_type:ty })?;
            )*
        }
    ) => {
        $(#[doc = $says])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
        pub struct $type {
            $( $(#[doc = $thing_says])* pub $thing: Option<$thing_type>, )*
            $(
                $(#[doc = $condition_says])* pub $condition: Option<$condition_type>,
                $( $(#[doc = $with_says])* pub $with: Option<$with_type>, )?
            )*
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;

                let mut map = serializer.serialize_map(None)?;
                $(if let Some(thing) = &self.$thing {
                    map.serialize_entry(stringify!($thing), thing)?;
                })*
                $(if let Some(condition) = &self.$condition {
                    map.serialize_entry(stringify!($condition), condition)?;
                    $(map.serialize_entry(stringify!($with), &self.$with)?;)?
                })*
                map.end()
            }
        }

        impl $crate::transactions::guards::Guards for $type {
            const GUARDED: &'static [$crate::transactions::guards::Guarded] = {
                // Each name in the table of a thing is a condition.
                let _ = |guard: &Self| [$($(guard.$of.is_some()),+),*];
                &[$($crate::transactions::guards::Guarded {
                    member: stringify!($thing),
                    name: $name,
                    conditions: &[$(stringify!($of)),+],
                    companions: Self::COMPANIONS,
                }),*]
            };

            fn members(schemas: &mut $crate::schema::Schemas) -> Vec<$crate::schema::Member> {
                let mut members = Vec::new();
                let mut add = |name, schema, says: &str| {
                    let says = says.trim().to_owned();
                    members.push($crate::schema::Member { name, schema, required: false, says });
                };
                $(add(
                    stringify!($thing),
                    <Option<$thing_type> as $crate::schema::Described>::schema(schemas),
                    concat!($($thing_says),*),
                );)*
                $(
                    add(
                        stringify!($condition),
                        <Option<$condition_type> as $crate::schema::Described>::schema(schemas),
                        concat!($($condition_says),*),
                    );
                    $(add(
                        stringify!($with),
                        <Option<$with_type> as $crate::schema::Described>::schema(schemas),
                        concat!($($with_says),*),
                    );)?
                )*
                members
            }

            fn check(&self) -> Result<(), $crate::DecodeError> {
                self.could_hold()
            }
        }

        impl $type {
            const COMPANIONS: &'static [(&'static str, &'static str)] =
                &[$($((stringify!($condition), stringify!($with)),)?)*];
        }
    };
}

pub(crate) use guards;

#[cfg(test)]
mod tests;
