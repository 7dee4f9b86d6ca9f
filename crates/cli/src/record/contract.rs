//! Records in commands across the contracts.

use super::{Rec, held};
use crate::connection::Connection;
use crate::contract::{Contract, Held};
use crate::equipment::NoFlags;
use crate::exit::Failure;
use crate::next::Next;
use crate::table::{Column, plain};

const READ_AGAIN: Next = Next::CommandWith("read the record again, then decide again", &["rec", "get"], "record");

impl Contract for Rec {
    const NEXT: &'static [(&'static str, Next)] = &[
        ("SH-1014", Next::Command("list the types", &["rec", "type"])),
        ("SH-1015", Next::CommandWith("see why", &["why", "job"], "record")),
        ("SH-1021", Next::CommandWith("see who has it, and what happens next", &["why", "job"], "record")),
        ("SH-1017", READ_AGAIN),
        ("SH-1019", READ_AGAIN),
        ("SH-4002", Next::CommandWith("stop working on it; see who has it", &["why", "job"], "record")),
    ];

    const EXPORTED: &'static [Column] = &[plain("RECORDS", "counts.record")];

    type ServerFlags = NoFlags;

    async fn held_by(connection: &Connection, session: &str, ends: bool) -> Result<Option<Held>, Failure> {
        held::held_by(connection, session, ends).await.map(Some)
    }
}
