//! Principals are found by names, tokens and identities, and their rows are read as they were written.

use contract::access::token::TokenDigest;
use contract::access::{Area, Grant, Verb, Verbs};

use super::*;

fn worker() -> Principal {
    let grant = Grant {
        space: Some("s".to_owned()),
        area: Some(Area::Record),
        prefix: "jobs.".to_owned(),
        verbs: Verbs::of(&[Verb::Read, Verb::Claim]),
    };
    Principal::new("worker").granted(grant).known_as(Identity::User(7))
}

fn token(id: &str, issued_us: u64, expires_us: u64) -> IssuedToken {
    IssuedToken { id: id.to_owned(), digest: TokenDigest::from_bytes([7; 32]), issued_us, expires_us }
}

#[test]
fn a_principal_is_found_by_its_name_its_tokens_and_its_identities() {
    let mut principals = Principals::default();
    assert_eq!(principals.issue("worker", &token("a", 1, 9)).unwrap_err().code(), "SH-6003");
    principals.set(&worker(), 1).unwrap();
    principals.issue("worker", &token("a", 1, 9)).unwrap();
    assert_eq!(principals.issue("worker", &token("a", 1, 9)).unwrap_err().code(), "SH-1007");
    principals.issue("worker", &token("b", 2, 5)).unwrap();
    assert_eq!(principals.issue("worker", &token("c", 3, 9)).unwrap_err().code(), "SH-6005");
    assert_eq!(principals.of_token("b").unwrap().1, &token("b", 2, 5));
    assert_eq!(principals.known_as(&Identity::User(7)).unwrap().name, "worker");

    // What it may do changes; its live tokens stay, and others are forgotten.
    principals.set(&Principal::new("worker").known_as(Identity::User(8)), 5).unwrap();
    assert!(principals.of_token("a").unwrap().0.grants.is_empty());
    assert!(principals.of_token("b").is_none() && principals.known_as(&Identity::User(7)).is_none());

    let other = Principal::new("other").known_as(Identity::User(8));
    assert_eq!(principals.set(&other, 5).unwrap_err().code(), "SH-6006");
    assert_eq!(principals.revoke("b").unwrap_err().facts().code, "SH-6004");
    assert_eq!(principals.revoke("a").unwrap(), "worker");
    assert!(principals.of_token("a").is_none());
    assert!(principals.take("worker") && !principals.take("worker") && principals.is_empty());
    principals.set(&other, 5).unwrap();
}

#[test]
fn there_are_so_many_at_most() {
    let mut principals = Principals::default();
    for number in 0..PRINCIPALS_MAX {
        principals.set(&Principal::new(number.to_string()), 1).unwrap();
    }
    principals.set(&Principal::new("0"), 1).unwrap();
    let refused = principals.set(&Principal::new("more"), 1).unwrap_err();
    assert_eq!(refused, Rejection::too_large("principals_max", PRINCIPALS_MAX, PRINCIPALS_MAX + 1));
}

#[test]
fn a_row_is_read_as_it_was_written() {
    let whole = Principal {
        tokens: vec![token("0123456789", 3, 4)],
        requests_per_second_max: Some(5),
        ..worker().known_as(Identity::Uri("a://b".to_owned())).granted(Grant::everything())
    };
    let row = encode_row(&whole);
    let mut golden = b"\x01\x06\0\0\0worker\x02\0\0\0".to_vec();
    golden.extend_from_slice(b"\x01\x01\0\0\0s\x01\x07\0\0\0records\x05\0\0\0jobs.\x41\0");
    golden.extend_from_slice(b"\0\0\0\0\0\0\xff\x3f");
    golden.extend_from_slice(b"\x02\0\0\0\x02\x07\0\0\0\x01\x05\0\0\0a://b\x01\x05\0\0\0\0\0\0\0\0");
    golden.extend_from_slice(b"\x01\0\0\0\x0a\0\0\x000123456789");
    golden.extend_from_slice(&[7; 32]);
    golden.extend_from_slice(b"\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0");
    assert_eq!(row, golden, "as docs/formats/keys.md has it");
    assert_eq!(decode_row(&row), Ok(whole));
    for length in 0..row.len() {
        assert!(decode_row(&row[..length]).is_err(), "cut at {length}");
    }
}
