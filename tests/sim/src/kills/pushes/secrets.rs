//! The secrets of the sessions, in a file beside the directory: a client that is killed comes back with what it has kept.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use statehouse::sessions::{SessionCredentials, SessionSecret};

fn file(directory: &Path) -> PathBuf {
    directory.with_extension("secrets")
}

/// What was written down. A line that a kill has cut is no secret.
pub(super) fn read(directory: &Path) -> Vec<SessionCredentials> {
    let lines = std::fs::read_to_string(file(directory)).unwrap_or_default();
    let session = |line: &str| {
        let (session, secret) = line.split_once(' ')?;
        Some(SessionCredentials { session: session.parse().ok()?, secret: SessionSecret::parse(secret)? })
    };
    lines.lines().filter_map(session).collect()
}

/// Writes one down.
pub(super) fn add(directory: &Path, session: &SessionCredentials) {
    let mut file = OpenOptions::new().create(true).append(true).open(file(directory)).expect("a file");
    // The line in front of it may have been cut.
    let line = format!("\n{} {}\n", session.session, session.secret.to_text());
    file.write_all(line.as_bytes()).expect("written");
}
