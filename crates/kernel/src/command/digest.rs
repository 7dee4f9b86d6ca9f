//! The digest of a command of the contracts, in its frozen form; `docs/formats/sessions.md` is the specification.
//!
//! It covers what a command asks for and where: operations, space, branch, group, names, values and conditions. It does
//! not cover who sent it, through which node, against which catalogue, or how long it was willing to wait: those may
//! differ when a client repeats a command. A member at its default adds nothing.
//!
//! Every structure is destructured without `..`, so a new member does not compile until it is handled here.

use kv::{DecodeError, Writer};
use session::{CommandDigest, Digester};

use super::{
    Append, Body, ClaimNext, Duplicates, EventRef, Fence, FieldPatch, Guard, Op, RecordAct, RunAct, Send, Target,
    Transact, TtlArgument,
};
use crate::command::hosted::HostedCommand;
use crate::value::ValueRef;

/// The digest of a command, given as the bytes of its body.
pub(crate) fn digest(body: &[u8]) -> Result<CommandDigest, DecodeError> {
    let digester = match Body::decode(body)? {
        Body::Transact(transact) => {
            let mut digester = Digester::new("transact");
            transactions(&mut digester, transact)?;
            digester
        }
        Body::ClaimNext(claim) => claim_next(&claim),
        // No client sends these in a session today. Their own encoding covers each of their members.
        Body::Catalogue(_) | Body::Trim(_) | Body::Level(_) | Body::Tick | Body::Published(_) => {
            let mut digester = Digester::new("shard");
            digester.member("body", body);
            digester
        }
    };
    Ok(digester.finish())
}

/// The digest of a command for a user's machine. The version is not part of it: a client that was updated in between
/// sends the same bytes for the same command.
pub(crate) fn digest_hosted(number: u16, command: &HostedCommand<'_>) -> CommandDigest {
    let HostedCommand { space, group, body } = command;
    let mut digester = Digester::new("machine");
    digester.number("machine", number.into()).number("space", (*space).into());
    digester.text("group", group).member("body", body).finish()
}

fn claim_next(claim: &ClaimNext<'_>) -> Digester {
    // Whether it waits is part of how it was sent, not of what it asks for.
    let ClaimNext { space, branch, prefix, records_max, worker, lease_us, waits: _ } = claim;
    let mut digester = Digester::new("claim-next");
    digester.number("space", (*space).into()).number("branch", (*branch).into());
    digester.text("prefix", prefix).number("records", (*records_max).into());
    digester.optional_text("worker", some(worker)).optional_number("lease", *lease_us);
    digester
}

/// A transaction and those that it sends, one after the other: they lie in each other as deep as a client likes, and
/// nothing here may be as deep as that.
fn transactions(digester: &mut Digester, outermost: Transact<'_>) -> Result<(), DecodeError> {
    let mut sent = std::collections::VecDeque::new();
    let mut next = Some(outermost);
    while let Some(one) = next {
        transact(digester, &one, &mut |body| sent.push_back(body));
        next = match sent.pop_front() {
            None => None,
            Some(body) => {
                digester.text("sent", "");
                match Body::decode(body) {
                    Ok(Body::Transact(one)) => Some(one),
                    // It will be refused; until then its bytes represent it.
                    _ => {
                        digester.member("body", body);
                        None
                    }
                }
            }
        };
    }
    Ok(())
}

fn transact<'bytes>(digester: &mut Digester, transact: &Transact<'bytes>, send: &mut impl FnMut(&'bytes [u8])) {
    let Transact { space, branch, group, fence, guards, ops } = transact;
    digester.number("space", (*space).into()).number("branch", (*branch).into()).optional_text("group", *group);
    if let Some(Fence { record, attempt }) = fence {
        digester.text("fence", record).number("attempt", *attempt);
    }
    for one in guards {
        guard(digester, one);
    }
    for op in ops {
        operation(digester, op, send);
    }
}

fn guard(digester: &mut Digester, guard: &Guard<'_>) {
    let mut begin = |kind: &str, name: &str| {
        digester.text("if", kind).text("name", name);
    };
    match guard {
        Guard::CellAbsent(name) => begin("cell-absent", name),
        Guard::CellExists(name) => begin("cell-exists", name),
        Guard::CellVersionIs(name, version) => {
            begin("cell-version-is", name);
            digester.number("version", *version);
        }
        Guard::CellVersionBelow(name, version) => {
            begin("cell-version-below", name);
            digester.number("version", *version);
        }
        Guard::CellUnchangedSince(name, commit) => {
            begin("cell-unchanged", name);
            digester.number("commit", *commit);
        }
        Guard::CellsUnchangedSince(from, to, commit) => {
            begin("cells-unchanged", from);
            digester.optional_text("to", *to).number("commit", *commit);
        }
        Guard::RecordAbsent(name) => begin("record-absent", name),
        Guard::RecordExists(name) => begin("record-exists", name),
        Guard::RecordVersionIs(name, version) => {
            begin("record-version-is", name);
            digester.number("version", *version);
        }
        Guard::RecordFieldIs(name, field, value) => {
            begin("record-field-is", name);
            patch(digester, &(*field, *value));
        }
        Guard::RecordStateIn(name, states) => {
            begin("record-state-in", name);
            for state in states {
                digester.text("state", state);
            }
        }
        Guard::RecordAttemptIs(name, attempt) => {
            begin("record-attempt-is", name);
            digester.number("attempt", *attempt);
        }
        Guard::RecordUnchangedSince(name, commit) => {
            begin("record-unchanged", name);
            digester.number("commit", *commit);
        }
    }
}

fn operation<'bytes>(digester: &mut Digester, op: &Op<'bytes>, send: &mut impl FnMut(&'bytes [u8])) {
    match op {
        Op::CellInit(name, value) => written(digester.text("do", "cell-init").text("name", name), "value", *value),
        Op::CellSet(name, value) => written(digester.text("do", "cell-set").text("name", name), "value", *value),
        Op::CellCas(name, expected, value) => {
            digester.text("do", "cell-cas").text("name", name).optional_number("expected", *expected);
            written(digester, "value", *value);
        }
        Op::CellDelete(name) => {
            digester.text("do", "cell-delete").text("name", name);
        }
        Op::Record(name, act) => record(digester, name, act),
        Op::Run(name, act) => run(digester, name, act),
        Op::Push(session, payload) => {
            digester.text("do", "push").number("session", *session).member("payload", payload);
        }
        Op::Send(Send { target, after_us }) => {
            match target {
                Target::Transact(body) => {
                    digester.text("do", "send");
                    send(body);
                }
                Target::Topic { topic, payload } => {
                    digester.text("do", "publish").text("topic", topic).member("payload", payload);
                }
            }
            digester.optional_number("after", *after_us);
        }
    }
}

fn record(digester: &mut Digester, name: &str, act: &RecordAct<'_>) {
    let mut begin = |kind: &str| {
        digester.text("do", kind).text("name", name);
    };
    match act {
        RecordAct::Put { record_type, ttl: lifetime, fields } => {
            begin("record-put");
            digester.optional_text("type", *record_type);
            ttl(digester, *lifetime);
            for (field, value) in fields {
                patch(digester, &(*field, Some(*value)));
            }
        }
        RecordAct::Patch { must_exist, fields } => {
            begin("record-patch");
            if *must_exist {
                digester.text("must-exist", "");
            }
            patches(digester, fields);
        }
        RecordAct::Swap { field, expected, new } => {
            begin("record-swap");
            patch(digester, &(*field, *expected));
            patch(digester, &(*field, *new));
        }
        RecordAct::Increment { field, by } => {
            begin("record-increment");
            digester.text("field", field).member("by", &by.to_le_bytes());
        }
        RecordAct::Delete => begin("record-delete"),
        RecordAct::Touch { ttl: lifetime } => {
            begin("record-touch");
            ttl(digester, *lifetime);
        }
        RecordAct::Claim { worker, lease_us } => {
            begin("record-claim");
            digester.optional_text("worker", some(worker)).optional_number("lease", *lease_us);
        }
        RecordAct::Extend { attempt, lease_us } => {
            begin("record-extend");
            digester.number("attempt", *attempt).optional_number("lease", *lease_us);
        }
        RecordAct::Release { attempt } => {
            begin("record-release");
            digester.number("attempt", *attempt);
        }
        RecordAct::Complete { attempt, fields } => {
            begin("record-complete");
            digester.number("attempt", *attempt);
            patches(digester, fields);
        }
        RecordAct::Fail { attempt, fields } => {
            begin("record-fail");
            digester.number("attempt", *attempt);
            patches(digester, fields);
        }
    }
}

fn run(digester: &mut Digester, name: &str, act: &RunAct<'_>) {
    match act {
        RunAct::Append(append) => {
            let Append { expected_last, duplicates, run_type, event: one } = &**append;
            digester.text("do", "run-append").text("name", name).optional_number("expected", *expected_last);
            match duplicates {
                Duplicates::Answer => {}
                Duplicates::RefuseOthers | Duplicates::Refuse => {
                    digester.number("duplicates", u64::from(*duplicates as u8));
                }
            }
            digester.optional_text("type", some(run_type));
            event(digester, one);
        }
        RunAct::Close => {
            digester.text("do", "run-close").text("name", name);
        }
        RunAct::Delete => {
            digester.text("do", "run-delete").text("name", name);
        }
        RunAct::Fork { from, at } => {
            digester.text("do", "run-fork").text("name", name).text("from", from).number("at", *at);
        }
    }
}

fn event(digester: &mut Digester, event: &EventRef<'_>) {
    let EventRef {
        event_type,
        data,
        idempotency_key,
        event_id,
        step_id,
        engine_attempt_id,
        logical_attempt_id,
        emitted_at,
        adapter_version,
        engine_run_ref,
        caused_by_signal_id,
        parent_event_id,
        extra,
    } = event;
    digester.text("eventType", event_type).text("eventData", data).text("idempotencyKey", idempotency_key);
    let optionals = [
        ("eventId", event_id),
        ("stepId", step_id),
        ("engineAttemptId", engine_attempt_id),
        ("logicalAttemptId", logical_attempt_id),
        ("emittedAt", emitted_at),
        ("adapterVersion", adapter_version),
        ("engineRunRef", engine_run_ref),
        ("causedBySignalId", caused_by_signal_id),
        ("parentEventId", parent_event_id),
        ("extra", extra),
    ];
    for (name, text) in optionals {
        digester.optional_text(name, *text);
    }
}

fn ttl(digester: &mut Digester, ttl: TtlArgument) {
    match ttl {
        TtlArgument::Persist => {}
        TtlArgument::Keep => {
            digester.text("ttl", "keep");
        }
        TtlArgument::After(us) => {
            digester.number("ttl-after", us);
        }
        TtlArgument::WithSession => {
            digester.text("ttl", "session");
        }
    }
}

fn patches(digester: &mut Digester, fields: &[FieldPatch<'_>]) {
    for field in fields {
        patch(digester, field);
    }
}

fn patch(digester: &mut Digester, (field, value): &FieldPatch<'_>) {
    digester.text("field", field);
    if let Some(value) = value {
        written(digester, "value", *value);
    }
}

/// A value counts as its stored bytes, JSON as the text that was sent.
fn written(digester: &mut Digester, name: &str, value: ValueRef<'_>) {
    let mut writer = Writer::new();
    value.encode(&mut writer);
    digester.member(name, writer.as_slice());
}

/// An empty text counts as omitted.
fn some(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
