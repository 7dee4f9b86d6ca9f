//! Maps in commands across the contracts.

use statehouse::Statehouse;
use wire::routes::Route;

use super::checkpoint_place::CheckpointFlags;
use super::{Keyed, checkpoint_place, count};
use crate::checks::Checked;
use crate::config::Effective;
use crate::contract::Contract;
use crate::equipment::{Equipment, OpenEquipment, OpenError};
use crate::next::Next;
use crate::table::{Column, plain};

const READ_AGAIN: Next = Next::CommandWith("read the map again, then decide again", &["keyed", "scan"], "map");

const SEE_NUMBER: Next = Next::CommandWith("see the number of its last commit", &["keyed", "show"], "map");

impl Contract for Keyed {
    const NEXT: &'static [(&'static str, Next)] = &[
        (
            "SH-2024",
            Next::Say("start the server with the setting checkpoints: --checkpoints, or STATEHOUSE_CHECKPOINTS"),
        ),
        ("SH-2025", Next::Say("check the folder or the bucket, then try again")),
        ("SH-8001", Next::Command("list the maps, with their groups", &["keyed", "ls"])),
        ("SH-8002", Next::CommandWith("use another key; see which are there", &["keyed", "scan"], "map")),
        ("SH-8003", Next::CommandWith("split the count over several keys; see them", &["keyed", "scan"], "map")),
        (
            "SH-8004",
            Next::CommandWith("send it in a commit with the next number; see the last one", &["keyed", "show"], "map"),
        ),
        ("SH-8005", SEE_NUMBER),
        ("SH-8006", SEE_NUMBER),
        ("SH-8007", Next::CommandWith("replay the source from its position", &["keyed", "positions"], "map")),
        ("SH-8008", READ_AGAIN),
        ("SH-8009", Next::CommandWith("read the positions again, then decide again", &["keyed", "positions"], "map")),
        ("SH-8010", Next::CommandWith("send updates of its kind; see the map", &["keyed", "show"], "map")),
        ("SH-8011", Next::CommandWith("use another name; see what this one holds", &["keyed", "show"], "map")),
        ("SH-8012", Next::CommandWith("see who owns it now, then restore it again", &["why", "operator"], "map")),
        (
            "SH-8013",
            Next::Say("restore it again; if that is refused too, restore an earlier checkpoint with --checkpoint"),
        ),
        ("SH-8014", Next::Say("go on: the next checkpoint is a full one")),
        (
            "SH-8015",
            Next::Say("restore an earlier checkpoint with --checkpoint; `statehouse keyed checkpoints` lists them"),
        ),
        ("SH-8016", Next::Say("take one first, or name one that `statehouse keyed checkpoints` lists")),
        ("SH-8017", Next::Say("see which owners did not join, then begin another one with more time")),
    ];

    const EXPORTED: &'static [Column] = &[plain("MAPS", "counts.map"), plain("MAP KEYS", "counts.map_key")];

    type ServerFlags = CheckpointFlags;

    fn open_for_server(settings: &Effective) -> Result<Option<Equipment>, OpenError> {
        checkpoint_place::open_for_server(settings)
    }

    fn needed_for(route: Route) -> Option<OpenEquipment> {
        checkpoint_place::needed_for(route)
    }

    fn examine(house: &Statehouse) -> Option<Checked> {
        Some(count::check(house))
    }
}
