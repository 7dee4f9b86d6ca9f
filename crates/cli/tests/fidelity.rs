//! JSON that is given to a command comes back from it as the same text, in every format.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use testkit::server_process::{Launch, ServerProcess};

const BINARY: &str = env!("CARGO_BIN_EXE_statehouse");

/// What a tree of values would change: digits, order, repetition, escapes, spaces.
const DOCUMENTS: [&str; 7] = [
    "12345678901234567890123456789",
    "-0",
    "1.50",
    "1e400",
    r#""\u0041\/""#,
    r#"{"b": 1.0, "a" :[1E+2,-0.0], "b":2}"#,
    r#"{"$b64": "AP8="}"#,
];

fn statehouse(server: &ServerProcess, arguments: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(BINARY)
        .args(arguments)
        .args(["--url", &format!("http://{}", server.address())])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // A command that reads no stdin may be gone already.
    let _ = child.stdin.take().expect("it was asked for").write_all(stdin.as_bytes());
    child.wait_with_output().expect("it ends")
}

fn succeeds(server: &ServerProcess, arguments: &[&str], stdin: &str) -> String {
    let output = statehouse(server, arguments, stdin);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn served() -> (tempfile::TempDir, ServerProcess) {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Launch::serve(BINARY, directory.path().join("house")).start().expect("a server");
    (directory, server)
}

#[test]
fn every_format_shows_the_text_that_was_given() {
    let (_directory, server) = served();
    for json in DOCUMENTS {
        succeeds(&server, &["cell", "set", "c", "-"], &format!(" {json}\n"));
        succeeds(&server, &["rec", "set", "r", "-"], &format!("{{\"f\": {json}}}"));
        succeeds(&server, &["rec", "patch", "r", &format!("f={json}"), "--expect", &format!("f={json}")], "");
        succeeds(&server, &["run", "append", "run", "Noted", "-"], json);
        let transaction = format!(r#"{{"group":"g","do":[{{"op":"cell.set","name":"t","value":{json}}}]}}"#);
        succeeds(&server, &["txn", "-f", "-"], &transaction);
        for format in ["json", "jsonl"] {
            let separator = if format == "json" { ": " } else { ":" };
            let shows = |arguments: &[&str], member: &str| {
                let shown = succeeds(&server, &[arguments, &["-o", format]].concat(), "");
                assert!(
                    shown.contains(&format!("\"{member}\"{separator}{json}")),
                    "{arguments:?} in {format}: {shown}"
                );
            };
            shows(&["cell", "get", "c"], "value");
            shows(&["cell", "get", "t", "--group", "g"], "value");
            shows(&["cell", "ls", "c"], "value");
            shows(&["cell", "history", "c"], "value");
            shows(&["rec", "get", "r"], "f");
            shows(&["rec", "scan", "r"], "f");
            shows(&["run", "show", "run", "--events", "1"], "eventData");
        }
        let tailed = succeeds(&server, &["run", "tail", "run", "-o", "jsonl"], "");
        assert!(tailed.contains(&format!("\"eventData\":{json}")), "{tailed}");
        // Text and bytes are themselves in a table and raw; all else is the JSON that it is.
        if !json.starts_with('"') {
            assert_eq!(succeeds(&server, &["cell", "get", "c", "-o", "raw"], ""), json);
            assert!(succeeds(&server, &["cell", "get", "c"], "").contains(json), "{json}");
            assert!(succeeds(&server, &["rec", "get", "r"], "").contains(json), "{json}");
            assert!(succeeds(&server, &["run", "tail", "run"], "").contains(json), "{json}");
        }
    }
    succeeds(&server, &["cell", "set", "lines", "-"], "[1.0,\r\n2]");
    assert_eq!(succeeds(&server, &["cell", "get", "lines", "-o", "raw"], ""), "[1.0,\r\n2]");
    assert!(succeeds(&server, &["cell", "get", "lines", "-o", "jsonl"], "").contains("[1.0,  2]"), "one line");
}

#[test]
fn json_that_no_server_takes_is_refused_and_not_taken_for_text() {
    let (_directory, server) = served();
    for json in [r#""\ud800""#, &"[".repeat(97).chars().chain("]".repeat(97).chars()).collect::<String>()] {
        let output = statehouse(&server, &["cell", "set", "c", json], "");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    let output = statehouse(&server, &["rec", "set", "r", r#"{"a":1,"\u0061":2}"#], "");
    assert!(String::from_utf8_lossy(&output.stderr).contains("duplicate member \"a\""), "{output:?}");
}
