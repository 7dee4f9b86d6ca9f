//! Backups and exports through a real socket.

#![allow(clippy::disallowed_methods, reason = "tests wait by the machine's clock")]

mod running;

use std::time::{Duration, Instant};

use running::Running;
use statehouse::{Options, backup, export, import};
use statehouse_server::Server;
use testkit::http::{ClientOptions, Request, Response, block_on};

fn served() -> Running {
    Running::start(&Options::default(), Server::new)
}

fn get(served: &Running, path: &str) -> Response {
    served.client().send(Request::get(path)).expect("an answer")
}

#[test]
fn a_backup_is_streamed_whole_and_a_check_of_it_is_heard() {
    let served = served();
    for number in 0..40 {
        served.house.cells().set(&format!("cell/{number}"), "x".repeat(100_000)).expect("written");
    }
    let Response { status, headers, body } = get(&served, "/v1/backup");
    assert_eq!(status, 200);
    let said = backup::Manifest::peek(&body[..200]).expect("a manifest comes first");
    assert_eq!(said.file_bytes(), body.len() as u64);
    let checked = backup::verify(&mut body.as_slice(), &mut |_| {}).expect("whole");
    let commit = ("statehouse-commit".to_owned(), checked.manifest.commit.to_string());
    assert!(headers.contains(&commit), "{headers:?}");
    let path = served.folder.path().join("restored");
    backup::restore(&path, &mut body.as_slice(), &mut |_| {}).expect("restored");
    assert_eq!(backup::image_of_directory(&path).expect("an image"), checked.image_sha256);

    let said = |store: String| {
        let verified = Request::post("/v1/backup/verified").body(format!("{{\"store\":\"{store}\"}}"));
        served.client().send(verified).expect("an answer").status
    };
    assert_eq!(said(format!("{:016x}", served.house.id())), 200);
    assert_eq!(said("0".repeat(16)), 400, "of another store");
}

#[test]
fn a_second_backup_is_refused_by_name_until_the_first_is_over() {
    let served = served();
    for number in 0..24 {
        // More than the server and both sockets keep, so that the first one cannot end unseen.
        served.house.cells().set(&format!("cell/{number}"), vec![7; 1 << 20]).expect("written");
    }
    let first = block_on(served.client().typed(ClientOptions::default()).backup()).expect("a backup begins");
    let refused = get(&served, "/v1/backup");
    let body = refused.text();
    assert!(refused.status == 429 && refused.header("retry-after").is_some(), "{refused:?}");
    assert!(body.contains("backups_running_max") && body.contains("SH-2001"), "{body}");

    drop(first);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let response = get(&served, "/v1/backup");
        if response.is_success() {
            backup::verify(&mut response.body.as_slice(), &mut |_| {}).expect("whole");
            break;
        }
        assert!(Instant::now() < deadline, "a client that has gone holds up nobody");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_export_is_streamed_whole_for_all_spaces_or_one() {
    let served = served();
    served.house.cells().set("here", "x".repeat(600_000)).expect("written");
    served.house.create_space("shop").expect("a space").cells().set("there", 1).expect("written");
    let mut expected = Vec::new();
    export::write(&served.house, None, &mut expected, &mut |_| {}).expect("exported");
    let response = get(&served, "/v1/export");
    assert_eq!((response.status, response.header("content-type")), (200, Some("application/jsonl")));
    let body = response.body;
    assert!(body == expected, "the same lines as the library's");
    let path = served.folder.path().join("imported");
    import::read(&path, &mut body.as_slice(), &mut |_| {}).expect("imported");

    let shop = get(&served, "/v1/export?space=shop").text();
    assert!(shop.contains("\"there\"") && !shop.contains("\"here\""), "{shop}");
    let missing = get(&served, "/v1/export?space=nowhere");
    assert_eq!(missing.status, 404, "{}", missing.text());
}
