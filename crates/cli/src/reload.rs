//! Reading the settings of a running server again.
//!
//! Keeps: the file is taken whole or not at all; a setting that cannot change while the server runs keeps its value, and is named.
//! The environment and the flags are those of the start, and still override the file.

use std::path::PathBuf;
use std::sync::Arc;

use server::Tls;
use server::reloading::Reloading;

use crate::config::{ConfigError, Effective};
use crate::log::Filter;

/// The settings that change while a server runs.
const LIVE: &[&str] = &["log", "server.hosts", "server.origins"];

/// Reads the settings again.
pub(crate) struct Reloader {
    /// The settings in effect.
    pub(crate) running: Effective,
    /// Gathers them as at the start.
    pub(crate) gather: Box<dyn Fn() -> Result<Effective, ConfigError> + Send>,
    /// The settings file, if there is one.
    pub(crate) file: Option<PathBuf>,
    pub(crate) log: Filter,
    pub(crate) server: Reloading,
    /// The certificates in use, if there are any.
    pub(crate) certificates: Option<Arc<Tls>>,
}

impl Reloader {
    /// Reads them, and applies what can be applied.
    pub(crate) fn reload(&mut self) {
        if let Some(certificates) = &self.certificates {
            // First, whatever becomes of the settings. Files that cannot be used leave those before in use, and are a problem of
            // their own.
            let _ = certificates.reload();
        }
        let refused = |why: String| {
            let file = self.file.clone().unwrap_or_else(|| PathBuf::from("the environment"));
            tracing::error!(error = %why, file = %file.display(), "the settings were refused; those before stay in effect");
            self.server.refused(&file, why);
        };
        let new = match (self.gather)() {
            Ok(new) => new,
            Err(error) => return refused(error.to_string()),
        };
        if let Err(error) = self.log.set(new.log()) {
            return refused(error);
        }
        let changed = self.running.differences(&new);
        let (live, waiting): (Vec<&str>, Vec<&str>) = changed.into_iter().partition(|key| LIVE.contains(key));
        for setting in &waiting {
            tracing::warn!(setting, "this setting has changed, and cannot change while the server runs: restart it");
        }
        self.server.done(new.hosts(), waiting.into_iter().map(str::to_owned).collect());
        tracing::info!(changed = %live.join(", "), "the settings were read again");
        self.running.take(&new, LIVE);
    }
}
