//! Levels: which crate may depend on which, and which crates may use a foreign one.
//!
//! Touches: `cargo metadata` and the manifests. Keeps: dependencies point down only; a crate missing from the table is
//! an error, so a new crate is a decision. Never: examines how the code uses a dependency.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use super::Complaint;
use crate::process::cargo;
use crate::repository::Tree;

enum Sees {
    /// Test and measurement programs, above everything.
    Anything,
    Only(&'static [&'static str]),
}

/// One row per crate, lowest first: a row names only crates of rows above it.
const LEVELS: &[(&str, Sees)] = &[
    ("statehouse-contract", Sees::Only(&[])),
    ("statehouse-kv", Sees::Only(&[])),
    ("statehouse-waiting", Sees::Only(&[])),
    ("statehouse-objects", Sees::Only(&[])),
    ("statehouse-journal", Sees::Only(&["statehouse-kv"])),
    ("statehouse-wire", Sees::Only(&["statehouse-contract"])),
    ("statehouse-client", Sees::Only(&["statehouse-contract", "statehouse-wire"])),
    (
        "statehouse-testkit",
        Sees::Only(&[
            "statehouse-contract",
            "statehouse-kv",
            "statehouse-journal",
            "statehouse-wire",
            "statehouse-client",
        ]),
    ),
    ("statehouse-session", Sees::Only(&["statehouse-kv"])),
    ("statehouse-kernel", Sees::Only(&["statehouse-contract", "statehouse-kv", "statehouse-session"])),
    ("statehouse-storage", Sees::Only(&["statehouse-kv"])),
    (
        "statehouse-node",
        Sees::Only(&[
            "statehouse-contract",
            "statehouse-kv",
            "statehouse-session",
            "statehouse-kernel",
            "statehouse-storage",
            "statehouse-journal",
            "statehouse-waiting",
        ]),
    ),
    (
        "statehouse",
        Sees::Only(&[
            "statehouse-contract",
            "statehouse-kv",
            "statehouse-session",
            "statehouse-kernel",
            "statehouse-journal",
            "statehouse-objects",
            "statehouse-waiting",
            "statehouse-node",
        ]),
    ),
    ("statehouse-server", Sees::Only(&["statehouse-contract", "statehouse-wire", "statehouse"])),
    (
        "statehouse-cli",
        Sees::Only(&["statehouse-contract", "statehouse-wire", "statehouse-client", "statehouse-server", "statehouse"]),
    ),
    ("sim", Sees::Anything),
    ("bench", Sees::Anything),
    ("xtask", Sees::Only(&[])),
];

/// Additional dependencies allowed in every crate's tests.
const TESTS_ALSO_SEE: &[&str] = &["statehouse-testkit", "statehouse-kv", "statehouse-storage"];

/// Foreign crates behind an interface, and who may name them. `bench` measures them beside our own.
const FOREIGN: &[(&str, &[&str])] = &[("lsm-tree", &["bench"])];

const HERE: &str = "xtask/src/tidy/levels.rs";

/// cargo's metadata of the workspace's own packages.
pub(super) fn metadata(root: &Path) -> Result<Value, String> {
    let mut command = cargo(root, "metadata --format-version 1 --no-deps");
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| format!("start cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err("cargo metadata failed".to_string());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// Checks every package against the tables.
pub(super) fn check(metadata: &Value, tree: &Tree) -> Result<Vec<Complaint>, String> {
    let workspace = text(&metadata["workspace_root"], "workspace_root")?;
    let mut complaints = Vec::new();
    for package in list(&metadata["packages"], "packages")? {
        let package = Package::read(package, workspace, tree)?;
        let Some((_, sees)) = LEVELS.iter().find(|(name, _)| *name == package.name) else {
            complaints.push(Complaint::new(
                &package.manifest,
                package.line_of(&format!("name = \"{}\"", package.name)),
                format!("crate `{}` is not in the table of levels", package.name),
                format!("add a row to LEVELS in {HERE} and an ADR"),
            ));
            continue;
        };
        for dependency in &package.dependencies {
            complaints.extend(check_dependency(&package, sees, dependency));
        }
    }
    Ok(complaints)
}

fn check_dependency(package: &Package, sees: &Sees, dependency: &Dependency) -> Option<Complaint> {
    let (name, manifest) = (dependency.name.as_str(), &package.manifest);
    let line = package.line_of(&dependency.key);
    if let Some((_, users)) = FOREIGN.iter().find(|(foreign, _)| *foreign == name) {
        return (!users.contains(&package.name.as_str())).then(|| {
            Complaint::new(
                manifest,
                line,
                format!("`{}` may not know `{name}`", package.name),
                format!("only {} may; go through their seam", users.join(", ")),
            )
        });
    }
    if !dependency.in_repository {
        return None;
    }
    let allowed = match sees {
        Sees::Anything => true,
        Sees::Only(names) => names.contains(&name) || (dependency.only_tests && TESTS_ALSO_SEE.contains(&name)),
    };
    (!allowed).then(|| {
        let kind = if dependency.only_tests { "'s tests" } else { "" };
        Complaint::new(
            manifest,
            line,
            format!("`{}`{kind} may not see `{name}`", package.name),
            format!("remove the dependency, or change LEVELS in {HERE} with an ADR"),
        )
    })
}

struct Package {
    name: String,
    /// Relative to the repository's root.
    manifest: String,
    manifest_text: String,
    dependencies: Vec<Dependency>,
}

struct Dependency {
    name: String,
    /// Its spelling in the manifest.
    key: String,
    in_repository: bool,
    only_tests: bool,
}

impl Package {
    fn read(package: &Value, workspace: &str, tree: &Tree) -> Result<Self, String> {
        let manifest = text(&package["manifest_path"], "manifest_path")?;
        let manifest = manifest.strip_prefix(workspace).unwrap_or(manifest);
        let manifest = manifest.trim_start_matches('/').to_string();
        let mut dependencies = Vec::new();
        for dependency in list(&package["dependencies"], "dependencies")? {
            let name = text(&dependency["name"], "dependency name")?;
            dependencies.push(Dependency {
                name: name.to_string(),
                key: dependency["rename"].as_str().unwrap_or(name).to_string(),
                in_repository: dependency["path"].is_string(),
                only_tests: dependency["kind"] == "dev",
            });
        }
        Ok(Self {
            name: text(&package["name"], "package name")?.to_string(),
            manifest_text: tree.text(&manifest)?,
            manifest,
            dependencies,
        })
    }

    /// The manifest's line that starts with `key` as a whole word, or the first.
    fn line_of(&self, key: &str) -> usize {
        let starts = |line: &str| {
            let rest = line.trim_start().strip_prefix(key)?;
            (!rest.starts_with(|next: char| next.is_alphanumeric() || "-_".contains(next))).then_some(())
        };
        self.manifest_text.lines().position(|line| starts(line).is_some()).map_or(1, |line| line + 1)
    }
}

fn text<'a>(value: &'a Value, what: &str) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| format!("cargo metadata: no {what}"))
}

fn list<'a>(value: &'a Value, what: &str) -> Result<&'a Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("cargo metadata: no {what}"))
}

#[cfg(test)]
mod tests {
    use super::super::temporary::TemporaryTree;
    use super::*;
    use serde_json::json;

    /// The complaints about a package with one dependency.
    fn complaints(package: &str, dependency: &str, kind: Option<&str>) -> Vec<String> {
        let manifest = format!("[package]\nname = \"{package}\"\n[dependencies]\n{dependency} = 1\n");
        let files = TemporaryTree::with(&[("crates/one/Cargo.toml", &manifest)]);
        let foreign = FOREIGN.iter().any(|(name, _)| *name == dependency);
        let path = if foreign { Value::Null } else { json!("/workspace/elsewhere") };
        let metadata = json!({
            "workspace_root": "/workspace",
            "packages": [{
                "name": package,
                "manifest_path": "/workspace/crates/one/Cargo.toml",
                "dependencies": [{ "name": dependency, "kind": kind, "rename": null, "path": path }],
            }],
        });
        let found = check(&metadata, &files.tree()).unwrap();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn arrows_point_down_only() {
        assert_eq!(complaints("statehouse-kernel", "statehouse-kv", None), [""; 0]);
        let found = complaints("statehouse-kernel", "statehouse-storage", None);
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .starts_with("tidy: crates/one/Cargo.toml:4: `statehouse-kernel` may not see `statehouse-storage`; ")
        );
        assert_eq!(complaints("statehouse-kv", "statehouse-contract", None).len(), 1);
        assert_eq!(complaints("statehouse-kernel", "statehouse-storage", Some("build")).len(), 1);
        assert_eq!(complaints("sim", "statehouse", None), [""; 0]);
        assert_eq!(complaints("xtask", "statehouse-kv", None).len(), 1);
    }

    #[test]
    fn tests_see_the_testkit_and_a_store_but_nothing_above() {
        for seen in TESTS_ALSO_SEE {
            assert_eq!(complaints("statehouse-kernel", seen, Some("dev")), [""; 0]);
        }
        assert_eq!(complaints("statehouse-kernel", "statehouse-testkit", None).len(), 1);
        assert_eq!(complaints("statehouse-kernel", "statehouse", Some("dev")).len(), 1);
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_an_error() {
        let found = complaints("statehouse-tube", "statehouse-contract", None);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains(":2: crate `statehouse-tube` is not in the table"), "{found:?}");
    }

    #[test]
    fn a_foreign_part_stays_behind_its_seam() {
        assert_eq!(complaints("bench", "lsm-tree", None), [""; 0]);
        for (package, foreign) in [("statehouse-storage", "lsm-tree"), ("sim", "lsm-tree")] {
            for kind in [None, Some("dev")] {
                let found = complaints(package, foreign, kind);
                assert_eq!(found.len(), 1, "{package} and {foreign}");
                assert!(found[0].contains("may not know"), "{found:?}");
            }
        }
    }

    #[test]
    fn the_table_names_only_rows_above() {
        for (index, (package, sees)) in LEVELS.iter().enumerate() {
            let Sees::Only(names) = sees else { continue };
            for name in *names {
                let above = LEVELS[..index].iter().any(|(other, _)| other == name);
                assert!(above, "{package} sees {name}, which is not above it in the table");
            }
        }
    }
}
