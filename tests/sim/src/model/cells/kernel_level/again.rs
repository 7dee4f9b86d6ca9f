//! The same entries again: from the beginning, and with an image in the middle.

use kernel::{Buckets, Keys};

use super::Stretch;
use crate::model::cells::tally::add;
use crate::model::compare::{same, same_bytes};
use crate::model::instance::{Instance, Plan};

impl Stretch<'_> {
    /// Applies the same entries again, from the beginning, and with an image in the middle.
    pub(super) fn again(mut self, buckets: Buckets) -> Result<(), String> {
        let (image, _) = self.instance.image()?;
        let plan = Plan::draw(&mut self.random);
        let mut twin = Instance::genesis(&plan, Keys::new(12_345, 0), buckets)?;
        self.follow(&mut twin, self.entries.len())?;
        same_bytes("the image after the same entries", &twin.image()?.0, &image)?;
        add(&self.tally.replayed, self.entries.len() as u64);

        let plan = Plan::draw(&mut self.random);
        let mut first = Instance::genesis(&plan, Keys::new(7, 0), buckets)?;
        let upto = self.random.index(self.entries.len() + 1);
        self.follow(&mut first, upto)?;
        let (middle, _) = first.image()?;
        drop(first);
        let plan = Plan::draw(&mut self.random);
        let mut second = Instance::restore(&plan, Keys::new(u32::MAX, 0), &middle)?;
        self.follow(&mut second, self.entries.len())?;
        same_bytes("the image after the same entries with an image between", &second.image()?.0, &image)?;
        add(&self.tally.replayed_from_image, self.entries.len() as u64);
        Ok(())
    }

    /// Applies entries up to a count, comparing the hash after each.
    fn follow(&mut self, twin: &mut Instance, upto: usize) -> Result<(), String> {
        let applied = usize::try_from(twin.kernel.applied().index).expect("it fits");
        for (entry, hash) in self.entries[..upto].iter().zip(&self.hashes).skip(applied) {
            twin.apply(entry)?;
            let index = twin.kernel.applied().index;
            same(|| format!("the hash after entry {index}, applied again"), &twin.kernel.applied().hash, hash)?;
            if self.random.one_in(60) {
                twin.flush()?;
            }
        }
        Ok(())
    }
}
