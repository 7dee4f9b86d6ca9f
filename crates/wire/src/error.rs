//! Why a body or a query was refused: the member, and what is wrong with it.
//!
//! Keeps: the path of the member from the outside in, `do[1].fields.colour`, and the closest known member if it was
//! misspelt.

use std::cell::RefCell;
use std::fmt;

use contract::suggest::nearest;
use serde::de::{self, Expected, Unexpected};

/// A body or a query that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// From the innermost member to the outermost: the readers add to it as they return.
    path: Vec<Segment>,
    reason: Reason,
}

/// One step from a value to a nested value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    Member(String),
    Item(usize),
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The text is not JSON.
    NotJson(String),
    /// Arrays and objects are nested too deeply.
    TooDeep,
    /// A member is unknown.
    UnknownMember {
        /// The closest known member.
        nearest: Option<&'static str>,
    },
    /// A member is repeated.
    RepeatedMember,
    /// A member is missing.
    MissingMember,
    /// A value has the wrong type, or is not allowed.
    WrongValue(String),
}

impl DecodeError {
    pub(crate) fn new(reason: Reason) -> Self {
        Self { path: Vec::new(), reason }
    }

    pub(crate) fn not_json(reason: impl Into<String>) -> Self {
        Self::new(Reason::NotJson(reason.into()))
    }

    /// An unknown member, given the known ones.
    pub fn unknown_member(member: &str, known: &[&'static str]) -> Self {
        let nearest = nearest(member, known.iter().copied());
        Self::new(Reason::UnknownMember { nearest }).in_member(member)
    }

    /// A repeated member.
    pub fn repeated_member(member: &str) -> Self {
        Self::new(Reason::RepeatedMember).in_member(member)
    }

    /// A missing member.
    pub fn missing_member(member: &str) -> Self {
        Self::new(Reason::MissingMember).in_member(member)
    }

    /// A value that is not allowed here.
    pub fn wrong_value(reason: impl Into<String>) -> Self {
        Self::new(Reason::WrongValue(reason.into()))
    }

    /// The error, inside a member.
    #[must_use]
    pub fn in_member(mut self, member: &str) -> Self {
        self.path.push(Segment::Member(member.to_owned()));
        self
    }

    /// The error, inside an item of a list.
    #[must_use]
    pub fn in_item(mut self, place: usize) -> Self {
        self.path.push(Segment::Item(place));
        self
    }

    /// What is wrong.
    pub fn reason(&self) -> &Reason {
        &self.reason
    }

    /// The member concerned, from the outside in; none if the whole text is.
    pub fn member(&self) -> Option<String> {
        let mut text = String::new();
        for segment in self.path.iter().rev() {
            match segment {
                Segment::Member(name) if text.is_empty() => text.push_str(name),
                Segment::Member(name) => {
                    text.push('.');
                    text.push_str(name);
                }
                Segment::Item(place) => text.push_str(&format!("[{place}]")),
            }
        }
        (!self.path.is_empty()).then_some(text)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let member = self.member();
        let named = member.as_deref().unwrap_or("it");
        match &self.reason {
            Reason::NotJson(reason) => write!(formatter, "not JSON: {reason}"),
            Reason::TooDeep => write!(formatter, "arrays and objects are nested too deeply"),
            Reason::UnknownMember { nearest: Some(nearest) } => {
                write!(formatter, "{named:?} is unknown; did you mean {nearest:?}?")
            }
            Reason::UnknownMember { nearest: None } => write!(formatter, "{named:?} is unknown"),
            Reason::RepeatedMember => write!(formatter, "{named:?} is repeated"),
            Reason::MissingMember => write!(formatter, "{named:?} is missing"),
            Reason::WrongValue(reason) => match member {
                Some(member) => write!(formatter, "{member:?}: {reason}"),
                None => formatter.write_str(reason),
            },
        }
    }
}

impl std::error::Error for DecodeError {}

thread_local! {
    /// An error on its way through a generic deserializer, which knows errors only as text.
    static PASSED: RefCell<Option<DecodeError>> = const { RefCell::new(None) };
}

/// Our error as the error of any deserializer: our own gets it whole, any other gets its text.
pub(crate) fn pass<E: de::Error>(error: DecodeError) -> E {
    let message = error.to_string();
    PASSED.set(Some(error));
    let passed = E::custom(message);
    PASSED.take();
    passed
}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        match PASSED.take() {
            Some(passed) if passed.to_string() == message => passed,
            _ => Self::wrong_value(message),
        }
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::wrong_value(format!("it is {found}, but must be {wanted}"))
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::wrong_value(format!("it is {found}, but must be {wanted}"))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self::unknown_member(field, known)
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::repeated_member(field)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::missing_member(field)
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        let hint = match nearest(variant, known.iter().copied()) {
            Some(nearest) => format!("; did you mean {nearest:?}?"),
            None => format!("; known are {}", known.join(", ")),
        };
        Self::wrong_value(format!("{variant:?} is unknown{hint}"))
    }
}
