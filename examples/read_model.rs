//! A read model that is never behind: it is written in the same commit as the event that changes it.
//!
//! Run with `cargo run --example read_model -p statehouse`.

use statehouse::runs::NewEvent;
use statehouse::{Error, Group, Json, Statehouse};

fn paid(payment: &str, cents: i64) -> NewEvent {
    NewEvent::new("Paid", payment, "2026-02-11T10:00:00Z", Json::new(cents.to_string()).expect("JSON"))
}

fn total(order: &Group) -> Result<i64, Error> {
    Ok(order.cells().get("paid")?.and_then(|paid| paid.as_integer()).unwrap_or(0))
}

/// The event and the model, in one commit; a known payment changes neither.
fn pay(order: &Group, payment: &str, cents: i64) -> Result<bool, Error> {
    let event = paid(payment, cents);
    let appended = order.append_with_model("order-7", &event, |commit| {
        Ok(commit.set_cell("paid", total(order)? + cents).set_fields("order", [("last", Some(payment.into()))]))
    })?;
    Ok(appended.persisted)
}

fn main() -> Result<(), Error> {
    let path = std::env::temp_dir().join(format!("statehouse-example-read-model-{}", std::process::id()));
    let house = Statehouse::open(&path)?;
    let order = house.group("order-7");

    assert!(pay(&order, "payment-1", 1_000)?);
    assert!(!pay(&order, "payment-1", 1_000)?, "a retry is harmless");

    // Many at once: each commit expects the sequence that its model was computed from.
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let order = &order;
            scope.spawn(move || {
                for n in 0..5 {
                    pay(order, &format!("payment-{worker}-{n}"), 100).expect("paid");
                }
            });
        }
    });

    let events = order.runs().fetch("order-7", 0, 100)?.events;
    let replayed: i64 = events.iter().map(|event| event.event.data.as_str().parse::<i64>().expect("cents")).sum();
    println!("{} payments, {} cents, the model says {}", events.len(), replayed, total(&order)?);
    assert_eq!((events.len(), replayed, total(&order)?), (21, 3_000, 3_000));

    drop(order);
    house.close()?;
    std::fs::remove_dir_all(&path).expect("the example's directory is removed");
    Ok(())
}
