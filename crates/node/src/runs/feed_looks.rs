//! Up to where somebody has looked through the change feed for a projector.

use std::collections::BTreeMap;
use std::sync::Mutex;

/// Up to where the feed holds nothing for a projector, by its name and its position: the next look begins there.
#[derive(Default)]
pub struct LooksAtFeed(pub Mutex<BTreeMap<(String, u64), u64>>);
