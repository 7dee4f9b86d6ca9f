//! The library passes the suite of cells: spread cells, cells of a group, of another branch and of another space.

use statehouse::{Cells, Statehouse};

/// Cells with the directory that holds them.
struct Kept {
    cells: Cells,
    _directory: tempfile::TempDir,
}

macro_rules! delegate {
    ($($name:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        impl contract::Cells for Kept {
            $(fn $name(&self, $($argument: $type),*) -> Result<$output, contract::Error> {
                contract::Cells::$name(&self.cells, $($argument),*)
            })*
        }
    };
}

delegate! {
    init(cell: &str, value: contract::Value) -> contract::Initialised;
    get(cell: &str) -> Option<contract::Value>;
    get_versioned(cell: &str) -> Option<contract::Versioned>;
    set(cell: &str, value: contract::Value) -> contract::Written;
    cas(cell: &str, expected: contract::Expected, value: contract::Value) -> contract::Swapped;
    delete(cell: &str) -> contract::Deleted;
    history(cell: &str, page: contract::HistoryPage) -> contract::History;
    at(cell: &str, moment: contract::Moment) -> contract::AsOf;
    list(prefix: &str, page: contract::ListPage) -> contract::Listed;
}

fn suite_on(choose: impl Fn(&Statehouse) -> Cells) {
    testkit::cells::suite(|| {
        let directory = tempfile::tempdir().expect("a directory");
        let house = Statehouse::open(directory.path().join("house")).expect("a house");
        Kept { cells: choose(&house), _directory: directory }
    });
}

#[test]
fn spread_cells_pass() {
    suite_on(Statehouse::cells);
}

#[test]
fn cells_of_a_group_pass() {
    // One of the suite's names is the group's own.
    suite_on(|house| house.group("job/1").cells());
}

#[test]
fn cells_of_another_space_and_branch_pass() {
    suite_on(|house| {
        let space = house.create_space("tenant").expect("a space");
        space.create_branch("draft").expect("a branch").cells()
    });
}
