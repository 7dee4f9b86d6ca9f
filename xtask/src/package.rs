//! Package: a Debian package of the command, with its service.
//!
//! Touches: `packaging/`, the built command, a folder in the target directory, `strip` and `dpkg-deb` as child processes. Keeps: the same
//! inputs make the same bytes (files have the time of the commit, and belong to root). Never: installs anything.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{cargo, succeeds};

/// A file of the package: where it comes from, where it goes, and its mode.
type PackedFile = (&'static str, &'static str, u32);

const FILES: &[PackedFile] = &[
    ("packaging/systemd/statehouse.service", "lib/systemd/system/statehouse.service", 0o644),
    ("packaging/statehouse.toml", "etc/statehouse/statehouse.toml", 0o644),
    ("packaging/deb/conffiles", "DEBIAN/conffiles", 0o644),
    ("packaging/deb/postinst", "DEBIAN/postinst", 0o755),
    ("packaging/deb/prerm", "DEBIAN/prerm", 0o755),
    ("packaging/deb/postrm", "DEBIAN/postrm", 0o755),
    ("docs/install.md", "usr/share/doc/statehouse/install.md", 0o644),
    ("SECURITY.md", "usr/share/doc/statehouse/SECURITY.md", 0o644),
    ("CHANGELOG.md", "usr/share/doc/statehouse/CHANGELOG.md", 0o644),
    ("LICENSE-MIT", "usr/share/doc/statehouse/copyright", 0o644),
    ("LICENSE-APACHE", "usr/share/doc/statehouse/LICENSE-APACHE", 0o644),
];

/// Shells, and where their completions go.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "usr/share/bash-completion/completions/statehouse"),
    ("zsh", "usr/share/zsh/vendor-completions/_statehouse"),
    ("fish", "usr/share/fish/vendor_completions.d/statehouse.fish"),
];

/// Builds the command in release mode, and the package from it; of another `program` if one is named. Prints its path.
pub(crate) fn deb(root: &Path, program: Option<&str>) -> Result<bool, String> {
    let program = match program {
        Some(program) => PathBuf::from(program),
        None => {
            if !succeeds(&mut cargo(root, "build --release --locked --package statehouse-cli"))? {
                return Ok(false);
            }
            target(root).join("release/statehouse")
        }
    };
    let folder = folder(root);
    let staged = folder.join("staged");
    if staged.exists() {
        fs::remove_dir_all(&staged).map_err(|error| format!("remove {}: {error}", staged.display()))?;
    }
    // The names of functions stay, for the traces of a panic; the lines of the sources are twice as large as all the rest.
    fs::create_dir_all(&folder).map_err(|error| format!("create {}: {error}", folder.display()))?;
    let stripped = folder.join("statehouse");
    output(Command::new("strip").args(["--strip-debug", "-o"]).arg(&stripped).arg(&program))?;
    let bytes = fs::read(&stripped).map_err(|error| format!("read {}: {error}", stripped.display()))?;
    put(&staged, "usr/bin/statehouse", &bytes, 0o755)?;
    for (from, to, mode) in FILES {
        let read = fs::read(root.join(from)).map_err(|error| format!("read {from}: {error}"))?;
        put(&staged, to, &read, *mode)?;
    }
    for (shell, to) in COMPLETIONS {
        put(&staged, to, output(Command::new(&program).args(["completions", shell]))?.as_bytes(), 0o644)?;
    }
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned();
    let version = version(root)?;
    let control = fs::read_to_string(root.join("packaging/deb/control.in"));
    let control = control.map_err(|error| format!("read packaging/deb/control.in: {error}"))?;
    let control = control
        .replace("@VERSION@", &version)
        .replace("@ARCHITECTURE@", &architecture)
        .replace("@INSTALLED_KIB@", &kib(&staged)?.to_string());
    let control = match dependencies(&bytes) {
        Some(needed) => control.replace("@DEPENDS@", &needed),
        None => control.replace("Depends: @DEPENDS@\n", ""),
    };
    put(&staged, "DEBIAN/control", control.as_bytes(), 0o644)?;
    let package = package(root)?;
    let committed = output(Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]))?;
    let mut build = Command::new("dpkg-deb");
    build.env("SOURCE_DATE_EPOCH", committed.trim()).args(["--root-owner-group", "-Zxz", "--build"]);
    if !succeeds(build.arg(&staged).arg(&package))? {
        return Ok(false);
    }
    println!("{}", package.display());
    Ok(true)
}

/// Builds the package, and tries it in a clean Debian.
pub(crate) fn try_deb(root: &Path) -> Result<bool, String> {
    Ok(deb(root, None)?
        && succeeds(Command::new("bash").arg("packaging/try-deb.sh").current_dir(root).arg(package(root)?))?)
}

/// Where the package is put.
fn package(root: &Path) -> Result<PathBuf, String> {
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    Ok(folder(root).join(format!("statehouse_{}_{}.deb", version(root)?, architecture.trim())))
}

/// Where packages are put together.
fn folder(root: &Path) -> PathBuf {
    target(root).join("package")
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn put(staged: &Path, to: &str, bytes: &[u8], mode: u32) -> Result<(), String> {
    let path = staged.join(to);
    let write = || {
        let folders = path.ancestors().skip(1).take_while(|folder| folder.starts_with(staged));
        fs::create_dir_all(path.parent().unwrap_or(staged))?;
        // Whatever the umask is here, everybody can enter the folders of a system.
        for folder in folders {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        }
        fs::write(&path, bytes)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))
    };
    write().map_err(|error| format!("write {}: {error}", path.display()))
}

fn output(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|error| format!("start {command:?}: {error}"))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(format!("{command:?}: {}: {}", done.status, String::from_utf8_lossy(&done.stderr).trim())),
    }
}

/// The version of the workspace.
fn version(root: &Path) -> Result<String, String> {
    let manifest = fs::read_to_string(root.join("Cargo.toml")).map_err(|error| format!("read Cargo.toml: {error}"))?;
    let package = manifest.split("[workspace.package]").nth(1).unwrap_or_default();
    let version = package.lines().find_map(|line| line.strip_prefix("version = "));
    version.map(|version| version.trim_matches('"').to_owned()).ok_or_else(|| "Cargo.toml has no version".to_owned())
}

fn kib(folder: &Path) -> Result<u64, String> {
    let listed = output(Command::new("du").args(["-sk", "--apparent-size"]).arg(folder))?;
    let size = listed.split_whitespace().next().and_then(|size| size.parse().ok());
    size.ok_or_else(|| format!("du said {listed:?}"))
}

/// The packages that a program needs: the C library, of the newest version that one of its symbols names. None for a program that
/// is linked statically.
fn dependencies(program: &[u8]) -> Option<String> {
    const PREFIX: &[u8] = b"GLIBC_2.";
    let places = program.windows(PREFIX.len()).enumerate().filter(|(_, bytes)| *bytes == PREFIX);
    let minor = places.filter_map(|(place, _)| {
        let digits = program[place + PREFIX.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        digits.map(|byte| char::from(*byte)).collect::<String>().parse::<u32>().ok()
    });
    minor.max().map(|minor| format!("libc6 (>= 2.{minor}), libgcc-s1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_symbol_says_which_library_is_needed() {
        let program = b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE\0";
        assert_eq!(dependencies(program), Some("libc6 (>= 2.34), libgcc-s1".to_owned()));
        assert_eq!(dependencies(b"static"), None);
    }
}
