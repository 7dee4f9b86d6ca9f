//! The leaves of the command tree, with their arguments for names and the flags that take a value, parsed from their help texts.

use std::path::Path;

use testkit::commands::help;

/// Servers, which do not end by themselves; they are tested separately.
const LEFT_OUT: &[&str] = &["dev", "serve"];

/// Flags that would run their value, select the store or set the format. `--exec` is tested separately.
const FLAGS_LEFT_OUT: &[&str] = &[
    "--exec",
    "--output",
    "--color",
    "--timeout",
    "--for",
    "--duration",
    "--rate",
    "--seconds",
    "--callers",
    "--scratch",
    "--wait",
];

/// Flags that make a command end soon, if it has them.
const SOON: &[(&str, &str)] = &[("--for", "20ms"), ("--duration", "50ms"), ("--rate", "20"), ("--seconds", "1")];

/// A command.
pub(super) struct Leaf {
    path: Vec<String>,
    /// Arguments without a flag.
    pub(super) places: usize,
    /// Flags with a value.
    pub(super) flags: Vec<String>,
    soon: Vec<String>,
}

impl Leaf {
    /// A command line with names in its places, and one flag.
    pub(super) fn line(&self, names: &[String], flag: Option<(&str, &str)>) -> Vec<String> {
        let mut line = self.path.clone();
        line.extend(self.soon.iter().cloned());
        line.extend(flag.map(|(flag, name)| format!("{flag}={name}")));
        if !names.is_empty() {
            line.push("--".to_owned());
            line.extend(names.iter().cloned());
        }
        line
    }
}

/// All of them.
pub(super) fn all(statehouse: &Path) -> Vec<Leaf> {
    let (mut leaves, mut left) = (Vec::new(), vec![Vec::<String>::new()]);
    while let Some(path) = left.pop() {
        if path.first().is_some_and(|noun| LEFT_OUT.contains(&noun.as_str())) {
            continue;
        }
        let help = help(statehouse, &path);
        let commands = help.split_once("Commands:\n").map_or("", |(_, commands)| commands);
        let commands = commands.lines().take_while(|line| line.starts_with("  "));
        let verbs = commands.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
        let verbs: Vec<_> = verbs.map(|verb| [&path[..], &[verb.to_owned()]].concat()).collect();
        if verbs.is_empty() {
            leaves.push(leaf(path, &help));
        }
        left.extend(verbs);
    }
    leaves
}

fn leaf(path: Vec<String>, help: &str) -> Leaf {
    let usage = help.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or_default();
    let words = usage.split_whitespace().filter(|word| word.starts_with('<') || word.starts_with('['));
    let places = words.filter(|word| !word.contains("OPTIONS") && !word.contains("--")).count();
    let with_value = |line: &str| {
        let flag = line.split_whitespace().find(|word| word.starts_with("--"))?;
        line.contains(&format!("{flag} <")).then(|| flag.to_owned())
    };
    let all: Vec<String> = help.lines().filter(|line| line.starts_with("  ")).filter_map(with_value).collect();
    let soon = SOON.iter().filter(|(flag, _)| all.iter().any(|known| known == flag));
    // Another flag makes a list refresh.
    let soon = soon.filter(|(flag, _)| *flag != "--for" || !help.contains("--watch"));
    let soon = soon.map(|(flag, value)| format!("{flag}={value}")).collect();
    let flags = all.into_iter().filter(|flag| !FLAGS_LEFT_OUT.contains(&flag.as_str())).collect();
    Leaf { path, places, flags, soon }
}
