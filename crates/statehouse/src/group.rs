//! A group: the things that are stored, ordered and committed together.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use contract::{Error, names};

use crate::admission::Scope;
use crate::commit::Commit;
use crate::transaction::{Isolation, Transaction};

/// The maximum number of tries of [`Group::transact`].
const ATTEMPTS_MAX: usize = 32;
const BACKOFF_MIN: Duration = Duration::from_micros(200);
const BACKOFF_MAX: Duration = Duration::from_millis(50);

/// A group: things that are stored, ordered and committed together.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// let order = house.group("order-7");
/// order.cells().set("paid", false)?;
/// order.transact(|transaction| {
///     if transaction.get("paid")? == Some(false.into()) {
///         transaction.set("paid", true)?;
///         transaction.set("invoice", "2026-0017")?;
///     }
///     Ok(())
/// })?;
/// assert_eq!(order.cells().get("paid")?, Some(true.into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Group {
    pub(crate) scope: Scope,
    pub(crate) name: std::sync::Arc<str>,
}

impl Group {
    pub(crate) fn new(scope: Scope, name: String) -> Self {
        Self { scope, name: name.into() }
    }

    /// The group's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Begins a commit of several operations, of any contract, in this group.
    pub fn commit(&self) -> Commit {
        Commit::new(self.scope.clone(), Some(self.name.to_string()))
    }

    /// Begins a transaction, serialisable, for one attempt.
    pub fn begin(&self) -> Result<Transaction, Error> {
        self.begin_with(Isolation::Serialisable)
    }

    /// Begins a transaction with a chosen isolation.
    pub fn begin_with(&self, isolation: Isolation) -> Result<Transaction, Error> {
        names::check_group(&self.name)?;
        Transaction::begin(self.scope.clone(), Some(self.name.to_string()), isolation)
    }

    /// Runs `work` in a transaction and commits it; on a conflict, runs it again after a growing pause. `work` may run
    /// several times, so it should have no other effects. It also runs again after an error of `work` that is
    /// [retryable](Error::retryable), such as a conflict that an operation has met; any other error ends it.
    pub fn transact<T>(&self, mut work: impl FnMut(&mut Transaction) -> Result<T, Error>) -> Result<T, Error> {
        let mut pauses = ExponentialBuilder::new()
            .with_min_delay(BACKOFF_MIN)
            .with_max_delay(BACKOFF_MAX)
            .with_max_times(ATTEMPTS_MAX - 1)
            .with_jitter()
            .build();
        loop {
            match self.attempt(&mut work) {
                Err(error) if error.retryable() => match pauses.next() {
                    Some(pause) => std::thread::sleep(pause),
                    None => return Err(error),
                },
                other => return other,
            }
        }
    }

    fn attempt<T>(&self, work: &mut impl FnMut(&mut Transaction) -> Result<T, Error>) -> Result<T, Error> {
        let mut transaction = self.begin()?;
        let value = work(&mut transaction)?;
        transaction.commit()?;
        Ok(value)
    }
}
