//! Cells as a load: each operation reads or writes one of a few.

use client::Client;
use statehouse::Value;

use super::Cell;
use crate::bench::load::{Benched, Names, Operation, Turn};
use crate::exit::{Exit, Failure};

/// Cells to read and write.
const CELLS: u64 = 256;

impl Benched for Cell {
    const OPERATIONS: &'static [Operation] = &[Operation::Get, Operation::Set];

    type Kept = ();

    async fn prepare(client: &Client, names: &Names, kinds: &[Operation]) -> Result<(), Failure> {
        if kinds.contains(&Operation::Get) {
            for cell in 0..CELLS {
                client.cells().set(&name_of(names, cell), value_of(0)?).await?;
            }
        }
        Ok(())
    }

    async fn operate(
        client: &Client,
        names: &Names,
        operation: Operation,
        Turn { ticket, .. }: Turn,
        (): &mut (),
    ) -> Result<(), Failure> {
        let name = name_of(names, ticket);
        if operation == Operation::Set {
            client.cells().set(&name, value_of(ticket)?).await?;
            return Ok(());
        }
        match client.cells().get(&name).await? {
            Some(_) => Ok(()),
            None => Err(Failure::new(Exit::NotFound, format!("{name} was written but is missing"))),
        }
    }

    async fn clean_up(client: &Client, names: &Names) -> Result<(), Failure> {
        for cell in 0..CELLS {
            client.cells().delete(&name_of(names, cell), None).await?;
        }
        Ok(())
    }
}

fn name_of(names: &Names, ticket: u64) -> String {
    format!("{}{}", names.prefix, ticket % CELLS)
}

fn value_of(ticket: u64) -> Result<Value, Failure> {
    Value::json(format!("{{\"ticket\":{ticket}}}")).map_err(|error| Failure::other(error.to_string()))
}
