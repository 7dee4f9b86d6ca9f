//! The fields that every command carries around its body; `docs/formats/entry.md` is the specification.

use kv::{DecodeError, Reader, Writer};

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
    /// The sender, for the audit.
    pub identity: &'command [u8],
    /// The command, in the machine's own encoding.
    pub body: &'command [u8],
}

impl<'command> Envelope<'command> {
    /// A command without a session or a sender.
    pub fn without_session(machine: u32, catalogue_revision: u64, body: &'command [u8]) -> Self {
        Self { machine, session: None, request: 0, lowest_pending: 0, catalogue_revision, identity: b"", body }
    }

    /// Appends the envelope's bytes, its body last.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u32(self.machine).optional_u64(self.session);
        if self.session.is_some() {
            writer.u64(self.request).u64(self.lowest_pending);
        }
        writer.u64(self.catalogue_revision).bytes(self.identity).raw(self.body);
    }

    /// Reads an envelope that fills `bytes`.
    pub fn decode(bytes: &'command [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let machine = reader.u32()?;
        let session = reader.optional_u64()?;
        let (request, lowest_pending) = if session.is_some() { (reader.u64()?, reader.u64()?) } else { (0, 0) };
        let catalogue_revision = reader.u64()?;
        let identity = reader.bytes()?;
        let body = reader.rest();
        Ok(Self { machine, session, request, lowest_pending, catalogue_revision, identity, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_read_as_written() {
        for session in [None, Some(9)] {
            let (request, lowest_pending) = if session.is_some() { (3, 2) } else { (0, 0) };
            let envelope = Envelope {
                machine: 1,
                session,
                request,
                lowest_pending,
                catalogue_revision: 5,
                identity: b"someone",
                body: b"body",
            };
            let mut writer = Writer::new();
            envelope.encode(&mut writer);
            assert_eq!(Envelope::decode(writer.as_slice()), Ok(envelope));
        }
    }
}
