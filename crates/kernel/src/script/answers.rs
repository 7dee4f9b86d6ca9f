//! Answers as text; and each word with each answer that it got, for `coverage`.

use contract::{KeyedRejection, RecordRejection, Rejection};

use super::Stage;
use super::coverage::{WORD_OF_FENCE, WORD_OF_NEXT, word_of_guard, word_of_op, word_of_outcome};
use super::keyed::show_updated;
use super::words::{show_time, shown_name};
use crate::answer::{Answer, ClaimedOutcome, OpOutcome};
use crate::command::{Body, Op, Transact};
use crate::records::get::{ViewRecords, whole_record};

impl Stage {
    pub(super) fn show_answer(&self, body: &Body<'_>, answer: &Answer) -> String {
        let outcomes = match answer {
            Answer::Rejected(rejection) => return rejection.to_string(),
            Answer::Done { outcomes, .. } => outcomes,
        };
        let shown: Vec<String> = match body {
            Body::Transact(transact) => {
                assert_eq!(transact.ops.len(), outcomes.len(), "an outcome for each operation");
                // A later operation of the same transaction may have changed what was claimed.
                let is_last = transact.ops.len() == 1;
                let pairs = transact.ops.iter().zip(outcomes);
                pairs.map(|(op, outcome)| self.show_outcome(op, outcome, is_last)).collect()
            }
            Body::ClaimNext(_) => match outcomes.as_slice() {
                [] => vec!["nothing".into()],
                outcomes => outcomes.iter().map(|outcome| self.show_next(outcome)).collect(),
            },
            Body::DeadLetter(letter) => vec![format!("{:?}: {}", letter.act, outcomes.len()).to_lowercase()],
            Body::Catalogue(_)
            | Body::Trim(_)
            | Body::Level(_)
            | Body::Tick
            | Body::Published(_)
            | Body::Deliver(_)
            | Body::Delivered(_)
            | Body::Audit(_) => outcomes.iter().map(show_assigned).collect(),
        };
        shown.join(", ")
    }

    fn show_outcome(&self, op: &Op<'_>, outcome: &OpOutcome, is_last: bool) -> String {
        let name = op.name().unwrap_or_default();
        match (op, outcome) {
            (Op::Run(..), OpOutcome::Written(seq)) => format!("{name} at {seq}"),
            (_, OpOutcome::Written(version)) => format!("{name} v{version}"),
            (_, OpOutcome::Existing(version)) => format!("{name} is v{version}"),
            (_, OpOutcome::Nothing) => format!("no {name}"),
            (_, OpOutcome::Assigned(number)) => format!("{name} number {number}"),
            (_, OpOutcome::Claimed(claimed)) => self.show_claimed(claimed, is_last),
            (_, OpOutcome::Counted { version, value }) => format!("{name} v{version} is {value}"),
            (_, OpOutcome::Retried { version, pause_us }) => {
                format!("{name} v{version} again in {}", show_time(*pause_us))
            }
            (_, OpOutcome::Exhausted { version }) => format!("{name} v{version} exhausted"),
            (_, OpOutcome::Updated(updated)) => format!("{name} {}", show_updated(updated)),
            (_, OpOutcome::Sent) => "sent".into(),
            (_, OpOutcome::Appended { seq, idempotent: false, payload_mismatch: false }) => format!("{name} {seq}"),
            (_, OpOutcome::Appended { seq, idempotent: true, payload_mismatch: false }) => {
                format!("{name} {seq} known")
            }
            (_, OpOutcome::Appended { seq, idempotent: true, payload_mismatch: true }) => {
                format!("{name} {seq} differs")
            }
            (op, outcome) => panic!("{op:?} cannot be answered with {outcome:?}"),
        }
    }

    fn show_next(&self, outcome: &OpOutcome) -> String {
        match outcome {
            OpOutcome::Claimed(claimed) => self.show_claimed(claimed, true),
            OpOutcome::Unfinished => "unfinished".into(),
            other => panic!("a claim cannot be answered with {other:?}"),
        }
    }

    /// A worker gets the record exactly as everybody else reads it.
    fn show_claimed(&self, claimed: &ClaimedOutcome, is_last: bool) -> String {
        let (view, keys, catalogue) = (self.view(), self.kernel.keys(), self.kernel.catalogue());
        let ClaimedOutcome { name, group, stamp, row, .. } = claimed;
        let id = catalogue.thing(self.space, self.branch, group.as_deref(), name).unwrap();
        let record = whole_record(row, &id, catalogue, *stamp).unwrap();
        if is_last {
            let read = ViewRecords::new(&*view, keys, catalogue).unwrap().get(&id).unwrap();
            assert_eq!(read.as_ref(), Some(&record), "what was claimed is what is there");
        }
        format!("{} #{}", shown_name(group.as_deref(), name), record.attempt)
    }

    /// Notes what was answered. A refusal is noted where it can only be about one word.
    pub(super) fn note(&mut self, body: &Body<'_>, answer: &Answer) {
        match (body, answer) {
            (Body::Transact(transact), Answer::Done { outcomes, .. }) => {
                let ops = transact.ops.iter().zip(outcomes).map(|(op, outcome)| (word_of_op(op), outcome));
                self.met.extend(ops.map(|(word, outcome)| (word, word_of_outcome(outcome))));
                self.met.extend(transact.guards.iter().map(|guard| (word_of_guard(guard), "holds")));
                self.met.extend(transact.fences.iter().map(|_| (WORD_OF_FENCE, "holds")));
            }
            (Body::Transact(transact), Answer::Rejected(rejection)) => {
                self.met.extend(refused_word(transact, rejection).map(|word| (word, rejection.code())));
            }
            (Body::ClaimNext(_), Answer::Done { outcomes, .. }) => {
                let answers = outcomes.iter().map(word_of_outcome).chain(outcomes.is_empty().then_some("nothing"));
                self.met.extend(answers.map(|answer| (WORD_OF_NEXT, answer)));
            }
            (Body::ClaimNext(_), Answer::Rejected(rejection)) => {
                self.met.insert((WORD_OF_NEXT, rejection.code()));
            }
            (Body::Catalogue(_) | Body::Trim(_) | Body::Level(_) | Body::Tick, _) => {}
            (Body::Published(_) | Body::Deliver(_) | Body::Delivered(_) | Body::DeadLetter(_) | Body::Audit(_), _) => {}
        }
    }
}

fn refused_word(transact: &Transact<'_>, rejection: &Rejection) -> Option<&'static str> {
    match (transact.fences.as_slice(), transact.guards.as_slice(), transact.ops.as_slice()) {
        // This is about the transaction as a whole.
        _ if matches!(rejection, Rejection::TwoGroups { .. }) => None,
        (_, [_, ..], _) if matches!(rejection, Rejection::Map(KeyedRejection::CommitReused { .. })) => None,
        ([_, ..], [], _) if matches!(rejection, Rejection::Record(RecordRejection::Fenced { .. })) => {
            Some(WORD_OF_FENCE)
        }
        (_, [], [op]) => Some(word_of_op(op)),
        ([], [guard], _) => Some(word_of_guard(guard)),
        _ => None,
    }
}

fn show_assigned(outcome: &OpOutcome) -> String {
    match outcome {
        OpOutcome::Assigned(number) => format!("#{number}"),
        other => panic!("an outcome without its operation: {other:?}"),
    }
}
