//! A damaged directory: `doctor` names what is damaged, and `doctor --salvage` keeps everything else.

use std::path::Path;
use std::process::{Command, Output};

use statehouse::Statehouse;

const CELLS: u32 = 500;

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let command = Command::new(env!("CARGO_BIN_EXE_statehouse")).args(arguments).env_remove("STATEHOUSE_URL").output();
    let Output { status, stdout, stderr } = command.expect("started");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}

fn name(number: u32) -> String {
    format!("cell/{number:04}")
}

fn value(number: u32) -> String {
    format!("the value of {number}, {}", "x".repeat(60))
}

fn flip(folder: &Path, text: &str) {
    for entry in std::fs::read_dir(folder.join("store")).expect("a store") {
        let path = entry.expect("an entry").path();
        let mut bytes = std::fs::read(&path).expect("read");
        if let Some(place) = bytes.windows(text.len()).position(|window| window == text.as_bytes()) {
            bytes[place] ^= 1;
            return std::fs::write(&path, bytes).expect("written");
        }
    }
    panic!("no table holds {text:?}");
}

#[test]
fn everything_but_the_damaged_block_is_salvaged_and_the_rest_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, new) = (folder.path().join("house"), folder.path().join("new"));
    let house = Statehouse::open(&data).expect("opened");
    for number in 0..CELLS {
        house.cells().set(&name(number), value(number)).expect("set");
    }
    drop(house);
    let (data, new) = (data.to_str().expect("UTF-8"), new.to_str().expect("UTF-8"));
    assert_eq!(run(&["doctor", data]).0, Some(0), "it is whole");
    flip(Path::new(data), &value(250));

    let (code, said, wrong) = run(&["doctor", data]);
    assert_eq!(code, Some(7), "{said}{wrong}");
    assert!(wrong.contains("SH-2023") && wrong.contains("--salvage"), "{wrong}");
    let (code, said, wrong) = run(&["doctor", data, "--salvage", new, "-o", "json"]);
    assert_eq!(code, Some(7), "{said}{wrong}");
    let report: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((report["missing"].as_array().map(Vec::len), &report["damage"][0]["effect"]), (Some(1), &"lost".into()));
    let salvaged = Statehouse::open(new).expect("opened");
    let missing: Vec<u32> =
        (0..CELLS).filter(|number| salvaged.cells().get(&name(*number)).expect("readable").is_none()).collect();
    assert!(missing.contains(&250) && missing.len() < 60, "{missing:?}");
    assert_eq!(report["counts"]["cell"].as_u64(), Some(u64::from(CELLS) - missing.len() as u64));
    drop(salvaged);
    assert_eq!(run(&["doctor", new]).0, Some(0), "the new directory is whole");
    let (code, _, wrong) = run(&["doctor", data, "--salvage", new]);
    assert_eq!(code, Some(5), "nothing is overwritten: {wrong}");
}
