//! Keys and values as bytes: bytes and text are themselves, everything else is JSON.
//!
//! Keeps: what was encoded can be decoded; what cannot, such as a number that is none, is refused before it is stored. Never: guesses;
//! the type of the backend says how its bytes are to be read, and [`Encoding`] is stored with them.

use std::any::{Any, TypeId};

use contract::keyed::backend::BackendError;
use contract::{Value, names};
use kv::DecodeError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How the values of a type are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// `Vec<u8>` and `Box<[u8]>`, as they are.
    Bytes = 1,
    /// `String`, in UTF-8.
    Text = 2,
    /// The JSON of any other type.
    Json = 3,
}

impl Encoding {
    /// How the values of `T` are encoded.
    pub(super) fn of<T: 'static>() -> Self {
        let this = TypeId::of::<T>();
        if this == TypeId::of::<Vec<u8>>() || this == TypeId::of::<Box<[u8]>>() {
            Encoding::Bytes
        } else if this == TypeId::of::<String>() {
            Encoding::Text
        } else {
            Encoding::Json
        }
    }

    /// Reads its number.
    pub(super) fn read(number: u8) -> Result<Self, DecodeError> {
        let all = [Encoding::Bytes, Encoding::Text, Encoding::Json];
        let found = all.into_iter().find(|encoding| *encoding as u8 == number);
        found.ok_or(DecodeError { what: "an unknown encoding" })
    }
}

/// How the keys and the values of a backend are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Encodings {
    pub(super) keys: Encoding,
    pub(super) values: Encoding,
}

impl Encodings {
    pub(super) fn of<K: 'static, V: 'static>() -> Self {
        Self { keys: Encoding::of::<K>(), values: Encoding::of::<V>() }
    }

    pub(super) fn read(keys: u8, values: u8) -> Result<Self, DecodeError> {
        Ok(Self { keys: Encoding::read(keys)?, values: Encoding::read(values)? })
    }
}

/// A key as bytes: 1 to 1,024 of them.
pub(super) fn encode_key<K: Serialize + DeserializeOwned + 'static>(key: &K) -> Result<Vec<u8>, BackendError> {
    let bytes = encode("a key", key)?;
    names::check_key(&bytes)?;
    Ok(bytes)
}

pub(super) fn decode_key<K: DeserializeOwned + 'static>(bytes: &[u8]) -> Result<K, BackendError> {
    decode("a key", bytes)
}

pub(super) fn encode_value<V: Serialize + DeserializeOwned + 'static>(value: &V) -> Result<Vec<u8>, BackendError> {
    let bytes = encode("a value", value)?;
    match u32::try_from(bytes.len()) {
        Ok(_) => Ok(bytes),
        Err(_) => Err(BackendError::Unstorable { what: "a value", reason: "it has 4 GiB or more".to_owned() }),
    }
}

pub(super) fn decode_value<V: DeserializeOwned + 'static>(bytes: &[u8]) -> Result<V, BackendError> {
    decode("a value", bytes)
}

fn encode<T: Serialize + DeserializeOwned + 'static>(what: &'static str, plain: &T) -> Result<Vec<u8>, BackendError> {
    let any: &dyn Any = plain;
    let bytes = any.downcast_ref::<Vec<u8>>().map(Vec::as_slice);
    let bytes = bytes.or_else(|| any.downcast_ref::<Box<[u8]>>().map(|bytes| &**bytes));
    match bytes.or_else(|| any.downcast_ref::<String>().map(|text| text.as_bytes())) {
        Some(bytes) => Ok(bytes.to_vec()),
        None => {
            let json = serde_json::to_vec(plain).map_err(|error| unstorable(what, error))?;
            // JSON has no infinity, and serde_json writes null: nobody could read the state any more.
            serde_json::from_slice::<T>(&json)
                .map_err(|error| unstorable(what, format!("its JSON cannot be read back: {error}")))?;
            Ok(json)
        }
    }
}

fn decode<T: DeserializeOwned + 'static>(what: &'static str, bytes: &[u8]) -> Result<T, BackendError> {
    let found = match Encoding::of::<T>() {
        Encoding::Bytes => same_type(bytes.to_vec()).or_else(|| same_type(Box::<[u8]>::from(bytes))),
        Encoding::Text => same_type(String::from_utf8(bytes.to_vec()).map_err(|error| unstorable(what, error))?),
        Encoding::Json => Some(serde_json::from_slice(bytes).map_err(|error| unstorable(what, error))?),
    };
    Ok(found.expect("the encoding is that of the type"))
}

/// `found`, if it is of the type that is wanted.
fn same_type<Found: 'static, Wanted: 'static>(found: Found) -> Option<Wanted> {
    let mut found = Some(found);
    let any: &mut dyn Any = &mut found;
    any.downcast_mut::<Option<Wanted>>()?.take()
}

fn unstorable(what: &'static str, error: impl ToString) -> BackendError {
    BackendError::Unstorable { what, reason: error.to_string() }
}

/// An encoded value as a value of the library: JSON that is a number, text or bytes becomes one.
pub(super) fn to_library_value(encoding: Encoding, bytes: Vec<u8>) -> Result<Value, BackendError> {
    let text = |bytes| String::from_utf8(bytes).map_err(|error| unstorable("a value", error));
    Ok(match encoding {
        Encoding::Bytes => Value::Bytes(bytes),
        Encoding::Text => Value::Text(text(bytes)?),
        Encoding::Json => Value::from_json_text(&text(bytes)?).map_err(|error| unstorable("a value", error))?,
    })
}

/// The encoded value in a value of the library.
pub(super) fn from_library_value(encoding: Encoding, value: Value) -> Result<Vec<u8>, BackendError> {
    match (encoding, value) {
        (Encoding::Bytes, Value::Bytes(bytes)) => Ok(bytes),
        (Encoding::Text, Value::Text(text)) => Ok(text.into_bytes()),
        (Encoding::Json, value) => Ok(value.to_json_text().into_bytes()),
        (encoding, _) => Err(unstorable("a value", format!("it is not of the kind of this backend, {encoding:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn check<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug + 'static>(plain: T, bytes: &[u8]) {
        let encoded = encode("it", &plain).expect("it can be encoded");
        assert_eq!(encoded, bytes);
        let in_library = to_library_value(Encoding::of::<T>(), encoded.clone()).expect("a value of the library");
        assert_eq!(from_library_value(Encoding::of::<T>(), in_library), Ok(encoded.clone()));
        assert_eq!(decode::<T>("it", &encoded), Ok(plain));
    }

    #[test]
    fn bytes_and_text_are_themselves_and_everything_else_is_json() {
        check(vec![0_u8, 0xff], &[0, 0xff]);
        check(Box::<[u8]>::from([0, 0xff]), &[0, 0xff]);
        check("a\"b".to_owned(), b"a\"b");
        check(u64::MAX, b"18446744073709551615");
        check((1, "a".to_owned(), 1.5), b"[1,\"a\",1.5]");
        check(BTreeMap::from([("b64".to_owned(), Some(-1)), ("c".to_owned(), None)]), b"{\"b64\":-1,\"c\":null}");
        check(vec![1_u16], b"[1]");
    }

    #[test]
    fn what_has_no_json_or_is_something_else_is_refused() {
        assert!(encode("it", &BTreeMap::from([(vec![1], 1)])).is_err());
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let refused = encode_value(&(1, value)).expect_err("JSON has no such number").to_string();
            assert!(refused.starts_with("a value cannot be stored or read: its JSON cannot be read back"), "{refused}");
        }
        check((1, -0.0), b"[1,-0.0]");
        assert!(decode::<String>("it", &[0xff]).is_err());
        assert!(decode::<u64>("it", b"-1").is_err());
        assert!(from_library_value(Encoding::Bytes, Value::Integer(1)).is_err());
        let empty = encode_key(&String::new()).expect_err("an empty key");
        assert_eq!(empty.to_string(), "a key is not allowed: it is empty [SH-1001]");
        assert!(encode_key(&vec![0_u8; 1_024]).is_ok() && encode_key(&vec![0_u8; 1_025]).is_err());
    }
}
