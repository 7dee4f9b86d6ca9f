//! What a stretch does more or less of.

use kernel::trim::TrimStep;
use testkit::random::Random;

use super::drawn::Drawn;
use super::mixed::clients::Clients;
use super::records::names::Focus;
use super::records::post::Post;
use super::reference::Reference;
use super::{cells, mixed, records, runs};

/// Which contracts the commands of a model are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    Cells,
    /// Records, with cells and messages.
    Records,
    Runs,
    /// All of them, in the same transactions.
    Everything,
}

/// What a stretch does more or less of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    pub(crate) about: About,
    pub(crate) focus: Focus,
    runs: runs::Habits,
}

impl Habits {
    pub(crate) fn draw(random: &mut Random, about: About, crowd: &'static [String]) -> Self {
        Self { about, focus: Focus::draw(random, crowd), runs: runs::Habits::draw(random) }
    }

    /// Commands in one entry.
    pub(crate) fn commands_max(&self) -> u64 {
        match self.about {
            About::Cells => 20,
            About::Runs => 6,
            About::Records | About::Everything => 12,
        }
    }

    /// Operations between two looks at everything.
    pub(crate) fn check_every(&self) -> u64 {
        match self.about {
            About::Cells => 1_000,
            About::Records | About::Runs | About::Everything => 300,
        }
    }

    /// The next command.
    pub(crate) fn command(
        &self,
        random: &mut Random,
        reference: &Reference,
        post: &mut Post,
        clients: &mut Clients,
        due: &mut Vec<TrimStep>,
    ) -> Drawn {
        if self.about == About::Cells {
            return cells::generator::command(random, reference, due);
        }
        let mut drawn = self.body(random, reference, post);
        match self.about {
            About::Everything => {
                if random.one_in(200) {
                    drawn.revision = reference.revision + random.below(3);
                }
                clients.send(drawn, reference, random)
            }
            About::Cells | About::Records | About::Runs => drawn,
        }
    }

    fn body(&self, random: &mut Random, reference: &Reference, post: &mut Post) -> Drawn {
        if self.about == About::Everything && random.one_in(12) {
            return mixed::machine::command(random, reference);
        }
        let on_runs = self.about == About::Runs || self.about == About::Everything && random.one_in(5);
        if on_runs {
            return runs::Generator { random, habits: self.runs, reference }.command();
        }
        let beside = (self.about == About::Everything).then_some(self.runs);
        records::Generator { random, focus: self.focus, reference, post, beside }.command()
    }

    /// Lets time go on until the next entry.
    pub(crate) fn pass_time(&self, random: &mut Random, reference: &mut Reference) {
        let (wall_us, cluster_us) = (reference.wall_us, reference.cluster_us);
        let (wall, cluster) = match self.about {
            About::Cells => {
                let wall_us = cells::generator::wall_us(random, wall_us.max(1_000_000));
                return reference.begin_entry(wall_us, cluster_us + random.below(1_000));
            }
            About::Runs => runs::time_passed(random),
            About::Everything if random.one_in(20) => runs::time_passed(random),
            About::Records | About::Everything => records::time_passed(random, &reference.limits),
        };
        match (wall, cluster) {
            (Some(wall), cluster) => reference.begin_entry(wall_us + wall, cluster_us + cluster),
            // The clock was set back.
            (None, _) => reference.begin_entry(wall_us.saturating_sub(5_000), cluster_us.saturating_sub(5_000)),
        }
    }
}
