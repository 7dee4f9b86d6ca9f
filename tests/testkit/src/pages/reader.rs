//! A reader who types what a page shows: one shell for all its blocks, in an empty folder.
//!
//! Touches: the directory passed to it, child processes in their own process group. Keeps: a page finds nothing of
//! another page and leaves no process behind. Never: changes a page, except the port: pages say 7420, which may be
//! taken.
//!
//! As a reader waits for the server's first words, it waits after a block that starts one. A page that starts none and needs
//! one gets `statehouse dev`.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use super::blocks::{Blocks, Step};
use super::expected;

/// The port that pages name.
const PORT_IN_PAGES: &str = "7420";
/// The time limit of a page.
const PAGE_MAX: Duration = Duration::from_secs(180);
/// How often a shell is polled.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Lines of output shown when a step failed.
const OUTPUT_LINES_MAX: usize = 30;

/// As on a terminal, where no meter is shown.
const CURL_SHOWN: &str = "no-progress-meter\n";
/// Where nothing is shown, a refusal of HTTP is a command that failed.
const CURL_JUDGED: &str = "no-progress-meter\nfail-with-body\n";

/// Runs before the first step. Processes that a page starts are ended by their group, which is the shell's own.
const BEGIN: &str = r#"
set -eE -o pipefail
reader_end() { trap '' TERM; kill -TERM -- -$$; wait; }
reader_await_server() {
    for _ in {1..600}; do
        for url in "http://127.0.0.1:$READER_PORT" "https://127.0.0.1:$READER_PORT"; do
            if curl -q -skf -o /dev/null "$url/readyz"; then return 0; fi
        done
        sleep 0.02
    done
    echo "no server listens on $READER_PORT"
    return 1
}
trap reader_end EXIT
"#;

/// Notes which line of a step failed.
const TRAP: &str = r#"trap 'echo "$LINENO" >"$READER_STEPS/failed-line"' ERR"#;

/// A step that went as its page shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// The step.
    pub step: Step,
    /// Its output, on both streams.
    pub printed: String,
    /// When it was over, since the first step began.
    pub after: Duration,
}

/// Runs the steps of a page with `statehouse` as the command of that name, in `directory`, which is empty. The error
/// names the line, what went wrong there and the output.
pub fn run(blocks: &Blocks, statehouse: &Path, directory: &Path) -> Result<Vec<Done>, String> {
    let port = free_port().map_err(|error| format!("no port is free: {error}"))?.to_string();
    let prepared =
        prepare(blocks, statehouse, directory, &port).map_err(|error| format!("before the page: {error}"))?;
    let ended = run_shell(prepared).map_err(|error| format!("the shell: {error}"))?;
    let steps = Steps { directory: directory.join("steps"), port, ended };
    let done: Result<Vec<_>, _> =
        blocks.steps.iter().enumerate().map(|(index, step)| steps.judge(index, step)).collect();
    // A failure outside of all steps is a server of the runner that did not start.
    done.and_then(|done| if ended.is_some_and(|ended| ended.success()) { Ok(done) } else { Err(steps.said_outside()) })
}

/// Lays out `bin` with the command, `home`, `steps` with a file for each, and `here`, where the page runs.
fn prepare(blocks: &Blocks, statehouse: &Path, directory: &Path, port: &str) -> std::io::Result<Command> {
    let [bin, home, steps, here] = ["bin", "home", "steps", "here"].map(|name| directory.join(name));
    for directory in [&bin, &home, &steps, &here] {
        fs::create_dir(directory)?;
    }
    std::os::unix::fs::symlink(fs::canonicalize(statehouse)?, bin.join("statehouse"))?;
    for (name, settings) in [("shown", CURL_SHOWN), ("judged", CURL_JUDGED)] {
        fs::create_dir(home.join(name))?;
        fs::write(home.join(name).join(".curlrc"), settings)?;
    }
    fs::write(steps.join("page.sh"), page_script(&blocks.steps))?;
    for (index, step) in blocks.steps.iter().enumerate() {
        fs::write(steps.join(format!("{index}.sh")), step.commands.replace(PORT_IN_PAGES, port))?;
    }

    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&path)));
    let mut shell = Command::new("bash");
    shell
        .arg(steps.join("page.sh"))
        .current_dir(here)
        .env_clear()
        .env("PATH", path.map_err(std::io::Error::other)?)
        .env("HOME", &home)
        .env("CURL_HOME", home.join("judged"))
        .env("LANG", "C.UTF-8")
        .env("READER_PORT", port)
        .env("READER_STEPS", &steps)
        .env("STATEHOUSE_SERVER__LISTEN", format!("127.0.0.1:{port}"))
        .env("STATEHOUSE_URL", format!("http://127.0.0.1:{port}"))
        .stdin(Stdio::null())
        .stdout(fs::File::create(steps.join("shell.out"))?)
        .stderr(fs::File::create(steps.join("shell.err"))?)
        .process_group(0);
    if let Some(temporary) = std::env::var_os("TMPDIR") {
        shell.env("TMPDIR", temporary);
    }
    Ok(shell)
}

/// A port that was free a moment ago; another program may be faster, and then the server reports it.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The steps as one script. Each is a sourced file, so that variables and jobs continue and lines can be named.
fn page_script(steps: &[Step]) -> String {
    let mut script = format!("{BEGIN}{TRAP}\necho \"$EPOCHREALTIME\" >\"$READER_STEPS/begun\"\n");
    let has = |what: fn(&str) -> bool| steps.iter().any(|step| what(&step.commands));
    if has(needs_server) && !has(starts_server) {
        script += "statehouse dev >\"$READER_STEPS/server.out\" 2>&1 &\nreader_await_server\n";
    }
    for (index, step) in steps.iter().enumerate() {
        let read_in = format!("source \"$READER_STEPS/{index}.sh\" >\"$READER_STEPS/{index}.out\" 2>&1 </dev/null\n");
        script += &match step.prints {
            None => read_in,
            // The output is compared; it also shows how such a command ends.
            Some(_) => {
                format!("set +eE; trap - ERR; CURL_HOME=~/shown\n{read_in}set -eE; {TRAP}; CURL_HOME=~/judged\n")
            }
        };
        if starts_server(&step.commands) {
            script += "reader_await_server\n";
        }
        script += &format!("echo \"$EPOCHREALTIME\" >\"$READER_STEPS/{index}.done\"\n");
    }
    script
}

fn needs_server(commands: &str) -> bool {
    commands.contains(PORT_IN_PAGES) || commands.contains("statehouse ")
}

fn starts_server(commands: &str) -> bool {
    let starts = |line: &str| line.starts_with("statehouse dev") || line.starts_with("statehouse serve");
    // A line may go on in the next one.
    commands.replace("\\\n", " ").lines().any(|line| starts(line) && line.trim_end().ends_with('&'))
}

/// Runs the shell to its end; none if it was not over in time and was killed, with all that it started.
fn run_shell(mut shell: Command) -> std::io::Result<Option<ExitStatus>> {
    let mut shell = shell.spawn()?;
    let mut waited = Duration::ZERO;
    while waited < PAGE_MAX {
        if let Some(status) = shell.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(LOOK_EVERY);
        waited += LOOK_EVERY;
    }
    // The shell was not waited for, so its group id is still its own.
    Command::new("kill").args(["-KILL", "--", &format!("-{}", shell.id())]).status()?;
    shell.wait()?;
    Ok(None)
}

/// The results of a shell.
struct Steps {
    directory: PathBuf,
    port: String,
    ended: Option<ExitStatus>,
}

impl Steps {
    /// Whether a step was done and printed what its page shows.
    fn judge(&self, index: usize, step: &Step) -> Result<Done, String> {
        let printed = self.text(&format!("{index}.out"));
        let (Some(begun), Some(done)) = (self.time("begun"), self.time(&format!("{index}.done"))) else {
            return Err(self.failure(step, &printed));
        };
        if let Some(shown) = &step.prints {
            let shown: Vec<String> = shown.iter().map(|line| line.replace(PORT_IN_PAGES, &self.port)).collect();
            if !expected::matches(&shown, &printed) {
                let command = step.commands.trim_end();
                return Err(format!(
                    "line {}: {command}\nshould print\n{}\nand printed\n{printed}",
                    step.line,
                    shown.join("\n")
                ));
            }
        }
        Ok(Done { step: step.clone(), printed, after: Duration::from_secs_f64((done - begun).max(0.0)) })
    }

    fn failure(&self, step: &Step, printed: &str) -> String {
        let how = match self.ended {
            None => format!("was not over after {} s", PAGE_MAX.as_secs()),
            Some(ended) => format!("failed ({ended})"),
        };
        let inside = self.text("failed-line").trim().parse::<usize>().unwrap_or(1);
        let command = step.commands.lines().nth(inside - 1).unwrap_or(&step.commands);
        let last = printed.lines().count().saturating_sub(OUTPUT_LINES_MAX);
        let printed: Vec<_> = printed.lines().skip(last).collect();
        format!(
            "line {}: {command}\n{how}; it printed\n{}\n{}",
            step.line + inside - 1,
            printed.join("\n"),
            self.said_outside()
        )
    }

    /// The output of the shell itself and of its server.
    fn said_outside(&self) -> String {
        ["shell.out", "shell.err", "server.out"].map(|name| self.text(name)).concat()
    }

    fn text(&self, name: &str) -> String {
        let bytes = fs::read(self.directory.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Seconds since 1970.
    fn time(&self, name: &str) -> Option<f64> {
        self.text(name).trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::blocks;

    /// Reads a page that needs no server.
    fn read(name: &str, page: &str) -> Result<Vec<Done>, String> {
        let directory = std::env::temp_dir().join(format!("reader-{name}-{}", std::process::id()));
        fs::create_dir(&directory).expect("a directory");
        let done = run(&blocks::of(page).expect("a page"), Path::new("/bin/true"), &directory);
        fs::remove_dir_all(&directory).expect("it is ours");
        done
    }

    #[test]
    fn one_shell_runs_all_of_a_page_in_an_empty_folder() {
        let page = "```sh\nls -A\nx=1\n```\n```console\n$ echo $x; false\n1\n$ echo a b | tr a z\nz…\n```\n";
        let done = read("whole", page).expect("it is as it says");
        let printed: Vec<_> = done.iter().map(|done| done.printed.as_str()).collect();
        assert_eq!(printed, ["", "1\n", "z b\n"]);
        assert!(done.windows(2).all(|pair| pair[0].after <= pair[1].after));
    }

    #[test]
    fn the_line_that_fails_is_named() {
        let failed = read("line", "# A\n```sh\necho one\nls /nowhere\necho two\n```\n").expect_err("no such place");
        assert!(failed.starts_with("line 4: ls /nowhere\nfailed") && failed.contains("one\n"), "{failed}");
        assert!(!failed.contains("two"), "{failed}");
        let failed = read("pipe", "```sh\nfalse | true\n```\n").expect_err("a part of a pipe fails");
        assert!(failed.starts_with("line 2: false | true"), "{failed}");
        let failed = read("shown", "```console\n$ echo 1\n2\n```\n").expect_err("it prints something else");
        assert!(failed.starts_with("line 2: echo 1\nshould print\n2\nand printed\n1"), "{failed}");
        let failed = read("silent", "```console\n$ false\n```\n").expect_err("nothing is shown, so it must succeed");
        assert!(failed.starts_with("line 2: false"), "{failed}");
    }

    #[test]
    fn nothing_is_left_running() {
        let done = read("left", "```sh\nsleep 1000 &\necho $!\nbash -c 'sleep 1000 & wait' &\n```\n").expect("done");
        let left = Path::new("/proc").join(done[0].printed.trim());
        assert!(!left.exists(), "{} goes on", left.display());
    }

    #[test]
    fn pages_that_need_a_server_get_one() {
        let script = |commands: &str| page_script(&[Step { line: 1, commands: commands.into(), prints: None }]);
        assert!(!script("ls\n").contains("statehouse dev"));
        assert!(script("curl localhost:7420/livez\n").contains("statehouse dev"));
        assert!(
            !script("statehouse dev &\n").contains("statehouse dev")
                && script("statehouse dev &\n").contains("reader_await_server\necho")
        );
        assert!(script("statehouse serve --data d \\\n  --tokens required &\n").contains("reader_await_server\necho"));
    }
}
