//! Runs as a load: each operation appends an event to one of a few.

use client::Client;
use wire::routes::RUNS_DELETE;

use super::Run;
use crate::bench::load::{Benched, Names, Operation, Turn};
use crate::connection::Ask;
use crate::exit::Failure;

/// Runs to append to.
const RUNS: u64 = 64;

impl Benched for Run {
    const OPERATIONS: &'static [Operation] = &[Operation::Append];

    type Kept = ();

    async fn operate(
        client: &Client,
        names: &Names,
        _: Operation,
        Turn { ticket, .. }: Turn,
        (): &mut (),
    ) -> Result<(), Failure> {
        let event = format!(
            r#"{{"eventType":"Measured","idempotencyKey":"{}-{ticket}","eventData":{{"ticket":{ticket}}}}}"#,
            names.mark
        );
        client.runs().append(&name_of(names, ticket), event, None).await?;
        Ok(())
    }

    async fn clean_up(client: &Client, names: &Names) -> Result<(), Failure> {
        for run in 0..RUNS {
            client.call(RUNS_DELETE, &[&name_of(names, run)]).ask_if_there().await?;
        }
        Ok(())
    }
}

fn name_of(names: &Names, ticket: u64) -> String {
    format!("{}{}-{}", names.prefix, names.mark, ticket % RUNS)
}
