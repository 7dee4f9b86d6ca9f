//! Commands for users' machines.

use kv::{DecodeError, Reader, Writer};

use super::fence::{self, Fence};

/// A command for a user's machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostedCommand<'bytes> {
    /// The space.
    pub space: u32,
    /// The group whose state it is about.
    pub group: &'bytes str,
    /// The branch of the records whose attempts it belongs to. The state of a machine is in no branch.
    pub branch: u32,
    /// Those attempts.
    pub fences: Vec<Fence<'bytes>>,
    /// Whether it may write where only the owner of the group may.
    pub force: bool,
    /// The command, in the machine's own encoding.
    pub body: &'bytes [u8],
}

impl<'bytes> HostedCommand<'bytes> {
    /// A command that belongs to no attempt.
    pub fn new(space: u32, group: &'bytes str, body: &'bytes [u8]) -> Self {
        Self { space, group, branch: 0, fences: Vec::new(), force: false, body }
    }

    /// Appends the command's bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u32(self.space).bytes(self.group.as_bytes());
        fence::encode(writer, &self.fences, self.force);
        if !self.fences.is_empty() {
            writer.u32(self.branch);
        }
        writer.raw(self.body);
    }

    pub(crate) fn decode(bytes: &'bytes [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (space, group) = (reader.u32()?, reader.text()?);
        let (fences, force) = fence::decode(&mut reader)?;
        let branch = if fences.is_empty() { 0 } else { reader.u32()? };
        Ok(Self { space, group, branch, fences, force, body: reader.rest() })
    }
}
