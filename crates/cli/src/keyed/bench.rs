//! Maps as a load: each operation puts one of a few keys, with a version of its own.

use client::Client;
use statehouse::Value;

use super::Keyed;
use crate::bench::load::{Benched, Names, Operation, Turn};
use crate::exit::Failure;

/// Keys to put.
const KEYS: u64 = 256;

impl Benched for Keyed {
    const OPERATIONS: &'static [Operation] = &[Operation::Put];

    type Kept = ();

    async fn operate(
        client: &Client,
        names: &Names,
        _: Operation,
        Turn { ticket, .. }: Turn,
        (): &mut (),
    ) -> Result<(), Failure> {
        let (key, value) = (format!("{}", ticket % KEYS), Value::Integer(i64::try_from(ticket).unwrap_or(i64::MAX)));
        // Of two callers with one key, the later one may come first; the other is stale then, and is answered as fast.
        client.maps().put(&map_of(names), key, value, ticket).await?;
        Ok(())
    }

    async fn clean_up(client: &Client, names: &Names) -> Result<(), Failure> {
        client.maps().delete_map(&map_of(names)).await?;
        Ok(())
    }
}

fn map_of(names: &Names) -> String {
    format!("{}{}", names.prefix, names.mark)
}
