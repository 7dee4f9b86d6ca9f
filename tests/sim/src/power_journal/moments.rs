//! Which moments of a recording are worth losing power at: right before a sync, most of all.

use testkit::random::Random;

use super::operation::{Note, Operation, Site};

/// Positions in a recording, by what is about to happen there.
pub(crate) struct Moments {
    any: usize,
    /// Each kind comes up as often as the others, however rare it is in the recording.
    kinds: Vec<Vec<usize>>,
    watermarks: Vec<usize>,
    appends: Vec<usize>,
}

impl Moments {
    pub(crate) fn of(operations: &[Operation]) -> Self {
        let mut kinds = vec![Vec::new(); 8];
        let mut opening = false;
        let mut watermark_written = false;
        for (position, operation) in operations.iter().enumerate() {
            match operation {
                Operation::Note(Note::Opening) => (opening, watermark_written) = (true, false),
                Operation::Note(Note::Opened { .. }) => opening = false,
                Operation::Sync { site: Site::WatermarkWrite, .. } if !watermark_written => {
                    // The first of a process goes over a file that the one before it had written.
                    watermark_written = true;
                    kinds[7].push(position);
                }
                _ => {}
            }
            if opening {
                kinds[0].push(position);
            }
            let kind = match operation {
                Operation::Sync { site: Site::WatermarkWrite | Site::WatermarkReopen, .. } => 1,
                Operation::Sync { .. } => 2,
                Operation::Create { .. } | Operation::CreateDirectory { .. } => 3,
                Operation::SyncDirectory { .. } => 4,
                Operation::Delete { .. } | Operation::Rename { .. } => 5,
                // What has just been promised is broken first.
                Operation::Note(_) => 6,
                Operation::Write { .. } | Operation::Allocate { .. } => continue,
            };
            kinds[kind].push(position);
        }
        let (watermarks, appends) = (kinds[1].clone(), kinds[2].clone());
        kinds.retain(|positions| !positions.is_empty());
        Self { any: operations.len(), kinds, watermarks, appends }
    }

    /// A moment to kill a process at: what it had not synced goes on to be seen by the next one.
    pub(crate) fn draw_kill(&self, random: &mut Random) -> usize {
        match random.below(3) {
            0 if !self.watermarks.is_empty() => *random.choose(&self.watermarks),
            1 if !self.appends.is_empty() => *random.choose(&self.appends),
            _ => self.draw(random),
        }
    }

    /// A moment; sometimes just any.
    pub(crate) fn draw(&self, random: &mut Random) -> usize {
        if self.kinds.is_empty() || random.one_in(6) {
            return random.index(self.any);
        }
        let positions = random.choose(&self.kinds);
        *random.choose(positions)
    }
}
