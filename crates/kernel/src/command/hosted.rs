//! Commands for users' machines.

use kv::{DecodeError, Reader, Writer};

/// A command for a user's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostedCommand<'bytes> {
    /// The space.
    pub space: u32,
    /// The group whose state it is about.
    pub group: &'bytes str,
    /// The command, in the machine's own encoding.
    pub body: &'bytes [u8],
}

impl<'bytes> HostedCommand<'bytes> {
    /// Appends the command's bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u32(self.space).bytes(self.group.as_bytes()).raw(self.body);
    }

    pub(crate) fn decode(bytes: &'bytes [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self { space: reader.u32()?, group: reader.text()?, body: reader.rest() })
    }
}
