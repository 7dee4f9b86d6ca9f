//! The state primitive over cells: its commands and outputs exactly, and its routing.
//!
//! With an open transaction, commands go to it; otherwise each is executed by itself. All cells of the façade are in
//! one group, so that any of them can be in one transaction. Only a mismatch becomes `None`; every other failure stays
//! an error.
//!
//! ```
//! use statehouse::seed::{Command, Output, Session};
//! # let directory = tempfile::tempdir()?;
//! # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
//! let mut session = Session::new(&house);
//! let set = |value: i64| Command::StateSet { branch: "main".into(), cell: "n".into(), value: value.into() };
//! let get = || Command::StateGet { branch: "main".into(), cell: "n".into() };
//! assert_eq!(session.execute(set(1))?, Output::Version(1));
//! session.begin("main")?;
//! assert_eq!(session.execute(set(2))?, Output::Version(2));
//! assert_eq!(session.execute(get())?, Output::Maybe(Some(2.into())));
//! session.rollback()?;
//! assert_eq!(session.execute(get())?, Output::Maybe(Some(1.into())));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use contract::limits::PAGE_ROWS_MAX;
pub use contract::seed::{Command, Output, State};
use contract::{Error, Expected, HistoryPage, Rejection, Swapped};

use crate::cells::Cells;
use crate::house::Statehouse;
use crate::transaction::Transaction;
use crate::{DEFAULT_SPACE, Group};

/// The group of all cells of the façade.
pub const GROUP: &str = "state";

/// Executes commands, one by one or in a transaction.
pub struct Session {
    house: Statehouse,
    transaction: Option<(String, Transaction)>,
}

impl Session {
    /// A session on the space `default`.
    pub fn new(house: &Statehouse) -> Self {
        Self { house: house.clone(), transaction: None }
    }

    /// Opens a transaction on a branch.
    pub fn begin(&mut self, branch: &str) -> Result<(), Error> {
        if self.transaction.is_some() {
            return Err(Rejection::TransactionState { reason: "a transaction is already open" }.into());
        }
        self.transaction = Some((branch.to_owned(), self.group(branch).begin()?));
        Ok(())
    }

    /// Commits the open transaction. Returns its commit number.
    pub fn commit(&mut self) -> Result<u64, Error> {
        Ok(self.take()?.commit()?.commit)
    }

    /// Rolls the open transaction back.
    pub fn rollback(&mut self) -> Result<(), Error> {
        self.take()?.rollback();
        Ok(())
    }

    /// Executes a command in the open transaction, or by itself if none is open.
    pub fn execute(&mut self, command: Command) -> Result<Output, Error> {
        match &mut self.transaction {
            None => {
                let cells = self.group(branch_of(&command)).cells();
                execute_alone(&cells, command)
            }
            Some((branch, transaction)) => {
                if branch_of(&command) != branch {
                    let reason = "a transaction stays on the branch it was started on";
                    return Err(Rejection::TransactionState { reason }.into());
                }
                execute_in(transaction, command)
            }
        }
    }

    fn take(&mut self) -> Result<Transaction, Error> {
        let open = self.transaction.take();
        let none = Rejection::TransactionState { reason: "no transaction is open" };
        Ok(open.ok_or(none)?.1)
    }

    fn group(&self, branch: &str) -> Group {
        self.house.space(DEFAULT_SPACE).branch(branch).group(GROUP)
    }
}

/// The branch that a command names.
pub fn branch_of(command: &Command) -> &str {
    match command {
        Command::StateInit { branch, .. }
        | Command::StateGet { branch, .. }
        | Command::StateGetv { branch, .. }
        | Command::StateCas { branch, .. }
        | Command::StateSet { branch, .. } => branch,
    }
}

fn expected(counter: Option<u64>) -> Expected {
    counter.map_or(Expected::Absent, Expected::Version)
}

fn maybe_version(swapped: Swapped) -> Output {
    Output::MaybeVersion(match swapped {
        Swapped::Written(written) => Some(written.version),
        Swapped::Conflict { .. } => None,
    })
}

/// Executes a command by itself, on the cells of the façade's group: those of [`GROUP`] on the command's branch.
pub fn execute_alone(cells: &Cells, command: Command) -> Result<Output, Error> {
    Ok(match command {
        Command::StateInit { cell, value, .. } => Output::Version(cells.init(&cell, value)?.version),
        Command::StateGet { cell, .. } => Output::Maybe(cells.get(&cell)?),
        Command::StateGetv { cell, .. } => Output::MaybeVersions(versions(cells, &cell)?),
        Command::StateCas { cell, expected_counter, value, .. } => {
            maybe_version(cells.cas(&cell, expected(expected_counter), value)?)
        }
        Command::StateSet { cell, value, .. } => Output::Version(cells.set(&cell, value)?.version),
    })
}

fn execute_in(transaction: &mut Transaction, command: Command) -> Result<Output, Error> {
    Ok(match command {
        Command::StateInit { cell, value, .. } => Output::Version(transaction.init(&cell, value)?.version),
        Command::StateGet { cell, .. } => Output::Maybe(transaction.get(&cell)?),
        Command::StateGetv { .. } => {
            let reason = "history cannot be read inside a transaction";
            return Err(Rejection::TransactionState { reason }.into());
        }
        Command::StateCas { cell, expected_counter, value, .. } => {
            maybe_version(transaction.cas(&cell, expected(expected_counter), value)?)
        }
        Command::StateSet { cell, value, .. } => Output::Version(transaction.set_versioned(&cell, value)?),
    })
}

/// Every kept version of a cell, newest first, without deletions; none if it never existed.
fn versions(cells: &Cells, cell: &str) -> Result<Option<Vec<State>>, Error> {
    let mut states = Vec::new();
    let mut page = HistoryPage { before: None, limit: PAGE_ROWS_MAX };
    let mut any = false;
    loop {
        let history = cells.history(cell, page)?;
        any |= !history.versions.is_empty();
        states.extend(
            history.versions.into_iter().filter_map(|past| {
                Some(State { value: past.value?, version: past.version, updated_at: past.updated_at })
            }),
        );
        match history.next_before {
            None => return Ok(any.then_some(states)),
            before => page.before = before,
        }
    }
}
