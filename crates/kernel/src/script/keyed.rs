//! The words of keyed state.
//!
//! ```text
//! update m k=red@7 k=none@1:8        puts and deletes with versions
//! number m 1 k=red@7 k+5 k<5 k>5 k- topic:41 seal@7      a numbered commit: merges (add, min, max), removals, positions, a seal
//! seal m 7          delete map m      create m ordered, create m monotonic        update m k+5@7 (a merge of an ordered map)
//! begin restore m ordered 2 7        restore m 2 k=red@7 k=none@8 sum+5 topic:41 answer k~red@9 k+5@9 (what waits)
//! end restore m 2 1 1 0 (keys, deleted, waiting)       abandon restore m 2       begin checkpoint m       end checkpoint m c3
//! key m k           keys m [prefix p] [from a] [to b] [after a] [limit 2]        position m topic
//! positions m       map m
//! guards: key m k absent, key m k exists, key m k is 7, key m k below 7, key m k unchanged since c3,
//!         keys m b..d unchanged since c3, keys m b.. unchanged since c3, input m topic at 41, input m topic at none
//! ```

use contract::keyed::{LogicalTime, Merge, Policy, UpdateOutcome, Updated};

use super::Stage;
use super::words::{joined, number, option, show, small_number, value};
use crate::answer::Answer;
use crate::command::{Guard, KeyedAct, KeyedGuard, Op};
use crate::keyed::command::Commit;
use crate::keyed::read::{self, Bounds, KeysFrom};
use crate::keyed::restore::{RestoredCounts, RestoredMap};
use crate::keyed::rows::{ContentRows, ContentWriter};
use crate::keyed::updates::{Updates, UpdatesWriter};

pub(super) fn op<'text>(words: &[&'text str]) -> Option<Op<'text>> {
    let (name, act) = match words {
        ["update", name, all @ ..] if all.iter().any(|word| word.contains('@')) => {
            (name, KeyedAct::Update(updates(all)))
        }
        ["merge", name, all @ ..] => (name, KeyedAct::Update(updates(all))),
        ["number", name, place, all @ ..] => {
            let positions = all.iter().filter_map(|word| word.split_once(':').filter(|_| !word.contains('@')));
            let positions = positions.map(|(input, position)| (input, number(position))).collect();
            let seal = all.iter().find_map(|word| word.strip_prefix("seal@")).map(version);
            (name, KeyedAct::Commit(Commit { number: number(place), positions, seal, updates: updates(all) }))
        }
        ["create", name, "ordered"] => (name, KeyedAct::Create(Policy::Ordered)),
        ["create", name, "monotonic"] => (name, KeyedAct::Create(Policy::Monotonic)),
        ["seal", name, at] => (name, KeyedAct::Seal(version(at))),
        ["delete", "map", name] => (name, KeyedAct::Delete),
        ["begin", "restore", name, policy, last_number, seal @ ..] => {
            let policy = if *policy == "ordered" { Policy::Ordered } else { Policy::Monotonic };
            let seal = seal.first().map(|seal| version(seal));
            (name, KeyedAct::BeginRestore(RestoredMap { policy, last_number: number(last_number), seal }))
        }
        ["restore", name, place, all @ ..] => (name, KeyedAct::RestoreRows(small(place), rows(all))),
        ["end", "restore", name, place, keys, deleted, waiting] => {
            let [keys, deleted, waiting] = [keys, deleted, waiting].map(|count| number(count));
            (name, KeyedAct::EndRestore(small(place), RestoredCounts { keys, deleted, waiting }))
        }
        ["abandon", "restore", name, place] => (name, KeyedAct::AbandonRestore(small(place))),
        ["begin", "checkpoint", name] => (name, KeyedAct::BeginCheckpoint),
        ["end", "checkpoint", name, begun] => (name, KeyedAct::EndCheckpoint(number(begun))),
        _ => return None,
    };
    Some(Op::Map(name, act))
}

fn version(text: &str) -> LogicalTime {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no version"))
}

fn updates<'text>(words: &[&str]) -> Updates<'text> {
    let mut writer = UpdatesWriter::new();
    for word in words.iter().filter(|word| !word.starts_with("seal@")) {
        if let Some((key, put)) = word.split_once('=') {
            let (new, at) = put.split_once('@').unwrap_or_else(|| panic!("{word:?} has no version"));
            match new {
                "none" => writer.delete(key.as_bytes(), version(at)),
                new => writer.put(key.as_bytes(), value(new), version(at)),
            }
        } else if let Some(key) = word.strip_suffix('-') {
            writer.remove(key.as_bytes());
        } else if word.contains('@') || !word.contains(':') {
            let ways = [('+', Merge::Add), ('<', Merge::Min), ('>', Merge::Max)];
            let found = ways.iter().find_map(|(sign, merge)| Some((word.split_once(*sign)?, *merge)));
            let ((key, operand), merge) = found.unwrap_or_else(|| panic!("{word:?} is no update"));
            match operand.split_once('@') {
                Some((operand, at)) => {
                    writer.merge_at(key.as_bytes(), merge, operand.parse().unwrap(), version(at));
                }
                None => writer.merge(key.as_bytes(), merge, operand.parse().unwrap()),
            }
        }
    }
    Box::leak(Box::new(writer)).updates()
}

fn small(text: &str) -> u32 {
    u32::try_from(small_number(text)).expect("it is small")
}

/// Rows as a checkpoint has them.
fn rows<'text>(words: &[&str]) -> ContentRows<'text> {
    let mut writer = ContentWriter::new();
    for word in words {
        if *word == "answer" {
            writer.answer(&[0; 16], &Answer::Done { commit: 1, outcomes: Vec::new() }.encode());
        } else if let Some((key, at)) = word.split_once('@') {
            let (at, split) = (version(at), key.find(['=', '~', '+']).unwrap_or_else(|| panic!("{word:?} is no row")));
            let (key, what) = (&key.as_bytes()[..split], &key[split..]);
            match (&what[..1], &what[1..]) {
                ("=", "none") => writer.deleted(key, at),
                ("=", new) => writer.put(key, value(new), at),
                ("~", "none") => writer.waiting_delete(key, at),
                ("~", new) => writer.waiting_put(key, value(new), at),
                (_, operand) => writer.waiting_merge(key, Merge::Add, operand.parse().unwrap(), at),
            }
        } else if let Some((input, position)) = word.split_once(':') {
            writer.position(input, number(position), 0);
        } else {
            let (key, sum) = word.split_once('+').unwrap_or_else(|| panic!("{word:?} is no row"));
            writer.merged(key.as_bytes(), sum.parse().unwrap());
        }
    }
    Box::leak(Box::new(writer)).rows()
}

pub(super) fn guard<'text>(words: &[&'text str]) -> Option<Guard<'text>> {
    let guard = match words {
        ["key", map, key, "absent"] => KeyedGuard::Absent(map, key.as_bytes()),
        ["key", map, key, "exists"] => KeyedGuard::Exists(map, key.as_bytes()),
        ["key", map, key, "is", at] => KeyedGuard::VersionIs(map, key.as_bytes(), version(at)),
        ["key", map, key, "below", at] => KeyedGuard::VersionBelow(map, key.as_bytes(), version(at)),
        ["key", map, key, "unchanged", "since", commit] => {
            KeyedGuard::UnchangedSince(map, key.as_bytes(), number(commit))
        }
        ["keys", map, range, "unchanged", "since", commit] => {
            let (from, to) = range.split_once("..").unwrap();
            let to = Some(to.as_bytes()).filter(|to| !to.is_empty());
            KeyedGuard::RangeUnchangedSince(map, from.as_bytes(), to, number(commit))
        }
        ["input", map, input, "at", "none"] => KeyedGuard::PositionIs(map, input, None),
        ["input", map, input, "at", position] => KeyedGuard::PositionIs(map, input, Some(number(position))),
        _ => return None,
    };
    Some(Guard::Map(guard))
}

/// What became of each update: `ok` if all were applied.
pub(super) fn show_updated(updated: &Updated) -> String {
    let shown = updated.others().iter().map(|(place, outcome)| {
        let what = match outcome {
            UpdateOutcome::Duplicate => "duplicate".to_owned(),
            UpdateOutcome::Stale { current } => format!("stale {current}"),
            UpdateOutcome::VersionConflict => "conflict".to_owned(),
            other => panic!("{other:?} is not listed"),
        };
        format!("{}: {what}", place + 1)
    });
    let shown = shown.collect::<Vec<_>>();
    if shown.is_empty() { "ok".into() } else { shown.join(" ") }
}

impl Stage {
    pub(super) fn read_keyed(&self, words: &[&str]) -> Option<String> {
        Some(match words {
            ["key", map, key] => self.key(map, key),
            ["keys", map, options @ ..] => self.keys(map, options),
            ["position", map, input] => self.position(map, input),
            ["positions", map] => self.positions(map),
            ["map", map] => self.map(map),
            _ => return None,
        })
    }

    fn key(&self, map: &str, key: &str) -> String {
        let (view, keys, id) = (self.view(), self.kernel.keys(), self.thing(map));
        let Some(head) = read::head(&*view, &keys, &id).unwrap() else { return "no map".into() };
        let found = read::get(&*view, &keys, &id, &head, key.as_bytes()).unwrap();
        found.map_or("none".into(), |found| match found.version {
            Some(version) => format!("{} v{version}", show(&found.value)),
            None => format!("{} merged", show(&found.value)),
        })
    }

    fn keys(&self, map: &str, options: &[&str]) -> String {
        let (view, keys, id) = (self.view(), self.kernel.keys(), self.thing(map));
        let Some(head) = read::head(&*view, &keys, &id).unwrap() else { return "no map".into() };
        let bytes = |name| option(options, name).map(str::as_bytes);
        let which = KeysFrom {
            prefix: bytes("prefix").unwrap_or_default(),
            from: bytes("from"),
            to: bytes("to"),
            after: bytes("after"),
        };
        let keys_max = option(options, "limit").map_or(100, small_number);
        let bounds = Bounds { keys_max, rows_max: 1_000, bytes_max: 1_000 };
        let page = read::scan(&*view, &keys, &id, &head, &which, &bounds).unwrap();
        let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
        let shown = page.keys.iter().map(|(key, found)| format!("{}={}", text(key), show(&found.value)));
        let more = page.next_after.map(|after| format!("more after {}", text(&after)));
        joined(shown.chain(more).collect())
    }

    fn position(&self, map: &str, input: &str) -> String {
        let (view, keys, id) = (self.view(), self.kernel.keys(), self.thing(map));
        let Some(head) = read::head(&*view, &keys, &id).unwrap() else { return "no map".into() };
        let found = read::position(&*view, &keys, &id, &head, input).unwrap();
        found.map_or("none".into(), |found| found.position.to_string())
    }

    fn positions(&self, map: &str) -> String {
        let (view, keys, id) = (self.view(), self.kernel.keys(), self.thing(map));
        let Some(head) = read::head(&*view, &keys, &id).unwrap() else { return "no map".into() };
        let found = read::positions(&*view, &keys, &id, &head, None, 100).unwrap();
        joined(found.iter().map(|(input, at)| format!("{input}:{} c{}", at.position, at.commit)).collect())
    }

    fn map(&self, map: &str) -> String {
        let (view, keys, id) = (self.view(), self.kernel.keys(), self.thing(map));
        let Some(head) = read::head(&*view, &keys, &id).unwrap() else { return "no map".into() };
        let summary = head.summary();
        let seal = summary.seal.map_or(String::new(), |seal| format!(", sealed to {seal}"));
        let waiting =
            if summary.policy == Policy::Ordered { format!(", {} waiting", summary.waiting) } else { "".into() };
        format!("{} keys, {} deleted, number {}{seal}{waiting}", summary.keys, summary.deleted, summary.last_number)
    }
}
