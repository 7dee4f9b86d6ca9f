//! The library passes the suite of the contract of runs, over restarts and over images.

use std::path::PathBuf;

use statehouse::runs::{AppendResult, NewEvent, RunSnapshot, RunStateStore, Runs, StoredEvent};
use statehouse::{Error, Statehouse};

/// Runs with the directory that holds them.
struct Kept {
    runs: Runs,
    house: Statehouse,
    path: PathBuf,
    directory: tempfile::TempDir,
}

impl Kept {
    fn open(directory: tempfile::TempDir, path: PathBuf) -> Self {
        let house = Statehouse::open(&path).expect("a house");
        Self { runs: house.runs(), house, path, directory }
    }
}

impl RunStateStore for Kept {
    fn append_event(&self, run: &str, event: &NewEvent) -> Result<AppendResult, Error> {
        self.runs.append_event(run, event)
    }

    fn fetch_events(&self, run: &str, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        self.runs.fetch_events(run, after_seq, limit)
    }

    fn get_snapshot(&self, run: &str) -> Result<Option<RunSnapshot>, Error> {
        self.runs.get_snapshot(run)
    }

    fn project_snapshot(&self, run: &str) -> Result<RunSnapshot, Error> {
        self.runs.project_snapshot(run)
    }
}

fn make() -> Kept {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("house");
    Kept::open(directory, path)
}

#[test]
fn runs_pass_over_a_restart() {
    testkit::run_store::suite(make, |kept| {
        let Kept { runs, house, path, directory } = kept;
        house.close().expect("closed");
        drop((runs, house));
        Kept::open(directory, path)
    });
}

#[test]
fn runs_pass_over_an_image() {
    testkit::run_store::suite(make, |kept| {
        let mut image = Vec::new();
        kept.house.write_image(&mut image).expect("an image");
        let path = kept.directory.path().join("restored");
        Statehouse::restore_image(&path, &mut image.as_slice()).expect("restored");
        let Kept { runs, house, directory, .. } = kept;
        drop((runs, house));
        Kept::open(directory, path)
    });
}
