//! Layers, origins and error messages.

use super::*;

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn in_file(text: &str) -> Result<Effective, ConfigError> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.toml");
    std::fs::write(&path, text).expect("written");
    let gathered = Effective::gather(Some(&path), [], []);
    gathered.map_err(|error| ConfigError(error.0.replace(&path.display().to_string(), "s.toml")))
}

#[test]
fn the_defaults_are_the_limits_of_the_server() {
    let effective = Effective::gather(None, [], []).expect("the defaults hold");
    assert_eq!(effective.limits(), ServerLimits::default());
    assert_eq!((effective.memory_bytes(), effective.data()), (None, None));
    assert_eq!(effective.disk_low(), (10, 2 << 30));
}

#[test]
fn every_layer_covers_the_one_before_and_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.toml");
    let text = "log = \"warn\"\n[limits]\nconnections_max = 7\nheaders_max = 8\nbody_bytes_max = \"1MiB\"\n";
    std::fs::write(&path, text).expect("written");
    let environment =
        variables(&[("STATEHOUSE_LIMITS__HEADERS_MAX", "9"), ("STATEHOUSE_LOG", "debug"), ("PATH", "/bin")]);
    let flags = [("--log", "log", "trace".to_owned())];
    let effective = Effective::gather(Some(&path), environment, flags).expect("a configuration");
    let limits = effective.limits();
    assert_eq!((limits.connections_max, limits.headers_max, limits.body_bytes_max), (7, 9, 1 << 20));
    assert_eq!(effective.log(), "trace");
    let origin = |key: &str| effective.rows().find(|row| row.0 == key).map(|row| row.2.to_string()).expect("a row");
    assert_eq!(origin("limits.connections_max"), format!("{}:3", path.display()));
    assert_eq!(origin("limits.headers_max"), "environment STATEHOUSE_LIMITS__HEADERS_MAX");
    assert_eq!(origin("log"), "flag --log");
    assert_eq!(origin("limits.url_bytes_max"), "default");
}

#[test]
fn mistakes_in_a_file_are_pointed_at() {
    let unknown = in_file("[limits]\nconections_max = 7\n").expect_err("unknown");
    assert_eq!(
        unknown.to_string(),
        "s.toml:2:1: limits.conections_max is not a setting; did you mean limits.connections_max?\n  |\n\
         2 | conections_max = 7\n  | ^^^^^^^^^^^^^^"
    );
    let wrong = in_file("[limits]\nhead_time_max = \"10 years\"\n").expect_err("no time");
    assert_eq!(
        wrong.to_string(),
        "s.toml:2:17: limits.head_time_max: \"10 years\" is not a duration, such as 500ms, 30s, 10m, 2h or 7d\n  |\n\
         2 | head_time_max = \"10 years\"\n  |                 ^^^^^^^^^^"
    );
    let kind = in_file("log = true\n").expect_err("no text").to_string();
    assert!(kind.starts_with("s.toml:1:7: log cannot be of type boolean\n"), "{kind}");
    let text = in_file("[limits]\nheaders_max = \"64\"\n").expect_err("a number in quotes").to_string();
    assert!(text.starts_with("s.toml:2:15: limits.headers_max takes a number, not the text \"64\"\n"), "{text}");
    let table = in_file("[limit]\nheaders_max = 64\n").expect_err("no table").to_string();
    assert!(table.starts_with("s.toml:1:2: limit is not a setting"), "{table}");
    let syntax = in_file("log = \n").expect_err("no TOML").to_string();
    assert!(syntax.starts_with("s.toml:1:7: "), "{syntax}");
    let missing = Effective::gather(Some(Path::new("/nowhere/s.toml")), [], []).expect_err("no file").to_string();
    assert!(missing.starts_with("cannot read /nowhere/s.toml: "), "{missing}");
}

#[test]
fn hosts_are_a_list_in_a_file_and_have_commas_elsewhere() {
    let names = |effective: Effective| effective.hosts().names().join(" ");
    let file = in_file("[server]\nhosts = [\"a.internal\", \"b\"]\n").expect("a list");
    assert_eq!(names(file), "a.internal b");
    let variable = Effective::gather(None, variables(&[("STATEHOUSE_SERVER__HOSTS", "a.internal, b")]), []);
    assert_eq!(names(variable.expect("names")), "a.internal b");
    let port = in_file("[server]\nhosts = [\"a:1\"]\n").expect_err("a port").to_string();
    assert!(port.starts_with("s.toml:2:9: server.hosts: \"a:1\" is not a list of host names"), "{port}");
    let number = in_file("[server]\nhosts = [1]\n").expect_err("a number").to_string();
    assert!(number.starts_with("s.toml:2:9: server.hosts takes a list of quoted names\n"), "{number}");
}

#[test]
fn mistakes_in_the_environment_are_named() {
    let said = |name: &str, value: &str| {
        Effective::gather(None, variables(&[(name, value)]), []).expect_err("a mistake").to_string()
    };
    assert_eq!(
        said("STATEHOUSE_LISTEN", "127.0.0.1:1"),
        "environment variable STATEHOUSE_LISTEN is not a setting; did you mean STATEHOUSE_SERVER__LISTEN?"
    );
    assert_eq!(
        said("STATEHOUSE_LIMITS__CONECTIONS_MAX", "1"),
        "environment variable STATEHOUSE_LIMITS__CONECTIONS_MAX is not a setting; did you mean STATEHOUSE_LIMITS__CONNECTIONS_MAX?"
    );
    assert_eq!(
        said("STATEHOUSE_LIMITS__CONNECTIONS_MAX", "0"),
        "STATEHOUSE_LIMITS__CONNECTIONS_MAX: \"0\" is not a whole number above 0"
    );
    assert!(said("STATEHOUSE_QQQQQQ", "").contains("config init"));
    assert!(Effective::gather(None, variables(&[("STATEHOUSE_URL", "http://x")]), []).is_ok(), "not a server's");
}

#[test]
fn the_template_is_a_file_that_changes_nothing() {
    let text = template();
    assert_eq!(in_file(&text).expect("a configuration").limits(), ServerLimits::default());
    let lines = text.lines().map(|line| line.strip_prefix("# ").filter(|line| line.contains(" = ")).unwrap_or(line));
    let uncommented: Vec<_> = lines.filter(|line| !line.ends_with("\"\"")).collect();
    let effective = in_file(&uncommented.join("\n")).expect("every default is a value");
    let from_file = effective.rows().filter(|row| matches!(row.2, Origin::File(..))).count();
    // No host is a default that a file can say.
    let said = SETTINGS
        .iter()
        .filter(|setting| !setting.default.is_empty() || matches!(setting.kind, Kind::Hosts | Kind::Origins));
    assert_eq!(from_file, said.count());
    assert_eq!(effective.limits(), ServerLimits::default());
}
