//! Images written automatically: when they are due, complete, and no more than the kept number.

mod held;

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use held::{HeldClock, eventually};
use statehouse::{ImagePolicy, Options, Statehouse};

/// The finished images.
fn images(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().expect("text")).collect();
    names.retain(|name| name.ends_with(".shimage"));
    names.sort();
    names
}

#[test]
fn images_are_written_when_due_and_hold_everything() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path().join("images");
    let policy = ImagePolicy { entries: Some(10), bytes: None, age: None };
    let options = Options::default().images(&folder, policy, 2);
    let house = options.open(directory.path().join("house")).expect("a house");
    for round in 1..=3_i64 {
        let newest_before = images(&folder).pop();
        for n in 0..10 {
            house.cells().set("n", round * 100 + n).expect("set");
        }
        eventually("an image", || images(&folder).pop() != newest_before);
    }
    eventually("older ones go", || images(&folder).len() == 2);
    let kept = images(&folder);
    let mut image = std::fs::File::open(folder.join(kept.last().expect("one"))).expect("an image");
    let restored = directory.path().join("restored");
    Statehouse::restore_image(&restored, &mut image).expect("whole");
    let value = Statehouse::open(&restored).expect("a house").cells().get("n").expect("get");
    assert!(value.is_some_and(|value| value.as_integer().is_some_and(|n| n >= 300)));
}

#[test]
fn an_idle_store_writes_no_images() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path().join("images");
    let policy = ImagePolicy { entries: None, bytes: Some(1), age: Some(Duration::ZERO) };
    let clock = Arc::new(HeldClock::default());
    let options = Options::default().clock(clock.clone()).images(&folder, policy, 2);
    let house = options.open(directory.path().join("house")).expect("a house");
    house.cells().set("n", 1).expect("set");
    eventually("an image", || images(&folder).len() == 1);
    // An image of the same entry would have the same name, and be another file.
    let file = || {
        let found = std::fs::metadata(folder.join(images(&folder).pop()?)).ok()?;
        Some((found.ino(), found.mtime(), found.mtime_nsec()))
    };
    let first = (images(&folder), file());
    // Each look at whether one is due asks for the time once; of these looks, only the last may still go on.
    let looks = clock.readings("image");
    eventually("three looks", || clock.readings("image") >= looks + 3);
    assert_eq!((images(&folder), file()), first);
}
