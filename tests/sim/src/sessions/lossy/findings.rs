//! The result of a run: the counters, and what clients know about them.

use std::collections::BTreeMap;
use std::fmt;

use statehouse::Error;

use super::client::Client;
use super::line::Traffic;
use super::run::{Executed, Plan, Ran, SHARED_COUNTERS, Tally};
use super::store::{Store, Way};

/// The counters after a run, and what clients expect of them.
#[derive(Default)]
pub(super) struct Findings {
    /// What all counters that everybody adds to hold together.
    pub(super) sum: i64,
    pub(super) traffic: Traffic,
    pub(super) tally: Tally,
    /// Sessions that ended on the way.
    pub(super) ended: usize,
    virtual_seconds: u64,
    pub(super) errors: Vec<String>,
}

impl Findings {
    /// The run itself failed.
    pub(super) fn failed(error: String) -> Self {
        Self { errors: vec![error], ..Self::default() }
    }

    pub(super) fn look(store: &Store, plan: &Plan, clients: &[Client], ran: Ran) -> Result<Self, Error> {
        let Ran { traffic, virtual_seconds, tally, executed, at_end } = ran;
        let ended = at_end.len();
        let mut findings = Self { traffic, tally, ended, virtual_seconds, ..Self::default() };
        let mut values: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
        for execution in executed.values() {
            values.entry(execution.counter).or_default().push(execution.value);
        }
        for counter in 0..SHARED_COUNTERS {
            let value = store.value(counter)?;
            findings.sum += value;
            if plan.way == Way::InSessions {
                findings.check_counter(counter, value, values.remove(&counter).unwrap_or_default());
            }
        }
        if plan.way == Way::InSessions {
            findings.check_clients(plan, clients, &executed);
            for (client, then) in &at_end {
                let counter = SHARED_COUNTERS + client - plan.clients;
                let now = store.value(counter)?;
                if now != *then {
                    let what = format!("client {client} counted to {then} until its session ended, and to {now} after");
                    findings.errors.push(what);
                }
                findings.check_counter(counter, now, values.remove(&counter).unwrap_or_default());
            }
        }
        Ok(findings)
    }

    /// Each increment was answered another value, from 1 up to what the counter holds.
    fn check_counter(&mut self, counter: usize, value: i64, mut answered: Vec<i64>) {
        answered.sort_unstable();
        if !answered.iter().copied().eq(1..=value) {
            let count = answered.len();
            self.errors.push(format!("counter {counter} holds {value}, and {count} requests were answered to count"));
        }
    }

    /// What clients heard is what was answered, and those whose sessions went on have heard everything.
    fn check_clients(&mut self, plan: &Plan, clients: &[Client], executed: &Executed) {
        for client in clients {
            let goes_on = client.number < plan.clients;
            if client.is_over() == goes_on || goes_on && !client.is_done() {
                self.errors.push(format!("client {} did not come to its end", client.number));
            }
            let answered = |request: &u64| executed.get(&(client.number, *request)).map(|execution| execution.value);
            let unlike = client.answers.iter().find(|(request, value)| answered(request) != Some(**value));
            if let Some((request, value)) = unlike {
                self.errors.push(format!("client {} heard {value} for request {request}", client.number));
            }
        }
        let answers: usize = clients[..plan.clients].iter().map(|client| client.answers.len()).sum();
        if answers as u64 != plan.increments {
            self.errors.push(format!("clients know of {answers} increments"));
        }
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Traffic { sent, lost_requests, doubled, lost_answers } = self.traffic;
        let Tally { arrived, repeats, evicted, expired } = self.tally;
        write!(
            formatter,
            "{} counted; {sent} requests sent, {lost_requests} lost, {doubled} doubled, {lost_answers} answers lost; \
             {arrived} arrived, {repeats} answered again, {evicted} evicted, {expired} of sessions that had ended; \
             {} virtual seconds",
            self.sum, self.virtual_seconds
        )
    }
}
