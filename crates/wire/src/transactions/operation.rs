//! What the operations of every contract have in common: each is an object with its name in `op`.
//!
//! Operations are read in two steps, because the reader must know the operation before it can know its members.
//!
//! Keeps: every member of an operation is honoured or refused; none is skipped.

use serde_json::Value as JsonValue;

use crate::error::DecodeError;
use crate::schema::Schemas;

/// The operations of a contract. `operations!` generates them.
pub(crate) trait Operations: Sized {
    /// Every operation by name.
    const NAMES: &'static [&'static str];

    /// Reads the operation of this name from an object; none if the contract has no such operation.
    fn read(name: &str, raw: &str) -> Option<Result<Self, DecodeError>>;

    /// The schema of each operation.
    fn schemas(schemas: &mut Schemas) -> Vec<JsonValue>;
}

/// The name of an object's operation.
#[derive(serde::Deserialize)]
pub(crate) struct OperationHead {
    pub(crate) op: String,
}

/// Generates the operations of a contract.
macro_rules! operations {
    (
        $(#[doc = $all_say:literal])*
        $type:ident { $( $(#[doc = $says:literal])* $variant:ident($members:ident) = $op:literal, )* }
    ) => {
        $(#[doc = $all_say])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[serde(tag = "op")]
        pub enum $type {
            $( $(#[doc = $says])* #[serde(rename = $op)] $variant($members), )*
        }

        impl $crate::transactions::operation::Operations for $type {
            const NAMES: &'static [&'static str] = &[$($op),*];

            fn read(name: &str, raw: &str) -> Option<Result<Self, $crate::DecodeError>> {
                match name {
                    $( $op => Some($crate::reader::from_tagged_json(raw, "op").map(Self::$variant)), )*
                    _ => None,
                }
            }

            fn schemas(schemas: &mut $crate::schema::Schemas) -> Vec<serde_json::Value> {
                vec![$({
                    schemas.object(concat!(stringify!($members), "Operation"), concat!($($says),*).trim(), true, |schemas| {
                        let op = $crate::schema::Member {
                            name: "op",
                            schema: serde_json::json!({ "type": "string", "const": $op }),
                            required: true,
                            says: String::new(),
                        };
                        let mut members = vec![op];
                        members.extend(<$members as $crate::schema::Described>::members(schemas));
                        members
                    })
                }),*]
            }
        }
    };
}

pub(crate) use operations;
