//! The fields that every command carries around its body; `docs/formats/entry.md` is the specification.

use kv::{DecodeError, Reader, Writer};

/// Who sent a command, and by which permissions it was let in. What was permitted is decided once, before the command is
/// proposed; this is for the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender<'command> {
    /// The principal.
    pub principal: &'command str,
    /// The revision of the permissions.
    pub policy_revision: u64,
}

/// In the byte that says what an envelope has: a session, with the numbers of the request.
const IN_SESSION: u8 = 1;
/// A sender.
const SENT_BY: u8 = 2;
const KNOWN: u8 = IN_SESSION | SENT_BY;

/// A command on its way through the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'command> {
    /// Which machine the body is for, and which version of it.
    pub machine: u32,
    /// The session that sent it, if one did.
    pub session: Option<u64>,
    /// The request's number in its session.
    pub request: u64,
    /// The lowest request that the session still waits for.
    pub lowest_pending: u64,
    /// The catalogue revision that the command was checked against.
    pub catalogue_revision: u64,
    /// Who sent it, and by which permissions it was let in; none if nobody is asked for either.
    pub sender: Option<Sender<'command>>,
    /// The command, in the machine's own encoding.
    pub body: &'command [u8],
}

impl<'command> Envelope<'command> {
    /// A command without a session or a sender.
    pub fn without_session(machine: u32, catalogue_revision: u64, body: &'command [u8]) -> Self {
        Self { machine, session: None, request: 0, lowest_pending: 0, catalogue_revision, sender: None, body }
    }

    /// Appends the envelope's bytes, its body last.
    pub fn encode(&self, writer: &mut Writer) {
        let has = |present: bool, part: u8| if present { part } else { 0 };
        let parts = has(self.session.is_some(), IN_SESSION) | has(self.sender.is_some(), SENT_BY);
        writer.u32(self.machine).u8(parts).u64(self.catalogue_revision);
        if let Some(session) = self.session {
            writer.u64(session).u64(self.request).u64(self.lowest_pending);
        }
        if let Some(sender) = self.sender {
            writer.bytes(sender.principal.as_bytes()).u64(sender.policy_revision);
        }
        writer.raw(self.body);
    }

    /// Reads an envelope that fills `bytes`.
    pub fn decode(bytes: &'command [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let machine = reader.u32()?;
        let parts = reader.u8()?;
        if parts & !KNOWN != 0 {
            return Err(DecodeError { what: "an envelope with an unknown part" });
        }
        let catalogue_revision = reader.u64()?;
        let (session, request, lowest_pending) = match parts & IN_SESSION {
            0 => (None, 0, 0),
            _ => (Some(reader.u64()?), reader.u64()?, reader.u64()?),
        };
        let sender = match parts & SENT_BY {
            0 => None,
            _ => Some(Sender { principal: reader.text()?, policy_revision: reader.u64()? }),
        };
        let body = reader.rest();
        Ok(Self { machine, session, request, lowest_pending, catalogue_revision, sender, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_read_as_written() {
        let sender = Sender { principal: "someone", policy_revision: 8 };
        for (session, sender) in
            [None, Some(9)].into_iter().flat_map(|session| [(session, None), (session, Some(sender))])
        {
            let (request, lowest_pending) = if session.is_some() { (3, 2) } else { (0, 0) };
            let envelope =
                Envelope { machine: 1, session, request, lowest_pending, catalogue_revision: 5, sender, body: b"body" };
            let mut writer = Writer::new();
            envelope.encode(&mut writer);
            assert_eq!(Envelope::decode(writer.as_slice()), Ok(envelope));
        }
    }

    #[test]
    fn a_part_that_is_not_known_is_refused() {
        let mut writer = Writer::new();
        Envelope::without_session(1, 5, b"body").encode(&mut writer);
        let mut bytes = writer.finish();
        bytes[4] |= 4;
        assert!(Envelope::decode(&bytes).is_err());
    }
}
