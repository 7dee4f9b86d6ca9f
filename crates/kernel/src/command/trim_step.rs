//! Steps of the walk, as a command names them.

use kv::{DecodeError, Reader, Writer};

use crate::contracts::with_contracts;

/// Steps in one command.
pub const TRIM_STEPS_MAX: usize = 256;

const BRANCH: u8 = 2;
const ERASE: u8 = 3;

macro_rules! steps {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        $(pub use crate::$folder::trim::$trim;)*

        /// One step of the walk.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum TrimStep {
            $(
                #[doc = concat!("On things of the contract `", stringify!($folder), "`.")]
                $kind($trim),
            )*
            /// Removes some things of a deleted branch from a bucket: of every contract whose steps do not name them.
            Erase {
                /// Which bucket.
                bucket: u16,
                /// The branch's space.
                space: u32,
                /// The branch.
                branch: u32,
            },
            /// Forgets a deleted branch, if it has no row left.
            Branch {
                /// Its space.
                space: u32,
                /// Its number.
                branch: u32,
            },
        }

        impl TrimStep {
            /// Whether it makes the store larger.
            pub(crate) fn grows(&self) -> bool {
                match self {
                    $(TrimStep::$kind(step) => step.grows(),)*
                    TrimStep::Erase { .. } | TrimStep::Branch { .. } => false,
                }
            }

            pub(crate) fn encode(&self, writer: &mut Writer) {
                match self {
                    $(TrimStep::$kind(step) => step.encode(writer),)*
                    TrimStep::Erase { bucket, space, branch } => {
                        writer.u8(ERASE).u16(*bucket).u32(*space).u32(*branch);
                    }
                    TrimStep::Branch { space, branch } => {
                        writer.u8(BRANCH).u32(*space).u32(*branch);
                    }
                }
            }

            pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                match reader.u8()? {
                    $(code if $trim::CODES.contains(&code) => $trim::decode(code, reader).map(TrimStep::$kind),)*
                    ERASE => {
                        Ok(TrimStep::Erase { bucket: reader.u16()?, space: reader.u32()?, branch: reader.u32()? })
                    }
                    BRANCH => Ok(TrimStep::Branch { space: reader.u32()?, branch: reader.u32()? }),
                    _ => Err(DecodeError { what: "a step of an unknown kind" }),
                }
            }
        }

        $(
            impl From<$trim> for TrimStep {
                fn from(step: $trim) -> Self {
                    TrimStep::$kind(step)
                }
            }
        )*

        #[cfg(test)]
        const CODES: &[(&str, &[u8])] = &[$((stringify!($folder), $trim::CODES)),*];
    };
}

with_contracts!(steps);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn no_two_contracts_share_a_code() {
        let mut codes = BTreeMap::from([(BRANCH, "branch"), (ERASE, "erase")]);
        for (contract, of_contract) in CODES {
            for code in *of_contract {
                assert_eq!(codes.insert(*code, contract), None, "step {code} of {contract}");
            }
        }
    }
}
