//! Where checkpoints lie: the flag and the setting of a server, and the variable for a command that opens a directory itself.
//!
//! Touches: the place, when it is opened. Never: opens it for a request that is not about checkpoints.

use clap::Args;
use server::Checkpoints;
use wire::routes::{KEYED_CHECKPOINT, KEYED_CHECKPOINTS, KEYED_RESTORE, Route};

use crate::config::{Effective, Flag};
use crate::equipment::{Equipment, OpenEquipment, OpenError, ServerFlags};

/// The setting of a server.
const SETTING: &str = "checkpoints";

/// The variable of a command: that of the setting.
const VARIABLE: &str = "STATEHOUSE_CHECKPOINTS";

/// The flag of `dev` and `serve`.
#[derive(Args)]
#[group(skip)]
pub(crate) struct CheckpointFlags {
    /// Where checkpoints lie: an absolute path, or s3://bucket/prefix [setting checkpoints].
    #[arg(long, value_name = "PLACE")]
    checkpoints: Option<String>,
}

impl ServerFlags for CheckpointFlags {
    fn given(&self) -> Vec<Flag> {
        self.checkpoints.clone().map(|place| ("--checkpoints", SETTING, place)).into_iter().collect()
    }
}

/// Opens the place that a server's settings name.
pub(super) fn open_for_server(settings: &Effective) -> Result<Option<Equipment>, OpenError> {
    let Some(place) = settings.if_set(SETTING) else { return Ok(None) };
    let opened = Checkpoints::open(place)?;
    tracing::info!(place = opened.target(), "checkpoints");
    Ok(Some(Box::new(|server| server.keeping_checkpoints(opened))))
}

/// Opens the place that the variable names, for requests that are about checkpoints.
pub(super) fn needed_for(route: Route) -> Option<OpenEquipment> {
    let is_needed = [KEYED_CHECKPOINT, KEYED_CHECKPOINTS, KEYED_RESTORE].contains(&route);
    let place = std::env::var(VARIABLE).ok().filter(|place| is_needed && !place.is_empty())?;
    Some(Box::new(move || {
        let opened = Checkpoints::open(&place).map_err(|error| format!("{VARIABLE}: {error}"))?;
        // The process ends with its command, and what was begun would end with it.
        Ok(Box::new(|server| server.keeping_checkpoints(opened).ending_checkpoints()))
    }))
}
