//! A directory is whole or unfinished, has one opener, and is never made among foreign files.

use super::*;

fn open(path: &Path) -> Result<Found, Error> {
    Directory::open(path, Buckets::default(), FilledBy::Opener)
}

#[test]
fn a_directory_cut_short_is_begun_again_and_a_whole_one_is_found() {
    let temporary = tempfile::tempdir().expect("a directory");
    let path = temporary.path().join("a/b");
    assert!(matches!(open(&path), Ok(Found::New(_))));
    std::fs::write(path.join("store/a"), "a leftover").expect("a leftover");
    let Ok(Found::New(unfinished)) = open(&path) else { panic!("begun again") };
    assert!(!path.join("store/a").exists(), "leftovers are cleared");
    let made = unfinished.finish().expect("finish");
    let identity = made.identity();
    drop(made);
    assert!(matches!(open(&path), Ok(Found::Whole(found)) if found.identity() == identity));
}

#[test]
fn a_second_opener_and_a_lost_identity_are_refused_and_nothing_is_removed() {
    let temporary = tempfile::tempdir().expect("a directory");
    let path = temporary.path().join("house");
    let Ok(Found::New(unfinished)) = open(&path) else { panic!("new") };
    let made = unfinished.finish().expect("finish");
    let message = open(&path).err().expect("refused").to_string();
    assert!(message.contains("already open, in this process"), "{message}");
    drop(made);
    std::fs::remove_file(path.join(IDENTITY_FILE)).expect("remove");
    let message = open(&path).err().expect("refused").to_string();
    assert!(message.contains("no IDENTITY"), "{message}");
    assert!(path.join("journal").exists());
}

/// Whoever serves the folder must not take it for a new one: most of the data may already be there.
#[test]
fn an_interrupted_transfer_is_refused_until_it_is_run_again() {
    let temporary = tempfile::tempdir().expect("a directory");
    let path = temporary.path().join("house");
    let transfer = |path: &Path| Directory::open(path, Buckets::default(), FilledBy::Transfer);
    // Over an interrupted creation, which holds nothing.
    drop(open(&path).expect("begun"));
    drop(transfer(&path).expect("begun"));
    std::fs::write(path.join("store/a"), "half of the data").expect("a leftover");
    let message = open(&path).err().expect("refused").to_string();
    assert!(message.contains("was interrupted") && message.contains("run it again"), "{message}");
    assert!(path.join("store/a").exists(), "nothing is removed");
    assert!(check_free(&path).is_ok(), "it may be run again");
    let Ok(Found::New(unfinished)) = transfer(&path) else { panic!("begun again") };
    assert!(!path.join("store/a").exists(), "leftovers are cleared");
    unfinished.finish().expect("finish");
    assert!(matches!(open(&path), Ok(Found::Whole(_))));
}

#[test]
fn links_and_files_of_others_are_refused_by_name_and_left_alone() {
    let temporary = tempfile::tempdir().expect("a directory");
    let path = |name: &str| temporary.path().join(name);
    let refused = |path: &Path| open(path).err().expect("refused").to_string();
    std::fs::create_dir(path("full")).expect("made");
    std::fs::write(path("full/a.txt"), "kept").expect("written");
    let said = refused(&path("full"));
    assert!(said.contains("is not empty") && said.contains("a.txt"), "{said}");
    assert!(!path("full/LOCK").exists(), "nothing is made there");
    assert!(refused(&path("full/a.txt")).contains("is a file"));
    std::fs::create_dir(path("empty")).expect("made");
    std::os::unix::fs::symlink(path("empty"), path("link")).expect("planted");
    assert!(refused(&path("link")).contains("is a link"));
    for part in ["LOCK", "IDENTITY.new", "store", "journal"] {
        let house = path(&format!("house-{part}"));
        std::fs::create_dir(&house).expect("made");
        std::os::unix::fs::symlink(path("full/a.txt"), house.join(part)).expect("planted");
        if let Ok(Found::New(unfinished)) = open(&house) {
            unfinished.finish().expect("finished");
            let found = std::fs::symlink_metadata(house.join(part)).map(|found| found.is_symlink());
            assert!(!found.unwrap_or(false), "{part} was replaced");
        }
    }
    // A second name of a foreign file is no link, but to write to it would be to write to that file.
    std::fs::create_dir(path("house-twice")).expect("made");
    std::fs::hard_link(path("full/a.txt"), path("house-twice/IDENTITY.new")).expect("planted");
    let Ok(Found::New(unfinished)) = open(&path("house-twice")) else { panic!("begun again") };
    unfinished.finish().expect("finished");
    assert_eq!(std::fs::read_to_string(path("full/a.txt")).expect("there"), "kept");
}
