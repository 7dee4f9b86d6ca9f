//! Keyed state in exports and imports.
//!
//! Keeps: D1 and D2: a map comes back with every key, deleted ones included, or is refused. A map with a damaged part is left out
//! as a whole: a key that is missing would be applied again.

use contract::keyed::limits::KEYED_WAITING_MAX;
use contract::keyed::{LogicalTime, Policy, shown_key};
use session::Halt;

use super::changed_map::put_head;
use super::commit::check_answer;
use super::contract::Keyed;
use super::entry::{Entry, KeyState, Waiting, decode_position, decode_value, encode_position};
use super::head::{Content, MapHead, Noting};
use super::item::KeyedItem;
use super::ordered::{WaitingUpdate, one_more};
use crate::catalogue::{BranchId, SpaceId};
use crate::held::Was;
use crate::keys::due::{DueClock, DueOf};
use crate::keys::keyed::read_version_and_key;
use crate::keys::things::OwnedId;
use crate::keys::{Keys, Kind};
use crate::names;
use crate::portable::Item;
use crate::portable::new_shard::{BuildError, NewShard};
use crate::portable::part::Portable;
use crate::portable::walking::{Walking, foreign, id_of};

/// The content of an imported map.
const CONTENT: u32 = 1;

/// What waits for a key that has no value, before the first of these updates is put. So many are never counted.
const UNCOUNTED: Waiting = Waiting { count: u32::MAX, added: 0, extreme: 0 };

/// The map whose keys are being put.
pub(crate) struct Filled {
    map: OwnedId,
    policy: Policy,
    meant: Content,
    /// Keys that only updates wait for, none of which was put yet.
    uncounted: u64,
    keys: u64,
    deleted: u64,
    waiting: u64,
    has_answer: bool,
}

impl Portable for Keyed {
    type Item<'row> = KeyedItem<'row>;
    type Begun = Option<Filled>;

    fn walk<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16, space: SpaceId, branch: BranchId) -> Result<(), E> {
        walk.things(Kind::KeyedMap, bucket, space, branch, |walk, key, row| {
            let (map, head) = (id_of(key, space, branch)?, MapHead::decode(row)?);
            if head.deleted {
                return Ok(());
            }
            let head = exported(head);
            let (id, number) = (map.in_bucket(bucket), head.content.number);
            let rows_of = |walk: &Walking<'_, E>, kind| walk.keys.map_rows(kind, &id, number);
            let (entries, positions) = (rows_of(walk, Kind::KeyedEntry), rows_of(walk, Kind::KeyedPosition));
            let (answers, waiting) = (rows_of(walk, Kind::KeyedAnswer), rows_of(walk, Kind::KeyedWaiting));
            for range in [&entries, &positions, &answers, &waiting] {
                if !walk.is_whole(range)? {
                    return Ok(());
                }
            }
            (walk.take)(&Item::Map(KeyedItem::Head { map: &map, head: Box::new(head) }))?;
            let prefix = entries.start.len();
            walk.rows(&entries, |walk, key, row| {
                let entry = Entry::decode(row)?;
                (walk.take)(&Item::Map(KeyedItem::Key { map: &map, key: &key[prefix..], entry }))
            })?;
            let prefix = positions.start.len();
            walk.rows(&positions, |walk, key, row| {
                let input = std::str::from_utf8(&key[prefix..]).map_err(|_| foreign("input positions"))?;
                let position = decode_position(row)?;
                (walk.take)(&Item::Map(KeyedItem::Position { map: &map, input, position }))
            })?;
            let prefix = waiting.start.len();
            walk.rows(&waiting, |walk, key, row| {
                let (version, key) = read_version_and_key(&key[prefix..]).ok_or_else(|| foreign("waiting updates"))?;
                (walk.take)(&Item::Map(KeyedItem::Waiting { map: &map, version, key, row }))
            })?;
            walk.rows(&answers, |walk, _, row| (walk.take)(&Item::Map(KeyedItem::Answer { map: &map, row })))
        })
    }

    fn put(shard: &mut NewShard<'_>, begun: &mut Self::Begun, item: &KeyedItem<'_>) -> Result<(), BuildError> {
        match item {
            KeyedItem::Head { map, head } => {
                Self::end(begun)?;
                put_map(shard, begun, map, head)
            }
            KeyedItem::Key { map, key, entry } => put_key(shard, begun, map, key, entry),
            KeyedItem::Position { map, input, position } => {
                in_map(begun, map)?;
                let row = shard.keys.input_position(&shard.place(map)?, CONTENT, input);
                shard.absent(&row, "an input of map", &map.name)?;
                shard.held().put(row, None, false, |writer| encode_position(writer, position));
                Ok(())
            }
            KeyedItem::Waiting { map, version, key, row } => put_waiting(shard, begun, map, (*version, *key), row),
            KeyedItem::Answer { map, row } => {
                in_map(begun, map)?.has_answer = true;
                check_answer(row)?;
                let key = shard.keys.keyed_answer(&shard.place(map)?, CONTENT);
                shard.absent(&key, "the last answer of map", &map.name)?;
                shard.state.put(key, kv::copied(row));
                Ok(())
            }
        }
    }

    fn end(begun: &mut Self::Begun) -> Result<(), BuildError> {
        let Some(Filled { map, meant, uncounted, keys, deleted, waiting, has_answer, .. }) = begun.take() else {
            return Ok(());
        };
        let refused = |what: String| Err(BuildError::Refused(format!("map {:?}: {what}", map.name)));
        let Content { keys: keys_meant, deleted: deleted_meant, waiting: waiting_meant, .. } = meant;
        if (keys, deleted, waiting) != (keys_meant, deleted_meant, waiting_meant) {
            return refused(format!(
                "D1: it has {keys} keys, {deleted} deleted ones and {waiting} waiting updates, \
                 not {keys_meant}, {deleted_meant} and {waiting_meant}"
            ));
        }
        if uncounted > 0 {
            return refused(format!("D1: no update waits for {uncounted} of its keys, and they have no value"));
        }
        match has_answer == (meant.last_number > 0) {
            true => Ok(()),
            false => refused("D2: the answer of its last commit is missing, or it has none".to_owned()),
        }
    }
}

fn put_map(
    shard: &mut NewShard<'_>,
    begun: &mut Option<Filled>,
    map: &OwnedId,
    head: &MapHead,
) -> Result<(), BuildError> {
    let id = shard.place(map)?;
    let key = shard.keys.map(&id);
    shard.absent(&key, "map", &map.name)?;
    let content = Content { number: CONTENT, ..head.content };
    let (map_of, policy, meant) = (map.clone(), head.policy, content);
    let (uncounted, keys, deleted, waiting, has_answer) = (0, 0, 0, 0, false);
    *begun = Some(Filled { map: map_of, policy, meant, uncounted, keys, deleted, waiting, has_answer });
    names::set_listed(&mut shard.state, &shard.keys, Kind::KeyedMap, &id, true);
    shard.applying(|applying| {
        if let Some(at_us) = head.sweep_us {
            applying.put_due(DueClock::Wall, at_us, DueOf::Sweep, &id);
        }
        let (last_content, unused) = (CONTENT, Vec::new());
        let after = MapHead { content, last_content, unused, ..exported(head.clone()) };
        put_head(applying, &id, None, &after);
        Ok(())
    })
}

/// A head without what stays behind: a restore that has not ended, what is noted for checkpoints, and how far rows are gone.
fn exported(head: MapHead) -> MapHead {
    let content = Content { noting: Noting::default(), ..head.content };
    MapHead { building: None, content, cursors: Vec::new(), ..head }
}

/// Checks that this is the map whose keys are being put.
fn in_map<'filled>(begun: &'filled mut Option<Filled>, map: &OwnedId) -> Result<&'filled mut Filled, BuildError> {
    let refused = || BuildError::Refused(format!("something of map {:?} does not follow it", map.name));
    begun.as_mut().filter(|filled| filled.map == *map).ok_or_else(refused)
}

fn put_key(
    shard: &mut NewShard<'_>,
    begun: &mut Option<Filled>,
    map: &OwnedId,
    key: &[u8],
    entry: &Entry<'_>,
) -> Result<(), BuildError> {
    let filled = in_map(begun, map)?;
    check_key(map, key)?;
    let id = shard.place(map)?;
    let row = Keys::entry_at(&shard.keys.entry_prefix(&id, CONTENT), key);
    shard.absent(&row, "a key of map", &map.name)?;
    // Updates that wait are counted as they come.
    let mut waiting = Waiting::default();
    match (entry.state, filled.policy) {
        (KeyState::Deleted(version), Policy::Monotonic) => {
            filled.deleted += 1;
            shard.state.put(shard.keys.deleted_key(&id, CONTENT, version, key), kv::Bytes::default());
        }
        (KeyState::Nothing(_), Policy::Ordered) => {
            filled.uncounted += 1;
            waiting = UNCOUNTED;
        }
        (KeyState::Put { .. } | KeyState::Merged(_), _) => filled.keys += 1,
        _ => return Err(refused(map, key, "is as no key of a map with its policy can be")),
    }
    if let KeyState::Put { value, .. } = entry.state {
        shard.staged_bytes += value.len();
    }
    let entry = Entry { waiting, ..*entry };
    shard.held().put(row, None, false, |writer| entry.encode(writer));
    Ok(())
}

/// Puts an update that waits, and counts it in its key, as when it came first.
fn put_waiting(
    shard: &mut NewShard<'_>,
    begun: &mut Option<Filled>,
    map: &OwnedId,
    (version, key): (LogicalTime, &[u8]),
    row: &[u8],
) -> Result<(), BuildError> {
    let filled = in_map(begun, map)?;
    if filled.policy != Policy::Ordered {
        return Err(refused(map, key, "has an update that waits, in a monotonic map"));
    }
    filled.waiting += 1;
    check_key(map, key)?;
    let update = WaitingUpdate::decode(row)?;
    if let WaitingUpdate::Put(value) = update {
        decode_value(value)?;
    }
    let id = shard.place(map)?;
    let waiting_key = shard.keys.waiting_update(&id, CONTENT, version, key);
    shard.absent(&waiting_key, "a waiting update of map", &map.name)?;
    let entry_key = Keys::entry_at(&shard.keys.entry_prefix(&id, CONTENT), key);
    let Some(entry_row) = shard.state.get(&entry_key)? else {
        return Err(refused(map, key, "is not there, and an update waits for it"));
    };
    let mut entry = Entry::decode(&entry_row)?;
    if entry.waiting == UNCOUNTED {
        filled.uncounted -= 1;
        entry.waiting = Waiting::default();
    }
    if !update.fits(entry.state) {
        return Err(refused(map, key, "is put or merged, and the other waits for it"));
    }
    entry.state = update.used(entry.state);
    let waiting = one_more(entry.state, entry.waiting, &update);
    let waiting = waiting.filter(|waiting| waiting.count <= KEYED_WAITING_MAX);
    entry.waiting = waiting.ok_or_else(|| refused(map, key, "has more updates that wait than fit"))?;
    shard.staged_bytes += row.len();
    shard.held().put(waiting_key, None, false, |writer| {
        writer.raw(row);
    });
    shard.held().put(entry_key, Some(Was::part(entry_row.len())), false, |writer| entry.encode(writer));
    Ok(())
}

fn check_key(map: &OwnedId, key: &[u8]) -> Result<(), BuildError> {
    contract::names::check_key(key).map_err(|_| refused(map, key, "is empty or too long"))
}

fn refused(map: &OwnedId, key: &[u8], what: &str) -> BuildError {
    BuildError::Refused(format!("map {:?}: D1: key {:?} {what}", map.name, shown_key(key)))
}
