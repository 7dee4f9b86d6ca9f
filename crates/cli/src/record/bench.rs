//! Jobs as a load: each is put, claimed and completed.

use client::Client;
use client::records::fields;
use wire::records::claims::Claim;
use wire::records::{PutRecord, ScanRecords};

use crate::exit::Failure;

/// A job that a caller has put or claimed.
pub(crate) enum Held {
    Put { name: String },
    Claimed { token: String },
}

/// The next of the three operations of a job, whose name begins with the caller's own prefix.
pub(crate) async fn next(client: &Client, prefix: &str, ticket: u64, held: &mut Option<Held>) -> Result<(), Failure> {
    let records = client.records();
    match held.take() {
        None => {
            let name = format!("{prefix}{ticket}");
            let put = PutRecord {
                record_type: Some("task".to_owned()),
                ..PutRecord::of(fields([("ticket", whole(ticket))]))
            };
            records.put(&name, &put, None).await?;
            *held = Some(Held::Put { name });
        }
        Some(Held::Put { name }) => {
            let claim = Claim { n: Some(1), worker: Some("statehouse-bench".to_owned()), ..Claim::of_queue(prefix) };
            let claimed = records.claim(&claim).await?.into_iter().next();
            let claimed = claimed.ok_or_else(|| Failure::other(format!("{name} was put but could not be claimed")))?;
            *held = Some(Held::Claimed { token: claimed.token });
        }
        Some(Held::Claimed { token }) => {
            records.complete(&token, [("result", "measured")]).await?;
        }
    }
    Ok(())
}

fn whole(ticket: u64) -> i64 {
    i64::try_from(ticket).unwrap_or(i64::MAX)
}

/// Deletes the jobs of all callers.
pub(crate) async fn delete(client: &Client, prefix: String) -> Result<(), Failure> {
    let query = ScanRecords { prefix: Some(prefix), limit: Some(1_000), ..ScanRecords::default() };
    loop {
        let page = client.records().scan(&query).await?;
        for record in &page.records {
            client.records().delete(&record.name, None).await?;
        }
        if page.records.is_empty() {
            return Ok(());
        }
    }
}
