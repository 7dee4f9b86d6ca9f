//! What a route needs. The table of routes cannot have an entry without it.

use std::cell::OnceCell;

use contract::access::{Area, Need, Verb};
use contract::catalogue::DEFAULT_SPACE;

use super::{Caller, Needs};
use crate::api::scope::RequestScope;

/// A decoded request, as its permission sees it: what it names, and nothing that is stored.
pub(crate) struct Asking<'request, Q, B> {
    pub(crate) caller: &'request Caller,
    pub(crate) scope: &'request RequestScope,
    /// The group of the request, which is in its path or beside it.
    pub(crate) group: Option<&'request str>,
    /// The name in the path.
    pub(crate) name: &'request str,
    pub(crate) query: &'request Q,
    pub(crate) body: &'request B,
    /// Whether it names the version that it replaces, or that nothing is there.
    pub(crate) is_conditional: bool,
    /// Whether it waits for what is not there yet, or asks for a stream.
    pub(crate) follows: bool,
    /// Where [`composed`](Self::composed) keeps its text.
    pub(crate) text: &'request OnceCell<String>,
}

impl<'request, Q, B> Asking<'request, Q, B> {
    /// The verb of a write of the thing that the request names.
    pub(crate) fn write(&self) -> Verb {
        if self.is_conditional { Verb::Cas } else { Verb::Write }
    }

    /// A name that the request has only in parts. A permission composes at most one.
    pub(crate) fn composed(&self, compose: impl FnOnce() -> String) -> &'request str {
        self.text.get_or_init(compose)
    }
}

type Collect<Q, B> = Box<dyn for<'request> Fn(&Asking<'request, Q, B>, &mut Needs<'request>) + Send + Sync>;

/// What a route needs.
pub(crate) struct Permission<Q, B> {
    /// The same for people.
    pub(crate) words: String,
    /// Whether anybody may call it, known or not.
    pub(crate) is_open: bool,
    /// Whether what it permits is recorded before it is done. Changes of the catalogue record themselves.
    pub(crate) is_recorded: bool,
    collect: Collect<Q, B>,
}

impl<Q: 'static, B> Permission<Q, B> {
    /// What the decoded request says; `words` are for people.
    pub(crate) fn of(
        words: impl Into<String>,
        collect: impl for<'request> Fn(&Asking<'request, Q, B>, &mut Needs<'request>) + Send + Sync + 'static,
    ) -> Self {
        Self { words: words.into(), is_open: false, is_recorded: false, collect: Box::new(collect) }
    }

    /// Nothing: it tells about no store, or only whether the server works.
    pub(crate) fn open() -> Self {
        Self { is_open: true, ..Self::of("-", |_, _| {}) }
    }

    /// The same, recorded before it is done.
    pub(crate) fn recorded(self) -> Self {
        Self { is_recorded: true, ..self }
    }

    /// Nothing, unless the request asks for more than anybody may see.
    pub(crate) fn open_unless(
        words: impl Into<String>,
        collect: impl for<'request> Fn(&Asking<'request, Q, B>, &mut Needs<'request>) + Send + Sync + 'static,
    ) -> Self {
        Self { is_open: true, ..Self::of(words, collect) }
    }

    /// Only to be known.
    pub(crate) fn known() -> Self {
        Self::of("to be known", |_, _| {})
    }

    /// A verb on the thing in the path.
    pub(crate) fn thing(verb: Verb, area: Area) -> Self {
        Self::of(format!("{verb} {area}"), move |asking, needs| {
            needs.thing(verb, area, asking.group, asking.name);
        })
    }

    /// A write of the thing in the path, which may be conditional.
    pub(crate) fn write_of(area: Area) -> Self {
        Self::of(format!("write {area}, or cas if conditional"), move |asking, needs| {
            needs.thing(asking.write(), area, asking.group, asking.name);
        })
    }

    /// Lists things and reads them, by a prefix that the query has.
    pub(crate) fn listing(area: Area, prefix: fn(&Q) -> Option<&str>) -> Self {
        Self::of(format!("list and read {area}"), move |asking, needs| {
            let prefix = prefix(asking.query).unwrap_or_default();
            needs.prefix(Verb::List, area, asking.group, prefix);
            needs.prefix(Verb::Read, area, asking.group, prefix);
        })
    }

    /// Lists names, by a prefix that the query has.
    pub(crate) fn names(area: Area, prefix: fn(&Q) -> Option<&str>) -> Self {
        Self::of(format!("{} {area}", Verb::List), move |asking, needs| {
            needs.prefix(Verb::List, area, asking.group, prefix(asking.query).unwrap_or_default());
        })
    }

    /// A verb on the whole area in the space of the request.
    pub(crate) fn everything(verb: Verb, area: Area) -> Self {
        Self::of(format!("{verb} {area}"), move |_, needs| needs.everything(verb, area))
    }

    /// A verb on the whole store, with all its spaces.
    pub(crate) fn store(verb: Verb) -> Self {
        Self::area_of_store(verb, Area::Store)
    }

    /// A verb on an area of all spaces.
    pub(crate) fn area_of_store(verb: Verb, area: Area) -> Self {
        Self::of(format!("{verb} {area}, of every space"), move |_, needs| needs.area_of_store(verb, area))
    }

    /// Everything that the request needs: what its route does, the force of it, and the session that it is in.
    pub(crate) fn needs<'request>(&self, asking: &Asking<'request, Q, B>) -> Vec<Need<'request>> {
        let mut needs = Needs::none(asking.scope.space.as_deref().unwrap_or(DEFAULT_SPACE));
        (self.collect)(asking, &mut needs);
        if asking.scope.force {
            needs.force_from(0);
        }
        if asking.scope.session.is_some() {
            needs.everything(Verb::Session, Area::Session);
        }
        needs.into_vec()
    }
}
