//! Keys of what is due: by time, then what is to be done, and to which thing.

use kv::Key;

use super::things::{OwnedId, push_group_and_name};
use super::{Keys, Kind, ThingId, take_group_and_name};

/// Which of the two clocks decides when something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueClock {
    /// Wall time: expiries, pauses, timers.
    Wall,
    /// Cluster time: leases.
    Cluster,
}

impl DueClock {
    fn kind(self) -> Kind {
        match self {
            DueClock::Wall => Kind::DueWall,
            DueClock::Cluster => Kind::DueCluster,
        }
    }
}

/// Due work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// On a thing.
    Thing(DueOf, OwnedId),
    /// A message is to go out.
    Send {
        /// The number that its bucket gave it when it was sent.
        number: u64,
    },
    /// An ended session's claims and records must be released.
    Session(u64),
    /// The time of a dead letter is over.
    DeadLetter {
        /// The space of the group that refused it.
        space: u32,
        /// Its branch.
        branch: u32,
        /// Its number in its bucket.
        number: u64,
    },
}

macro_rules! due_of {
    ($($(#[$doc:meta])* $of:ident = $number:literal,)*) => {
        /// What is to be done to a thing. The numbers are stored.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum DueOf {
            $($(#[$doc])* $of = $number,)*
        }

        impl DueOf {
            /// All of them.
            pub const ALL: &'static [DueOf] = &[$(DueOf::$of),*];
        }
    };
}

due_of! {
    /// A record's time is over, or that of a deleted record's row.
    Expiry = 1,
    /// A record's pause is over: it can be claimed.
    Ready = 2,
    /// A record's lease is over.
    Lease = 3,
    /// The rows of a deleted run are to go.
    Removal = 6,
    /// Rows of a map that nobody needs any more are to go.
    Sweep = 7,
}

pub(super) const SEND: u8 = 4;
pub(super) const SESSION: u8 = 5;
pub(super) const DEAD_LETTER: u8 = 0x12;

impl Keys {
    /// All entries of one due index in a bucket.
    pub fn due_prefix(&self, clock: DueClock, bucket: u16) -> Key {
        self.bucket_prefix(clock.kind(), bucket)
    }

    /// The key after [`due_prefix`](Self::due_prefix) for work on a thing.
    pub fn due_suffix(at_us: u64, due: DueOf, thing: &ThingId<'_>) -> Key {
        let mut key = Key::from(at_us.to_be_bytes());
        key.push(due as u8);
        key.extend_from_slice(&thing.space.to_be_bytes());
        key.extend_from_slice(&thing.branch.to_be_bytes());
        push_group_and_name(&mut key, thing);
        key
    }
}

/// Reads the key after [`Keys::due_prefix`]: the time and the work.
pub fn read_due_suffix(suffix: &[u8]) -> Option<(u64, Due)> {
    let (at_us, rest) = suffix.split_first_chunk::<8>()?;
    let at_us = u64::from_be_bytes(*at_us);
    let (what, rest) = rest.split_first()?;
    if *what == SEND {
        let number = u64::from_be_bytes(*rest.first_chunk::<8>()?);
        return (rest.len() == 8).then_some((at_us, Due::Send { number }));
    }
    if *what == SESSION {
        let session = u64::from_be_bytes(*rest.first_chunk::<8>()?);
        return (rest.len() == 8).then_some((at_us, Due::Session(session)));
    }
    if *what == DEAD_LETTER {
        let (space, rest) = rest.split_first_chunk::<4>()?;
        let (branch, rest) = rest.split_first_chunk::<4>()?;
        let number = u64::from_be_bytes(rest.try_into().ok()?);
        let (space, branch) = (u32::from_be_bytes(*space), u32::from_be_bytes(*branch));
        return Some((at_us, Due::DeadLetter { space, branch, number }));
    }
    let of = *DueOf::ALL.iter().find(|of| **of as u8 == *what)?;
    let (space, rest) = rest.split_first_chunk::<4>()?;
    let (branch, rest) = rest.split_first_chunk::<4>()?;
    let (group, name, rest) = take_group_and_name(rest)?;
    let id = OwnedId { space: u32::from_be_bytes(*space), branch: u32::from_be_bytes(*branch), group, name };
    rest.is_empty().then_some((at_us, Due::Thing(of, id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id<'name>(group: Option<&'name str>, name: &'name str) -> ThingId<'name> {
        ThingId { bucket: 5, space: 1, branch: 2, group, name }
    }

    #[test]
    fn suffixes_are_read_as_written() {
        for group in [None, Some("g\0")] {
            let thing = id(group, "jobs.a\0b");
            for of in DueOf::ALL.iter().copied() {
                let due = Due::Thing(of, OwnedId::from(&thing));
                assert_eq!(read_due_suffix(&Keys::due_suffix(3, of, &thing)), Some((3, due)));
            }
        }
        assert_eq!(read_due_suffix(&Keys::due_send_suffix(3, 4)), Some((3, Due::Send { number: 4 })));
        assert_eq!(read_due_suffix(&Keys::due_session_suffix(3, 4)), Some((3, Due::Session(4))));
        let letter = Due::DeadLetter { space: 1, branch: 2, number: 4 };
        assert_eq!(read_due_suffix(&Keys::due_dead_letter_suffix(3, 1, 2, 4)), Some((3, letter)));
    }

    /// Part of the stored format; `docs/formats/keys.md`.
    #[test]
    fn golden_due_keys() {
        let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (keys, record) = (Keys::new(1, crate::BucketRange::ALL), id(None, "hi"));
        for of in DueOf::ALL.iter().copied() {
            let number = match of {
                DueOf::Expiry => "01",
                DueOf::Ready => "02",
                DueOf::Lease => "03",
                DueOf::Removal => "06",
                DueOf::Sweep => "07",
            };
            assert_eq!(hex(&Keys::due_suffix(0, of, &record))[16..18], *number, "{of:?}");
        }
        assert_eq!(hex(&Keys::due_send_suffix(258, 3)), "0000000000000102".to_owned() + "04" + "0000000000000003");
        assert_eq!(hex(&Keys::due_session_suffix(258, 3)), "0000000000000102".to_owned() + "05" + "0000000000000003");
        assert_eq!(
            hex(&Keys::due_dead_letter_suffix(258, 1, 2, 3)),
            "0000000000000102".to_owned() + "12" + "0000000100000002" + "0000000000000003"
        );
        assert_eq!(
            hex(&[&*keys.due_prefix(DueClock::Cluster, 5), &*Keys::due_suffix(258, DueOf::Lease, &record)].concat()),
            "00000001000509".to_owned() + "0000000000000102" + "03" + "0000000100000002" + "0068690000"
        );
    }
}
