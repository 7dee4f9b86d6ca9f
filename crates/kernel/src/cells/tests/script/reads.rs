//! What a script can read.

use contract::{AsOf, HistoryPage, ListPage, Listed, Moment, NameInGroup, Value};

use super::Stage;
use super::words::{group_and_name, number, option, seconds, show};
use crate::cells::{ViewCells, at, get, history, list};
use crate::names::InGroup;

impl Stage {
    fn read<T>(&self, cell: &str, read: impl FnOnce(&ViewCells<'_>, &crate::keys::ThingId<'_>) -> T) -> T {
        let (view, (group, name)) = (self.view(), group_and_name(cell));
        let id = self.kernel.catalogue().thing(self.space, self.branch, group, name).unwrap();
        read(&ViewCells { view: &*view, keys: self.kernel.keys() }, &id)
    }

    pub(super) fn get(&self, cell: &str) -> String {
        let versioned = self.read(cell, |cells, id| get::get_versioned(cells, id)).unwrap();
        let value = self.read(cell, |cells, id| get::get(cells, id)).unwrap();
        assert_eq!(value, versioned.clone().map(|versioned| versioned.value));
        versioned.map_or("absent".into(), |there| format!("{} v{}", show(&there.value), there.version))
    }

    pub(super) fn at(&self, cell: &str, moment: &str) -> String {
        let moment = match moment.strip_prefix('v') {
            Some(version) => Moment::Version(number(version)),
            None => Moment::Time(seconds(moment)),
        };
        match self.read(cell, |cells, id| at::at(cells, id, moment)).unwrap() {
            AsOf::Value(there) => format!("{} v{}", show(&there.value), there.version),
            AsOf::Absent => "absent".into(),
            AsOf::Unavailable { oldest } => format!("kept from v{oldest}"),
        }
    }

    pub(super) fn history(&self, cell: &str, options: &[&str]) -> String {
        let limit = option(options, "limit").map_or(100, |limit| limit.parse().unwrap());
        let page = HistoryPage { before: option(options, "before").map(number), limit };
        let history = self.read(cell, |cells, id| history::history(cells, id, page)).unwrap();
        let show_past = |value: &Option<Value>| value.as_ref().map_or("deleted".into(), show);
        let past = history.versions.iter();
        let past = past.map(|past| format!("v{} {}", past.version, show_past(&past.value)));
        let more = history.next_before.map(|before| format!("more before v{before}"));
        past.chain(more).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn list(&self, options: &[&str]) -> String {
        let prefix = options.first().filter(|word| !["limit", "after"].contains(*word)).unwrap_or(&"");
        let (group, prefix) = group_and_name(prefix);
        let groups = match group {
            None => InGroup::Any,
            Some("own") => InGroup::Own,
            Some(group) => InGroup::Named(group),
        };
        let after = option(options, "after").map(|after| {
            let (group, name) = group_and_name(after);
            NameInGroup::new(name, group.map(str::to_owned))
        });
        let limit = option(options, "limit").map_or(100, |limit| limit.parse().unwrap());
        let (view, keys, catalogue) = (self.view(), self.kernel.keys(), self.kernel.catalogue());
        let (place, page) = ((self.space, self.branch), ListPage { after, limit });
        let Listed { cells, next_after } = list::list(&*view, &keys, catalogue, place, groups, prefix, &page).unwrap();
        let shown = |NameInGroup { name, group }: &NameInGroup| {
            group.as_ref().map_or(name.clone(), |group| format!("{group}/{name}"))
        };
        let cells = cells.iter().map(|(name, there)| format!("{}={}", shown(name), show(&there.value)));
        let more = next_after.map(|after| format!("more after {}", shown(&after)));
        let said = cells.chain(more).collect::<Vec<_>>().join(", ");
        if said.is_empty() { "none".into() } else { said }
    }
}
