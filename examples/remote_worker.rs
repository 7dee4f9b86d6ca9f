//! A worker in another process than the store: it claims jobs over HTTP, works, and completes them.
//!
//! Run `statehouse dev` in one terminal, then `cargo run -p statehouse-client --example remote_worker`. Without a
//! server it says so.

use std::time::Duration;

use statehouse_client::records::fields;
use statehouse_client::wire::records::PutRecord;
use statehouse_client::wire::records::claims::Claim;
use statehouse_client::wire::values::DurationText;
use statehouse_client::{Client, Error};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let url = std::env::var("STATEHOUSE_URL").unwrap_or_else(|_| "http://127.0.0.1:7420".to_owned());
    let client = Client::connect(&url)?;
    for (number, to) in [(1, "ann@example.org"), (2, "bob@example.org")] {
        let job = PutRecord { record_type: Some("task".into()), ..PutRecord::of(fields([("to", to)])) };
        client.records().put(&format!("mails.{number}"), &job, None).await?;
    }
    // Nothing renews the lease: a worker that needs longer calls `extend`. If a worker is killed, its session expires
    // and its job comes back.
    let claim = Claim {
        worker: Some("remote".into()),
        lease: Some(DurationText(Duration::from_secs(30))),
        wait: Some(DurationText(Duration::from_secs(1))),
        ..Claim::of_queue("mails.")
    };
    loop {
        let claimed = client.records().claim(&claim).await?;
        let Some(job) = claimed.first() else { break };
        println!("{} to {:?}, attempt {}", job.record, job.fields.get("to").map(|to| &to.0), job.attempt);
        // The token is unique for the attempt: pass it on as an idempotency key to whatever sends the mail.
        client.records().complete(&job.token, [("result", "sent")]).await?;
    }
    client.close().await
}
