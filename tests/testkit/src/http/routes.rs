//! Tracks which routes were called, and which of a list were not.

use std::collections::BTreeSet;
use std::sync::Mutex;

/// Called methods and paths, with the statuses of the answers.
#[derive(Default)]
pub struct Called {
    calls: Mutex<BTreeSet<(String, String, u16)>>,
}

/// A route: a method and a template such as `/v1/records/{name}/complete`, in which a name may contain `/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// The method, in capitals.
    pub method: String,
    /// The template.
    pub template: String,
}

impl Called {
    /// Records a call.
    pub fn note(&self, method: &str, path: &str, status: u16) {
        let path = path.split('?').next().unwrap_or_default();
        self.calls.lock().expect("no panic").insert((method.to_owned(), path.to_owned(), status));
    }

    /// The routes of a list that were never called successfully.
    pub fn missing(&self, routes: &[Route]) -> Vec<Route> {
        let calls = self.calls.lock().expect("no panic");
        let succeeded = calls.iter().filter(|(_, _, status)| *status < 400);
        let reached: BTreeSet<&Route> =
            succeeded.filter_map(|(method, path, _)| route_of(method, path, routes)).collect();
        routes.iter().filter(|route| !reached.contains(route)).cloned().collect()
    }
}

/// The route that serves a call: the most specific match.
fn route_of<'routes>(method: &str, path: &str, routes: &'routes [Route]) -> Option<&'routes Route> {
    let matching = routes.iter().filter(|route| route.method == method && route.matches(path));
    matching.max_by_key(|route| route.literal_bytes())
}

impl Route {
    fn matches(&self, path: &str) -> bool {
        matches(&self.template, path)
    }

    fn literal_bytes(&self) -> usize {
        let mut within = false;
        let literal = self.template.chars().filter(|character| {
            within = (within || *character == '{') && *character != '}';
            !within
        });
        literal.count()
    }
}

/// Whether a path matches a template; a part in braces takes at least one character.
fn matches(template: &str, path: &str) -> bool {
    let Some((before, rest)) = template.split_once('{') else {
        return template == path;
    };
    let Some(path) = path.strip_prefix(before) else {
        return false;
    };
    let after = rest.split_once('}').map_or("", |(_, after)| after);
    (1..=path.len()).any(|end| path.is_char_boundary(end) && matches(after, &path[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: &str, template: &str) -> Route {
        Route { method: method.to_owned(), template: template.to_owned() }
    }

    #[test]
    fn the_route_that_says_most_is_the_one_that_was_called() {
        let routes = [
            route("GET", "/v1/records"),
            route("GET", "/v1/records/{name}"),
            route("POST", "/v1/records/{name}/complete"),
            route("GET", "/v1/sessions/{id}/pushes"),
        ];
        let called = Called::default();
        called.note("POST", "/v1/records/a/b/complete?space=x", 200);
        assert_eq!(called.missing(&routes).len(), 3);
        called.note("GET", "/v1/records/", 404);
        called.note("GET", "/v1/records/a/complete", 404);
        assert_eq!(called.missing(&routes).len(), 3, "a refusal is not enough");
        called.note("GET", "/v1/records/a/complete", 200);
        assert_eq!(called.missing(&routes), [routes[0].clone(), routes[3].clone()]);
        assert!(!matches("/v1/records/{name}/complete", "/v1/records//complete"));
    }
}
