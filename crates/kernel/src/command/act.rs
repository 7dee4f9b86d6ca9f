//! The parts of a transaction that belong to a contract: what is done to one of its things, and conditions.

use kv::{DecodeError, Reader, Writer};
use session::Digester;

/// Whether anybody may do something to an open name of a guarded group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// It changes what is there.
    Never,
    /// It creates the thing, if there is none.
    IfAbsent,
    /// It creates the thing or adds to it, whatever is there.
    Always,
    /// It shows by itself that it may, so its name need not be open.
    Everywhere,
}

/// What an operation does to a thing of a contract.
pub trait Act<'bytes>: Sized {
    /// The codes that its operations begin with. No other contract has one of them.
    const CODES: &'static [u8];

    /// Appends the operation, its code first.
    fn encode(&self, name: &str, writer: &mut Writer);

    /// Reads an operation after its code: the name of the thing, and what is done to it.
    fn decode(code: u8, reader: &mut Reader<'bytes>) -> Result<(&'bytes str, Self), DecodeError>;

    /// Whether it makes the store larger. Freeing space, claiming jobs and finishing them does not.
    fn grows(&self) -> bool;

    /// Whether anybody may do it to this name of a guarded group: create and append, and nothing else.
    fn open(&self, name: &str) -> Open;

    /// The most bytes of one value that it writes.
    fn value_bytes(&self) -> usize;

    /// Adds what it asks for to a digest: every member, so without `..`.
    fn digest(&self, name: &str, digester: &mut Digester);
}

/// A condition on things of a contract, checked before any operation of its transaction.
pub trait Condition<'bytes>: Sized {
    /// The codes that its conditions begin with. No other contract has one of them.
    const CODES: &'static [u8];

    /// The name that it is about; none for a range.
    fn name(&self) -> Option<&'bytes str>;

    /// Appends the condition, its code first.
    fn encode(&self, writer: &mut Writer);

    /// Reads a condition after its code.
    fn decode(code: u8, reader: &mut Reader<'bytes>) -> Result<Self, DecodeError>;

    /// Adds what it expects to a digest: every member, so without `..`.
    fn digest(&self, digester: &mut Digester);
}

/// An empty text counts as omitted in a digest.
pub(crate) fn unless_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// A code outside of `CODES`, which nobody passes.
pub(crate) fn unlisted(code: u8) -> ! {
    unreachable!("code {code} is not listed")
}
