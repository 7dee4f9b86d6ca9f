//! Every order of events of small models of the four waits: for an answer, for a change, for a turn at a queue, and for a
//! push or a change, whichever is first. `cargo xtask show inside waits` runs them.

#[cfg(loom)]
mod models;

fn main() {
    #[cfg(loom)]
    models::run_all();
}
