//! Transactions: everything in one group can change together, serialisably, and conflicts are named.
//!
//! Run with `cargo run --example transaction -p statehouse`.

use statehouse::{Error, Group, Rejection, Statehouse};

/// Moves an amount between two accounts; tried again if somebody else touched either.
fn transfer(bank: &Group, from: &str, to: &str, amount: i64) -> Result<bool, Error> {
    bank.transact(|transaction| {
        let balance = |value: Option<statehouse::Value>| value.and_then(|value| value.as_integer()).unwrap_or(0);
        let source = balance(transaction.get(from)?);
        let target = balance(transaction.get(to)?);
        if source < amount {
            return Ok(false);
        }
        transaction.set(from, source - amount)?;
        transaction.set(to, target + amount)?;
        Ok(true)
    })
}

fn main() -> Result<(), Error> {
    let path = std::env::temp_dir().join(format!("statehouse-example-transaction-{}", std::process::id()));
    let house = Statehouse::open(&path)?;
    let bank = house.group("bank");
    bank.cells().set("ann", 100)?;
    bank.cells().set("bob", 100)?;

    // Eight threads move money to and fro; none of it is lost or created.
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let bank = &bank;
            scope.spawn(move || {
                let (from, to) = if worker % 2 == 0 { ("ann", "bob") } else { ("bob", "ann") };
                for _ in 0..25 {
                    transfer(bank, from, to, 3).expect("a transfer");
                }
            });
        }
    });
    let listed = bank.cells().list("", Default::default())?;
    let sum: i64 = listed.cells.iter().filter_map(|(_, account)| account.value.as_integer()).sum();
    println!("together they still have {sum}");
    assert_eq!(sum, 200);

    // Cells without a group are spread: a transaction over two of them is refused, and the message says what to do.
    let mut transaction = house.cells().begin()?;
    transaction.set("one", 1)?;
    let refused = transaction.set("other", 2).expect_err("another group");
    println!("{refused}");
    assert!(matches!(refused, Error::Rejected(Rejection::TwoGroups { .. })));

    house.close()?;
    std::fs::remove_dir_all(&path).expect("the example's directory is removed");
    Ok(())
}
