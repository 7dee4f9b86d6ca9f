//! Operations and guards of a transaction, of every contract.

use kv::{DecodeError, Reader, Writer};
use session::Digester;

use super::act::{Act, Condition};
use crate::contracts::with_contracts;
use crate::outbox::command::{Send, Target};

const SEND: u8 = 6;
const PUSH: u8 = 7;

macro_rules! operations {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        $(pub use crate::$folder::command::{$act, $guard};)*

        /// One operation.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Op<'bytes> {
            $(
                #[doc = concat!("Does something to a thing of the contract `", stringify!($folder), "`.")]
                $kind(&'bytes str, $act<'bytes>),
            )*
            /// Sends a message.
            Send(Send<'bytes>),
            /// Pushes bytes to a session.
            Push(u64, &'bytes [u8]),
        }

        /// A condition checked before any operation of its transaction.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Guard<'bytes> {
            $(
                #[doc = concat!("On things of the contract `", stringify!($folder), "`.")]
                $kind($guard<'bytes>),
            )*
        }

        impl<'bytes> Op<'bytes> {
            /// The name of the thing it touches; a message touches nothing.
            pub fn name(&self) -> Option<&'bytes str> {
                match self {
                    $(Op::$kind(name, _) => Some(name),)*
                    Op::Send(_) | Op::Push(..) => None,
                }
            }

            /// See [`Act::grows`].
            pub fn grows(&self) -> bool {
                match self {
                    $(Op::$kind(_, act) => act.grows(),)*
                    Op::Send(_) | Op::Push(..) => true,
                }
            }

            /// The most bytes of one value that it writes.
            pub fn value_bytes(&self) -> usize {
                match self {
                    $(Op::$kind(_, act) => act.value_bytes(),)*
                    Op::Send(Send { target: Target::Transact(bytes) | Target::Topic { payload: bytes, .. }, .. })
                    | Op::Push(_, bytes) => bytes.len(),
                }
            }

            pub(super) fn encode(&self, writer: &mut Writer) {
                match self {
                    $(Op::$kind(name, act) => act.encode(name, writer),)*
                    Op::Send(send) => send.encode(writer.u8(SEND)),
                    Op::Push(session, payload) => {
                        writer.u8(PUSH).u64(*session).bytes(payload);
                    }
                }
            }

            pub(super) fn decode(reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
                match reader.u8()? {
                    $(code if $act::CODES.contains(&code) => {
                        $act::decode(code, reader).map(|(name, act)| Op::$kind(name, act))
                    })*
                    SEND => Send::decode(reader).map(Op::Send),
                    PUSH => Ok(Op::Push(reader.u64()?, reader.bytes()?)),
                    _ => Err(DecodeError { what: "an operation of an unknown kind" }),
                }
            }

            /// Adds what it asks for to a digest. `send` takes the transaction that it sends, if it sends one.
            pub(super) fn digest(&self, digester: &mut Digester, send: &mut impl FnMut(&'bytes [u8])) {
                match self {
                    $(Op::$kind(name, act) => act.digest(name, digester),)*
                    Op::Push(session, payload) => {
                        digester.text("do", "push").number("session", *session).member("payload", payload);
                    }
                    Op::Send(message) => message.digest(digester, send),
                }
            }
        }

        impl<'bytes> Guard<'bytes> {
            /// The name that it is about; none for a range.
            pub fn name(&self) -> Option<&'bytes str> {
                match self {
                    $(Guard::$kind(guard) => guard.name(),)*
                }
            }

            pub(super) fn encode(&self, writer: &mut Writer) {
                match self {
                    $(Guard::$kind(guard) => guard.encode(writer),)*
                }
            }

            pub(super) fn decode(reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
                match reader.u8()? {
                    $(code if $guard::CODES.contains(&code) => $guard::decode(code, reader).map(Guard::$kind),)*
                    _ => Err(DecodeError { what: "a guard of an unknown kind" }),
                }
            }

            pub(super) fn digest(&self, digester: &mut Digester) {
                match self {
                    $(Guard::$kind(guard) => guard.digest(digester),)*
                }
            }
        }

        $(
            impl<'bytes> From<$guard<'bytes>> for Guard<'bytes> {
                fn from(guard: $guard<'bytes>) -> Self {
                    Guard::$kind(guard)
                }
            }
        )*

        #[cfg(test)]
        const CODES: [(&str, &[u8], &[u8]); [$(stringify!($kind)),*].len()] =
            [$((stringify!($folder), $act::CODES, $guard::CODES)),*];
    };
}

with_contracts!(operations);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn no_two_contracts_share_a_code() {
        let mut operations = BTreeMap::from([(SEND, "send"), (PUSH, "push")]);
        let mut guards = BTreeMap::new();
        for (contract, acts, conditions) in CODES {
            for code in acts {
                assert_eq!(operations.insert(*code, contract), None, "operation {code} of {contract}");
            }
            for code in conditions {
                assert_eq!(guards.insert(*code, contract), None, "guard {code} of {contract}");
            }
        }
    }
}
