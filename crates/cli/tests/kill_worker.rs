//! The demonstration `examples/kill_worker.sh`: it prints what README's picture of it shows, and leaves nothing behind.

use std::path::{Path, PathBuf};
use std::process::Command;

const PICTURE: &str = "docs/images/kill-worker.svg";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The lines of the picture: what stands in its `<text class="line …">`, without tags.
fn drawn(picture: &str) -> Vec<String> {
    let texts = picture.lines().filter(|line| line.trim_start().starts_with("<text") && line.contains("class=\"line"));
    texts
        .map(|text| {
            let inside = text.split('<').skip(1).filter_map(|tag| tag.split_once('>')).map(|(_, text)| text);
            let inside: String = inside.collect();
            inside.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        })
        .collect()
}

#[test]
fn the_picture_shows_what_the_script_prints() {
    let temporary = tempfile::tempdir().expect("a directory");
    let command = Path::new(env!("CARGO_BIN_EXE_statehouse"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = command.parent().map(Path::to_path_buf).into_iter().chain(std::env::split_paths(&path));
    let output = Command::new("bash")
        .arg(repository().join("examples/kill_worker.sh"))
        .env("PATH", std::env::join_paths(directories).expect("a path"))
        .env("TMPDIR", temporary.path())
        .output()
        .expect("bash starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));

    let picture = std::fs::read_to_string(repository().join(PICTURE)).expect("the picture");
    let printed: Vec<&str> = printed.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(drawn(&picture), printed, "draw in {PICTURE} what examples/kill_worker.sh prints");

    let left: Vec<_> = std::fs::read_dir(temporary.path()).expect("the directory").flatten().collect();
    assert!(left.is_empty(), "it leaves {left:?}");
}

#[test]
fn tags_and_escapes_are_not_part_of_a_line() {
    let picture = "<svg>\n  <text class=\"name\">x</text>\n  <text x=\"1\" class=\"line\"><tspan class=\"a\">$ </tspan>a &lt;b&gt; &amp;</text>\n</svg>";
    assert_eq!(drawn(picture), ["$ a <b> &"]);
}
