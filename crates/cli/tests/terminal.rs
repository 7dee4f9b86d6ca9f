//! What a person sees at a terminal of 80 columns: `status`, a list, `why`, the bar of a backup and an error, in tmux, against golden text.
//!
//! `GOLDEN=write cargo test -p statehouse-cli --test terminal` writes the golden text anew. Numbers and the room between columns are blotted
//! out: they differ from run to run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use testkit::server_process::Launch;

const BINARY: &str = env!("CARGO_BIN_EXE_statehouse");
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// From then on a queue without a worker is noted.
const NOTED: Duration = Duration::from_millis(11_000);

/// Name of the golden file, and the command.
const SCREENS: &[(&str, &str)] = &[
    ("status", "status"),
    ("rec-scan", "rec scan jobs."),
    ("why", "why job jobs.email.1"),
    ("backup", "backup create b.shbackup"),
    ("error", "rec complete jobs.email.1 1 result=sent"),
];

#[test]
fn screens_of_80_columns_are_golden() {
    // Where a sync takes no time, so that a slow disk is not what `status` talks about.
    let fast = Path::new("/dev/shm");
    let folder = if fast.is_dir() { tempfile::tempdir_in(fast) } else { tempfile::tempdir() }.expect("a folder");
    let launch = Launch::serve(BINARY, folder.path().join("house"));
    let server = launch.environment("STATEHOUSE_DISK__LOW_BYTES", "1MiB").start().expect("ready");
    let url = format!("http://{}", server.address());
    let run = |line: &str| {
        let done = Command::new(BINARY).args(line.split(' ')).env("STATEHOUSE_URL", &url).output().expect("started");
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    };
    for number in 1..=3 {
        run(&format!("rec set jobs.email.{number} to=ann@example.org subject=Your-invoice-is-attached --type task"));
    }
    run("rec claim jobs. --worker worker-1 --lease 1h");
    run("rec fail jobs.email.1 1 --error unreachable");
    std::thread::sleep(NOTED);
    let mut different = Vec::new();
    for (name, command) in SCREENS {
        let screen = at_a_terminal(folder.path(), name, command, &url);
        assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
        let (now, golden) = (masked(&screen, &url), golden_path(name));
        if std::env::var_os("GOLDEN").is_some_and(|how| how == "write") {
            std::fs::write(&golden, &now).expect("written");
        }
        let kept = std::fs::read_to_string(&golden).unwrap_or_default();
        if kept != now {
            different.push(format!("{name}, golden:\n{kept}\nnow:\n{now}\nas it was:\n{screen}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

fn golden_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/terminal").join(format!("{name}.txt"))
}

/// What stands on a terminal of 80 columns when a command has ended.
fn at_a_terminal(folder: &Path, name: &str, command: &str, url: &str) -> String {
    let socket = folder.join(format!("tmux-{name}"));
    let tmux = |words: &[&str]| -> Output {
        let output = Command::new("tmux").arg("-S").arg(&socket).args(words).output();
        output.expect("tmux is installed (Debian: tmux)")
    };
    let shell = format!("cd {}; STATEHOUSE_URL={url} {BINARY} {command}; echo exit=$?; sleep 600", folder.display());
    let started = tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "40", &shell]);
    assert!(started.status.success(), "{started:?}");
    let deadline = Instant::now() + PATIENCE;
    let mut screen = String::new();
    while !screen.contains("exit=") && Instant::now() < deadline {
        std::thread::sleep(LOOK_EVERY);
        screen = String::from_utf8_lossy(&tmux(&["capture-pane", "-p"]).stdout).into_owned();
    }
    // The server on this socket is ours alone.
    tmux(&["kill-server"]);
    screen.trim_end().to_owned() + "\n"
}

/// Numbers, sizes, hashes, bars and room, which differ from run to run, are blotted out.
fn masked(screen: &str, url: &str) -> String {
    let screen = screen.replace(url, "URL");
    let mut masked = String::new();
    for line in screen.lines() {
        let indent = line.len() - line.trim_start().len();
        let words: Vec<String> = line.split_whitespace().map(word).collect();
        masked += &format!("{}{}\n", &line[..indent.min(8)], words.join(" "));
    }
    masked
}

fn word(word: &str) -> String {
    if word.starts_with("exit=") || word.starts_with("SH-") {
        return word.to_owned();
    }
    if word.len() >= 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return "HASH".to_owned();
    }
    let bar = word.starts_with("[=");
    let word = word.replace("KiB", "B").replace("MiB", "B").replace("GiB", "B").replace("jobs.email.", "jobs.email.#");
    let mut masked = String::new();
    for letter in word.chars().filter(|letter| !bar || "[]".contains(*letter)) {
        match letter {
            '0'..='9' if masked.ends_with('N') => {}
            '0'..='9' => masked.push('N'),
            '.' if masked.ends_with('N') => masked.push('.'),
            _ => masked.push(letter),
        }
    }
    masked.replace("N.N", "N")
}
