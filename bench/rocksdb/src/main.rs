//! Measures the kernel on RocksDB: `rocksdb-stores SETTING [--sizes 20000,60000] [--commands 60000]`.
//! Or keyed state beside RocksDB itself: `rocksdb-stores keyed [--milliseconds 10000] [--keys 1000000] [--rounds 3]`.

mod keyed;
mod settings;
mod store;

use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use bench::store_maker::{MadeStore, StoreMaker};
use testkit::arguments::Arguments;

use crate::settings::Settings;
use crate::store::RocksStore;

/// The one that the command has, as in the other benchmarks: ours are the figures of what is shipped. RocksDB is C++ and keeps its own.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

struct RocksMaker(Settings);

impl StoreMaker for RocksMaker {
    fn create(&self, path: &Path) -> MadeStore {
        std::fs::create_dir(path).expect("a new directory");
        self.open(path)
    }

    fn open(&self, path: &Path) -> MadeStore {
        let store = Arc::new(RocksStore::open(path, &self.0).expect("a store"));
        let settle = {
            let store = store.clone();
            Arc::new(move || store.settle().expect("it settles"))
        };
        MadeStore { store, settle }
    }
}

fn main() -> ExitCode {
    let parsed = Arguments::from_environment().and_then(|(name, arguments)| {
        if name == "keyed" {
            return Ok((name, None, arguments));
        }
        let settings = Settings::parse(&name)?;
        Ok((name, Some(settings), arguments))
    });
    match parsed {
        Ok((_, None, arguments)) => match keyed::run(&arguments).print() || arguments.flag("small") {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        },
        Ok((name, Some(settings), arguments)) => {
            bench::growth::stores::measure_store(&format!("rocksdb {name}"), Rc::new(RocksMaker(settings)), &arguments);
            ExitCode::SUCCESS
        }
        Err(complaint) => {
            eprintln!("rocksdb-stores: {complaint}");
            ExitCode::from(2)
        }
    }
}
