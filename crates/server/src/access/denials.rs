//! What was refused, in the audit: so many refusals in a second at most, since nobody may fill the store by being refused.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use contract::access::audit::Decision;
use contract::object_text::ObjectText;
use statehouse::Statehouse;
use tokio::time::Instant;

/// So many are recorded in a second.
const RECORDED_PER_SECOND_MAX: u32 = 10;

const SECOND: Duration = Duration::from_secs(1);

/// How many refusals were recorded, and how many were not.
#[derive(Clone, Default)]
pub(crate) struct Denials {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    since: Option<Instant>,
    recorded: u32,
    left_out: u64,
}

impl Denials {
    /// Records that a call was refused, in the name of whoever `house` was handed to; nobody waits for it.
    pub(crate) fn note(&self, house: &Statehouse, act: &str, mut on: ObjectText) {
        let Some(left_out) = self.state.lock().unwrap_or_else(PoisonError::into_inner).count(Instant::now()) else {
            return;
        };
        if left_out > 0 {
            on.number("not_recorded_before", left_out);
        }
        drop(house.audit().note(act, &on.finish(), Decision::Denied));
    }
}

impl State {
    /// Counts one; if it is to be recorded, how many before it were not.
    fn count(&mut self, now: Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now - since >= SECOND) {
            (self.since, self.recorded) = (Some(now), 0);
        }
        if self.recorded == RECORDED_PER_SECOND_MAX {
            self.left_out += 1;
            return None;
        }
        self.recorded += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_recorded_in_a_second_and_the_others_are_counted() {
        let (mut state, began) = (State::default(), Instant::now());
        for number in 0..25 {
            let expected = (number < RECORDED_PER_SECOND_MAX).then_some(0);
            assert_eq!(state.count(began), expected, "{number}");
        }
        assert_eq!(state.count(began + SECOND), Some(15));
        assert_eq!(state.count(began + SECOND), Some(0));
    }
}
