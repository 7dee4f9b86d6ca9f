//! The kernel on the store that a shard uses, among ever more records.

use std::process::ExitCode;
use std::rc::Rc;

use bench::growth::stores::measure_store;
use bench::store_maker::TreeMaker;
use testkit::arguments::Arguments;

pub fn run(arguments: &Arguments) -> ExitCode {
    measure_store("tables", Rc::new(TreeMaker), arguments);
    ExitCode::SUCCESS
}
