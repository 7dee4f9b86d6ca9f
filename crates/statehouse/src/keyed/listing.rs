//! Listing operators and their partitions, which are maps in groups named like them.
//!
//! Keeps: a page looks at a bounded number of maps, whatever other maps and groups are named like; its cursor goes on behind the
//! last one.

use contract::keyed::MapSummary;
use contract::limits::SCAN_ROWS_MAX;
use contract::{Error, NameInGroup};

use super::operator::{Operator, check_operator};
use crate::house::Space;
use crate::paging::check_page;

/// Comes before every number, and behind what cannot be one.
const BEFORE_DIGITS: &str = "/\u{10ffff}";

/// Comes behind the names of groups.
const LAST_GROUP: &str = "\u{10ffff}\u{10ffff}\u{10ffff}\u{10ffff}";

/// Maps that are read at once, at least.
const PAGE: usize = 100;

/// A page of the partitions of an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedPartitions {
    /// Their numbers and summaries, by number as text.
    pub partitions: Vec<(u32, MapSummary)>,
    /// The group after which the next page starts, if there may be more.
    pub next_after: Option<String>,
}

/// A page of operators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedOperators {
    /// Their names, in order.
    pub operators: Vec<String>,
    /// The map after which the next page starts, if there may be more.
    pub next_after: Option<NameInGroup>,
}

impl Operator {
    /// The partitions that hold something, by number as text: at most `limit` (1 to 1,000), after a group. A page looks at 10,000 groups
    /// at most, so it may have fewer partitions, or none, and say where to go on.
    pub fn partitions(&self, after: Option<&str>, limit: usize) -> Result<ListedPartitions, Error> {
        self.partitions_within(after, limit, SCAN_ROWS_MAX)
    }

    fn partitions_within(&self, after: Option<&str>, limit: usize, rows_max: usize) -> Result<ListedPartitions, Error> {
        check_operator(self.name())?;
        check_page(limit)?;
        let begins = format!("{}/", self.name());
        // Groups of other names are skipped: those before the first digit here, and those behind the last below.
        let after = after.map_or_else(|| format!("{begins}{BEFORE_DIGITS}"), str::to_owned);
        let mut listed = ListedPartitions { partitions: Vec::new(), next_after: Some(after) };
        let mut rows = 0;
        while rows < rows_max && listed.partitions.len() < limit {
            let after = NameInGroup::new(self.name(), listed.next_after.clone());
            let page = self.space().maps().list(self.name(), Some(&after), limit.max(PAGE).min(rows_max - rows))?;
            for (NameInGroup { name, group }, summary) in page.maps {
                let group = group.filter(|group| name == self.name() && group.starts_with(&begins));
                let Some(group) = group else {
                    listed.next_after = None;
                    return Ok(listed);
                };
                rows += 1;
                listed.partitions.extend(partition_in(self.name(), &group).map(|number| (number, summary)));
                listed.next_after = Some(group);
                if listed.partitions.len() == limit {
                    return Ok(listed);
                }
            }
            if page.next_after.is_none() {
                listed.next_after = None;
                break;
            }
        }
        Ok(listed)
    }
}

/// The number of the partition of an operator whose group this is.
pub(super) fn partition_in(operator: &str, group: &str) -> Option<u32> {
    let number = group.strip_prefix(operator)?.strip_prefix('/')?;
    number.parse().ok().filter(|parsed: &u32| parsed.to_string() == number)
}

impl Space {
    /// The operators that hold something, by name: at most `limit` (1 to 1,000) with a prefix, after a map. A page looks at 10,000 maps
    /// at most, so it may have fewer operators, or none, and say where to go on.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::keyed::Merge;
    /// use statehouse::records::ClaimOptions;
    /// house.maps().put("prices", b"apple", 30, 1)?; // no operator's
    /// let mut partition = house.keyed("wordcount").partition(3).acquire(&ClaimOptions::worker("w1"))?;
    /// partition.commit().merge(b"hello", Merge::Add, 2).run()?;
    /// assert_eq!(house.space("default").operators("", None, 10)?.operators, ["wordcount"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn operators(&self, prefix: &str, after: Option<&NameInGroup>, limit: usize) -> Result<ListedOperators, Error> {
        self.operators_within(prefix, after, limit, SCAN_ROWS_MAX)
    }

    fn operators_within(
        &self,
        prefix: &str,
        after: Option<&NameInGroup>,
        limit: usize,
        rows_max: usize,
    ) -> Result<ListedOperators, Error> {
        check_page(limit)?;
        let mut listed = ListedOperators { operators: Vec::new(), next_after: after.cloned() };
        for _ in 0..rows_max {
            let Some((found, _)) = self.maps().list(prefix, listed.next_after.as_ref(), 1)?.maps.into_iter().next()
            else {
                listed.next_after = None;
                break;
            };
            if is_partition(&found) {
                listed.operators.push(found.name.clone());
            }
            listed.next_after = Some(behind(found));
            if listed.operators.len() == limit {
                break;
            }
        }
        Ok(listed)
    }
}

fn is_partition(map: &NameInGroup) -> bool {
    let number = map.group.as_deref().and_then(|group| partition_in(&map.name, group));
    number.is_some() && check_operator(&map.name).is_ok()
}

/// Behind which map to look for the next operator: of the maps of one name, those in groups that cannot be partitions are skipped.
fn behind(map: NameInGroup) -> NameInGroup {
    let begins = format!("{}/", map.name);
    let before_digits = format!("{begins}{BEFORE_DIGITS}");
    let may_follow = check_operator(&map.name).is_ok() && !is_partition(&map);
    match &map.group {
        None if may_follow => NameInGroup::new(map.name, Some(before_digits)),
        Some(group) if may_follow && *group < before_digits => NameInGroup::new(map.name, Some(before_digits)),
        Some(group) if may_follow && group.starts_with(&begins) => map,
        _ => NameInGroup::new(map.name, Some(LAST_GROUP.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Statehouse;

    /// A store with a map of this name in each of the groups.
    fn store(maps: &[(&str, &str)]) -> (tempfile::TempDir, Space) {
        let directory = tempfile::tempdir().expect("a directory");
        let house = Statehouse::open(directory.path().join("house")).expect("a store");
        for (map, group) in maps {
            house.group(*group).maps().put(map, b"k", 1, 1).expect("a map");
        }
        (directory, house.space("default"))
    }

    #[test]
    fn a_page_of_partitions_looks_at_so_many_groups_and_goes_on_behind_them() {
        let others = ["words", "words/-1", "words/00", "words/01", "words/02", "words/1x", "words/a", "x"];
        let groups = others.iter().chain(&["words/0", "words/1", "words/2"]);
        let (_directory, space) = store(&groups.map(|group| ("words", *group)).collect::<Vec<_>>());
        let words = space.keyed("words");
        let numbers = |page: &ListedPartitions| page.partitions.iter().map(|(number, _)| *number).collect::<Vec<_>>();
        let all = words.partitions(None, 10).expect("a page");
        assert_eq!((numbers(&all), &all.next_after), (vec![0, 1, 2], &None));
        for rows_max in 1..6 {
            let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
            loop {
                let page = words.partitions_within(after.as_deref(), 10, rows_max).expect("a page");
                found.extend(numbers(&page));
                pages += 1;
                after = page.next_after;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(found, [0, 1, 2], "{rows_max} at a time");
            assert!(pages >= 7 / rows_max, "{pages} pages of {rows_max}");
        }
    }

    #[test]
    fn a_page_of_operators_looks_at_so_many_maps_and_goes_on_behind_them() {
        let maps = [
            ("a", "a/00"),
            ("a", "a/01"),
            ("a", "a/2"),
            ("a", "a/3"),
            ("b", "b/x"),
            ("b", "elsewhere"),
            ("b/c", "b/c/1"),
            ("d", "d/7"),
        ];
        let (_directory, space) = store(&maps);
        assert_eq!(space.operators("", None, 10).expect("a page").operators, ["a", "d"]);
        assert_eq!(space.operators("a", None, 10).expect("a page").operators, ["a"]);
        for rows_max in 1..5 {
            let (mut found, mut after, mut empty) = (Vec::new(), None, 0);
            loop {
                let page = space.operators_within("", after.as_ref(), 1, rows_max).expect("a page");
                empty += usize::from(page.operators.is_empty());
                found.extend(page.operators);
                after = page.next_after;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(found, ["a", "d"], "{rows_max} at a time");
            assert!(rows_max > 1 || empty > 2, "a page without operators goes on, too");
        }
    }
}
