//! Whose a session is, if it was opened by somebody who is known.

use kv::{DecodeError, Reader, Writer};

/// The principal that a session belongs to, and the space, if it was opened in one. Nobody else acts as it, and it acts nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOwner {
    /// The principal.
    pub principal: String,
    /// The name of the space.
    pub space: Option<String>,
}

/// The members of a row, and of a creation, that say whose it is.
const PRINCIPAL: u8 = 1;
const SPACE: u8 = 2;

/// Appends whose a session is, as members.
pub(crate) fn encode(writer: &mut Writer, owner: Option<&SessionOwner>) {
    match owner {
        None => writer.no_members(),
        Some(SessionOwner { principal, space }) => {
            let mut members = vec![(PRINCIPAL, principal.as_bytes())];
            members.extend(space.as_ref().map(|space| (SPACE, space.as_bytes())));
            writer.members(&members)
        }
    };
}

/// Reads what [`encode`] wrote.
pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Option<SessionOwner>, DecodeError> {
    let text = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).map(str::to_owned);
        text.map_err(|_| DecodeError { what: "the owner of a session that is not text" })
    };
    match reader.members()?.as_slice() {
        [] => Ok(None),
        [(PRINCIPAL, principal), (SPACE, space)] => {
            Ok(Some(SessionOwner { principal: text(principal)?, space: Some(text(space)?) }))
        }
        [(PRINCIPAL, principal)] => Ok(Some(SessionOwner { principal: text(principal)?, space: None })),
        _ => Err(DecodeError { what: "a member of an unknown kind" }),
    }
}
