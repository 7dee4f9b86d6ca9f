//! Objects in a bucket of a real server, SeaweedFS: every call does as it does in a folder, also when answers are lost and writers
//! are killed, and what cannot work is refused by name. Checkpoints of a partition are taken there, and restored.
//!
//! `sim objects-s3 [--mib N]`. The server is on the loopback, with its data in a temporary folder. Each part runs in a process of
//! its own, since a bucket is reached through the environment. Would see broken: a write that is refused because of itself, an upload
//! that replaces an object, a half-written object that is listed, a stream that is held in memory, a secret in a message.

mod calls;
mod checkpoints;
mod lossy;
mod server;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use testkit::arguments::Arguments;
use testkit::report::Report;
use testkit::server_process::Launch;

use crate::tools;
use lossy::LossyProxy;
use server::{Seaweed, environment};

/// A process that streams an object may use so much: its code, two parts of an upload, and pieces of a download.
const MEMORY_MIB_MAX: u64 = 96;

/// A store that is not there is known to be missing by then.
const UNREACHED_MAX: Duration = Duration::from_secs(60);

const TARGET: &str = "s3://objects/under/test";

/// Runs the test.
pub(crate) fn run_s3(arguments: &Arguments) -> Report {
    let mut report = Report::new("keyed");
    if let Err(why) = check(&mut report, arguments.number("mib", 64)) {
        eprintln!("objects-s3: {why}");
        report.add("objects", "it could not be looked at", "S3 does as a folder does", false);
    }
    report
}

fn check(report: &mut Report, mib: u64) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let server = Seaweed::start(&tools::seaweedfs()?, &folder.path().join("server"))?;
    let proxy = LossyProxy::to(server.address())?;
    let local = folder.path().join("objects");
    let local = local.to_str().ok_or("the folder has a name that is no text")?;
    let s3 = environment(&format!("http://{}", proxy.address()));

    let by_folder = Part::run("calls", local, &[], &[])?;
    let by_s3 = Part::run("calls", TARGET, &s3, &[])?;
    for (line, expected) in by_s3.lines().zip(by_folder.lines()).filter(|(line, expected)| line != expected) {
        println!("objects-s3: the bucket: {line}\nobjects-s3: the folder: {expected}");
    }
    let calls = by_s3.lines().count();
    let figure = format!("{calls} calls on SeaweedFS answered as by a folder");
    report.add("objects", figure, "every one", calls > 60 && by_s3 == by_folder);
    let figure = format!("{} answers to writes lost", proxy.lost());
    report.add("objects", figure, "two, and each object is written once", proxy.lost() == 2);

    for (target, environment) in [(local, &[][..]), (TARGET, &s3)] {
        killed_writer(target, environment)?;
    }
    report.add("objects", "2 writers killed in the middle", "nothing is listed, and the names are free", true);

    let streamed = Part::run("stream", TARGET, &s3, &["--mib", &mib.to_string()])?;
    let peak: u64 = streamed.trim().parse().map_err(|_| format!("{streamed:?} is no number"))?;
    let figure = format!("{mib} MiB written and read with {peak} MiB of memory");
    report.add("objects", figure, &format!("at most {MEMORY_MIB_MAX} MiB"), peak <= MEMORY_MIB_MAX);

    // Past the proxy, which has lost its answers.
    let direct = environment(&format!("http://{}", server.address()));
    let taken = Part::run("checkpoints", TARGET, &direct, &[])?;
    let (full, changes) = taken.trim().split_once(' ').ok_or_else(|| format!("{taken:?} are no two sizes"))?;
    let figure = format!("2 checkpoints restored, one of {full} B and one of {changes} B of changes");
    report.add("objects", figure, "in another house each is the state that it was taken of", true);

    let refused = refusals(server.address())?;
    server.stop();
    report.add("objects", format!("{refused} wrong settings refused by name"), "all, without a secret", true);
    Ok(())
}

/// Kills a process that has written most of an object.
fn killed_writer(target: &str, environment: &[(String, String)]) -> Result<(), String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut launch = Launch::program(&this).arguments(["objects-s3-child", "--part", "hold", "--target", target]);
    for (name, value) in environment {
        launch = launch.environment(name, value);
    }
    let mut writer = launch.start_opening()?;
    let began = Instant::now();
    while !writer.stdout().contains("written") {
        if let Some(ended) = writer.ended() {
            return Err(format!("the writer ended: {ended}: {}", writer.stderr()));
        }
        if began.elapsed() > Duration::from_secs(60) {
            return Err(format!("the writer wrote nothing in a minute: {}", writer.stderr()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    writer.kill();
    Part::run("after-kill", target, environment, &[]).map(drop)
}

/// Opens with settings that cannot work, and returns how many there were.
fn refusals(server: std::net::SocketAddr) -> Result<usize, String> {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let closed = closed.map_err(|error| error.to_string())?;
    let mut wrong_secret = environment(&format!("http://{server}"));
    wrong_secret.retain(|(name, _)| name != "AWS_SECRET_ACCESS_KEY");
    wrong_secret.push(("AWS_SECRET_ACCESS_KEY".to_owned(), "not-the-secret".to_owned()));
    let cases = [
        ("a wrong secret", TARGET, wrong_secret, "AWS_SECRET_ACCESS_KEY"),
        ("nobody listens", TARGET, environment(&format!("http://{closed}")), "AWS_ENDPOINT_URL"),
        ("unencrypted", TARGET, environment("http://192.0.2.1:8333"), "AWS_ALLOW_HTTP"),
        ("another scheme", "gs://objects/a", environment(&format!("http://{server}")), "s3://bucket/prefix"),
    ];
    for (what, target, environment, named) in &cases {
        let began = Instant::now();
        let said = Part::run("refused", target, environment, &[])?;
        let seconds = began.elapsed();
        println!("objects-s3: {what}, after {:.1} s: {}", seconds.as_secs_f64(), said.trim_end());
        let has_secret =
            environment.iter().any(|(name, value)| name == "AWS_SECRET_ACCESS_KEY" && said.contains(value));
        if !said.contains(target) || !said.contains(named) || has_secret || seconds > UNREACHED_MAX {
            return Err(format!("{what}: {said}, after {seconds:?}"));
        }
    }
    Ok(cases.len())
}

/// A part of the test in a process of its own.
struct Part;

impl Part {
    /// Runs it, and returns what it printed.
    fn run(part: &str, target: &str, environment: &[(String, String)], more: &[&str]) -> Result<String, String> {
        let this = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(this);
        command.args(["objects-s3-child", "--part", part, "--target", target]).args(more);
        let output = command.envs(environment.iter().cloned()).output().map_err(|error| error.to_string())?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(printed);
        }
        Err(format!("{part} on {target}: {}: {printed}{}", output.status, String::from_utf8_lossy(&output.stderr)))
    }
}

/// `sim objects-s3-child --part PART --target TARGET`.
pub(crate) fn child(arguments: &Arguments) -> ExitCode {
    let (part, target) = (arguments.text("part").unwrap_or_default(), arguments.text("target").unwrap_or_default());
    let done = match part {
        "calls" => calls::all(target),
        "hold" => calls::hold(target),
        "after-kill" => calls::after_kill(target),
        "stream" => calls::stream(target, arguments.number("mib", 64)),
        "checkpoints" => checkpoints::taken_and_restored(target),
        "refused" => calls::refused(target),
        other => Err(format!("no part is called {other:?}")),
    };
    match done {
        Ok(printed) => {
            println!("{printed}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// The most memory that this process had, in MiB.
fn peak_memory_mib() -> Result<u64, String> {
    let status = std::fs::read_to_string(Path::new("/proc/self/status")).map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse().map_err(|_| format!("{line:?}"))?;
    Ok(kib / 1024)
}
