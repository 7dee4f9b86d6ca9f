//! Keys of sessions, of the things they own, and of users' machines.

use kv::{Key, KeyRange};
use session::SessionKeys;

use super::things::OwnedId;
use super::{GENERATION_BYTES, Keys, Kind, ShardKind, ThingId, push_group, push_name, take_group_and_name, take_name};

const CLAIM: u8 = 1;
const LIFE: u8 = 2;
const MEMBER: u8 = 3;

/// What ends with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnedOf {
    /// The claim on it.
    Claim,
    /// The record itself.
    Life,
}

/// Something that ends with a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owned {
    /// Something of a thing.
    Thing(OwnedOf, OwnedId),
    /// A user's machine has seen the session.
    Member {
        /// The space.
        space: u32,
        /// The machine's number.
        machine: u16,
        /// The group of the machine's state.
        group: String,
    },
}

/// Which part of a user's machine's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostedId<'name> {
    /// The bucket of the group.
    pub bucket: u16,
    /// The space.
    pub space: u32,
    /// The machine's number.
    pub machine: u16,
    /// The group.
    pub group: &'name str,
}

impl Keys {
    /// The keys of sessions: rows of the shard itself.
    pub fn sessions(&self) -> SessionKeys {
        SessionKeys::new(self.shard_row(ShardKind::Sessions))
    }

    /// The things a session owns in a bucket.
    pub fn owned_prefix(&self, bucket: u16, session: u64) -> Key {
        let mut key = self.owned_of_bucket(bucket);
        key.extend_from_slice(&session.to_be_bytes());
        key
    }

    /// The prefix of everything that any session owns in a bucket.
    pub fn owned_of_bucket(&self, bucket: u16) -> Key {
        self.bucket_prefix(Kind::Owned, bucket)
    }

    fn owned_by(&self, session: u64, bucket: u16, kind: u8) -> Key {
        let mut key = self.owned_prefix(bucket, session);
        key.push(kind);
        key
    }

    /// A record, by the session that it, or the claim on it, ends with.
    pub fn owned(&self, session: u64, of: OwnedOf, record: &ThingId<'_>) -> Key {
        let kind = match of {
            OwnedOf::Claim => CLAIM,
            OwnedOf::Life => LIFE,
        };
        let mut key = self.owned_by(session, record.bucket, kind);
        key.extend_from_slice(&record.space.to_be_bytes());
        key.extend_from_slice(&record.branch.to_be_bytes());
        push_group(&mut key, record.group);
        push_name(&mut key, record.name.as_bytes());
        key
    }

    /// Marks that a user's machine has seen a session.
    pub fn member(&self, session: u64, hosted: &HostedId<'_>) -> Key {
        let mut key = self.owned_by(session, hosted.bucket, MEMBER);
        key.extend_from_slice(&hosted.space.to_be_bytes());
        key.extend_from_slice(&hosted.machine.to_be_bytes());
        push_name(&mut key, hosted.group.as_bytes());
        key
    }

    /// The prefix of the machine's own keys.
    pub fn hosted(&self, hosted: &HostedId<'_>) -> Key {
        let mut key = self.bucket_prefix(Kind::Hosted, hosted.bucket);
        key.extend_from_slice(&hosted.space.to_be_bytes());
        key.extend_from_slice(&hosted.machine.to_be_bytes());
        push_name(&mut key, hosted.group.as_bytes());
        key
    }

    /// The state of all users' machines in a bucket.
    pub fn hosted_of_bucket(&self, bucket: u16) -> KeyRange {
        KeyRange::prefix(&self.bucket_prefix(Kind::Hosted, bucket))
    }

    /// The key after the prefix of a due index for an ended session.
    pub fn due_session_suffix(at_us: u64, session: u64) -> Key {
        let mut key = Key::from(at_us.to_be_bytes());
        key.push(super::due::SESSION);
        key.extend_from_slice(&session.to_be_bytes());
        key
    }
}

/// Reads a key of a user's machine: the space, the machine, the group, and the machine's own key.
pub fn read_hosted_key(key: &[u8]) -> Option<(u32, u16, String, &[u8])> {
    // Generation, bucket, kind.
    let rest = key.get(GENERATION_BYTES + 2 + 1..)?;
    let (space, rest) = rest.split_first_chunk()?;
    let (machine, rest) = rest.split_first_chunk()?;
    let (group, own) = take_name(rest)?;
    Some((u32::from_be_bytes(*space), u16::from_be_bytes(*machine), group, own))
}

/// Reads the key after [`Keys::owned_prefix`].
pub fn read_owned_suffix(suffix: &[u8]) -> Option<Owned> {
    let (kind, rest) = suffix.split_first()?;
    let (space, rest) = rest.split_first_chunk::<4>()?;
    let space = u32::from_be_bytes(*space);
    if *kind == MEMBER {
        let (machine, rest) = rest.split_first_chunk::<2>()?;
        let (group, rest) = take_name(rest)?;
        let machine = u16::from_be_bytes(*machine);
        return rest.is_empty().then_some(Owned::Member { space, machine, group });
    }
    let (branch, rest) = rest.split_first_chunk::<4>()?;
    let (group, name, rest) = take_group_and_name(rest)?;
    let id = OwnedId { space, branch: u32::from_be_bytes(*branch), group, name };
    let of = match *kind {
        CLAIM => OwnedOf::Claim,
        LIFE => OwnedOf::Life,
        _ => return None,
    };
    rest.is_empty().then_some(Owned::Thing(of, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of the stored format; `docs/formats/keys.md`.
    #[test]
    fn golden_keys_of_sessions() {
        let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let keys = Keys::new(1, crate::BucketRange::ALL);
        let record = ThingId { bucket: 5, space: 1, branch: 2, group: None, name: "hi" };
        let prefix = keys.owned_prefix(5, 258);
        let start = "0000000100050d0000000000000102".to_owned();
        let claim = keys.owned(258, OwnedOf::Claim, &record);
        let id = OwnedId::from(&record);
        assert_eq!(hex(&claim), start.clone() + "010000000100000002" + "0068690000");
        assert_eq!(read_owned_suffix(&claim[prefix.len()..]), Some(Owned::Thing(OwnedOf::Claim, id.clone())));
        let life = keys.owned(258, OwnedOf::Life, &record);
        assert_eq!(read_owned_suffix(&life[prefix.len()..]), Some(Owned::Thing(OwnedOf::Life, id)));
        let hosted = HostedId { bucket: 5, space: 1, machine: 256, group: "g" };
        let member = keys.member(258, &hosted);
        assert_eq!(hex(&member), start + "03000000010100" + "670000");
        let found = Owned::Member { space: 1, machine: 256, group: "g".into() };
        assert_eq!(read_owned_suffix(&member[prefix.len()..]), Some(found));
        assert_eq!(hex(&keys.hosted(&hosted)), "0000000100050e000000010100670000");
        let own = [&*keys.hosted(&hosted), b"own"].concat();
        assert_eq!(read_hosted_key(&own), Some((1, 256, "g".into(), b"own".as_slice())));
        assert_eq!(hex(&Keys::due_session_suffix(1, 258)), "0000000000000001050000000000000102");
        assert_eq!(hex(&keys.catalogue_machine(256)), "00000001ffff00000a0100");
    }
}
