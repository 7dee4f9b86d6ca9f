//! Every act and every guard has a script for each of its answers.
//!
//! The lists below are made by matches without a wildcard: a new act, guard or outcome does not compile until it has a
//! word, and its word fails the test until scripts get every answer that the table promises.

use std::collections::BTreeSet;

use super::Stage;
use crate::answer::OpOutcome;
use crate::command::{CellAct, CellGuard, Guard, KeyedAct, KeyedGuard, Op, RecordAct, RecordGuard, RunAct, RunGuard};
use crate::outbox::command::{Send, Target};

/// A word for every variant, as a function and as a list.
macro_rules! words {
    ($list:ident, $word_of:ident($of:ty) { $($variant:pat => $word:literal,)+ }) => {
        const $list: &[&str] = &[$($word,)+];

        pub(super) fn $word_of(of: &$of) -> &'static str {
            match of {
                $($variant => $word,)+
            }
        }
    };
}

words! {
    OPS, word_of_op(Op<'_>) {
        Op::Cell(_, CellAct::Init(..)) => "init",
        Op::Cell(_, CellAct::Set(..)) => "set",
        Op::Cell(_, CellAct::Cas(..)) => "cas",
        Op::Cell(_, CellAct::Delete) => "delete",
        Op::Record(_, RecordAct::Put { .. }) => "put",
        Op::Record(_, RecordAct::Patch { must_exist: false, .. }) => "patch",
        Op::Record(_, RecordAct::Patch { must_exist: true, .. }) => "update",
        Op::Record(_, RecordAct::Swap { .. }) => "swap",
        Op::Record(_, RecordAct::Increment { .. }) => "incr",
        Op::Record(_, RecordAct::Delete) => "delete record",
        Op::Record(_, RecordAct::Touch { .. }) => "touch",
        Op::Record(_, RecordAct::Claim { .. }) => "claim",
        Op::Record(_, RecordAct::Extend { .. }) => "extend",
        Op::Record(_, RecordAct::Release { .. }) => "release",
        Op::Record(_, RecordAct::Complete { .. }) => "complete",
        Op::Record(_, RecordAct::Fail { .. }) => "fail",
        Op::Send(Send { target: Target::Transact(_), .. }) => "send",
        Op::Send(Send { target: Target::Topic { .. }, .. }) => "publish",
        Op::Push(..) => "push",
        Op::Run(_, RunAct::Append(_)) => "append",
        Op::Run(_, RunAct::Close) => "close",
        Op::Run(_, RunAct::Delete) => "delete run",
        Op::Run(_, RunAct::Fork { .. }) => "fork",
        Op::Map(_, KeyedAct::Update(_)) => "update map",
        Op::Map(_, KeyedAct::Commit(_)) => "number",
        Op::Map(_, KeyedAct::Seal(_)) => "seal",
        Op::Map(_, KeyedAct::Create(_)) => "create",
        Op::Map(_, KeyedAct::Delete) => "delete map",
        Op::Map(_, KeyedAct::BeginRestore(_)) => "begin restore",
        Op::Map(_, KeyedAct::RestoreRows(..)) => "restore",
        Op::Map(_, KeyedAct::EndRestore(..)) => "end restore",
        Op::Map(_, KeyedAct::AbandonRestore(_)) => "abandon restore",
        Op::Map(_, KeyedAct::BeginCheckpoint) => "begin checkpoint",
        Op::Map(_, KeyedAct::EndCheckpoint(_)) => "end checkpoint",
    }
}

words! {
    GUARDS, word_of_guard(Guard<'_>) {
        Guard::Cell(CellGuard::Absent(_)) => "cell absent",
        Guard::Cell(CellGuard::Exists(_)) => "cell exists",
        Guard::Cell(CellGuard::VersionIs(..)) => "cell is",
        Guard::Cell(CellGuard::VersionBelow(..)) => "cell below",
        Guard::Cell(CellGuard::UnchangedSince(..)) => "cell unchanged",
        Guard::Cell(CellGuard::RangeUnchangedSince(..)) => "cells unchanged",
        Guard::Record(RecordGuard::Absent(_)) => "record absent",
        Guard::Record(RecordGuard::Exists(_)) => "record exists",
        Guard::Record(RecordGuard::VersionIs(..)) => "record is",
        Guard::Record(RecordGuard::FieldIs(..)) => "record field",
        Guard::Record(RecordGuard::StateIn(..)) => "record in",
        Guard::Record(RecordGuard::AttemptIs(..)) => "record at",
        Guard::Record(RecordGuard::UnchangedSince(..)) => "record unchanged",
        Guard::Run(RunGuard::LastIs(..)) => "run at",
        Guard::Map(KeyedGuard::Absent(..)) => "key absent",
        Guard::Map(KeyedGuard::Exists(..)) => "key exists",
        Guard::Map(KeyedGuard::VersionIs(..)) => "key is",
        Guard::Map(KeyedGuard::VersionBelow(..)) => "key below",
        Guard::Map(KeyedGuard::UnchangedSince(..)) => "key unchanged",
        Guard::Map(KeyedGuard::RangeUnchangedSince(..)) => "keys unchanged",
        Guard::Map(KeyedGuard::PositionIs(..)) => "input at",
    }
}

words! {
    OUTCOMES, word_of_outcome(OpOutcome) {
        OpOutcome::Written(_) => "written",
        OpOutcome::Existing(_) => "existing",
        OpOutcome::Nothing => "nothing",
        OpOutcome::Assigned(_) => "assigned",
        OpOutcome::Claimed(_) => "claimed",
        OpOutcome::Counted { .. } => "counted",
        OpOutcome::Retried { .. } => "retried",
        OpOutcome::Exhausted { .. } => "exhausted",
        OpOutcome::Sent => "sent",
        OpOutcome::Appended { idempotent: false, .. } => "appended",
        OpOutcome::Appended { idempotent: true, payload_mismatch: false, .. } => "known",
        OpOutcome::Appended { idempotent: true, payload_mismatch: true, .. } => "differs",
        OpOutcome::Updated(_) => "updated",
        OpOutcome::Hosted(_) => "hosted",
        OpOutcome::Unfinished => "unfinished",
    }
}

pub(super) const WORD_OF_FENCE: &str = "fence";
pub(super) const WORD_OF_NEXT: &str = "next";

/// Each word with exactly the answers that scripts get.
const ANSWERS: &[(&str, &[&str])] = &[
    ("init", &["written", "existing", "SH-4003"]),
    ("set", &["written", "SH-1002", "SH-1006", "SH-4003"]),
    ("cas", &["written", "SH-1003", "SH-4003"]),
    ("delete", &["written", "nothing", "SH-4003"]),
    ("put", &["written", "SH-1002", "SH-1006", "SH-1014", "SH-1015", "SH-1016", "SH-1018", "SH-4003"]),
    ("patch", &["written", "SH-1002", "SH-1015", "SH-1016", "SH-4003"]),
    ("update", &["written", "SH-1002", "SH-1013", "SH-1015", "SH-1016", "SH-4003"]),
    ("swap", &["written", "SH-1002", "SH-1015", "SH-1016", "SH-1019", "SH-4003"]),
    ("incr", &["counted", "SH-1002", "SH-1016", "SH-4003"]),
    ("delete record", &["written", "nothing", "SH-4003"]),
    ("touch", &["written", "SH-1013", "SH-1018", "SH-4003"]),
    ("claim", &["claimed", "SH-1013", "SH-1014", "SH-1015", "SH-1021", "SH-4003"]),
    ("extend", &["written", "SH-4002", "SH-4003"]),
    ("release", &["written", "SH-4002", "SH-4003"]),
    ("complete", &["written", "SH-1002", "SH-1015", "SH-1016", "SH-4002", "SH-4003"]),
    ("fail", &["retried", "exhausted", "SH-1002", "SH-1015", "SH-1016", "SH-4002", "SH-4003"]),
    ("next", &["claimed", "nothing", "unfinished", "SH-1006"]),
    ("send", &["sent", "SH-1002", "SH-1018", "SH-4003"]),
    ("publish", &["sent", "SH-1002", "SH-1018", "SH-4003"]),
    (
        "append",
        &["appended", "known", "differs", "SH-1002", "SH-1006", "SH-3003", "SH-3004", "SH-3005", "SH-3006", "SH-4003"],
    ),
    ("close", &["written", "SH-3002", "SH-3006", "SH-4003"]),
    ("delete run", &["written", "SH-3002", "SH-3006", "SH-4003"]),
    ("fork", &["written", "SH-1002", "SH-1007", "SH-3002", "SH-3003", "SH-3006", "SH-4003"]),
    ("cell absent", &["holds", "SH-1003"]),
    ("cell exists", &["holds", "SH-1003"]),
    ("cell is", &["holds", "SH-1003"]),
    ("cell below", &["holds", "SH-1003"]),
    ("cell unchanged", &["holds", "SH-1003"]),
    ("cells unchanged", &["holds", "SH-1003"]),
    ("record absent", &["holds", "SH-1006", "SH-1017"]),
    ("record exists", &["holds", "SH-1017"]),
    ("record is", &["holds", "SH-1017"]),
    ("record field", &["holds", "SH-1019"]),
    ("record in", &["holds", "SH-1017"]),
    ("record at", &["holds", "SH-1017"]),
    ("record unchanged", &["holds", "SH-1017"]),
    ("run at", &["holds", "SH-1006", "SH-3003", "SH-3006"]),
    ("update map", &["updated", "SH-1002", "SH-1006", "SH-4003", "SH-8002", "SH-8003", "SH-8004", "SH-8010"]),
    ("number", &["updated", "SH-1002", "SH-4003", "SH-8002", "SH-8003", "SH-8005", "SH-8006", "SH-8007", "SH-8010"]),
    ("seal", &["written", "existing", "SH-4003"]),
    ("create", &["written", "existing", "SH-4003", "SH-8011"]),
    ("delete map", &["written", "nothing", "SH-1002", "SH-4003"]),
    ("begin restore", &["assigned", "SH-1002", "SH-4003"]),
    ("restore", &["existing", "SH-4003", "SH-8010", "SH-8012"]),
    ("end restore", &["written", "SH-4003", "SH-8012", "SH-8013"]),
    ("abandon restore", &["existing", "nothing", "SH-4003"]),
    ("begin checkpoint", &["written", "SH-8001", "SH-4003"]),
    ("end checkpoint", &["written", "existing", "SH-4003", "SH-8001", "SH-8014"]),
    ("key absent", &["holds", "SH-8008"]),
    ("key exists", &["holds", "SH-8008"]),
    ("key is", &["holds", "SH-8008"]),
    ("key below", &["holds", "SH-8008"]),
    ("key unchanged", &["holds", "SH-8008"]),
    ("keys unchanged", &["holds", "SH-8008"]),
    ("input at", &["holds", "SH-8009"]),
    ("fence", &["holds", "SH-4002"]),
];

/// A push needs a session, which scripts do not have.
const WITHOUT_SCRIPTS: &[&str] = &["push"];

/// Only users' machines answer with their own bytes.
const NOT_OF_OPS: &[&str] = &["hosted"];

const SOURCES: &[&str] = &[
    include_str!("../cells/tests.rs"),
    include_str!("../keyed/tests/checkpoints.rs"),
    include_str!("../keyed/tests/commits.rs"),
    include_str!("../keyed/tests/guards.rs"),
    include_str!("../keyed/tests/maps.rs"),
    include_str!("../keyed/tests/ordered.rs"),
    include_str!("../keyed/tests/restores.rs"),
    include_str!("../keyed/tests/versions.rs"),
    include_str!("../records/tests/attempts.rs"),
    include_str!("../records/tests/expiry.rs"),
    include_str!("../records/tests/fences.rs"),
    include_str!("../records/tests/guards.rs"),
    include_str!("../records/tests/indexes.rs"),
    include_str!("../records/tests/leases.rs"),
    include_str!("../records/tests/messages.rs"),
    include_str!("../records/tests/moves.rs"),
    include_str!("../records/tests/places.rs"),
    include_str!("../records/tests/queues.rs"),
    include_str!("../records/tests/reads.rs"),
    include_str!("../records/tests/types.rs"),
    include_str!("../records/tests/writes.rs"),
    include_str!("../runs/tests/appends.rs"),
    include_str!("../runs/tests/forks.rs"),
    include_str!("../runs/tests/guards.rs"),
    include_str!("../runs/tests/life.rs"),
    include_str!("../runs/tests/lists.rs"),
    include_str!("../runs/tests/places.rs"),
    include_str!("../runs/tests/projection.rs"),
    include_str!("../runs/tests/reads.rs"),
    include_str!("../runs/tests/steps.rs"),
    include_str!("../transact/guarded/tests.rs"),
];

#[test]
fn every_word_is_said_and_gets_each_of_its_answers() {
    let mut met = BTreeSet::new();
    let mut scripts = 0;
    for script in SOURCES.iter().flat_map(|source| scripts_of(source)) {
        let mut stage = Stage::new(1);
        stage.say(&script);
        met.extend(stage.met);
        scripts += 1;
    }
    assert!(scripts > 200, "scripts are found in their sources");
    for word in OPS.iter().chain(GUARDS).chain(&[WORD_OF_FENCE, WORD_OF_NEXT]) {
        let promised = ANSWERS.iter().find(|(promised, _)| promised == word);
        let is_known = promised.is_some() != WITHOUT_SCRIPTS.contains(word);
        assert!(is_known, "{word:?} needs scripts and a line in the table");
    }
    let promised = ANSWERS.iter().flat_map(|(word, answers)| answers.iter().map(move |answer| (*word, *answer)));
    let promised = promised.collect::<BTreeSet<_>>();
    let missing: Vec<_> = promised.difference(&met).collect();
    assert!(missing.is_empty(), "no script gets these answers: {missing:?}");
    let unforeseen: Vec<_> = met.difference(&promised).collect();
    assert!(unforeseen.is_empty(), "the table does not promise these answers: {unforeseen:?}");
    for outcome in OUTCOMES.iter().filter(|outcome| !NOT_OF_OPS.contains(outcome)) {
        assert!(ANSWERS.iter().any(|(_, answers)| answers.contains(outcome)), "nothing is answered with {outcome:?}");
    }
}

impl Stage {
    /// The words of all operations that scripts can say.
    pub(crate) fn words_of_ops() -> Vec<&'static str> {
        OPS.iter().copied().filter(|word| !WITHOUT_SCRIPTS.contains(word)).collect()
    }
}

/// The scripts in the source of a test: the first argument of each `check`, where it is a literal.
fn scripts_of(source: &str) -> Vec<String> {
    let arguments = source.split("check(").skip(1).map(str::trim_start);
    arguments.filter_map(|argument| argument.strip_prefix('"')).map(literal).collect()
}

/// A literal up to its end, as the compiler reads it.
fn literal(source: &str) -> String {
    let (mut text, mut rest) = (String::new(), source);
    loop {
        let special = rest.find(['"', '\\']).expect("a literal ends");
        text.push_str(&rest[..special]);
        rest = &rest[special..];
        if rest.starts_with('"') {
            return text;
        }
        rest = match rest.as_bytes()[1] {
            b'\n' => rest[1..].trim_start(),
            escaped => {
                text.push(char::from(escaped));
                &rest[2..]
            }
        };
    }
}
