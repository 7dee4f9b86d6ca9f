//! One permission: some verbs, on what begins with a prefix, in an area of a space.

use std::fmt;

use super::{Area, Need, Verbs};
use crate::error::Rejection;
use crate::limits::NAME_BYTES_MAX;
use crate::names::{check_space, escape, unescape};
use crate::reason::RefusalReason;

/// One permission.
///
/// Its text is `VERBS@SPACE/AREA/PREFIX`, as on the command line; `/AREA/PREFIX` or `/PREFIX` may be left out. A `*` stands for every
/// space or every area. In the name of a space `%`, `/` and a lone `*` are escaped as in a URL.
///
/// ```
/// use statehouse_contract::access::{Area, Grant, Need, Role, Things, Verb, Verbs};
/// let grant = Grant::parse("worker@default/records/jobs.").unwrap();
/// assert_eq!(grant.to_string(), "worker@default/records/jobs.");
/// let job = Things::One { group: None, name: "jobs.7" };
/// let claim = Need { space: Some("default"), area: Area::Record, verb: Verb::Claim, things: job };
/// assert!(grant.covers(&claim));
/// assert!(!grant.covers(&Need { space: Some("other"), ..claim.clone() }));
/// assert!(!grant.covers(&Need { verb: Verb::Operate, ..claim }));
/// assert_eq!(Grant::everything().to_string(), "admin@*");
/// assert!(Grant::parse("worker").is_err() && Grant::parse("worker@a/recrds").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// In which space; none for every space, and for what is of none.
    pub space: Option<String>,
    /// On what; none for everything.
    pub area: Option<Area>,
    /// The names, or the names of their groups, begin with this.
    pub prefix: String,
    /// What may be done.
    pub verbs: Verbs,
}

/// In a text: every space, or every area.
const EVERY: &str = "*";

impl Grant {
    /// All verbs in the whole store.
    pub fn everything() -> Self {
        Self { space: None, area: None, prefix: String::new(), verbs: super::Role::Admin.verbs() }
    }

    /// Whether it permits what a request would do.
    pub fn covers(&self, need: &Need<'_>) -> bool {
        let in_space = match (&self.space, need.space) {
            (None, _) => true,
            (Some(granted), Some(needed)) => granted == needed,
            (Some(_), None) => false,
        };
        in_space
            && self.area.is_none_or(|area| area == need.area)
            && self.verbs.has(need.verb)
            && need.things.are_under(&self.prefix)
    }

    /// Refuses a grant that could never be of use.
    pub fn check(&self) -> Result<(), Rejection> {
        if let Some(space) = &self.space {
            check_space(space)?;
        }
        if self.prefix.contains('\0') {
            return Err(Rejection::InvalidName { what: "a grant's prefix", reason: "it contains a NUL byte" });
        }
        Rejection::check_limit("name_bytes_max", NAME_BYTES_MAX, self.prefix.len())?;
        if self.verbs.is_empty() {
            let reason = RefusalReason::NoVerbs;
            return Err(Rejection::InvalidDeclaration { what: format!("the grant {:?}", self.to_string()), reason });
        }
        Ok(())
    }

    /// Reads a text. The error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (verbs, place) = text.split_once('@').ok_or_else(|| {
            format!("{text:?} has no @; a grant is VERBS@SPACE/AREA/PREFIX, such as worker@default/records/jobs.")
        })?;
        let verbs = Verbs::parse(verbs).map_err(|word| {
            let known = super::Verb::ALL.iter().map(|verb| verb.word());
            let known = known.chain(super::Role::ALL.iter().map(|role| role.word()));
            let nearest = crate::suggest::nearest(word, known);
            let meant = nearest.map_or_else(String::new, |nearest| format!("; did you mean {nearest:?}?"));
            format!("{word:?} is no verb and no role{meant}")
        })?;
        let mut parts = place.splitn(3, '/');
        let space = match parts.next() {
            Some(EVERY) => None,
            Some(space) => {
                Some(unescape(space, &['/', '*']).ok_or_else(|| format!("{space:?} is not the name of a space"))?)
            }
            None => None,
        };
        let area = match parts.next() {
            None | Some(EVERY) => None,
            Some(name) => Some(Area::named(name).ok_or_else(|| {
                let known = crate::suggest::nearest(name, Area::ALL.iter().map(|area| area.name()));
                let meant = known.map_or_else(String::new, |known| format!("; did you mean {known:?}?"));
                format!("{name:?} is no area{meant}")
            })?),
        };
        let grant = Self { space, area, prefix: parts.next().unwrap_or_default().to_owned(), verbs };
        grant.check().map_err(|rejection| rejection.to_string())?;
        Ok(grant)
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { space, area, prefix, verbs } = self;
        write!(formatter, "{verbs}@")?;
        match space {
            None => formatter.write_str(EVERY)?,
            Some(space) => {
                let mut text = String::with_capacity(space.len());
                // A space of this name is not every space.
                let marks = if space == EVERY { &['*'][..] } else { &['/'][..] };
                escape(&mut text, space, marks);
                formatter.write_str(&text)?;
            }
        }
        match (area, prefix.as_str()) {
            (None, "") => Ok(()),
            (Some(area), "") => write!(formatter, "/{area}"),
            (area, prefix) => write!(formatter, "/{}/{prefix}", area.map_or(EVERY, Area::name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Role, Things, Verb};
    use super::*;

    #[test]
    fn a_text_is_read_as_it_was_written() {
        for space in [None, Some("default"), Some("*"), Some("a/b%2F"), Some("%")] {
            for area in [None, Some(Area::Record), Some(Area::Store)] {
                for prefix in ["", "jobs.", "a/b@c", "*", "%2F"] {
                    for verbs in [Role::Worker.verbs(), Verbs::of(&[Verb::Read, Verb::Force])] {
                        let space = space.map(str::to_owned);
                        let grant = Grant { space, area, prefix: prefix.to_owned(), verbs };
                        assert_eq!(Grant::parse(&grant.to_string()), Ok(grant.clone()), "{grant}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_grant_is_refused_by_name() {
        for (text, says) in [
            ("worker", "has no @"),
            ("", "has no @"),
            ("@default", "\"\" is no verb"),
            ("wroker@default", "did you mean \"worker\""),
            ("read,@default", "\"\" is no verb"),
            ("read@", "a space's name"),
            ("read@default/recrods", "did you mean \"records\""),
            ("read@a%b", "is not the name of a space"),
            ("read@_statehouse", "reserved"),
            ("read@a\0", "NUL"),
            ("read@a/cells/\0", "NUL"),
        ] {
            let refused = Grant::parse(text).expect_err(text);
            assert!(refused.contains(says), "{text:?}: {refused}");
        }
        let long = format!("read@a/cells/{}", "x".repeat(NAME_BYTES_MAX + 1));
        assert!(Grant::parse(&long).expect_err("too long").contains("name_bytes_max"));
        let nothing = Grant { verbs: Verbs::NONE, ..Grant::everything() };
        assert!(nothing.check().is_err());
    }

    #[test]
    fn a_prefix_covers_names_and_groups_and_no_more() {
        let grant = Grant::parse("read,list@s/records/a.").expect("a grant");
        let covers = |things| grant.covers(&Need { space: Some("s"), area: Area::Record, verb: Verb::Read, things });
        let one = |group, name| Things::One { group, name };
        let prefix = |group, prefix| Things::Prefix { group, prefix };
        assert!(covers(one(None, "a.")) && covers(one(None, "a.b")) && covers(one(Some("g"), "a.b")));
        assert!(covers(one(Some("a.g"), "b")) && covers(prefix(Some("a.g"), "")) && covers(prefix(None, "a.b")));
        assert!(covers(prefix(Some("g"), "a.")));
        assert!(!covers(one(None, "a")) && !covers(one(Some("a"), "b")) && !covers(one(Some("b"), "b.a.")));
        assert!(!covers(prefix(None, "a")) && !covers(prefix(None, "")) && !covers(prefix(Some("a"), "")));
        assert!(!covers(Things::All));
    }

    #[test]
    fn what_is_of_every_space_is_not_covered_in_one() {
        let one = Grant::parse("admin@default").expect("a grant");
        let need = Need { space: None, area: Area::Store, verb: Verb::Administer, things: Things::All };
        assert!(!one.covers(&need) && Grant::everything().covers(&need));
        let in_it = Need { space: Some("default"), ..need };
        assert!(one.covers(&in_it));
    }
}
