//! What happens between entries: flushes, restarts, images.

use kernel::{Buckets, Keys};

use super::{Judges, Stretch};
use crate::model::compare::{same, same_bytes};
use crate::model::instance::{Instance, Plan, text};
use crate::model::tally::add;

impl Stretch<'_> {
    pub(super) fn between_entries(&mut self) -> Result<(), String> {
        let view = self.instance.view()?;
        self.post.collect(&self.instance, &*view, self.reference.buckets.count())?;
        drop(view);
        if self.judges == Judges::All {
            self.look_around()?;
        }
        match self.random.below(300) {
            0..=14 => self.instance.flush(),
            15..=29 => self.reload(),
            30..=35 => self.restart(),
            36..=40 => self.change_over(),
            _ => Ok(()),
        }
    }

    /// The kernel forgets what it knows by heart.
    fn reload(&mut self) -> Result<(), String> {
        self.instance.reload()?;
        add(&self.tally.reloads, 1);
        self.compare_next_due()
    }

    fn compare_next_due(&mut self) -> Result<(), String> {
        let view = self.instance.view()?;
        let next_due = self.instance.kernel.next_due(view).map_err(text)?;
        self.compare_agenda(next_due)
    }

    /// Loses what was not flushed, and applies it again.
    fn restart(&mut self) -> Result<(), String> {
        let applied = *self.instance.kernel.applied();
        let placeholder = Instance::genesis(&Plan::memory(), self.instance.keys, Buckets::default())?;
        let instance = std::mem::replace(&mut self.instance, placeholder);
        self.instance = instance.restart(&self.entries)?;
        add(&self.tally.reloads, 1);
        same(|| "what was applied, after a restart".into(), self.instance.kernel.applied(), &applied)?;
        self.compare_next_due()
    }

    /// Goes on with a restored image, in another generation and on another store.
    fn change_over(&mut self) -> Result<(), String> {
        let (image, _) = self.instance.image()?;
        self.generation += 1;
        let plan = Plan::draw(&mut self.random);
        let restored = Instance::restore(&plan, Keys::new(self.generation, 0), &image)?;
        same_bytes("the image of a restored image", &restored.image()?.0, &image)?;
        self.instance = restored;
        add(&self.tally.images, 1);
        self.compare_next_due()
    }
}
