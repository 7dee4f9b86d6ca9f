//! Changes of the catalogue.
//!
//! ```text
//! space other       branch draft      drop draft      keep 2 versions      limit value_bytes_max 3
//! declare NAME for PREFIX [lease 10s] [attempts 2] [pause 1s..4s] [ttl 10s] [end-ttl 5s] [order FIELD]
//!     [index to:text,n:signed] [sweep RESCUED EXHAUSTED] [states new:ready,busy:held,done:terminal]
//!     [guarded] [and STATE:KIND] [completed STATE] [failed STATE] [state-field FIELD]
//! ```
//!
//! A declared type is like `task`, apart from what is said about it, but it keeps what is finished, and has no other indexes.

use contract::guards::GroupGuard;
use contract::records::types::{IndexKind, ReadyOrder, RecordType, State, StateKind};
use contract::{Limits, Retention};

use super::Stage;
use super::words::{duration, number, option, parts, time_us};
use crate::catalogue::{CatalogueChange, TypeDeclaration};
use crate::command::Body;

impl Stage {
    pub(super) fn change(&mut self, words: &[&str]) -> String {
        let space = self.space;
        let change = match words {
            ["space", name] => CatalogueChange::CreateSpace { name: (*name).to_owned() },
            ["branch", name] => CatalogueChange::CreateBranch { space, name: (*name).to_owned() },
            ["drop", name] => {
                let branch = self.kernel.catalogue().space(space).unwrap().branch_named(name);
                CatalogueChange::DeleteBranch { space, branch: branch.unwrap() }
            }
            ["keep", much @ ..] => {
                let retention = match much {
                    ["all"] => Retention::ALL,
                    ["none"] => Retention::NONE,
                    [versions, "versions"] => Retention::versions(number(versions)),
                    [age] => Retention { age_us_max: time_us(age), ..Retention::ALL },
                    other => panic!("keep what? {other:?}"),
                };
                CatalogueChange::SetRetention { space, retention }
            }
            ["limit", name, max] => CatalogueChange::SetLimits(limits(self.kernel.catalogue().limits, name, max)),
            ["declare", name, "for", prefix, options @ ..] => {
                let record_type = Box::new(record_type(name, options));
                CatalogueChange::DeclareType(TypeDeclaration { space, prefix: (*prefix).to_owned(), record_type })
            }
            ["guard", prefix, options @ ..] => {
                let open = parts(option(options, "open").unwrap_or_default(), ',').map(str::to_owned).collect();
                CatalogueChange::SetGuard { space, prefix: (*prefix).to_owned(), guard: Some(GroupGuard { open }) }
            }
            ["unguard", prefix] => CatalogueChange::SetGuard { space, prefix: (*prefix).to_owned(), guard: None },
            other => {
                let access = Self::access_change(other).unwrap_or_else(|| panic!("what does {other:?} mean?"));
                CatalogueChange::Access(access)
            }
        };
        self.propose(&Body::Catalogue(change))
    }
}

fn limits(mut limits: Limits, name: &str, max: &str) -> Limits {
    let limit = match name {
        "value_bytes_max" => &mut limits.value_bytes_max,
        "transaction_ops_max" => &mut limits.transaction_ops_max,
        "transaction_bytes_max" => &mut limits.transaction_bytes_max,
        "write_trim_rows_max" => &mut limits.write_trim_rows_max,
        "spaces_max" => &mut limits.spaces_max,
        "branches_per_space_max" => &mut limits.branches_per_space_max,
        "record_fields_max" => &mut limits.record_fields_max,
        "record_bytes_max" => &mut limits.record_bytes_max,
        "claim_records_max" => &mut limits.claim_records_max,
        "claim_bytes_max" => &mut limits.claim_bytes_max,
        "tick_steps_max" => &mut limits.tick_steps_max,
        "messages_waiting_max" => &mut limits.messages_waiting_max,
        "tombstone_age_us" => {
            limits.tombstone_age_us = time_us(max);
            return limits;
        }
        other => panic!("there is no limit {other}"),
    };
    *limit = number(max).try_into().unwrap();
    limits
}

fn record_type(name: &str, options: &[&str]) -> RecordType {
    let mut record_type = RecordType::task().named(name.trim_matches('"'));
    if let Some(lease) = option(options, "lease") {
        record_type.lease = duration(lease);
    }
    if let Some(attempts) = option(options, "attempts") {
        record_type.attempts_max = number(attempts);
    }
    if let Some((first, max)) = option(options, "pause").and_then(|pause| pause.split_once("..")) {
        record_type = record_type.backoff(duration(first), duration(max));
    }
    record_type.default_ttl = option(options, "ttl").map(duration);
    record_type.terminal_ttl = option(options, "end-ttl").map(duration);
    record_type.indexes.clear();
    record_type.guarded = options.contains(&"guarded");
    if let Some(field) = option(options, "order") {
        record_type.ready_order = ReadyOrder::Field(field.to_owned());
    }
    for (field, kind) in pairs(option(options, "index")) {
        record_type = record_type.index(field, index_kind(kind));
    }
    if let Some(position) = options.iter().position(|word| *word == "sweep") {
        record_type = record_type.sweep_to(options[position + 1], options[position + 2]);
    }
    let states = |word| pairs(option(options, word)).map(|(name, kind)| State { name, kind: state_kind(kind) });
    if options.contains(&"states") {
        record_type.states = states("states").collect();
    }
    record_type.states.extend(states("and"));
    for (word, text) in [
        ("completed", &mut record_type.completed),
        ("failed", &mut record_type.failed),
        ("state-field", &mut record_type.state_field),
    ] {
        if let Some(given) = option(options, word) {
            *text = given.trim_matches('"').to_owned();
        }
    }
    record_type
}

/// `a:b,c:d`; `a:b*3` stands for `a1:b,a2:b,a3:b`.
fn pairs(list: Option<&str>) -> impl Iterator<Item = (String, &str)> {
    let pairs = parts(list.unwrap_or_default(), ',').map(|pair| pair.split_once(':').unwrap());
    pairs.flat_map(|(name, kind)| match kind.split_once('*') {
        None => vec![(name.to_owned(), kind)],
        Some((kind, count)) => (1..=number(count)).map(|number| (format!("{name}{number}"), kind)).collect(),
    })
}

fn state_kind(kind: &str) -> StateKind {
    match kind {
        "ready" => StateKind::Ready,
        "held" => StateKind::Held,
        "terminal" => StateKind::Terminal,
        other => panic!("no such kind of state: {other}"),
    }
}

fn index_kind(kind: &str) -> IndexKind {
    match kind {
        "bytes" => IndexKind::Bytes,
        "unsigned" => IndexKind::Unsigned,
        "signed" => IndexKind::Signed,
        "text" => IndexKind::Text,
        "time" => IndexKind::Time,
        other => panic!("no such kind of index: {other}"),
    }
}
