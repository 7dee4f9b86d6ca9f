//! Jobs as a load: each is put, claimed and completed.

use client::Client;
use client::records::fields;
use wire::records::claims::Claim;
use wire::records::{PutRecord, ScanRecords};

use super::Rec;
use crate::bench::load::{Benched, Names, Operation, Turn};
use crate::exit::Failure;

/// A job that a caller has put or claimed.
pub(crate) enum Kept {
    Put { name: String },
    Claimed { token: String },
}

impl Benched for Rec {
    const OPERATIONS: &'static [Operation] = &[Operation::Claim];

    type Kept = Option<Kept>;

    /// The next of the three operations of a job, whose name begins with the caller's own prefix.
    async fn operate(
        client: &Client,
        names: &Names,
        _: Operation,
        Turn { caller, ticket }: Turn,
        kept: &mut Option<Kept>,
    ) -> Result<(), Failure> {
        let records = client.records();
        let prefix = format!("{}{caller}.", prefix_of(names));
        match kept.take() {
            None => {
                let name = format!("{prefix}{ticket}");
                let put = PutRecord {
                    record_type: Some("task".to_owned()),
                    ..PutRecord::of(fields([("ticket", whole(ticket))]))
                };
                records.put(&name, &put, None).await?;
                *kept = Some(Kept::Put { name });
            }
            Some(Kept::Put { name }) => {
                let claim =
                    Claim { n: Some(1), worker: Some("statehouse-bench".to_owned()), ..Claim::of_queue(&prefix) };
                let claimed = records.claim(&claim).await?.into_iter().next();
                let claimed =
                    claimed.ok_or_else(|| Failure::other(format!("{name} was put but could not be claimed")))?;
                *kept = Some(Kept::Claimed { token: claimed.token });
            }
            Some(Kept::Claimed { token }) => {
                records.complete(&token, [("result", "measured")]).await?;
            }
        }
        Ok(())
    }

    async fn clean_up(client: &Client, names: &Names) -> Result<(), Failure> {
        let query = ScanRecords { prefix: Some(prefix_of(names)), limit: Some(1_000), ..ScanRecords::default() };
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
}

/// The prefix of the jobs of all callers.
fn prefix_of(names: &Names) -> String {
    format!("{}{}.", names.prefix, names.mark)
}

fn whole(ticket: u64) -> i64 {
    i64::try_from(ticket).unwrap_or(i64::MAX)
}
