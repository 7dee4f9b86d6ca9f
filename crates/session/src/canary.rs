//! Known bugs that a test can switch on, to show that it finds them. Only with the `canary` feature, which only the
//! simulator turns on.

use std::sync::atomic::{AtomicBool, Ordering};

use kv::{Key, Writer};

use crate::head::Head;
use crate::keys::SessionKeys;
use crate::machine::Halt;

static REUSE_IS_MISSED: AtomicBool = AtomicBool::new(false);

/// Answers any command with the stored answer of its number, whatever command that was.
pub fn miss_reuse(missed: bool) {
    REUSE_IS_MISSED.store(missed, Ordering::Relaxed);
}

pub(crate) fn reuse_is_missed() -> bool {
    REUSE_IS_MISSED.load(Ordering::Relaxed)
}

/// The row of a session's head without its stored answers; other rows as they are.
pub fn without_answers(keys: &SessionKeys, key: &Key, row: Vec<u8>) -> Result<Vec<u8>, Halt> {
    let is_head = SessionKeys::last_number(key).is_some_and(|session| keys.head(session) == *key);
    if !is_head {
        return Ok(row);
    }
    let mut head = Head::decode(&row)?;
    head.forget_answers();
    let mut writer = Writer::new();
    head.encode(&mut writer);
    Ok(writer.finish())
}
