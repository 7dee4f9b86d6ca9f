//! The ledger `docs/ledger.tsv`: what was run of checks that take longer than a topic may, one row for each run.
//!
//! Touches: that file; git, for the commit. Keeps: what ran before a failure does not count any more; a run of sources
//! that are not committed is not noted; a run of a commit that the history of HEAD does not have does not count, since nobody can
//! look at what ran. Never: changes a row.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::measured::today;

/// The file, relative to the root.
pub(super) const FILE: &str = "docs/ledger.tsv";

/// All that decides what a check does.
const SOURCES: &[&str] =
    &[".config", "Cargo.lock", "Cargo.toml", "bench", "crates", "rust-toolchain.toml", "tests", "xtask"];

/// The rows so far, and the commit of those to come.
pub(super) struct Ledger {
    path: PathBuf,
    /// None if some sources are not committed.
    commit: Option<String>,
    /// Those of commits in the history, and those of this run.
    rows: Vec<Row>,
}

/// One run: `DATE COMMIT FIGURE COUNT ok|failed SAID`, parted by tabs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    date: String,
    commit: String,
    /// The topic and the figure.
    figure: String,
    count: u64,
    passed: bool,
    /// What the check itself said about the run.
    said: String,
}

/// What ran of a figure since it last failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) runs: usize,
    /// The last run failed.
    pub(super) failed: bool,
}

impl Ledger {
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let path = root.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("read {FILE}: {error}"))?;
        let commit = committed(root)?;
        if commit.is_none() {
            println!("show: some sources are not committed; what runs now is not noted in {FILE}");
        }
        let known = commits(root)?;
        let (rows, lost): (Vec<_>, Vec<_>) = parse(&text)?.into_iter().partition(|row| row.is_of(&known));
        for row in lost {
            println!(
                "show: {FILE}: {} ran on {}, which the history does not have; it does not count",
                row.figure, row.commit
            );
        }
        Ok(Self { path, commit, rows })
    }

    /// The sum of a figure. With sources that are not committed, earlier runs do not count.
    pub(super) fn sum(&self, figure: &str) -> Sum {
        let mut sum = Sum::default();
        for row in self.rows.iter().filter(|row| row.figure == figure) {
            sum = match row.passed {
                true if sum.failed => Sum { count: row.count, runs: 1, failed: false },
                true => Sum { count: sum.count + row.count, runs: sum.runs + 1, failed: false },
                false => Sum { failed: true, ..Sum::default() },
            };
        }
        sum
    }

    /// Notes a run.
    pub(super) fn note(&mut self, figure: &str, count: u64, passed: bool, said: &str) -> Result<(), String> {
        let Some(commit) = self.commit.clone() else {
            self.rows.retain(|row| row.figure != figure);
            self.rows.push(Row::new(String::new(), String::new(), figure, count, passed, said));
            return Ok(());
        };
        let row = Row::new(today()?, commit, figure, count, passed, said);
        // Appended, so that nothing is lost if this program is stopped, and rows of two machines can be merged.
        let file = OpenOptions::new().append(true).open(&self.path);
        let written = file.and_then(|mut file| writeln!(file, "{}", row.line()));
        written.map_err(|error| format!("write {FILE}: {error}"))?;
        self.rows.push(row);
        Ok(())
    }
}

impl Row {
    fn new(date: String, commit: String, figure: &str, count: u64, passed: bool, said: &str) -> Self {
        Self { date, commit, figure: figure.to_owned(), count, passed, said: said.replace(['\t', '\n'], " ") }
    }

    /// Whether it ran on one of these commits.
    fn is_of(&self, commits: &[String]) -> bool {
        commits.iter().any(|commit| commit.starts_with(&self.commit))
    }

    fn line(&self) -> String {
        let Self { date, commit, figure, count, passed, said } = self;
        let verdict = if *passed { "ok" } else { "failed" };
        format!("{date}\t{commit}\t{figure}\t{count}\t{verdict}\t{said}")
    }

    fn parse(line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.split('\t').collect();
        let [date, commit, figure, count, verdict, said] = cells[..] else { return None };
        let passed = match verdict {
            "ok" => true,
            "failed" => false,
            _ => return None,
        };
        Some(Self::new(date.to_owned(), commit.to_owned(), figure, count.parse().ok()?, passed, said))
    }
}

/// The rows under the heading.
fn parse(text: &str) -> Result<Vec<Row>, String> {
    let lines = text.lines().enumerate().skip(1);
    let row = |(place, line)| Row::parse(line).ok_or_else(|| format!("{FILE}:{}: not a row: {line:?}", place + 1));
    lines.map(row).collect()
}

/// The commit; none if some sources are not committed.
fn committed(root: &Path) -> Result<Option<String>, String> {
    if !git(root, &[&["status", "--porcelain", "--"], SOURCES].concat())?.is_empty() {
        return Ok(None);
    }
    Ok(Some(git(root, &["rev-parse", "--short=12", "HEAD"])?.trim().to_owned()))
}

/// The commits in the history of HEAD.
fn commits(root: &Path) -> Result<Vec<String>, String> {
    Ok(git(root, &["rev-list", "HEAD"])?.lines().map(str::to_owned).collect())
}

fn git(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(arguments).current_dir(root).output();
    let output = output.map_err(|error| format!("start git: {error}"))?;
    if !output.status.success() {
        return Err(format!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("git: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(path: &Path, commit: Option<&str>) -> Ledger {
        let rows = parse(&std::fs::read_to_string(path).unwrap()).unwrap();
        Ledger { path: path.to_owned(), commit: commit.map(str::to_owned), rows }
    }

    fn sum(count: u64, runs: usize, failed: bool) -> Sum {
        Sum { count, runs, failed }
    }

    #[test]
    fn runs_add_up_until_one_fails() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger.tsv");
        std::fs::write(&path, "heading\n").unwrap();
        assert_eq!(ledger(&path, None).sum("pressure rot"), Sum::default());
        for (count, passed, expected) in [
            (100, true, sum(100, 1, false)),
            (50, true, sum(150, 2, false)),
            (100, false, sum(0, 0, true)),
            (20, false, sum(0, 0, true)),
            (10, true, sum(10, 1, false)),
            (5, true, sum(15, 2, false)),
        ] {
            let mut ledger = ledger(&path, Some("abc"));
            ledger.note("pressure rot", count, passed, "said\tsomething\nand more").unwrap();
            assert_eq!(ledger.sum("pressure rot"), expected);
            assert_eq!(ledger.sum("pressure suite"), Sum::default());
        }
        assert_eq!(ledger(&path, None).sum("pressure rot"), sum(15, 2, false), "as it was written");
    }

    #[test]
    fn runs_of_sources_that_are_not_committed_are_not_noted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger.tsv");
        std::fs::write(&path, "heading\n2026-11-16\tabc\tpressure rot\t100\tok\tsaid\n").unwrap();
        let mut ledger = ledger(&path, None);
        ledger.note("pressure rot", 7, true, "").unwrap();
        assert_eq!(ledger.sum("pressure rot"), sum(7, 1, false), "and earlier ones do not count");
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
    }

    #[test]
    fn runs_of_commits_that_are_not_in_the_history_do_not_count() {
        let repository = tempfile::tempdir().unwrap();
        let root = repository.path();
        for command in ["init --quiet", "-c user.name=a -c user.email=a@b commit --quiet --allow-empty --message first"]
        {
            git(root, &command.split(' ').collect::<Vec<_>>()).unwrap();
        }
        let head = git(root, &["rev-parse", "--short=12", "HEAD"]).unwrap();
        std::fs::create_dir(root.join("docs")).unwrap();
        let row = |commit: &str, count: u64| format!("2026-11-16\t{commit}\tpressure rot\t{count}\tok\tsaid\n");
        let text = format!("heading\n{}{}", row(head.trim(), 100), row("000000000000", 7));
        std::fs::write(root.join(FILE), text).unwrap();
        assert_eq!(Ledger::read(root).unwrap().sum("pressure rot"), sum(100, 1, false));
    }

    #[test]
    fn a_row_that_cannot_be_read_is_refused_by_its_line() {
        let good = "2026-11-16\tabc\tpressure rot\t100\tok\tsaid";
        for bad in
            ["", "2026-11-16\tabc\tpressure rot\t100\tok", &good.replace("ok", "fine"), &good.replace("100", "x")]
        {
            let error = parse(&format!("heading\n{good}\n{bad}\n")).unwrap_err();
            assert!(error.starts_with("docs/ledger.tsv:3: "), "{error}");
        }
        assert_eq!(parse(&format!("heading\n{good}\n")).unwrap()[0].line(), good);
    }

    #[test]
    fn the_ledger_of_the_project_can_be_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        parse(&std::fs::read_to_string(root.join(FILE)).unwrap()).unwrap();
    }
}
