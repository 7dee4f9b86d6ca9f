//! The first lines of an export: the header, and the catalogue.

use contract::guards::GroupGuard;
use contract::{Limits, Retention};
use kernel::catalogue::assemble::Numbers;
use kernel::{Applied, Buckets, Catalogue};
use session::Stamp;

use super::object::{Object, Wrong};
use crate::export::FORMAT;

/// The header.
pub(super) struct Header {
    pub(super) release: String,
    pub(super) space: Option<String>,
    /// Without the hash, which starts over.
    pub(super) applied: Applied,
    numbers: Numbers,
}

/// An epoch above this leaves too few above it, and no store gets there: it rises with each restore and each import.
const EPOCH_MAX: u64 = 1 << 20;

fn epoch(line: &Object<'_>) -> Result<u64, Wrong> {
    match line.number_or_zero("epoch")? {
        epoch if epoch <= EPOCH_MAX => Ok(epoch),
        epoch => Err(format!("its epoch is {epoch}, more than {EPOCH_MAX}")),
    }
}

impl Header {
    pub(super) fn read(line: Object<'_>) -> Result<Self, Wrong> {
        let format: u32 = line.number("format")?;
        if format != FORMAT {
            return Err(format!(
                "its format is {format}, this release reads {FORMAT}; use the release that created it"
            ));
        }
        let buckets: u16 = line.number("buckets")?;
        let stamp = Stamp { wall_us: line.number("wall_us")?, cluster_us: line.number("cluster_us")? };
        Ok(Self {
            release: line.text("release")?.to_owned(),
            space: line.string_if("space")?,
            applied: Applied {
                index: line.number("applied_index")?,
                commit: line.number("commit")?,
                epoch: epoch(&line)?,
                stamp,
                ..Applied::default()
            },
            numbers: Numbers {
                revision: line.number("revision")?,
                level: line.number("level")?,
                buckets: Buckets::new(buckets)
                    .ok_or_else(|| format!("{buckets} is an impossible number of buckets"))?,
                next_space: line.number("next_space")?,
                next_branch: line.number("next_branch")?,
                limits: limits(line.object("limits")?)?,
            },
        })
    }

    /// A catalogue without any space.
    pub(super) fn catalogue(&self) -> Result<Catalogue, Wrong> {
        Ok(Catalogue::begin(self.numbers)?)
    }
}

fn limits(line: Object<'_>) -> Result<Limits, Wrong> {
    let mut limits = Limits::default();
    limits.value_bytes_max = line.number("value_bytes_max")?;
    limits.transaction_ops_max = line.number("transaction_ops_max")?;
    limits.transaction_bytes_max = line.number("transaction_bytes_max")?;
    limits.write_trim_rows_max = line.number("write_trim_rows_max")?;
    limits.spaces_max = line.number("spaces_max")?;
    limits.branches_per_space_max = line.number("branches_per_space_max")?;
    limits.changes_commits_max = line.number("changes_commits_max")?;
    limits.changes_age_us_max = line.number("changes_age_us_max")?;
    limits.record_fields_max = line.number("record_fields_max")?;
    limits.record_bytes_max = line.number("record_bytes_max")?;
    limits.claim_records_max = line.number("claim_records_max")?;
    limits.claim_bytes_max = line.number("claim_bytes_max")?;
    limits.tick_steps_max = line.number("tick_steps_max")?;
    limits.tombstone_age_us = line.number("tombstone_age_us")?;
    limits.sessions_max = line.number("sessions_max")?;
    limits.session_answers_max = line.number("session_answers_max")?;
    limits.session_answer_bytes_max = line.number("session_answer_bytes_max")?;
    limits.session_pushes_max = line.number("session_pushes_max")?;
    limits.session_push_bytes_max = line.number("session_push_bytes_max")?;
    if line.number_if("messages_waiting_max")?.is_some() {
        limits.messages_waiting_max = line.number("messages_waiting_max")?;
    }
    Ok(limits)
}

/// Adds a space with its branches.
pub(super) fn space(catalogue: &mut Catalogue, line: Object<'_>) -> Result<(), Wrong> {
    let (number, name) = (line.number("number")?, line.text("name")?);
    let retention =
        Retention { versions_max: line.number::<u64>("versions_max")?.max(1), age_us_max: line.number("age_us_max")? };
    catalogue.put_space(number, name, retention)?;
    for branch in line.objects("branches")? {
        catalogue.put_branch(number, branch.number("number")?, branch.text("name")?)?;
    }
    if line.has("guards") {
        for guard in line.objects("guards")? {
            catalogue.put_guard(number, guard.text("prefix")?, &GroupGuard { open: guard.texts("open")? })?;
        }
    }
    Ok(())
}
