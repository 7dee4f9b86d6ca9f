//! What happens between entries: flushes, restarts, images, and views that are kept.

use kernel::{Buckets, Keys};

use super::{Judges, Pinned, Stretch};
use crate::model::compare::{same, same_bytes};
use crate::model::habits::About;
use crate::model::instance::{Instance, Plan, text, write_image};
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
            30..=35 if self.judges != Judges::AnswersAfterForgetting => self.restart(),
            36..=40 => self.change_over(),
            41..=44 => self.pin(),
            45..=67 if self.habits.about == About::Cells => self.look_for_due(),
            68..=71 if self.habits.about == About::Cells => self.walk(),
            72 if self.habits.about == About::Sessions => self.set_limits(),
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
        self.unpin()?;
        let (applied, catalogue) = (*self.instance.kernel.applied(), self.instance.kernel.catalogue().clone());
        let placeholder = Instance::genesis(&Plan::memory(), self.instance.keys, Buckets::default())?;
        let instance = std::mem::replace(&mut self.instance, placeholder);
        self.instance = instance.restart(&self.entries)?;
        add(&self.tally.restarts, 1);
        let kernel = &self.instance.kernel;
        same(|| "what was applied, after a restart".into(), kernel.applied(), &applied)?;
        same(|| "the catalogue after a restart".into(), kernel.catalogue(), &catalogue)?;
        self.compare_next_due()
    }

    /// Goes on with a restored image, in another generation and on another store.
    fn change_over(&mut self) -> Result<(), String> {
        self.unpin()?;
        let (image, rows) = self.instance.image()?;
        if self.habits.about == About::Cells {
            same(|| "the number of rows in an image".into(), &rows, &self.reference.rows_of_cells())?;
        }
        self.generation += 1 + u32::try_from(self.random.below(300)).expect("small");
        let plan = Plan::draw(&mut self.random);
        let restored = Instance::restore(&plan, Keys::new(self.generation, kernel::BucketRange::ALL), &image)?;
        same_bytes("the image of a restored image", &restored.image()?.0, &image)?;
        let (before, after) = (&self.instance.kernel, &restored.kernel);
        same(|| "what was applied, in an image".into(), after.applied(), before.applied())?;
        same(|| "the catalogue in an image".into(), after.catalogue(), before.catalogue())?;
        self.instance = restored;
        self.walk_after = None;
        add(&self.tally.images, 1);
        if self.judges == Judges::AnswersAfterForgetting {
            self.instance.forget_answers()?;
        }
        self.compare_next_due()
    }

    /// Takes a view, or looks whether the one that was taken is still as it was.
    fn pin(&mut self) -> Result<(), String> {
        if self.pinned.is_some() {
            return self.unpin();
        }
        let (view, keys) = (self.instance.view()?, self.instance.keys);
        let image = write_image(&*view, keys)?.0;
        self.pinned = Some(Pinned { view, keys, image });
        Ok(())
    }

    /// Looks at the view that was taken, if one was. A view does not outlive its store.
    pub(super) fn unpin(&mut self) -> Result<(), String> {
        match self.pinned.take() {
            None => Ok(()),
            Some(Pinned { view, keys, image }) => {
                same_bytes("a view that was kept", &write_image(&*view, keys)?.0, &image)
            }
        }
    }
}
