//! Compares the answers to the commands of an entry, and when the next thing is due.

use contract::keyed::UpdateOutcome;
use contract::{KeyedRejection, RecordRejection, Rejection};
use kernel::keyed::command::Commit;
use kernel::keyed::updates::Update;
use kernel::records::get::whole_record;
use kernel::{Answer, Body, KeyedAct, NextDue, Op, OpOutcome, RunAct, Transact};
use session::{Reply, SessionAnswer, SessionCommand};

use super::{Judges, Stretch};
use crate::model::compare::same;
use crate::model::drawn::{Drawn, What};
use crate::model::habits::About;
use crate::model::instance::text;
use crate::model::reference::{ANY_KIND, ANY_REASON, Expected, Id, Outcome};
use crate::model::tally::{Tally, add};

impl Stretch<'_> {
    /// Takes note of all answers. The inner result says whether they are as expected.
    pub(super) fn compare_replies(
        &mut self,
        replies: &[Vec<u8>],
        expected: &[(Drawn, Expected)],
    ) -> Result<Result<(), String>, String> {
        same(|| "the number of replies".into(), &replies.len(), &expected.len())?;
        let mut compared = Ok(());
        for (reply, (drawn, expected)) in replies.iter().zip(expected) {
            let reply = Reply::decode(reply).map_err(text)?;
            let said = self.note_reply(reply, drawn, expected)?;
            if self.judges != Judges::ChecksAlone && compared.is_ok() {
                compared = said.map_err(|what| {
                    let asked = short(drawn.describe());
                    format!("{what}\n  in the answer to {:?} {asked}", drawn.sender)
                });
            }
        }
        Ok(compared)
    }

    /// Takes note of one answer. The inner result says whether it is as expected.
    fn note_reply(
        &mut self,
        reply: Reply<'_>,
        drawn: &Drawn,
        expected: &Expected,
    ) -> Result<Result<(), String>, String> {
        let request = drawn.sender.map(|sender| (sender.session, sender.request));
        let body = drawn.body();
        self.count_operations(body.as_ref());
        let counts = &self.tally;
        let is_same = match (reply, expected) {
            (Reply::Stored(answer), Expected::Stored) => {
                add(&counts.repeats, 1);
                request.and_then(|request| self.answers.get(&request)).map(Vec::as_slice) == Some(answer)
            }
            (Reply::Reused, Expected::Reused) => {
                add(&counts.reused, 1);
                true
            }
            (Reply::SessionExpired, Expected::SessionExpired) => {
                add(&counts.expired, u64::from(drawn.sender.is_some()));
                true
            }
            (Reply::Evicted { floor }, Expected::Evicted { floor: expected }) => {
                add(&counts.evicted, 1);
                floor == *expected
            }
            (Reply::Busy { bound, max }, Expected::Busy { bound: expected, max: most }) => {
                add(&counts.busy, 1);
                (bound, max) == (*expected, *most)
            }
            (Reply::Answer(answer), Expected::Sessions(expected)) => {
                SessionAnswer::decode(answer).as_ref() == Ok(expected)
            }
            (Reply::Answer(bytes), Expected::Done(_) | Expected::DoneBefore(..) | Expected::Rejected(_)) => {
                if let Some(request) = request {
                    self.answers.insert(request, bytes.to_vec());
                }
                let answer = Answer::decode(bytes).map_err(text)?;
                match &answer {
                    Answer::Rejected(rejection) => {
                        add(&counts.rejections, 1);
                        count_rejection(counts, rejection);
                    }
                    Answer::Done { .. } if matches!(expected, Expected::DoneBefore(..)) => {
                        add(&counts.commits_again, 1)
                    }
                    Answer::Done { commit, outcomes } => {
                        outcomes.iter().for_each(|outcome| count_updates(counts, outcome));
                        self.post.done(&drawn.marked, self.reference.wall_us, *commit);
                        if let Some(Body::Transact(transact)) = &body {
                            count_maps(counts, transact, outcomes);
                            self.enter_runs(transact, outcomes)?;
                        }
                    }
                }
                return Ok(self.compare(answer, expected));
            }
            _ => false,
        };
        let broken = || {
            let check = match (reply, expected, drawn.sender) {
                (Reply::Answer(_), Expected::Stored | Expected::Reused, _) => "(1) a request was executed again: ",
                (Reply::Answer(_), Expected::Evicted { .. } | Expected::SessionExpired, Some(_)) => {
                    "(1) a request was executed that nobody answers for any more: "
                }
                (.., Some(_)) => "(2) a request was answered otherwise than it must be: ",
                _ => match &drawn.what {
                    What::Sessions(SessionCommand::Acknowledge { .. }) => "(3) an acknowledgement: ",
                    What::Sessions(SessionCommand::RequestsForRetry { .. }) => "(4) pushes to be sent again: ",
                    _ => "",
                },
            };
            short(format!("{check}replied {reply:?}, expected {expected:?}"))
        };
        Ok(if is_same { Ok(()) } else { Err(broken()) })
    }

    fn count_operations(&mut self, body: Option<&Body<'_>>) {
        let operations = match body {
            // The models of cells and runs count operations, the model of maps those that update keys, the others commands.
            Some(Body::Transact(transact)) if matches!(self.habits.about, About::Cells | About::Runs) => {
                transact.ops.len().max(1) as u64
            }
            Some(Body::Transact(transact)) if self.habits.about == About::Keyed => {
                let updates = |op: &&Op<'_>| matches!(op, Op::Map(_, KeyedAct::Update(_) | KeyedAct::Commit(_)));
                transact.ops.iter().filter(updates).count() as u64
            }
            _ if self.habits.about == About::Keyed => 0,
            _ => 1,
        };
        self.done += operations;
        add(&self.tally.operations, operations);
    }

    /// Enters what was done to runs into the book, and counts it.
    fn enter_runs(&mut self, transact: &Transact<'_>, outcomes: &[OpOutcome]) -> Result<(), String> {
        let tally = self.tally;
        for (op, outcome) in transact.ops.iter().zip(outcomes) {
            let Op::Run(name, act) = op else {
                continue;
            };
            let id = Id::new(transact.space, transact.branch, transact.group, name);
            self.run_book.answered(&id, act, outcome)?;
            match (act, outcome) {
                (_, OpOutcome::Appended { idempotent: false, .. }) => add(&tally.appended, 1),
                (_, OpOutcome::Appended { payload_mismatch, .. }) => {
                    add(&tally.known, 1);
                    add(&tally.mismatches, u64::from(*payload_mismatch));
                }
                (RunAct::Fork { .. }, _) => add(&tally.forks, 1),
                (RunAct::Delete, _) => add(&tally.deletions, 1),
                _ => {}
            }
        }
        Ok(())
    }

    fn compare(&self, answer: Answer, expected: &Expected) -> Result<(), String> {
        let outcomes = match (answer, expected) {
            (Answer::Rejected(found), Expected::Rejected(expected)) => {
                let found = without_reason(found);
                let is_one = expected.contains(&found);
                return if is_one { Ok(()) } else { Err(format!("refused with {found:?}, expected {expected:?}")) };
            }
            (Answer::Done { commit, outcomes }, Expected::DoneBefore(first, expected))
                if commit == *first && outcomes.len() == expected.len() =>
            {
                outcomes.into_iter().zip(expected)
            }
            (Answer::Done { outcomes, .. }, Expected::Done(expected)) if outcomes.len() == expected.len() => {
                outcomes.into_iter().zip(expected)
            }
            (answer, expected) => return Err(format!("answered {answer:?}, expected {expected:?}")),
        };
        for (found, expected) in outcomes {
            match (found, expected) {
                (OpOutcome::Claimed(claimed), Outcome::Claimed(id, record)) => {
                    add(&self.tally.claims, 1);
                    let group = claimed.group.as_deref();
                    let found = Id {
                        space: claimed.space,
                        branch: id.branch,
                        group: claimed.group.clone(),
                        name: claimed.name.clone(),
                    };
                    same(|| "which record was claimed".into(), &found, id)?;
                    let (space, branch, name) = (id.space, id.branch, id.name.as_str());
                    let cell = kernel::keys::ThingId { bucket: 0, space, branch, group, name };
                    let catalogue = self.instance.kernel.catalogue();
                    let whole = whole_record(&claimed.row, &cell, catalogue, claimed.stamp).map_err(text)?;
                    same(|| "the record that was claimed".into(), &whole, record)?;
                }
                (found, Outcome::Is(expected)) => {
                    same(|| "an outcome".into(), &found, expected)?;
                    add(&self.tally.unfinished, u64::from(found == OpOutcome::Unfinished));
                }
                (found, expected) => return Err(format!("did {found:?}, expected {expected:?}")),
            }
        }
        Ok(())
    }

    /// What was applied, and when the next thing is due.
    pub(super) fn compare_agenda(&self, next_due: NextDue) -> Result<(), String> {
        if self.judges != Judges::All {
            return Ok(());
        }
        let applied = self.instance.kernel.applied();
        let found = (applied.commit, applied.stamp.wall_us, applied.stamp.cluster_us);
        let expected = (self.reference.commit, self.reference.wall_us, self.reference.cluster_us);
        same(|| "what was applied".into(), &found, &expected)?;
        same(
            || format!("when the next thing is due: {}", self.reference.agenda()),
            &next_due,
            &self.reference.next_due(),
        )
    }
}

fn count_rejection(counts: &Tally, rejection: &Rejection) {
    match rejection {
        Rejection::Map(KeyedRejection::CommitReused { .. }) => add(&counts.commits_reused, 1),
        Rejection::Record(RecordRejection::Fenced { .. }) => add(&counts.fenced, 1),
        Rejection::Unfenced { .. } => add(&counts.unfenced, 1),
        _ => {}
    }
}

/// Counts what was done to maps.
fn count_maps(counts: &Tally, transact: &Transact<'_>, outcomes: &[OpOutcome]) {
    for (op, outcome) in transact.ops.iter().zip(outcomes) {
        match (op, outcome) {
            (Op::Map(_, KeyedAct::Seal(_)), OpOutcome::Written(_)) => add(&counts.seals, 1),
            (Op::Map(_, KeyedAct::Delete), OpOutcome::Written(_)) => add(&counts.maps_deleted, 1),
            (
                Op::Map(_, KeyedAct::Update(updates) | KeyedAct::Commit(Commit { updates, .. })),
                OpOutcome::Updated(updated),
            ) => {
                let applied =
                    updates.iter().enumerate().filter(|(place, _)| updated.of(*place) == Some(UpdateOutcome::Applied));
                applied.for_each(|(_, (_, update))| count_applied(counts, update));
            }
            _ => {}
        }
    }
}

fn count_applied(counts: &Tally, update: Update<'_>) {
    let version = match update {
        Update::Put { version, .. } | Update::Delete(version) | Update::MergeAt(version, ..) => Some(version),
        Update::Merge(..) | Update::Remove => None,
    };
    add(&counts.epochs, u64::from(version.is_some_and(|version| version.epoch > 0)));
    add(&counts.keys_deleted, u64::from(matches!(update, Update::Delete(_))));
    // Only ordered maps take merges with versions.
    add(&counts.in_order, u64::from(matches!(update, Update::MergeAt(..))));
}

fn count_updates(counts: &Tally, outcome: &OpOutcome) {
    let OpOutcome::Updated(updated) = outcome else { return };
    add(&counts.updates, updated.count() as u64);
    add(&counts.updates_applied, updated.applied() as u64);
    for (_, outcome) in updated.others() {
        match outcome {
            UpdateOutcome::Duplicate => add(&counts.updates_known, 1),
            UpdateOutcome::VersionConflict => add(&counts.updates_in_conflict, 1),
            _ => add(&counts.updates_stale, 1),
        }
    }
}

/// The beginning of a text: answers can be long.
fn short(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(800) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// What a rejection says without the sentence that explains it.
fn without_reason(mut rejection: Rejection) -> Rejection {
    match &mut rejection {
        Rejection::Record(RecordRejection::WrongState { reason, .. })
        | Rejection::InvalidDeclaration { reason, .. } => *reason = ANY_REASON,
        Rejection::Record(RecordRejection::WrongKind { wanted, .. }) => *wanted = ANY_KIND,
        _ => {}
    }
    rejection
}
