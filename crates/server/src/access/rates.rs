//! How many requests principals may send in a second.
//!
//! Keeps: who has a rate may send as many requests at once as in a second, and then goes on at that rate. Others are not counted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use contract::access::Principal;
use tokio::time::Instant;

/// What principals with a rate may still send now.
#[derive(Clone, Default)]
pub(crate) struct Rates {
    by_principal: Arc<Mutex<HashMap<String, Allowance>>>,
}

#[derive(Clone, Copy)]
struct Allowance {
    at: Instant,
    requests: f64,
}

impl Rates {
    /// Counts a request. The error is the rate that it exceeds.
    pub(crate) fn take(&self, principal: &Principal) -> Result<(), u32> {
        let Some(max) = principal.requests_per_second_max else { return Ok(()) };
        let now = Instant::now();
        let mut by_principal = self.by_principal.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = Allowance { at: now, requests: max.into() };
        match by_principal.get_mut(&principal.name) {
            Some(allowance) => allowance.take(now, max),
            None => by_principal.entry(principal.name.clone()).or_insert(whole).take(now, max),
        }
    }
}

impl Allowance {
    fn take(&mut self, now: Instant, max: u32) -> Result<(), u32> {
        let max_requests = f64::from(max);
        let gained = (now - self.at).as_secs_f64() * max_requests;
        *self = Self { at: now, requests: (self.requests + gained).min(max_requests) };
        if self.requests < 1.0 {
            return Err(max);
        }
        self.requests -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_principal_goes_on_at_its_rate() {
        let rates = Rates::default();
        let slow = Principal { requests_per_second_max: Some(2), ..Principal::new("slow") };
        let free = Principal::new("free");
        let sent = |count: usize, of: &Principal| (0..count).filter(|_| rates.take(of).is_ok()).count();
        assert_eq!((sent(5, &slow), sent(5, &free)), (2, 5));
        assert_eq!(rates.take(&slow), Err(2));
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(sent(5, &slow), 1);
        tokio::time::advance(Duration::from_secs(3_600)).await;
        assert_eq!(sent(5, &slow), 2, "what was not sent is not saved up");
    }
}
