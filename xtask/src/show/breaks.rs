//! Deliberate breaks: one line of the product is changed, in a copy, and a program that should notice is run.
//!
//! Touches: a clone of HEAD below the build output, which is kept, so that the next break builds only what it changes; cargo and
//! the program as child processes. Keeps: a break that no longer fits its file is an error. Never: changes the working tree.

use std::path::Path;

use super::clones;
use super::summed::{Does, Part};
use crate::process::{cargo, succeeds};

/// One line of the product, and what it becomes.
pub(super) struct Break {
    /// Relative to the root.
    pub(super) file: &'static str,
    /// Stands there once.
    pub(super) from: &'static str,
    pub(super) to: &'static str,
    /// The arguments of `sim`, which must fail.
    pub(super) noticed_by: &'static str,
}

/// The mixed model, long enough for every break in it.
const MIXED: &str = "mixed-model --ops 60000";

/// The model of keyed state alone, likewise.
const KEYED: &str = "keyed-model --ops 300000";

/// A break in the kernel or in the session machine, noticed by the mixed model.
const fn of(figure: &'static str, file: &'static str, from: &'static str, to: &'static str) -> Part {
    noticed(figure, MIXED, file, from, to)
}

/// A break in keyed state or in guards, noticed by the model of these.
const fn of_keyed(figure: &'static str, file: &'static str, from: &'static str, to: &'static str) -> Part {
    noticed(figure, KEYED, file, from, to)
}

const fn noticed(
    figure: &'static str,
    noticed_by: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
) -> Part {
    let does = Does::Break(Break { file, from, to, noticed_by });
    Part { figure, goal: 1, unit: "found", each: 1, does }
}

const TRANSACT: &str = "crates/kernel/src/transact.rs";
const CONTEXT: &str = "crates/kernel/src/context.rs";
const LIFE: &str = "crates/kernel/src/runs/life.rs";
const WRITE: &str = "crates/kernel/src/records/write.rs";
const UPDATE: &str = "crates/kernel/src/keyed/update.rs";
const COMMIT: &str = "crates/kernel/src/keyed/commit.rs";
const RESTORE: &str = "crates/kernel/src/keyed/restore.rs";
const ORDERED: &str = "crates/kernel/src/keyed/ordered.rs";
const SESSIONS: &str = "crates/session/src/sessions.rs";

/// Every break, each a figure of its own.
pub(super) const BREAKS: &[Part] = &[
    of(
        "breaks.one-guard-is-no-guard",
        TRANSACT,
        "if let Err(rejection) = check_guard(applying, &scope, guard, &mut looked_at)? {",
        "if let (Err(rejection), 2..) = (check_guard(applying, &scope, guard, &mut looked_at)?, transact.guards.len()) {",
    ),
    of(
        "breaks.the-fence-holds-for-one-operation",
        TRANSACT,
        "if let Err(rejection) = check_scope(applying, &scope)? {",
        "if let (Err(rejection), ..2) = (check_scope(applying, &scope)?, transact.ops.len()) {",
    ),
    of(
        "breaks.a-run-may-be-ahead-of-its-guard",
        "crates/kernel/src/runs/contract.rs",
        "_ if last != expected =>",
        "_ if last < expected =>",
    ),
    of(
        "breaks.a-refused-transaction-is-not-undone",
        TRANSACT,
        "            applying.undo();\n            if let Ok(scope)",
        "            if let Ok(scope)",
    ),
    of(
        "breaks.undoing-leaves-the-schedule-in-memory",
        CONTEXT,
        "        self.folded.undo();\n        self.windows.undo();\n",
        "        self.folded.undo();\n",
    ),
    of(
        "breaks.undoing-leaves-counts-and-changes",
        CONTEXT,
        "        self.folded.undo();\n        self.windows.undo();\n",
        "        self.windows.undo();\n",
    ),
    of("breaks.undoing-leaves-pushes", CONTEXT, "        self.pushes.truncate(self.pushes_at_savepoint);\n", ""),
    of(
        "breaks.a-forgotten-cell-starts-at-one",
        "crates/kernel/src/cells/write.rs",
        "cells.floor(cell)?.version + 1",
        "cells.floor(cell)?.version.min(0) + 1",
    ),
    of(
        "breaks.retention-keeps-one-more",
        "crates/kernel/src/cells/retention.rs",
        "newest - version >= retention.versions_max",
        "newest - version > retention.versions_max",
    ),
    of(
        "breaks.a-forgotten-record-starts-at-attempt-one",
        WRITE,
        "attempt: floor.attempt.max(numbers.attempt),",
        "attempt: floor.attempt,",
    ),
    of(
        "breaks.what-has-expired-is-written",
        WRITE,
        "if decode_numbers(&bytes)?.expired_at(applying.call.stamp.wall_us) {",
        "if decode_numbers(&bytes)?.expired_at(applying.call.stamp.wall_us) && applying.call.session.is_none() {",
    ),
    of(
        "breaks.what-is-removed-still-takes-space",
        "crates/kernel/src/held.rs",
        "        let key = key.into_key();\n        self.count(place_of(&key), counted_bytes(&key), Some(was), None);\n",
        "        let (key, _) = (key.into_key(), was);\n",
    ),
    of(
        "breaks.what-was-refused-takes-space",
        "crates/kernel/src/folded.rs",
        "        self.usage.truncate(self.usage_at_savepoint);\n",
        "",
    ),
    of("breaks.counts-only-rise", WRITE, "        count(applying, record, before, -1);\n", ""),
    of(
        "breaks.a-deleted-record-is-listed",
        WRITE,
        "names::set_listed(applying.state, &applying.keys, Kind::Record, record, !after.numbers.deleted);",
        "names::set_listed(applying.state, &applying.keys, Kind::Record, record, true);",
    ),
    of(
        "breaks.an-index-keeps-old-values",
        "crates/kernel/src/records/index.rs",
        "            was.into_iter().for_each(|key| applying.state.delete(key));\n",
        "",
    ),
    of(
        "breaks.a-later-index-lacks-what-is-in-groups",
        "crates/kernel/src/records/fill.rs",
        "if !row.numbers.deleted && row.numbers.record_type == declared.id {",
        "if !row.numbers.deleted && row.numbers.record_type == declared.id && id.group.is_none() {",
    ),
    of(
        "breaks.an-index-is-used-before-it-is-filled",
        "crates/kernel/src/records/scan.rs",
        "declared.definition.indexes.iter().take(filled)",
        "declared.definition.indexes.iter().take(filled.max(16))",
    ),
    of(
        "breaks.an-id-that-was-made-is-given-again",
        "crates/kernel/src/runs/append.rs",
        "by_id.is_none() && *seq <= head.last_seq",
        "by_id.is_none() && *seq + 3 <= head.last_seq",
    ),
    of(
        "breaks.a-rescue-is-no-failure",
        "crates/kernel/src/records/attempt.rs",
        "    after.numbers.failures = after.numbers.failures.saturating_add(1);\n",
        "    after.numbers.failures += u32::from(reason == Reason::Failed);\n",
    ),
    of(
        "breaks.a-refused-message-leaves-half",
        "crates/kernel/src/outbox/deliver.rs",
        "            applying.undo();\n            dead_letters::keep(",
        "            if transact.ops.len() < 2 {\n                applying.undo();\n            }\n            dead_letters::keep(",
    ),
    of(
        "breaks.a-fork-knows-later-keys",
        "crates/kernel/src/runs/append.rs",
        "found = known.filter(|known| known.seq <= upto);",
        "found = known;",
    ),
    of("breaks.a-shared-run-goes-with-its-events", LIFE, "    if !shared {\n", "    if !shared || seq > 3 {\n"),
    of(
        "breaks.forks-are-not-counted",
        LIFE,
        "RunHead { forks: head.forks + 1, ..head.clone() }",
        "RunHead { forks: head.forks, ..head.clone() }",
    ),
    of(
        "breaks.a-number-means-any-command",
        SESSIONS,
        "match stored.digest == digest || reuse_is_missed() {",
        "match stored.digest == digest || envelope.request > 3 {",
    ),
    of(
        "breaks.one-request-below-the-floor-is-executed",
        SESSIONS,
        "if envelope.request < floor {",
        "if envelope.request + 1 < floor {",
    ),
    of(
        "breaks.a-session-leaves-its-claims",
        "crates/kernel/src/records/owned.rs",
        "            applying.owned.push(record.bucket);\n",
        "",
    ),
    of(
        "breaks.a-machine-meets-a-session-twice",
        "crates/kernel/src/sessions/hosted.rs",
        "if applying.state.get(&member)?.is_none() {",
        "if applying.state.get(&member)?.is_none() || command.body.len() > 20 {",
    ),
    of(
        "breaks.a-deleted-branch-leaves-its-queues",
        "crates/kernel/src/records/erase.rs",
        "    delete_some(&mut applying.held(), &ready)\n",
        "    let _ = ready;\n    Ok(())\n",
    ),
    of_keyed(
        "breaks.an-equal-version-is-applied",
        UPDATE,
        "Some((state, known)) if version == known => Ok(Ok(match state == after {",
        "Some((state, known)) if version == known && state == after => Ok(Ok(match state == after {",
    ),
    of_keyed(
        "breaks.a-merge-counts-twice-when-its-commit-is-sent-again",
        COMMIT,
        "changed.head.content.last_number = *number;",
        "changed.head.content.last_number = *number - u64::from(*number == 3);",
    ),
    of_keyed(
        "breaks.another-commit-gets-the-answer-of-the-last",
        COMMIT,
        "    Ok(match known == *digest {\n        true => Ok(Some(answer.to_vec())),",
        "    Ok(match known == *digest || number > 3 {\n        true => Ok(Some(answer.to_vec())),",
    ),
    of_keyed(
        "breaks.a-seal-is-ignored",
        UPDATE,
        "            _ if content.seals(version) => stale(version),\n",
        "            None if content.seals(version) => stale(version),\n",
    ),
    of_keyed(
        "breaks.a-position-goes-back",
        COMMIT,
        ".filter(|current| position < *current) {",
        ".filter(|current| position + 1 < *current) {",
    ),
    of_keyed(
        "breaks.a-waiting-update-is-applied-out-of-order",
        ORDERED,
        "    let range = applying.keys.sealed_rows(kind, changed.map, number, seal);\n",
        "    let range = applying.keys.sealed_rows(kind, changed.map, number, LogicalTime { round: seal.round + 1, ..seal });\n",
    ),
    of_keyed(
        "breaks.a-waiting-update-counts-twice",
        ORDERED,
        "    if let Some(row) = applying.state.get(&waiting_key)? {\n",
        "    if let Some(row) = applying.state.get(&waiting_key)?.filter(|_| version.round % 5 > 0) {\n",
    ),
    of_keyed(
        "breaks.a-deleted-key-is-forgotten-too-early",
        "crates/kernel/src/keyed/sweep.rs",
        "applying.keys.sealed_rows(kind, map, number, seal)",
        "applying.keys.sealed_rows(kind, map, number, contract::keyed::LogicalTime { round: seal.round + 1, ..seal })",
    ),
    of_keyed(
        "breaks.a-forgotten-key-was-never-changed",
        "crates/kernel/src/keyed/sweep.rs",
        "        content.forgotten = content.forgotten.max(content.changed_at(&Entry::decode(&row)?));\n",
        "        Entry::decode(&row)?;\n",
    ),
    of_keyed(
        "breaks.what-was-deleted-comes-back-with-its-map",
        "crates/kernel/src/keyed/changed_map.rs",
        "let next = head.last_content.checked_add(1);",
        "let next = head.last_content.checked_add(0);",
    ),
    of_keyed(
        "breaks.a-restored-key-was-never-changed",
        RESTORE,
        "changed.head.content = Content { since: commit, forgotten: commit, ..built };",
        "changed.head.content = Content { forgotten: commit, ..built };",
    ),
    of_keyed(
        "breaks.a-restore-that-is-incomplete-ends",
        RESTORE,
        "    if found != *counts || has_answer",
        "    if found.keys != counts.keys || has_answer",
    ),
    of_keyed(
        "breaks.what-was-put-aside-stays",
        RESTORE,
        "    changed.head.unused.push(building.content.number);\n",
        "    let _ = building;\n",
    ),
    of_keyed(
        "breaks.a-removed-key-is-not-noted",
        "crates/kernel/src/keyed/noting.rs",
        "    if applying.state.get(&row)?.is_none() {\n        noting.count += 1;",
        "    if applying.state.get(&row)?.is_none() && noting.count % 7 < 6 {\n        noting.count += 1;",
    ),
    of_keyed(
        "breaks.an-owner-that-was-replaced-may-write",
        "crates/kernel/src/records/state.rs",
        "    if !numbers.deleted && numbers.is_held() && numbers.attempt == attempt {",
        "    if !numbers.deleted && numbers.is_held() && numbers.attempt <= attempt + 1 {",
    ),
    of_keyed(
        "breaks.a-guarded-group-takes-anything-under-an-open-name",
        "crates/kernel/src/transact/guarded.rs",
        "                    Open::Never => Ok(false),\n",
        "                    Open::Never => Ok(true),\n",
    ),
    of(
        "breaks.what-is-in-a-guarded-group-is-in-a-queue",
        WRITE,
        "row.numbers.record_type == OWNER_ID || applying.is_guarded(record)",
        "row.numbers.record_type == OWNER_ID || (applying.is_guarded(record) && row.numbers.attempt > 0)",
    ),
    of(
        "breaks.a-message-from-elsewhere-needs-no-fence",
        "crates/kernel/src/outbox/deliver.rs",
        "&& transact::group_of(transact) == Some(message.source);",
        "&& transact::group_of(transact).is_some();",
    ),
    Part {
        figure: "breaks.a-shard-writes-what-is-not-its-own",
        goal: 1,
        unit: "found",
        each: 1,
        does: Does::Break(Break {
            file: "crates/kernel/src/catalogue/mod.rs",
            from: "match self.here.contains(bucket) {",
            to: "match self.here.contains(bucket) || bucket > 0 {",
            noticed_by: "two-shards --seconds 3",
        }),
    },
];

/// Breaks the product in a copy and runs the program; whether it noticed.
pub(super) fn is_noticed(root: &Path, broken: &Break) -> Result<bool, String> {
    let output = clones::output_directory(root, "breaks");
    let clone = output.join("clone");
    clones::bring_to(root, &clone, "HEAD")?;
    let path = clone.join(broken.file);
    let source = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let changed = apply(broken, &source)?;
    std::fs::write(&path, changed).map_err(|error| format!("{}: {error}", path.display()))?;
    let in_clone = |arguments: &str| {
        let mut command = cargo(&clone, arguments);
        // A break changes one line: what is kept between builds saves most of the next one.
        command
            .env("CARGO_TARGET_DIR", output.join("target"))
            .env("CARGO_INCREMENTAL", "1")
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
        command
    };
    if !succeeds(&mut in_clone("build --quiet --locked -p sim"))? {
        return Err(format!("{} does not compile with its break", broken.file));
    }
    let passed = succeeds(&mut in_clone(&format!("run --quiet --locked -p sim -- {}", broken.noticed_by)))?;
    Ok(!passed)
}

fn apply(broken: &Break, source: &str) -> Result<String, String> {
    match source.matches(broken.from).count() {
        1 => Ok(source.replace(broken.from, broken.to)),
        times => Err(format!("{:?} stands {times} times in {}, not once", broken.from, broken.file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_break_fits_its_file_and_changes_it() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the root");
        let unfit = |part: &Part| {
            let Does::Break(broken) = &part.does else {
                return Some(format!("{} is no break", part.figure));
            };
            let source = std::fs::read_to_string(root.join(broken.file)).expect(broken.file);
            match apply(broken, &source) {
                Ok(changed) => (changed == source).then(|| format!("{} changes nothing", part.figure)),
                Err(error) => Some(format!("{}: {error}", part.figure)),
            }
        };
        let unfit: Vec<String> = BREAKS.iter().filter_map(unfit).collect();
        assert!(unfit.is_empty(), "{unfit:#?}");
        assert!(BREAKS.len() >= 20);
    }
}
