//! What a stretch does more or less of.

use kernel::Body;
use kernel::trim::TrimStep;
use testkit::random::Random;

use super::clients::Clients;
use super::drawn::Drawn;
use super::records::names::Focus;
use super::records::post::Post;
use super::reference::Reference;
use super::sessions::deeds::Deeds;
use super::{cells, keyed, records, runs};

/// Which contracts the commands of a model are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    Cells,
    /// Records, with cells and messages.
    Records,
    Runs,
    /// Keyed state in guarded groups, and their owners.
    Keyed,
    /// Sessions and a user's machine.
    Sessions,
    /// All of them, in the same transactions.
    Everything,
}

/// What a stretch does more or less of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    pub(crate) about: About,
    pub(crate) focus: Focus,
    runs: runs::Habits,
    keyed: keyed::Habits,
    deeds: Deeds,
}

impl Habits {
    pub(crate) fn draw(random: &mut Random, about: About, crowd: &'static [String]) -> Self {
        let (focus, runs, deeds) = (Focus::draw(random, crowd), runs::Habits::draw(random), Deeds::draw(random));
        Self { about, focus, runs, keyed: keyed::Habits::draw(random), deeds }
    }

    /// How many clients there are.
    pub(crate) fn clients(&self, random: &mut Random) -> u64 {
        match self.about {
            About::Sessions => random.pick(&[5, 40, 400]),
            About::Cells | About::Records | About::Runs | About::Keyed | About::Everything => random.pick(&[1, 3, 10]),
        }
    }

    /// Commands in one entry.
    pub(crate) fn commands_max(&self) -> u64 {
        match self.about {
            About::Cells => 20,
            About::Runs | About::Keyed => 6,
            About::Records | About::Sessions | About::Everything => 12,
        }
    }

    /// Operations between two looks at everything.
    pub(crate) fn check_every(&self) -> u64 {
        match self.about {
            About::Cells => 1_000,
            About::Sessions => 400,
            About::Records | About::Runs | About::Keyed | About::Everything => 300,
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
        let mut draw = |ticket: Option<(u64, u64)>, random: &mut Random| {
            let mut drawn = self.body(ticket, random, reference, post);
            if self.about == About::Everything && random.one_in(200) {
                drawn.revision = reference.revision + random.below(3);
            }
            drawn
        };
        let by_nobody = match self.about {
            About::Sessions => random.one_in(100),
            About::Everything => random.one_in(2),
            About::Cells | About::Records | About::Runs | About::Keyed => true,
        };
        if by_nobody { draw(None, random) } else { clients.next(&mut draw, reference, random) }
    }

    fn body(&self, ticket: Option<(u64, u64)>, random: &mut Random, reference: &Reference, post: &mut Post) -> Drawn {
        match self.about {
            // What an ended session leaves is given back by and by.
            About::Sessions if ticket.is_none() && random.one_in(2) => return Drawn::plain(&Body::Tick),
            About::Sessions => return self.deeds.command(ticket, reference, random),
            About::Everything if random.one_in(12) => return self.deeds.command(ticket, reference, random),
            _ => {}
        }
        let on_maps = self.about == About::Keyed || self.about == About::Everything && random.one_in(6);
        if on_maps {
            return keyed::Generator { random, habits: self.keyed, reference }.command();
        }
        let on_runs = self.about == About::Runs || self.about == About::Everything && random.one_in(5);
        if on_runs {
            return runs::Generator { random, habits: self.runs, reference }.command();
        }
        let beside = (self.about == About::Everything).then_some((self.runs, self.keyed));
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
            About::Sessions => {
                let passed_us = 1 + random.pick(&[0, 10, 1_000, 50_000]);
                (Some(passed_us), passed_us / 2)
            }
            About::Runs => runs::time_passed(random),
            About::Everything if random.one_in(20) => runs::time_passed(random),
            About::Records | About::Keyed | About::Everything => records::time_passed(random, &reference.limits),
        };
        match (wall, cluster) {
            (Some(wall), cluster) => reference.begin_entry(wall_us + wall, cluster_us + cluster),
            // The clock was set back.
            (None, _) => reference.begin_entry(wall_us.saturating_sub(5_000), cluster_us.saturating_sub(5_000)),
        }
    }
}
