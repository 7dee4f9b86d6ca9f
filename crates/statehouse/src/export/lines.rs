//! The line of each thing; `docs/formats/export.md` is the specification.

use contract::Limits;
use kernel::catalogue::{Catalogue, Space};
use kernel::keys::things::OwnedId;
use kernel::outbox::Stored;
use kernel::outbox::dead_letters::DeadLetter;
use kernel::portable::Item;
use kernel::{Applied, MessageState, Target};
use kv::Writer;
use session::Halt;

use super::line::Line;
use super::{FORMAT, kinds};
use crate::with_contracts;

/// The first line.
pub(super) fn header(release: &str, space: Option<&str>, applied: &Applied, catalogue: &Catalogue) -> Line {
    let numbers = catalogue.numbers();
    Line::new(kinds::HEADER)
        .number("format", FORMAT)
        .text("release", release)
        .text_if("space", space)
        .number("commit", applied.commit)
        .number("applied_index", applied.index)
        .number_unless_zero("epoch", applied.epoch)
        .number("wall_us", applied.stamp.wall_us)
        .number("cluster_us", applied.stamp.cluster_us)
        .number("revision", numbers.revision)
        .number("level", numbers.level)
        .number("buckets", numbers.buckets.count())
        .number("next_space", numbers.next_space)
        .number("next_branch", numbers.next_branch)
        .nested("limits", limits(&numbers.limits))
}

fn limits(limits: &Limits) -> Line {
    let every: [(&str, u64); 19] = [
        ("value_bytes_max", limits.value_bytes_max.into()),
        ("transaction_ops_max", limits.transaction_ops_max.into()),
        ("transaction_bytes_max", limits.transaction_bytes_max.into()),
        ("write_trim_rows_max", limits.write_trim_rows_max.into()),
        ("spaces_max", limits.spaces_max.into()),
        ("branches_per_space_max", limits.branches_per_space_max.into()),
        ("changes_commits_max", limits.changes_commits_max),
        ("changes_age_us_max", limits.changes_age_us_max),
        ("record_fields_max", limits.record_fields_max.into()),
        ("record_bytes_max", limits.record_bytes_max.into()),
        ("claim_records_max", limits.claim_records_max.into()),
        ("claim_bytes_max", limits.claim_bytes_max.into()),
        ("tick_steps_max", limits.tick_steps_max.into()),
        ("tombstone_age_us", limits.tombstone_age_us),
        ("sessions_max", limits.sessions_max.into()),
        ("session_answers_max", limits.session_answers_max.into()),
        ("session_answer_bytes_max", limits.session_answer_bytes_max.into()),
        ("session_pushes_max", limits.session_pushes_max.into()),
        ("session_push_bytes_max", limits.session_push_bytes_max.into()),
    ];
    let line = every.into_iter().fold(Line::object(), |line, (name, value)| line.number(name, value));
    // Younger than the format: absent, it has its default.
    match limits.messages_waiting_max {
        max if max == Limits::default().messages_waiting_max => line,
        max => line.number("messages_waiting_max", max),
    }
}

pub(super) fn space(number: u32, space: &Space) -> Line {
    let branches = space.branches().filter(|(_, branch)| !branch.deleted);
    let branches = branches.map(|(number, branch)| Line::object().text("name", &branch.name).number("number", number));
    let line = Line::new(kinds::SPACE)
        .text("name", &space.name)
        .number("number", number)
        .number("versions_max", space.retention.versions_max)
        .number("age_us_max", space.retention.age_us_max)
        .list("branches", branches);
    let guards = space.guards.iter().map(|(prefix, guard)| {
        Line::object().text("prefix", prefix).texts("open", guard.open.iter().map(String::as_str))
    });
    // Younger than the format: absent, there are none.
    if space.guards.iter().next().is_none() { line } else { line.list("guards", guards) }
}

pub(super) fn machine(number: u16, version: u16) -> Line {
    Line::new(kinds::MACHINE).number("number", number).number("version", version)
}

macro_rules! items {
    ($($folder:ident: $kind:ident { $done:ident, $overview:ident })*) => {
        /// The kinds and the lines of what is declared in a space.
        pub(super) fn declared(space: &Space) -> Vec<(&'static str, Line)> {
            [$(crate::$folder::export::declared(space)),*].into_iter().flatten().collect()
        }

        /// The kind and the line of a thing; none for what has no line.
        pub(super) fn item(
            catalogue: &Catalogue,
            header: &Applied,
            item: &Item<'_>,
        ) -> Result<Option<(&'static str, Line)>, Halt> {
            match item {
                $(Item::$kind(item) => crate::$folder::export::line(&Place { catalogue, header }, item).map(Some),)*
                Item::Bucket(_) => Ok(None),
                other => of_nobody(&Place { catalogue, header }, other).map(Some),
            }
        }
    };
}

with_contracts!(items);

/// The kind and the line of what belongs to no contract.
fn of_nobody(place: &Place<'_>, item: &Item<'_>) -> Result<(&'static str, Line), Halt> {
    let catalogue = place.catalogue;
    Ok(match item {
        Item::Message { state, number, message: stored } => {
            (kinds::MESSAGE, message(catalogue, *state, *number, stored)?)
        }
        Item::DeadLetter { number, letter } => (kinds::DEAD_LETTER, dead_letter(place, *number, letter)?),
        Item::Received { bucket, source, last } => {
            let line = Line::new(kinds::RECEIVED).number("bucket", *bucket).number("source_bucket", *source);
            (kinds::RECEIVED, line.number("last", *last))
        }
        Item::MessageNumbers { bucket, last } => {
            let line = Line::new(kinds::MESSAGE_NUMBERS).number("bucket", *bucket).number("last", *last);
            (kinds::MESSAGE_NUMBERS, line)
        }
        Item::MachineState { space, machine, group, key, value } => {
            let line = Line::new(kinds::MACHINE_STATE).text("space", space_name(catalogue, *space)?);
            let line = line.number("machine", *machine).text("group", group);
            (kinds::MACHINE_STATE, line.octets("key", key).octets("value", value))
        }
        Item::MachineMember { session, space, machine, group } => {
            let line = Line::new(kinds::MACHINE_MEMBER).text("space", space_name(catalogue, *space)?);
            (kinds::MACHINE_MEMBER, line.number("machine", *machine).text("group", group).number("session", *session))
        }
        _ => unreachable!("a contract writes the lines of its things"),
    })
}

/// Where things are.
pub(crate) struct Place<'export> {
    pub(crate) catalogue: &'export Catalogue,
    header: &'export Applied,
}

impl Place<'_> {
    /// The commit of a floor, unless the header has it.
    pub(crate) fn unless_in_header(&self, commit: u64) -> Option<u64> {
        (commit != 0 && commit != self.header.commit).then_some(commit)
    }

    /// A line with the place of a thing; its name is in `name`.
    pub(crate) fn line(&self, kind: &str, id: &OwnedId, name: &str) -> Result<Line, Halt> {
        let line = self.in_branch(kind, id.space, id.branch)?;
        Ok(line.text_if("group", id.group.as_deref()).text(name, &id.name))
    }

    /// A line with a branch.
    pub(crate) fn in_branch(&self, kind: &str, space: u32, branch: u32) -> Result<Line, Halt> {
        let found = self.catalogue.space(space).ok();
        let found = found.and_then(|found| Some((found, found.live_branch(branch).ok()?)));
        let Some((space, branch)) = found else {
            return Err(Halt::Inconsistent(format!("a {kind} is in a branch that does not exist")));
        };
        Ok(Line::new(kind).text("space", &space.name).text("branch", &branch.name))
    }
}

fn space_name(catalogue: &Catalogue, space: u32) -> Result<&str, Halt> {
    match catalogue.space(space) {
        Ok(space) => Ok(&space.name),
        Err(_) => Err(Halt::Inconsistent(format!("something is in space #{space}, which does not exist"))),
    }
}

/// The number of a message is two members of its line, of which the second has its lower bits.
pub(crate) const ORDINAL_BITS: u32 = 32;

/// The refusal and the message are as they are stored; what stands beside them is for people.
fn dead_letter(place: &Place<'_>, number: u64, letter: &DeadLetter<'_>) -> Result<Line, Halt> {
    let mut row = Writer::new();
    letter.encode(&mut row);
    let line = place.in_branch(kinds::DEAD_LETTER, letter.space, letter.branch)?;
    let line = line.text("group", letter.group).number("number", number).text("source", letter.message.source);
    Ok(line.text("code", letter.refusal.code()).octets("letter", row.as_slice()))
}

fn message(catalogue: &Catalogue, state: MessageState, number: u64, stored: &Stored<'_>) -> Result<Line, Halt> {
    // Before buckets had numbers, a message had those of its commit and of its place there. Both halves sort alike.
    let (commit, ordinal) = (number >> ORDINAL_BITS, number & u64::from(u32::MAX));
    let line = Line::new(kinds::MESSAGE)
        .text("space", space_name(catalogue, stored.space)?)
        .number("branch_number", stored.branch)
        .text("source", stored.source)
        .number_unless_zero("commit", commit)
        .number("ordinal", ordinal)
        .number_if("due_us", state.due_us())
        .flag("outgoing", state == MessageState::Outgoing)
        .number_if("after_us", stored.send.after_us);
    Ok(match stored.send.target {
        Target::Topic { topic, payload } => line.text("topic", topic).octets("payload", payload),
        Target::Transact(body) => line.octets("command", body),
    })
}
