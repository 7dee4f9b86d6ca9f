//! Principals as bytes: their rows, and what commands say of them; `docs/formats/keys.md`.

use contract::access::token::TokenDigest;
use contract::access::{Area, Grant, Identity, IssuedToken, Principal, Verbs};
use kv::{DecodeError, Reader, Writer};

use crate::command::count;

const FORMAT: u8 = 1;

const URI: u8 = 1;
const USER: u8 = 2;

/// The row of a principal.
pub(in crate::catalogue) fn encode_row(principal: &Principal) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.u8(FORMAT);
    encode(&mut writer, principal);
    writer.u32(count(principal.tokens.len()));
    for token in &principal.tokens {
        writer.bytes(token.id.as_bytes()).raw(token.digest.as_bytes()).u64(token.issued_us).u64(token.expires_us);
    }
    writer.finish()
}

/// Reads the row of a principal.
pub(in crate::catalogue) fn decode_row(row: &[u8]) -> Result<Principal, DecodeError> {
    let mut reader = Reader::new(row);
    reader.format(FORMAT)?;
    let mut principal = decode(&mut reader)?;
    for _ in 0..reader.u32()? {
        let (id, digest) = (reader.text()?.to_owned(), decode_digest(&mut reader)?);
        principal.tokens.push(IssuedToken { id, digest, issued_us: reader.u64()?, expires_us: reader.u64()? });
    }
    reader.end().map(|()| principal)
}

/// Appends all of a principal but its tokens, in a command and in its row alike.
pub(super) fn encode<'writer>(writer: &'writer mut Writer, principal: &Principal) -> &'writer mut Writer {
    writer.bytes(principal.name.as_bytes()).u32(count(principal.grants.len()));
    for Grant { space, area, prefix, verbs } in &principal.grants {
        writer.optional_text(space.as_deref()).optional_text(area.map(Area::name)).bytes(prefix.as_bytes());
        writer.u16(verbs.bits());
    }
    writer.u32(count(principal.identities.len()));
    for identity in &principal.identities {
        match identity {
            Identity::Uri(uri) => writer.u8(URI).bytes(uri.as_bytes()),
            Identity::User(number) => writer.u8(USER).u32(*number),
            _ => unreachable!("there is no other kind of identity"),
        };
    }
    writer.optional_u64(principal.requests_per_second_max.map(u64::from)).no_members()
}

/// Reads what [`encode`] wrote.
pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Principal, DecodeError> {
    let mut principal = Principal::new(reader.text()?);
    for _ in 0..reader.u32()? {
        let space = reader.optional_text()?.map(str::to_owned);
        let area =
            reader.optional_text()?.map(|name| Area::named(name).ok_or(unknown("an unknown area"))).transpose()?;
        let prefix = reader.text()?.to_owned();
        let verbs = Verbs::from_bits(reader.u16()?).ok_or(unknown("an unknown verb"))?;
        principal.grants.push(Grant { space, area, prefix, verbs });
    }
    for _ in 0..reader.u32()? {
        principal.identities.push(match reader.u8()? {
            URI => Identity::Uri(reader.text()?.to_owned()),
            USER => Identity::User(reader.u32()?),
            _ => return Err(unknown("an identity of an unknown kind")),
        });
    }
    let rate = reader.optional_u64()?.map(u32::try_from).transpose();
    principal.requests_per_second_max = rate.map_err(|_| unknown("a rate that is too high"))?;
    reader.no_members()?;
    Ok(principal)
}

/// Reads a digest, which is written as it is.
pub(super) fn decode_digest(reader: &mut Reader<'_>) -> Result<TokenDigest, DecodeError> {
    let bytes = reader.raw(32)?;
    let bytes = bytes.try_into().map_err(|_| unknown("a digest of another length"))?;
    Ok(TokenDigest::from_bytes(bytes))
}

fn unknown(what: &'static str) -> DecodeError {
    DecodeError { what }
}
