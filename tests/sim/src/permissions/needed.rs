//! What a request needs, said anew: from the pages for users, not from the server's own table.

use contract::access::{Area, Grant, Verb, Verbs};
use testkit::http::Request;

use super::scene::Root;

/// The space of every request that names none.
pub(super) const SPACE: &str = "default";

/// A space in which the wrong grants are.
pub(super) const OTHER_SPACE: &str = "elsewhere";

/// One thing that a request needs.
#[derive(Clone, Debug)]
pub(super) struct Needed {
    pub(super) verb: Verb,
    pub(super) area: Area,
    /// None for what is of every space.
    pub(super) space: Option<&'static str>,
    /// The names that it is about begin with this, or those of their groups.
    pub(super) prefix: String,
    /// The group that it is in, by whose name it may be granted as well.
    pub(super) group: Option<String>,
}

impl Needed {
    /// In the space of the request.
    pub(super) fn of(verb: Verb, area: Area, prefix: impl Into<String>) -> Self {
        Self { verb, area, space: Some(SPACE), prefix: prefix.into(), group: None }
    }

    /// The same in a group.
    pub(super) fn in_group(self, group: &str) -> Self {
        Self { group: Some(group.to_owned()), ..self }
    }

    /// The whole store.
    pub(super) fn store(verb: Verb) -> Self {
        Self::everywhere(verb, Area::Store)
    }

    /// An area of every space.
    pub(super) fn everywhere(verb: Verb, area: Area) -> Self {
        Self { space: None, ..Self::of(verb, area, "") }
    }

    /// Whether the smallest grant of another covers it, too.
    pub(super) fn is_covered_with(&self, other: &Self) -> bool {
        let is_under = |name: &str| name.starts_with(&other.prefix);
        // Who may write anyway may write on a condition.
        Verbs::of(&[other.verb]).has(self.verb)
            && (self.area, self.space) == (other.area, other.space)
            && (is_under(&self.prefix) || self.group.as_deref().is_some_and(is_under))
    }

    fn grant(&self, verbs: Verbs, space: Option<&str>, prefix: &str) -> String {
        let (space, prefix) = (space.map(str::to_owned), prefix.to_owned());
        Grant { space, area: Some(self.area), prefix, verbs }.to_string()
    }

    /// The smallest grant that covers it.
    pub(super) fn exactly(&self) -> String {
        self.grant(Verbs::of(&[self.verb]), self.space, &self.prefix)
    }

    /// Everything of the kind in another space; of what is of every space, in one.
    pub(super) fn in_other_space(&self) -> String {
        let other = if self.space == Some(SPACE) { OTHER_SPACE } else { SPACE };
        self.grant(Verbs::of(Verb::ALL), Some(other), "")
    }

    /// All verbs, under a prefix that is longer by a letter.
    pub(super) fn under_other_prefix(&self) -> String {
        self.grant(Verbs::of(Verb::ALL), self.space, &format!("{}~", self.prefix))
    }

    /// Every verb that does not imply the one that is needed.
    pub(super) fn other_verbs(&self) -> String {
        let implies = |verb: Verb| Verbs::of(&[verb]).has(self.verb);
        let others: Vec<_> = Verb::ALL.iter().copied().filter(|verb| !implies(*verb)).collect();
        self.grant(Verbs::of(&others), self.space, &self.prefix)
    }
}

/// Who may send a request.
#[derive(Clone, Debug)]
pub(super) enum For {
    /// Anybody, known or not.
    Anybody,
    /// Whoever is known.
    Known,
    /// The principal that opened the session, whose secret is shown.
    OwnerOfSession,
    /// Who was granted all of these.
    Granted(Vec<Needed>),
}

/// What the right sender is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    /// It is done.
    Done,
    /// It is let in: what it asks for may be impossible.
    LetIn,
}

type Finish = Box<dyn Fn(&Root, Request) -> Request>;

/// One request, and who may send it.
pub(super) struct Case {
    /// Of a route, of an operation or of a condition.
    pub(super) name: String,
    /// What makes it possible, sent by the root.
    pub(super) before: Vec<Request>,
    pub(super) request: Request,
    /// What is known only when it was made possible.
    pub(super) finish: Option<Finish>,
    pub(super) who: For,
    pub(super) right: Right,
    /// Whether its answer goes on.
    pub(super) is_stream: bool,
}

impl Case {
    pub(super) fn new(name: impl Into<String>, request: Request, who: For) -> Self {
        let (before, finish) = (Vec::new(), None);
        Self { name: name.into(), before, request, finish, who, right: Right::Done, is_stream: false }
    }

    /// For whom one thing was granted.
    pub(super) fn granted(name: &str, request: Request, needed: Needed) -> Self {
        Self::new(name, request, For::Granted(vec![needed]))
    }

    pub(super) fn after(mut self, before: &[&Request]) -> Self {
        self.before.extend(before.iter().map(|request| (*request).clone()));
        self
    }

    pub(super) fn let_in(self) -> Self {
        Self { right: Right::LetIn, ..self }
    }

    pub(super) fn stream(self) -> Self {
        Self { is_stream: true, ..self }
    }

    pub(super) fn finished(self, finish: impl Fn(&Root, Request) -> Request + 'static) -> Self {
        Self { finish: Some(Box::new(finish)), ..self }
    }
}

/// How the thing of a request is named, and by what its grants name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// Alone, in no group that the request names.
    Alone,
    /// In a group, granted by its own name.
    InGroup,
    /// In a group, granted by the name of the group.
    ByGroup,
}

/// All of them.
pub(super) const ALL_NAMINGS: [Naming; 3] = [Naming::Alone, Naming::InGroup, Naming::ByGroup];

/// A thing that was never named before, in a group like it.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) naming: Naming,
    pub(super) thing: String,
    /// It is a partition, too: that of the operator before the slash.
    pub(super) group: String,
    pub(super) operator: String,
}

impl Target {
    pub(super) fn new(naming: Naming, number: usize) -> Self {
        let operator = format!("g{number}");
        Self { naming, thing: format!("m{number}"), group: format!("{operator}/3"), operator }
    }

    /// A request in the group, if there is one.
    pub(super) fn ask(&self, method: &'static str, path: impl Into<String>) -> Request {
        let request = Request::new(method, path);
        match self.naming {
            Naming::Alone => request,
            Naming::InGroup | Naming::ByGroup => request.query("group", &self.group),
        }
    }

    /// The prefix of a grant for a name: its own, or that of the group.
    pub(super) fn prefix(&self, name: &str) -> String {
        match self.naming {
            Naming::Alone | Naming::InGroup => name.to_owned(),
            Naming::ByGroup => self.group.clone(),
        }
    }

    /// What a verb on a name needs.
    pub(super) fn needs(&self, verb: Verb, area: Area, name: &str) -> Needed {
        let needed = Needed::of(verb, area, self.prefix(name));
        if self.naming == Naming::Alone { needed } else { needed.in_group(&self.group) }
    }
}
