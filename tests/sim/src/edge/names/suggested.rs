//! Suggested commands, run by `sh` with a `statehouse` in the path that only records its arguments.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use contract::shell::Suggested;

use super::Stage;
use super::hostile::CANARY;

/// Runs the lines that commands suggested, and one line per name with the name in every place. Returns how many lines ran, and how many
/// were parsed into other words or created the canary file.
pub(super) fn check(folder: &Path, names: &[String], stage: &Stage<'_>) -> (usize, usize) {
    let place = folder.join("shell");
    std::fs::create_dir(&place).expect("a folder");
    let program = place.join("statehouse");
    std::fs::write(&program, "#!/bin/sh\nprintf '%s\\0' statehouse \"$@\" > words\n").expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).expect("it can be run");
    let mut lines: BTreeSet<(Vec<String>, String)> =
        stage.suggested.lock().expect("nobody panics with it").iter().cloned().collect();
    for name in names {
        let command =
            Suggested::new(["statehouse", "why", "job"]).flag("--space", name).flag("--group", name).name(name);
        lines.insert((command.argv().to_vec(), command.shell()));
    }
    let path = format!("{}:/usr/bin:/bin", place.display());
    let mut misread = 0;
    let ours = lines.iter().filter(|(argv, _)| argv.first().is_some_and(|program| program == "statehouse"));
    let mut ran = 0;
    for (argv, line) in ours {
        ran += 1;
        let _ = std::fs::remove_file(place.join("words"));
        let done = Command::new("sh").arg("-c").arg(line).current_dir(&place).env_clear().env("PATH", &path).output();
        let done = done.expect("sh runs");
        let read = std::fs::read(place.join("words")).unwrap_or_default();
        let read: Vec<String> = String::from_utf8_lossy(&read).split_terminator('\0').map(str::to_owned).collect();
        let made = place.join(CANARY).exists();
        if read != *argv || made || !done.stdout.is_empty() {
            misread += 1;
            println!("edge-names: {line:?} was read as {read:?}, canary {made}");
            let _ = std::fs::remove_file(place.join(CANARY));
        }
    }
    if folder.join(CANARY).exists() {
        misread += 1;
        println!("edge-names: a command made the canary");
    }
    (ran, misread)
}
