//! Problems with dead letters: that there are some, and that no more can be kept.
//!
//! Touches: nothing.

use contract::limits::{DEAD_LETTERS_MAX, DEAD_LETTERS_OF_SPACE_MAX};
use contract::shell::Suggested;
use statehouse::Overview;

use super::trouble::{Severity, Trouble, in_place, number};

/// At most this many spaces are named.
const SPACES_NAMED_MAX: usize = 5;

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
        command: ls_first(overview),
    })
}

/// Lists the branch of one of them: without a flag, a list is of the first branch of the first space.
fn ls_first(overview: &Overview) -> Suggested {
    let command = Suggested::new(["statehouse", "letter", "ls"]);
    match &overview.dead_letters.first {
        Some((space, branch)) => in_place(command, space, branch),
        None => command,
    }
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
    let of_space = |space: &String| {
        let (count, max) = (u64::from(DEAD_LETTERS_OF_SPACE_MAX), DEAD_LETTERS_OF_SPACE_MAX);
        trouble(format!("space {space}"), "dead_letters_of_space_max", count, max, ls_in(space))
    };
    let mut found: Vec<_> = overview.dead_letters.full_spaces.iter().take(SPACES_NAMED_MAX).map(of_space).collect();
    let dead = u64::try_from(overview.messages.dead).unwrap_or(0);
    if dead >= u64::from(DEAD_LETTERS_MAX) {
        found.insert(0, trouble("messages".into(), "dead_letters_max", dead, DEAD_LETTERS_MAX, ls_first(overview)));
    }
    found
}

fn ls_in(space: &str) -> Suggested {
    Suggested::new(["statehouse", "letter", "ls"]).flag("--space", space)
}

#[cfg(test)]
mod tests {
    use contract::catalogue::{DEFAULT_SPACE, MAIN_BRANCH};

    use super::*;

    #[test]
    fn a_limit_that_is_reached_is_a_problem_of_the_shard_or_of_a_space() {
        let mut overview = Overview::default();
        assert_eq!(refused_messages(&overview), None);
        overview.messages.dead = i64::from(DEAD_LETTERS_MAX) - 1;
        assert_eq!(full(&overview), []);
        overview.messages.dead += 1;
        overview.dead_letters.full_spaces.push("tests".into());
        let found = full(&overview);
        let objects: Vec<_> = found.iter().map(|trouble| (trouble.object.as_str(), trouble.command.shell())).collect();
        let shard = ("messages", "statehouse letter ls".to_owned());
        assert_eq!(objects, [shard, ("space tests", "statehouse letter ls --space=tests".to_owned())]);
    }

    #[test]
    fn the_command_lists_where_a_dead_letter_is() {
        let mut overview = Overview::default();
        overview.messages.dead = 1;
        let main = (DEFAULT_SPACE.to_owned(), MAIN_BRANCH.to_owned());
        for (first, flags) in [
            (None, ""),
            (Some(main), ""),
            (Some(("tests".to_owned(), MAIN_BRANCH.to_owned())), " --space=tests"),
            (Some(("tests".to_owned(), "draft".to_owned())), " --space=tests --branch=draft"),
        ] {
            overview.dead_letters.first = first;
            let trouble = refused_messages(&overview).expect("there is one");
            assert_eq!(trouble.command.shell(), format!("statehouse letter ls{flags}"));
        }
    }
}
