//! What a path means, and which routes take a session.

use super::*;

#[test]
fn every_write_in_a_branch_can_be_numbered() {
    for route in ALL {
        let writes = route.method != Method::Get && route.scope >= Scope::Branch;
        // A request of a user's machine has its number already: it is a request of the session in its path.
        // A checkpoint is no command of the store, and a restore is many: sent again, it begins again.
        let expected = writes && !matches!(*route, SESSIONS_REQUEST | KEYED_CHECKPOINT | KEYED_RESTORE);
        // A command of the state primitive names its branch itself.
        assert_eq!(route.numbered, expected || *route == STATE_COMMAND, "{}", route.name);
    }
}

#[test]
fn a_path_has_a_part_for_each_parameter() {
    let found = |method: &str, path: &'static str| match find(method, path) {
        Found::Route(place, parts) => Some((ALL[place].name, parts.first(), parts.rest().to_vec())),
        _ => None,
    };
    assert_eq!(found("GET", "/v1/maps/m%2Fn/keys/a/b"), Some(("maps.get_key", "m%2Fn", vec!["a/b"])));
    assert_eq!(found("GET", "/v1/maps/m/keys"), Some(("maps.scan", "m", vec![])));
    assert_eq!(found("GET", "/v1/maps/m/keys/"), Some(("maps.get_key", "m", vec![""])));
    assert_eq!(found("GET", "/v1/keyed/w/3/keys/k/"), Some(("keyed.get_key", "w", vec!["3", "k/"])));
    assert_eq!(found("POST", "/v1/keyed/w/3/commits"), Some(("keyed.commit", "w", vec!["3"])));
    assert_eq!(found("GET", "/v1/keyed/w"), Some(("keyed.partitions", "w", vec![])));
    for nothing in ["/v1/keyed/w/3/", "/v1/keyed//3", "/v1/maps//keys", "/v1/maps/m/n", "/v1/keyed/w/3/x"] {
        assert_eq!(found("GET", nothing), None, "{nothing}");
    }
}

#[test]
fn only_the_last_parameter_of_a_path_may_contain_a_slash() {
    for route in ALL {
        let Pattern { parameters, .. } = Pattern::new(route.path);
        assert!(parameters.len() <= PARTS_MAX, "{}", route.name);
        let earlier = parameters.split_last().map_or(&[][..], |(_, earlier)| earlier);
        assert!(earlier.iter().all(|(spanning, until)| !spanning && until.starts_with('/')), "{}", route.name);
    }
}
