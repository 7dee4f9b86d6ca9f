//! Problems with dead letters: that there are some, and that no more can be kept.
//!
//! Touches: nothing.

use contract::limits::{DEAD_LETTERS_MAX, DEAD_LETTERS_OF_SPACE_MAX};
use contract::shell::Suggested;
use statehouse::Overview;

use super::problems::{Severity, Trouble, number};

/// What they would have written is missing until somebody sends them again.
pub(super) fn refused_messages(overview: &Overview) -> Option<Trouble> {
    let dead = u64::try_from(overview.messages.dead).unwrap_or(0);
    (dead > 0).then(|| Trouble {
        problem: "messages_refused",
        severity: Severity::Warning,
        object: "messages".into(),
        text: format!(
            "{dead} were refused by their groups, and have done nothing: send them again, or drop them; each is dropped after a week"
        ),
        number: number(dead),
        threshold: 0.0,
        unit: "messages",
        command: Suggested::new(["statehouse", "letter", "ls"]),
    })
}

/// No more can be kept: those of the shard, or of some spaces. What is refused from now on is lost.
pub(super) fn full(overview: &Overview) -> Vec<Trouble> {
    let lost = "what a group refuses from now on is lost: send dead letters again, or drop them";
    let trouble = |object: String, limit: &str, count: u64, max: u32, command: Suggested| Trouble {
        problem: "dead_letters_full",
        severity: Severity::Critical,
        object,
        text: format!("as many dead letters are kept as {limit} says, and {lost}"),
        number: number(count),
        threshold: number(max.into()),
        unit: "dead letters",
        command,
    };
    let ls = || Suggested::new(["statehouse", "letter", "ls"]);
    let of_space = |space: &String| {
        let (count, max) = (DEAD_LETTERS_OF_SPACE_MAX.into(), DEAD_LETTERS_OF_SPACE_MAX);
        trouble(format!("space {space}"), "dead_letters_of_space_max", count, max, ls().flag("--space", space))
    };
    let mut found: Vec<_> = overview.dead_letters.full_spaces.iter().take(SPACES_NAMED_MAX).map(of_space).collect();
    let dead = u64::try_from(overview.messages.dead).unwrap_or(0);
    if dead >= DEAD_LETTERS_MAX.into() {
        found.insert(0, trouble("messages".into(), "dead_letters_max", dead, DEAD_LETTERS_MAX, ls()));
    }
    found
}

/// At most this many spaces are named.
const SPACES_NAMED_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_reached_is_a_problem_of_the_shard_or_of_a_space() {
        let mut overview = Overview::default();
        overview.messages.dead = i64::from(DEAD_LETTERS_MAX) - 1;
        assert_eq!(full(&overview), []);
        overview.messages.dead += 1;
        overview.dead_letters.full_spaces.push("tests".into());
        let found = full(&overview);
        let objects: Vec<_> = found.iter().map(|trouble| (trouble.object.as_str(), trouble.command.shell())).collect();
        let shard = ("messages", "statehouse letter ls".to_owned());
        assert_eq!(objects, [shard, ("space tests", "statehouse letter ls --space tests".to_owned())]);
    }
}
