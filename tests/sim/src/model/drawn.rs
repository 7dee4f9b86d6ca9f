//! A command as it is drawn.

use kernel::Body;
use kv::Writer;

use super::records::post::Marked;

/// A command as bytes, and the marked messages that it sends if it is done.
pub(crate) struct Drawn {
    pub(crate) body: Vec<u8>,
    pub(crate) marked: Vec<Marked>,
}

impl Drawn {
    /// One that sends no marked message.
    pub(crate) fn plain(body: Vec<u8>) -> Self {
        Self { body, marked: Vec::new() }
    }
}

/// The bytes of a command.
pub(crate) fn encode(body: &Body<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    body.encode(&mut writer);
    writer.finish()
}
