//! Contexts: named stores in a file of the user, and which of them is current.
//!
//! The file is `statehouse/contexts.toml` under `XDG_CONFIG_HOME`, or under `.config` in the home directory. Keeps: it is replaced as a
//! whole, so a command that dies leaves the old one. Never: holds a secret; there are none yet.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use statehouse::owner_only;
use statehouse::shell::Suggested;

use crate::exit::{Exit, Failure};

/// The location of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Url(String),
    Data(PathBuf),
}

impl std::fmt::Display for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Url(url) => write!(formatter, "{url}"),
            Target::Data(directory) => write!(formatter, "{}", directory.display()),
        }
    }
}

/// A context as stored in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<PathBuf>,
}

impl Context {
    pub(crate) fn of(target: &Target) -> Self {
        match target {
            Target::Url(url) => Self { url: Some(url.clone()), data: None },
            Target::Data(directory) => Self { url: None, data: Some(directory.clone()) },
        }
    }

    pub(crate) fn target(&self, name: &str) -> Result<Target, Failure> {
        match (&self.url, &self.data) {
            (Some(url), None) => Ok(Target::Url(url.clone())),
            (None, Some(directory)) => Ok(Target::Data(directory.clone())),
            _ => Err(Failure::usage(format!("context {name:?} needs either url or data"))
                .run("define it again", add_command(name))),
        }
    }
}

/// The command that adds a context of this name for the server at the default address.
fn add_command(name: &str) -> Suggested {
    Suggested::new(["statehouse", "ctx", "add"]).name(name).name(crate::reach::DEFAULT_URL)
}

/// The contents of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, Context>,
    #[serde(skip)]
    path: Option<PathBuf>,
}

impl Contexts {
    /// Reads the file; a missing file means no contexts.
    pub(crate) fn read(environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let said = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = said("XDG_CONFIG_HOME").or_else(|| said("HOME").map(|home| home.join(".config")));
        let Some(path) = folder.map(|folder| folder.join("statehouse").join("contexts.toml")) else {
            return Ok(Self::default());
        };
        let mut contexts = match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str::<Self>(&text)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())).next("correct the file"))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::default(),
            Err(error) => return Err(Failure::other(format!("{}: {error}", path.display()))),
        };
        contexts.path = Some(path);
        Ok(contexts)
    }

    /// Replaces the file.
    pub(crate) fn write(&self) -> Result<PathBuf, Failure> {
        let Some(path) = &self.path else {
            return Err(Failure::usage("neither XDG_CONFIG_HOME nor HOME is set, so contexts cannot be stored"));
        };
        let failed = |error: &dyn std::fmt::Display| Failure::other(format!("{}: {error}", path.display()));
        let text = toml::to_string_pretty(self).map_err(|error| failed(&error))?;
        let folder = path.parent().ok_or_else(|| failed(&"no parent folder"))?;
        // The parent folder is the user's and may be a link; ours may not.
        if std::fs::symlink_metadata(folder).is_ok_and(|found| found.is_symlink()) {
            return Err(Failure::other(format!(
                "{} is a link, and links are not followed here; remove it",
                folder.display()
            )));
        }
        owner_only::create_folders(folder).map_err(|error| failed(&error))?;
        owner_only::replace(path, text.as_bytes()).map_err(|error| failed(&error))?;
        Ok(path.clone())
    }

    /// The context with this name.
    pub(crate) fn find(&self, name: &str) -> Result<Target, Failure> {
        let context = self.contexts.get(name).ok_or_else(|| {
            Failure::new(Exit::NotFound, format!("there is no context {name:?}"))
                .run("list the contexts", Suggested::new(["statehouse", "ctx", "ls"]))
        })?;
        context.target(name)
    }

    /// The current context.
    pub(crate) fn current(&self) -> Result<Option<Target>, Failure> {
        self.current.as_ref().map(|name| self.find(name)).transpose()
    }
}
