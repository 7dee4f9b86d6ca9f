//! Rejections about principals and tokens as bytes; `docs/formats/entry.md`.

use contract::AccessRejection;
use kv::{DecodeError, Reader, Writer};

const NO_SUCH_PRINCIPAL: u8 = 1;
const NO_SUCH_TOKEN: u8 = 2;
const TOKENS_IN_USE: u8 = 3;
const IDENTITY_TAKEN: u8 = 4;

pub(super) fn encode(writer: &mut Writer, rejection: &AccessRejection) {
    match rejection {
        AccessRejection::NoSuchPrincipal { principal } => writer.u8(NO_SUCH_PRINCIPAL).bytes(principal.as_bytes()),
        AccessRejection::NoSuchToken { token } => writer.u8(NO_SUCH_TOKEN).bytes(token.as_bytes()),
        AccessRejection::TokensInUse { principal, max } => {
            writer.u8(TOKENS_IN_USE).bytes(principal.as_bytes()).u64(*max)
        }
        AccessRejection::IdentityTaken { identity, principal } => {
            writer.u8(IDENTITY_TAKEN).bytes(identity.as_bytes()).bytes(principal.as_bytes())
        }
        other => unreachable!("the kernel does not give this rejection: {other}"),
    };
}

pub(super) fn decode(reader: &mut Reader<'_>) -> Result<AccessRejection, DecodeError> {
    Ok(match reader.u8()? {
        NO_SUCH_PRINCIPAL => AccessRejection::NoSuchPrincipal { principal: reader.text()?.to_owned() },
        NO_SUCH_TOKEN => AccessRejection::NoSuchToken { token: reader.text()?.to_owned() },
        TOKENS_IN_USE => AccessRejection::TokensInUse { principal: reader.text()?.to_owned(), max: reader.u64()? },
        IDENTITY_TAKEN => {
            let identity = reader.text()?.to_owned();
            AccessRejection::IdentityTaken { identity, principal: reader.text()?.to_owned() }
        }
        _ => return Err(DecodeError { what: "a rejection about access of an unknown kind" }),
    })
}
