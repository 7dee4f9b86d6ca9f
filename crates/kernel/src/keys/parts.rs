//! The parts that keys are put together from: names, groups, and integers that sort.

use kv::Key;

/// The integer as a number whose bytes sort as the integer does.
pub fn sortable(integer: i64) -> u64 {
    integer.cast_unsigned() ^ (1 << 63)
}

pub(super) const OWN_GROUP: u8 = 0x00;
pub(super) const NAMED_GROUP: u8 = 0x01;

/// Ends a name. It sorts before every byte that can follow within a longer name.
pub(super) const NAME_END: [u8; 2] = [0x00, 0x00];
/// Stands for a zero byte inside a name.
pub(super) const ZERO_ESCAPE: [u8; 2] = [0x00, 0xff];

pub(super) fn push_escaped(key: &mut Key, name: &[u8]) {
    if !name.contains(&0) {
        key.extend_from_slice(name);
        return;
    }
    for byte in name {
        if *byte == 0 {
            key.extend_from_slice(&ZERO_ESCAPE);
        } else {
            key.push(*byte);
        }
    }
}

pub(super) fn push_name(key: &mut Key, name: &[u8]) {
    push_escaped(key, name);
    key.extend_from_slice(&NAME_END);
}

pub(super) fn push_group(key: &mut Key, group: Option<&str>) {
    match group {
        // A thing without a group needs its name only once.
        None => key.push(OWN_GROUP),
        Some(group) => {
            key.push(NAMED_GROUP);
            push_name(key, group.as_bytes());
        }
    }
}

pub(super) fn take_group_and_name(bytes: &[u8]) -> Option<(Option<String>, String, &[u8])> {
    let (group_kind, rest) = bytes.split_first()?;
    let (group, rest) = match *group_kind {
        OWN_GROUP => (None, rest),
        NAMED_GROUP => {
            let (group, rest) = take_name(rest)?;
            (Some(group), rest)
        }
        _ => return None,
    };
    let (name, rest) = take_name(rest)?;
    Some((group, name, rest))
}

pub(super) fn take_name(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (name, rest) = take_bytes(bytes)?;
    Some((String::from_utf8(name).ok()?, rest))
}

/// Skips a name, and returns what follows it.
pub(super) fn skip_name(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = bytes;
    loop {
        let zero = rest.iter().position(|byte| *byte == 0)?;
        let (second, after) = rest[zero + 1..].split_first()?;
        rest = after;
        match *second {
            0x00 => return Some(rest),
            0xff => {}
            _ => return None,
        }
    }
}

pub(super) fn take_bytes(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut taken = Vec::new();
    let mut rest = bytes;
    loop {
        let zero = rest.iter().position(|byte| *byte == 0)?;
        taken.extend_from_slice(&rest[..zero]);
        let (second, after) = rest[zero + 1..].split_first()?;
        rest = after;
        match *second {
            0x00 => return Some((taken, rest)),
            0xff => taken.push(0),
            _ => return None,
        }
    }
}
