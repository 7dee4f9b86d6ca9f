//! Advisories: whether a crate in `Cargo.lock` has a known hole, by the RustSec advisory database, which has a date.
//!
//! Touches: a clone of that database, `advisories/`, a folder in the target directory, `git` and `cargo deny` as child processes.
//! Keeps: an answer says of which day its database is, and an old database is a failure: it knows nothing of what came later. Never:
//! uses the network; whoever calls it has cloned the database.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::process::{cargo, succeeds};

/// The part of the database that concerns us, with the day that it is of.
const KEPT: &str = "advisories";
/// The file with that day, and the names of all crates that were looked for.
const INDEX: &str = "advisories/INDEX";
/// Where `cargo deny` looks for a clone of `https://github.com/RustSec/advisory-db`: it ends with a hash of that address.
const CLONE_NAME: &str = "advisory-db-3157b0e258782691";
/// An older database passes for none.
const AGE_DAYS_MAX: u64 = 45;
const DAY_SECONDS: u64 = 24 * 60 * 60;

/// Whether the repository has a part of the database of its own.
pub(crate) fn are_kept(root: &Path) -> bool {
    root.join(INDEX).is_file()
}

/// Checks every crate against a clone, or against what is kept.
pub(crate) fn check(root: &Path, clone: Option<&str>) -> Result<bool, String> {
    let folder = folder(root)?;
    let database = folder.join(CLONE_NAME);
    let day = match clone {
        Some(clone) => {
            let cloned =
                Command::new("git").args(["clone", "--quiet", "--depth=1"]).arg(url(clone)?).arg(&database).status();
            if !cloned.is_ok_and(|status| status.success()) {
                return Err(format!("{clone} cannot be cloned: it must be a clone of github.com/RustSec/advisory-db"));
            }
            committed(&database)?
        }
        None => from_kept(root, &database)?,
    };
    let rules = fs::read_to_string(root.join("deny.toml")).map_err(|error| format!("read deny.toml: {error}"))?;
    let place = format!("[advisories]\ndb-path = {:?}\n", folder.display().to_string());
    let config = folder.join("deny.toml");
    write(&config, rules.replacen("[advisories]\n", &place, 1).as_bytes())?;
    let arguments = ["--locked", "--offline", "--config"];
    let mut deny = cargo(root, "deny");
    if !succeeds(deny.args(arguments).arg(&config).args(["check", "advisories"]))? {
        return Ok(false);
    }
    let age_days = age_days(day);
    println!(
        "advisories: {} crates, none with a known hole, by a database that is {age_days} days old",
        crates(root)?.len()
    );
    if age_days > AGE_DAYS_MAX {
        println!("advisories: it is too old: at most {AGE_DAYS_MAX} days; clone the database again");
    }
    Ok(age_days <= AGE_DAYS_MAX)
}

/// Keeps the part of a clone that concerns the crates of `Cargo.lock`, for machines without the network.
pub(crate) fn keep(root: &Path, clone: &str) -> Result<bool, String> {
    let clone = Path::new(clone);
    let day = committed(clone)?;
    let kept = root.join(KEPT);
    if kept.exists() {
        fs::remove_dir_all(&kept).map_err(|error| format!("remove {KEPT}: {error}"))?;
    }
    let names = crates(root)?;
    let mut count = 0;
    for name in &names {
        let listed = git(clone, &["ls-tree", "-r", "--name-only", "HEAD", &format!("crates/{name}/")])?;
        for file in listed.lines() {
            let text = git(clone, &["show", &format!("HEAD:{file}")])?;
            write(&kept.join(file), text.as_bytes())?;
            count += 1;
        }
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    write(&root.join(INDEX), format!("{day}\n{}\n", names.join("\n")).as_bytes())?;
    println!("advisories: {count} about {} crates are kept in {KEPT}/, {} days old", names.len(), age_days(day));
    Ok(true)
}

/// Makes a clone, as `cargo deny` wants it, of what is kept. Returns its day.
fn from_kept(root: &Path, database: &Path) -> Result<u64, String> {
    let index = fs::read_to_string(root.join(INDEX));
    let index =
        index.map_err(|_| format!("there is no {KEPT}/ here; name a clone of github.com/RustSec/advisory-db"))?;
    let mut lines = index.lines();
    let day =
        lines.next().and_then(|day| day.parse().ok()).ok_or_else(|| format!("{INDEX} does not begin with a time"))?;
    let known: BTreeSet<&str> = lines.collect();
    let names = crates(root)?;
    if let Some(new) = names.iter().find(|name| !known.contains(name.as_str())) {
        return Err(format!("nobody has looked for advisories about {new}; run cargo xtask advisories keep CLONE"));
    }
    fs::create_dir_all(database).map_err(|error| format!("create {}: {error}", database.display()))?;
    let copied = Command::new("cp").arg("-r").arg(root.join(KEPT).join("crates")).arg(database).status();
    if !copied.is_ok_and(|status| status.success()) {
        return Err(format!("{KEPT}/crates cannot be copied"));
    }
    git(database, &["init", "--quiet"])?;
    git(database, &["add", "."])?;
    let author = ["-c", "user.name=xtask", "-c", "user.email="];
    git(database, &[&author[..], &["commit", "--quiet", "--message", "kept advisories"]].concat())?;
    Ok(day)
}

/// An empty folder for what is made here.
fn folder(root: &Path) -> Result<PathBuf, String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let folder = target.join("advisories");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("remove {}: {error}", folder.display()))?;
    }
    fs::create_dir_all(&folder).map_err(|error| format!("create {}: {error}", folder.display()))?;
    Ok(folder)
}

/// The address of a clone on this machine: of a path alone, git would copy more than the last commit.
fn url(clone: &str) -> Result<String, String> {
    let path = fs::canonicalize(clone).map_err(|error| format!("{clone}: {error}"))?;
    Ok(format!("file://{}", path.display()))
}

/// When the last commit of a clone was made, in seconds since 1970.
fn committed(clone: &Path) -> Result<u64, String> {
    let time = git(clone, &["log", "-1", "--format=%ct"])?;
    time.trim().parse().map_err(|_| format!("{} has no commit", clone.display()))
}

fn age_days(day: u64) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    now.as_secs().saturating_sub(day) / DAY_SECONDS
}

/// The names of the crates in `Cargo.lock`, once each.
fn crates(root: &Path) -> Result<BTreeSet<String>, String> {
    let lock = fs::read_to_string(root.join("Cargo.lock")).map_err(|error| format!("read Cargo.lock: {error}"))?;
    let names = lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    Ok(names.map(str::to_owned).collect())
}

fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let done = Command::new("git").arg("-C").arg(folder).args(arguments).output();
    let done = done.map_err(|error| format!("start git: {error}"))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(format!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&done.stderr).trim())),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let written = fs::create_dir_all(path.parent().unwrap_or(path)).and_then(|()| fs::write(path, bytes));
    written.map_err(|error| format!("write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_part_is_refused_when_a_crate_was_added_since() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| write(&root.path().join(path), text.as_bytes()).unwrap();
        put("Cargo.lock", "[[package]]\nname = \"old\"\n\n[[package]]\nname = \"new\"\n");
        let database = root.path().join("database");
        assert!(from_kept(root.path(), &database).unwrap_err().contains("there is no advisories/ here"));
        put(INDEX, "1000\nold\n");
        assert!(from_kept(root.path(), &database).unwrap_err().contains("advisories about new"));
        put(INDEX, "1000\nnew\nold\n");
        put("advisories/crates/old/RUSTSEC-1.md", "text");
        assert_eq!(from_kept(root.path(), &database), Ok(1000));
        assert!(database.join("crates/old/RUSTSEC-1.md").is_file() && committed(&database).unwrap() > 1000);
    }
}
