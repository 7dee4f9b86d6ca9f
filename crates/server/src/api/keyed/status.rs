//! Keyed state on the status page: nothing is said of maps, because the store does not count them.

use serde_json::Value as JsonValue;
use statehouse::keyed::KeyedOverview;

pub(in crate::api) fn members(_: &KeyedOverview) -> Vec<(&'static str, JsonValue)> {
    Vec::new()
}

pub(in crate::api) fn lines(_: &KeyedOverview) -> Vec<String> {
    Vec::new()
}
