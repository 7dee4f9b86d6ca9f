//! Checkpoints and restores of a directory that the command opens itself: they end before it does, and it says how.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use statehouse::Statehouse;
use statehouse::records::ClaimOptions;

/// Fills a partition with more than is written in a millisecond.
fn fill(data: &Path) {
    let house = Statehouse::open(data).expect("opened");
    let mut owned = house.keyed("words").partition(3).acquire(&ClaimOptions::worker("w")).expect("owned");
    for round in 0..4_u64 {
        let mut commit = owned.commit();
        for key in 0..5_000 {
            commit = commit.put(format!("{round}-{key}").as_bytes(), "x".repeat(100), 1);
        }
        commit.run().expect("committed");
    }
    owned.release().expect("released");
    house.close().expect("closed");
}

/// The one file with rows.
fn rows(folder: &Path) -> PathBuf {
    let folder = folder.join("default/main/words/3/00000000000000000001");
    let files = fs::read_dir(folder).expect("a checkpoint").map(|entry| entry.expect("an entry").path());
    files.into_iter().find(|file| file.extension().is_some_and(|ending| ending == "rows")).expect("rows")
}

#[test]
fn a_command_ends_after_what_it_began() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, place) = (folder.path().join("data"), folder.path().join("place"));
    fill(&data);
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_statehouse"));
        command.arg("keyed").args(arguments).arg("--data").arg(&data).env("STATEHOUSE_CHECKPOINTS", &place);
        let output = command.env_remove("STATEHOUSE_URL").output().expect("started");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let shows = |printed: &str, row: &[&str]| {
        let rows = printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.into_iter().any(|words| words.windows(row.len()).any(|shown| shown == row))
    };
    let (code, printed, said) = run(&["checkpoint", "words", "3", "--force", "--wait", "1ms"]);
    assert!(
        code == Some(0) && shows(&printed, &["1", "true", "20000"]) && said.is_empty(),
        "{code:?} {printed} {said}"
    );
    let (code, printed, said) = run(&["restore", "words", "3", "--worker", "w2", "--yes", "--wait", "1ms"]);
    assert!(
        code == Some(0) && shows(&printed, &["words/3", "1", "true"]) && said.is_empty(),
        "{code:?} {printed} {said}"
    );
    let (_, printed, _) = run(&["partitions", "words"]);
    assert!(printed.contains("20000"), "{printed}");
    let rows = rows(&place);
    let mut bytes = fs::read(&rows).expect("bytes");
    *bytes.last_mut().expect("bytes") ^= 1;
    fs::write(rows, bytes).expect("written");
    let (code, _, said) = run(&["restore", "words", "3", "--worker", "w3", "--yes", "--wait", "1ms"]);
    assert!(code == Some(2) && said.contains("SH-8015"), "{code:?} {said}");
}
