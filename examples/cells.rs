//! Cells: a durable write, compare-and-swap, history, and past values.
//!
//! Run with `cargo run --example cells -p statehouse`.

use statehouse::{AsOf, Error, Expected, Moment, Statehouse, Swapped, Value};

fn main() -> Result<(), Error> {
    let path = std::env::temp_dir().join(format!("statehouse-example-cells-{}", std::process::id()));
    let house = Statehouse::open(&path)?;
    let cells = house.cells();

    // Durable when it returns: a crash or a power cut after this line does not lose it.
    let written = cells.set("deployment/colour", "blue")?;
    println!("blue is version {}", written.version);

    // Only one of two writers who saw version 1 can build on it.
    for candidate in ["green", "red"] {
        match cells.cas("deployment/colour", Expected::Version(1), candidate)? {
            Swapped::Written(written) => println!("{candidate} is version {}", written.version),
            Swapped::Conflict { current } => {
                println!("{candidate} came too late, the cell is at {current:?}")
            }
        }
    }

    // A deletion is a version too, so a version number is never reused.
    cells.delete("deployment/colour")?;
    let again = cells.init("deployment/colour", "grey")?;
    println!("created again as version {}", again.version);

    for past in cells.history("deployment/colour", Default::default())?.versions {
        println!("  version {}: {:?}", past.version, past.value);
    }
    let before = cells.at("deployment/colour", Moment::Version(2))?;
    assert!(matches!(before, AsOf::Value(past) if past.value == Value::from("green")));

    // Many writes can be in progress at once; they share the syncs.
    let pending: Vec<_> = (0..1000).map(|n| cells.set_later(&format!("sensor/{n:03}"), n)).collect();
    for answer in pending {
        answer.wait()?;
    }
    let listed = cells.list("sensor/99", Default::default())?;
    println!("{} cells begin with sensor/99", listed.cells.len());
    assert_eq!(listed.cells.len(), 10);

    house.close()?;
    std::fs::remove_dir_all(&path).expect("the example's directory is removed");
    Ok(())
}
