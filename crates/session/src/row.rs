//! The row of a session that is written when it is created; `docs/formats/sessions.md`.

use kv::{DecodeError, Order, Reader, Staging, View, Writer};

use crate::command::{decode_capabilities, encode_capabilities};
use crate::keys::SessionKeys;
use crate::machine::Halt;
use crate::owner::{self, SessionOwner};
use crate::secret_digest::SecretDigest;

/// Format 1 had no room for more members, format 2 no digest of the secret.
const FORMAT: u8 = 3;

/// The creation parameters of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// For how long it lives without a sign of its client, in µs.
    pub timeout_us: u64,
    /// When it was created, wall time in µs.
    pub created_us: u64,
    /// Whether it did not acknowledge its pushes and must be ended.
    pub broken: bool,
    /// Of its secret.
    pub secret: SecretDigest,
    /// The client's description of itself.
    pub capabilities: Vec<(String, Vec<u8>)>,
    /// Whose it is, if it is known.
    pub owner: Option<SessionOwner>,
}

impl SessionRow {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.u8(FORMAT).bool(self.broken).u64(self.timeout_us).u64(self.created_us);
        self.secret.encode(writer);
        encode_capabilities(writer, &self.capabilities);
        owner::encode(writer, self.owner.as_ref());
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Halt> {
        let read = || {
            let mut reader = Reader::new(bytes);
            reader.format(FORMAT)?;
            let broken = reader.bool()?;
            let (timeout_us, created_us) = (reader.u64()?, reader.u64()?);
            let secret = SecretDigest::decode(&mut reader)?;
            let capabilities = decode_capabilities(&mut reader)?;
            let owner = owner::decode(&mut reader)?;
            reader.end().map(|()| Self { timeout_us, created_us, broken, secret, capabilities, owner })
        };
        read().map_err(|error| Halt::Undecodable { what: "the row of a session", error })
    }
}

/// A session by number, including staged writes.
pub fn staged_session(state: &Staging, keys: &SessionKeys, session: u64) -> Result<Option<SessionRow>, Halt> {
    state.get(&keys.session(session))?.map(|row| SessionRow::decode(&row)).transpose()
}

/// A session by its number.
pub fn session(view: &dyn View, keys: &SessionKeys, session: u64) -> Result<Option<SessionRow>, Halt> {
    view.get(&keys.session(session))?.map(|row| SessionRow::decode(&row)).transpose()
}

/// All sessions after a number, in the order of their numbers.
pub fn sessions<'view>(
    view: &'view dyn View,
    keys: &SessionKeys,
    after: u64,
) -> impl Iterator<Item = Result<(u64, SessionRow), Halt>> + 'view {
    let range = keys.sessions().after(&keys.session(after));
    view.scan(&range, Order::Ascending).map(|row| {
        let (key, row) = row?;
        let number = SessionKeys::last_number(&key).ok_or(DecodeError { what: "the key of a session" })?;
        Ok((number, SessionRow::decode(&row)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of `docs/formats/sessions.md`. A change here is a change of the format.
    #[test]
    fn golden_row() {
        let row = SessionRow {
            timeout_us: 10,
            created_us: 258,
            broken: true,
            secret: SecretDigest::new([0xcd; 32]),
            capabilities: vec![("v".into(), b"2".to_vec())],
            owner: None,
        };
        let mut writer = Writer::new();
        row.encode(&mut writer);
        let hex = writer.as_slice().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let expected = [
            "03",
            "01",
            "0a00000000000000",
            "0201000000000000",
            &"cd".repeat(32),
            "01",
            "0100000076",
            "0100000032",
            "00",
        ];
        assert_eq!(hex, expected.concat());
        assert_eq!(SessionRow::decode(writer.as_slice()), Ok(row.clone()));

        let owner = Some(SessionOwner { principal: "me".into(), space: Some("s".into()) });
        let owned = SessionRow { owner, ..row };
        let mut writer = Writer::new();
        owned.encode(&mut writer);
        assert!(writer.as_slice().ends_with(b"\x02\x01\x02\0\0\0me\x02\x01\0\0\0s"));
        assert_eq!(SessionRow::decode(writer.as_slice()), Ok(owned));
    }
}
