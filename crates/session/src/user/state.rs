//! The state of a user's machine: its rows while it applies a command, and as a view has them.
//!
//! Touches: keys below the machine's prefix. Never: writes a row beyond the limits here.

use kv::{Bytes, Key, KeyRange, KvError, Order, Rows, Staging, View};

use super::answer::Refused;

/// Bytes of a key of a user's machine.
pub const USER_KEY_BYTES_MAX: usize = 1024;
/// Bytes of a value of a user's machine.
pub const USER_VALUE_BYTES_MAX: usize = 1 << 20;
/// Rows of a page of a user's machine.
pub const USER_PAGE_ROWS_MAX: usize = 1_000;
/// Bytes of keys and values after which a page of a user's machine ends.
pub const USER_PAGE_BYTES_MAX: usize = 4 << 20;

/// The state of a user's machine: rows by keys of its choice, separate from everything else.
pub struct UserState<'state> {
    state: &'state mut Staging,
    own: Own,
    pub(super) refused: Option<Refused>,
}

impl<'state> UserState<'state> {
    /// The state below a prefix.
    pub fn new(state: &'state mut Staging, prefix: Key) -> Self {
        Self { state, own: Own { prefix }, refused: None }
    }

    /// The value at a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.state.get(&self.own.key(key))
    }

    /// Writes a value. If it or its key is too long, the whole command is refused and changes nothing; when a session
    /// starts or ends, where nobody could be told, the value is left out.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        if key.len() > USER_KEY_BYTES_MAX {
            self.refused.get_or_insert(Refused::KeyTooLong { got: key.len() as u64 });
        } else if value.len() > USER_VALUE_BYTES_MAX {
            self.refused.get_or_insert(Refused::ValueTooLong { got: value.len() as u64 });
        } else {
            self.state.put(self.own.key(key), value);
        }
    }

    /// Removes a value.
    pub fn delete(&mut self, key: &[u8]) {
        self.state.delete(self.own.key(key));
    }

    /// The rows whose keys start with `prefix`, in key order. They are read one by one; to write in between, read
    /// [pages](Self::page).
    pub fn scan(&self, prefix: &[u8]) -> impl Iterator<Item = Result<(Vec<u8>, Bytes), KvError>> + '_ {
        self.own.rows(self.state.scan(&self.own.range(prefix), Order::Ascending))
    }

    /// The next rows whose keys start with `prefix` and come after the key `after`, or the first ones, in key order; none at the end. A page
    /// ends after [`USER_PAGE_ROWS_MAX`] rows, or with the row that reaches [`USER_PAGE_BYTES_MAX`].
    ///
    /// ```
    /// use kv::KvError;
    /// use statehouse_session::UserState;
    ///
    /// fn forget_all(state: &mut UserState<'_>, prefix: &[u8]) -> Result<(), KvError> {
    ///     let mut after = None;
    ///     loop {
    ///         let page = state.page(prefix, after.as_deref())?;
    ///         let Some((last, _)) = page.last() else { return Ok(()) };
    ///         after = Some(last.clone());
    ///         page.iter().for_each(|(key, _)| state.delete(key));
    ///     }
    /// }
    /// ```
    pub fn page(&self, prefix: &[u8], after: Option<&[u8]>) -> Result<Vec<(Vec<u8>, Bytes)>, KvError> {
        let range = self.own.range(prefix);
        let range = match after {
            None => range,
            Some(after) => range.after(&self.own.key(after)),
        };
        let mut page = Vec::new();
        let mut bytes = 0;
        for row in self.own.rows(self.state.scan(&range, Order::Ascending)).take(USER_PAGE_ROWS_MAX) {
            let (key, value) = row?;
            bytes += key.len() + value.len();
            page.push((key, value));
            if bytes >= USER_PAGE_BYTES_MAX {
                break;
            }
        }
        Ok(page)
    }
}

/// The state of a user's machine as one view has it.
pub struct UserView<V> {
    view: V,
    own: Own,
}

impl<V: std::ops::Deref<Target = dyn View>> UserView<V> {
    /// The rows of a view below a prefix.
    pub fn new(view: V, prefix: Key) -> Self {
        Self { view, own: Own { prefix } }
    }

    /// The value at a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.view.get(&self.own.key(key))
    }

    /// The rows whose keys start with `prefix`, in key order.
    pub fn scan(&self, prefix: &[u8]) -> impl Iterator<Item = Result<(Vec<u8>, Bytes), KvError>> + '_ {
        self.own.rows(self.view.scan(&self.own.range(prefix), Order::Ascending))
    }
}

/// The keys of a user's machine.
struct Own {
    prefix: Key,
}

impl Own {
    fn key(&self, key: &[u8]) -> Key {
        let mut whole = self.prefix.clone();
        whole.extend_from_slice(key);
        whole
    }

    fn range(&self, prefix: &[u8]) -> KeyRange {
        KeyRange::prefix(&self.key(prefix))
    }

    /// Rows with the machine's own keys.
    fn rows<'rows>(&self, rows: Rows<'rows>) -> impl Iterator<Item = Result<(Vec<u8>, Bytes), KvError>> + use<'rows> {
        let prefix = self.prefix.len();
        rows.map(move |row| row.map(|(key, value)| (key[prefix..].to_vec(), value)))
    }
}

#[cfg(test)]
mod tests;
