//! A server that is silent, and one that is not there.

use std::net::TcpListener;

use wire::routes::{CELLS_WRITE, SERVER_VERSION};

use super::*;
use crate::client::ClientOptions;

#[tokio::test]
async fn a_server_that_is_silent_is_not_waited_for_longer_than_was_said() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let options = ClientOptions::default().timeout(Duration::from_millis(200)).without_retries().without_sessions();
    let client = options.connect(&url).expect("a client");
    let began = Instant::now();
    let read = client.call(SERVER_VERSION, &[]).send().await.expect_err("nobody answers");
    assert_eq!(read.to_string(), format!("no answer from {url} within 200 ms"));
    let written = client.call(CELLS_WRITE, &["a"]).json(&1).send().await.expect_err("nobody answers");
    assert_eq!(written.outcome(), Outcome::Unknown);
    let waited = client.call(CELLS_WRITE, &["a"]).waiting(Some(Duration::from_millis(100))).answer().await;
    assert!(waited.expect_err("nobody answers").to_string().contains("within 300 ms"));
    listener.set_nonblocking(true).expect("a socket");
    assert_eq!(std::iter::from_fn(|| listener.accept().ok()).count(), 3, "each was sent once");
    assert!(began.elapsed() < Duration::from_secs(20), "nobody was waited for");
    drop(listener);
    // It has time: what it is told is not that time is over.
    let options = ClientOptions::default().timeout(Duration::from_secs(60)).without_retries().without_sessions();
    let client = options.connect(&url).expect("a client");
    let refused = client.call(CELLS_WRITE, &["a"]).json(&1).send().await.expect_err("nobody listens");
    assert_eq!(refused.outcome(), Outcome::NotApplied);
    assert!(refused.to_string().contains("connection refused"), "{refused}");
}
