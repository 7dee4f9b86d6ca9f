//! Durable commits of 100 puts at 1, 4 and 16 operators, beside the bare journal append and the bare sorted map with the same
//! bytes. RocksDB beside it has a program of its own, in `bench/rocksdb`.

use std::time::Duration;

use bench::keyed_work::{COMMIT_PUTS, Keys, VALUE_BYTES, operators, run as run_operators};
use statehouse::Options;
use testkit::arguments::Arguments;
use testkit::report::Report;

use crate::bare_append;
use crate::bare_map::BareMap;

const OPERATORS: [u32; 3] = [1, 4, 16];

/// Both are measured so often, in turns, each with nothing left to flush or to merge. The median counts.
const ROUNDS: usize = 3;

/// The size of a put in an entry: code, key, version, value.
const PUT_BYTES: usize = 1 + 17 + 5 + 2 + 1 + VALUE_BYTES;

/// The size of a commit in an entry besides its puts: envelope, names, fence, number, position.
const OVERHEAD_BYTES: usize = 150;

/// The size of a key's row: its key, and what is stored beside the value.
const ROW_KEY_BYTES: usize = 52;
const ROW_BYTES: usize = 11 + VALUE_BYTES;

pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let duration = Duration::from_millis(arguments.number("milliseconds", if small { 300 } else { 10_000 }));
    let keys = arguments.number("keys", if small { 20_000 } else { 1_000_000 });
    let directory = tempfile::tempdir().expect("a directory");
    let house = Options::default().open(directory.path().join("house")).expect("a house");
    let mut all = operators(&house, *OPERATORS.last().expect("some"));
    // As many keys in all, whatever the number of operators.
    let of_each = keys / all.len() as u64;
    all.iter_mut().for_each(|operator| operator.load(0..of_each));
    let rows = of_each * u64::from(OPERATORS[OPERATORS.len() - 1]);
    let mut map = BareMap::load_rows(&directory.path().join("map"), rows, ROW_KEY_BYTES, ROW_BYTES);
    let measured = OPERATORS.map(|count| {
        let (mut ours, mut maps) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            house.flush().expect("flush");
            house.settle().expect("settle");
            map.settle();
            ours.push(run_operators(&house, &mut all[..count as usize], Keys::all(of_each), duration));
            map.settle();
            maps.push(map.run_puts(rows, ROW_KEY_BYTES, ROW_BYTES, duration));
        }
        ours.sort_by(|one, other| one.keys_per_second.total_cmp(&other.keys_per_second));
        maps.sort_by(f64::total_cmp);
        let (committed, map) = (ours.swap_remove(ROUNDS / 2), maps[ROUNDS / 2]);
        println!(
            "{count:>3} operators: {:>8.0} keys/s, {:>6.0} us a commit, {:.2} us CPU a key, {:.2} commits an entry",
            committed.keys_per_second, committed.median_us, committed.cpu_us, committed.batch
        );
        println!("bare sorted map with lsm-tree behind: {map:.0} keys/s (one get, one put)");
        (committed, map)
    });
    drop(all);
    house.close().expect("close");

    let mut report = Report::new("keyed");
    for (count, (committed, map)) in OPERATORS.iter().zip(&measured) {
        let bytes = (committed.batch * (COMMIT_PUTS * PUT_BYTES + OVERHEAD_BYTES) as f64).round();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a batch of at most 16 commits")]
        let append = bare_append::run(&directory.path().join(format!("append-{count}")), bytes as usize, duration);
        let journal = committed.batch * COMMIT_PUTS as f64 * 1e9 / append.mean();
        let ratio = committed.keys_per_second / journal.min(*map);
        println!(
            "{count:>3} operators: {bytes} B an entry, bare journal {journal:.0} keys/s, {ratio:.2} of the slower"
        );
        let figure = format!("{ratio:.2}x-{:.0}-keys/s", committed.keys_per_second);
        report.add(&format!("speed.bare-{count}"), figure, ">=0.5 of the slower bare part", ratio >= 0.5);
    }
    report
}
