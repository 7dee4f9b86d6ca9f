//! Draws commands for a user's machine, the counters of the sessions' model, beside the contracts.

use std::sync::Arc;

use kernel::sessions::hosted::Hosted;
use kv::Writer;
use session::{Command, UserMachine};
use testkit::random::Random;

use super::clients::some_session;
use crate::model::drawn::Drawn;
use crate::model::places::{GROUPS, SPACES};
use crate::model::reference::Reference;
use crate::model::sessions::machine::{Act, Counters, Deed, TooLong};

/// The machines that a kernel under test is given.
pub(crate) fn machines() -> Hosted {
    [(Counters::NUMBER, Arc::new(Counters) as _)].into()
}

/// A command for the machine's state in some group.
pub(crate) fn command(random: &mut Random, reference: &Reference) -> Drawn {
    let counter = |random: &mut Random| random.pick(&["", "a", "ab", "b"]).as_bytes().to_vec();
    let deed = match random.below(20) {
        0..=13 => {
            let pushes = (0..random.below(3)).map(|_| {
                let bytes = u32::try_from(random.below(20)).expect("small");
                (some_session(reference, random), bytes)
            });
            let pushes = pushes.collect();
            let by = i64::try_from(random.below(9)).expect("small") - 3;
            Some(Deed::Add { counter: counter(random), by, answer_bytes: random.pick(&[0, 5, 300]), pushes })
        }
        14..=15 => Some(Deed::Remove { counter: counter(random) }),
        16..=17 => Some(Deed::Sum { prefix: counter(random) }),
        18 => {
            let (what, push_to) = (random.pick(&[TooLong::Key, TooLong::Value]), some_session(reference, random));
            Some(Deed::TooLong { counter: counter(random), what, push_to })
        }
        // Nothing that the machine can read.
        _ => None,
    };
    let mut body = Writer::new();
    match deed {
        Some(deed) => Act { ticket: None, deed }.encode(&mut body),
        None => drop(body.u8(7)),
    }
    let (space, group) = (random.pick(&SPACES).0, random.pick(&GROUPS).to_owned());
    Drawn::machine(space, group, body.finish())
}
