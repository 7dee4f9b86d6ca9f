//! Idempotency keys, one for each thing that can happen once; see `docs/formats/idempotency.md`.
//!
//! A store accepts any key. This is the contract's suggested way to build them, with two holes closed: lengths separate
//! the fields, and things that can happen again in the same attempt have a discriminator.

use sha2::{Digest, Sha256};

/// The fields of a key.
///
/// ```
/// use statehouse_contract::runs::IdempotencyKey;
/// let started = IdempotencyKey::new("run-1", "StepStarted", "plan-7").step("load", "1");
/// assert_eq!(started.to_string(), started.clone().to_string());
/// // A run can be paused twice: which pause it was makes the difference.
/// let pause = |signal| IdempotencyKey::new("run-1", "RunPaused", "plan-7").discriminator(signal).to_string();
/// assert_ne!(pause("signal-1"), pause("signal-2"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey<'text> {
    run_id: &'text str,
    step_id: Option<&'text str>,
    logical_attempt_id: Option<&'text str>,
    event_type: &'text str,
    plan_version: &'text str,
    discriminator: Option<&'text str>,
}

impl<'text> IdempotencyKey<'text> {
    /// The key of an event of the run itself.
    pub fn new(run_id: &'text str, event_type: &'text str, plan_version: &'text str) -> Self {
        Self { run_id, step_id: None, logical_attempt_id: None, event_type, plan_version, discriminator: None }
    }

    /// The key of an event of a step, in a logical attempt.
    pub fn step(mut self, step_id: &'text str, logical_attempt_id: &'text str) -> Self {
        self.step_id = Some(step_id);
        self.logical_attempt_id = Some(logical_attempt_id);
        self
    }

    /// For events that can occur several times: the signal that caused it, or its ordinal.
    pub fn discriminator(mut self, discriminator: &'text str) -> Self {
        self.discriminator = Some(discriminator);
        self
    }
}

impl std::fmt::Display for IdempotencyKey<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields = [
            Some(self.run_id),
            self.step_id,
            self.logical_attempt_id,
            Some(self.event_type),
            Some(self.plan_version),
            self.discriminator,
        ];
        let mut hash = Sha256::new();
        for field in fields {
            match field {
                None => hash.update([0]),
                Some(text) => {
                    hash.update([1]);
                    hash.update((text.len() as u64).to_be_bytes());
                    hash.update(text.as_bytes());
                }
            }
        }
        hash.finalize().iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of `docs/formats/idempotency.md`. A change here is a change of the format.
    #[test]
    fn golden_keys() {
        let run = IdempotencyKey::new("run-1", "RunStarted", "plan-7");
        let step = IdempotencyKey::new("run-1", "StepCompleted", "plan-7").step("load", "1");
        let signal = IdempotencyKey::new("run-1", "SignalAccepted", "plan-7").discriminator("signal-9");
        let keys = [run, step, signal].map(|key| key.to_string());
        assert_eq!(keys, GOLDEN);
    }

    const GOLDEN: [&str; 3] = [
        "949b7724cfff516bedb1ddec628f560b46b60869de11be6fddf563ce32671408",
        "dc74b679905272c35e056bc69a28967ce820902f3ecbbf59b667c0b9049dc155",
        "c1baea753e537c90396d8c2a70aa1ec40c35153ba4213663a3b7e23da556aad5",
    ];

    #[test]
    fn fields_cannot_run_into_each_other() {
        let one = IdempotencyKey::new("a", "b", "c").step("d", "e").to_string();
        let two = IdempotencyKey::new("a", "b", "c").step("de", "").to_string();
        let three = IdempotencyKey::new("a", "b", "c").discriminator("d").to_string();
        let four = IdempotencyKey::new("a", "b", "c").to_string();
        let keys = std::collections::BTreeSet::from([one, two, three, four]);
        assert_eq!(keys.len(), 4);
    }
}
