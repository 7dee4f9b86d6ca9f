//! The words of cells.
//!
//! ```text
//! set a red         init a red       cas a v1 red, cas a absent red        delete a
//! get a             history a [limit 2] [before v3]                        at a v1, at a 5s
//! list PREFIX [limit 2] [after b], list g/PREFIX
//! guards: a absent, a exists, a is v1, a below v2,
//!         a unchanged since c3, b..d unchanged since c3, b.. unchanged since c3
//! ```

use contract::{AsOf, HistoryPage, ListPage, Listed, Moment, NameInGroup, Value};

use super::Stage;
use super::words::{
    group_and_name, groups_and_prefix, joined, number, option, prefix, show, shown_name, time_us, value,
};
use crate::cells::{ViewCells, at, get, history, list};
use crate::command::{CellAct, CellGuard, Guard, Op};
use crate::keys::ThingId;

pub(super) fn op<'text>(words: &[&'text str]) -> Option<Op<'text>> {
    Some(match words {
        ["set", name, new] => Op::Cell(name, CellAct::Set(value(new))),
        ["init", name, new] => Op::Cell(name, CellAct::Init(value(new))),
        ["cas", name, "absent", new] => Op::Cell(name, CellAct::Cas(None, value(new))),
        ["cas", name, version, new] => Op::Cell(name, CellAct::Cas(Some(number(version)), value(new))),
        ["delete", name] => Op::Cell(name, CellAct::Delete),
        _ => return None,
    })
}

pub(super) fn guard<'text>(words: &[&'text str]) -> Option<Guard<'text>> {
    Some(match words {
        [name, "absent"] => Guard::Cell(CellGuard::Absent(name)),
        [name, "exists"] => Guard::Cell(CellGuard::Exists(name)),
        [name, "is", version] => Guard::Cell(CellGuard::VersionIs(name, number(version))),
        [name, "below", version] => Guard::Cell(CellGuard::VersionBelow(name, number(version))),
        [name, "unchanged", "since", commit] => match name.split_once("..") {
            None => Guard::Cell(CellGuard::UnchangedSince(name, number(commit))),
            Some((from, to)) => {
                let to = Some(to).filter(|to| !to.is_empty());
                Guard::Cell(CellGuard::RangeUnchangedSince(from, to, number(commit)))
            }
        },
        _ => return None,
    })
}

impl Stage {
    pub(super) fn read_cells(&self, words: &[&str]) -> Option<String> {
        Some(match words {
            ["get", cell] => self.get(cell),
            ["at", cell, moment] => self.at(cell, moment),
            ["history", cell, options @ ..] => self.history(cell, options),
            ["list", options @ ..] => self.list(options),
            _ => return None,
        })
    }

    fn read_cell<T>(&self, cell: &str, read: impl FnOnce(&ViewCells<'_>, &ThingId<'_>) -> T) -> T {
        let view = self.view();
        read(&ViewCells { view: &*view, keys: self.kernel.keys() }, &self.thing(cell))
    }

    fn get(&self, cell: &str) -> String {
        let versioned = self.read_cell(cell, |cells, id| get::get_versioned(cells, id)).unwrap();
        let value = self.read_cell(cell, |cells, id| get::get(cells, id)).unwrap();
        assert_eq!(value, versioned.clone().map(|versioned| versioned.value));
        versioned.map_or("absent".into(), |there| format!("{} v{}", show(&there.value), there.version))
    }

    fn at(&self, cell: &str, moment: &str) -> String {
        let moment = match moment.strip_prefix('v') {
            Some(version) => Moment::Version(number(version)),
            None => Moment::Time(time_us(moment)),
        };
        match self.read_cell(cell, |cells, id| at::at(cells, id, moment)).unwrap() {
            AsOf::Value(there) => format!("{} v{}", show(&there.value), there.version),
            AsOf::Absent => "absent".into(),
            AsOf::Unavailable { oldest } => format!("kept from v{oldest}"),
        }
    }

    fn history(&self, cell: &str, options: &[&str]) -> String {
        let limit = option(options, "limit").map_or(100, |limit| limit.parse().unwrap());
        let page = HistoryPage { before: option(options, "before").map(number), limit };
        let history = self.read_cell(cell, |cells, id| history::history(cells, id, page)).unwrap();
        let show_past = |value: &Option<Value>| value.as_ref().map_or("deleted".into(), show);
        let past = history.versions.iter();
        let past = past.map(|past| format!("v{} {}", past.version, show_past(&past.value)));
        let more = history.next_before.map(|before| format!("more before v{before}"));
        past.chain(more).collect::<Vec<_>>().join(", ")
    }

    fn list(&self, options: &[&str]) -> String {
        let (groups, prefix) = groups_and_prefix(prefix(options, &["limit", "after"]));
        let after = option(options, "after").map(|after| {
            let (group, name) = group_and_name(after);
            NameInGroup::new(name, group.map(str::to_owned))
        });
        let limit = option(options, "limit").map_or(100, |limit| limit.parse().unwrap());
        let (view, keys, catalogue) = (self.view(), self.kernel.keys(), self.kernel.catalogue());
        let (place, page) = ((self.space, self.branch), ListPage { after, limit });
        let Listed { cells, next_after } = list::list(&*view, &keys, catalogue, place, groups, prefix, &page).unwrap();
        let shown = |NameInGroup { name, group }: &NameInGroup| shown_name(group.as_deref(), name);
        let cells = cells.iter().map(|(name, there)| format!("{}={}", shown(name), show(&there.value)));
        let more = next_after.map(|after| format!("more after {}", shown(&after)));
        joined(cells.chain(more).collect())
    }
}
