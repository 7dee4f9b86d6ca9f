//! The shell blocks of a Markdown page.

/// One part of a page to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The page's line where the commands start, from 1.
    pub line: usize,
    /// The commands.
    pub commands: String,
    /// The output that a `console` block shows, if it shows any.
    pub prints: Option<Vec<String>>,
}

/// The parts of a page to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// In order.
    pub steps: Vec<Step>,
    /// Skipped blocks: their lines and the reasons.
    pub not_run: Vec<(usize, String)>,
}

/// Finds the shell blocks of a page. The error names a block that nothing would run.
pub fn of(page: &str) -> Result<Blocks, String> {
    let mut blocks = Blocks::default();
    let mut reason = None;
    let mut lines = page.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            if !line.trim().is_empty() {
                reason = reason_in(line);
            }
            continue;
        };
        let inside = lines.by_ref().take_while(|(line, _)| line.trim() != "```");
        let inside: Vec<_> = inside.map(|(line, number)| (number, line)).collect();
        let reason = reason.take();
        match (language.trim(), reason) {
            ("sh" | "console", Some(reason)) => blocks.not_run.push((number, reason)),
            ("sh", None) => blocks.steps.push(script(number + 1, &inside)),
            ("console", None) => {
                blocks.steps.extend(dialogue(&inside).map_err(|wrong| format!("line {number}: {wrong}"))?)
            }
            ("bash" | "shell" | "zsh", _) => return Err(format!("line {number}: a shell block is `sh` or `console`")),
            _ => {}
        }
    }
    Ok(blocks)
}

/// `<!-- not run: REASON -->`.
fn reason_in(line: &str) -> Option<String> {
    let reason = line.trim().strip_prefix("<!-- not run:")?.strip_suffix("-->")?;
    Some(reason.trim().to_owned())
}

fn script(line: usize, inside: &[(usize, &str)]) -> Step {
    let commands = inside.iter().flat_map(|(_, line)| [line, "\n"]).collect();
    Step { line, commands, prints: None }
}

/// Commands start with `$ ` and continue where a line ends with a backslash, or is inside an open quote.
fn dialogue(inside: &[(usize, &str)]) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for (number, line) in inside {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { line: *number, commands: format!("{command}\n"), prints: None });
            goes_on = is_open(command);
            continue;
        }
        let Some(step) = steps.last_mut() else {
            return Err("a console block begins with a command, `$ ...`".into());
        };
        if goes_on {
            step.commands += &format!("{line}\n");
            goes_on = is_open(&step.commands);
        } else {
            step.prints.get_or_insert_default().push((*line).to_owned());
        }
    }
    Ok(steps)
}

/// Whether a command is not at its end: a backslash is last, or a quote was not closed.
fn is_open(command: &str) -> bool {
    let mut quote = None;
    let mut characters = command.trim_end_matches('\n').chars().peekable();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None | Some('"'), '\\') if characters.next().is_none() => return true,
            _ => {}
        }
    }
    quote.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(line: usize, commands: &str, prints: Option<&[&str]>) -> Step {
        let prints = prints.map(|lines| lines.iter().map(ToString::to_string).collect());
        Step { line, commands: commands.into(), prints }
    }

    #[test]
    fn scripts_and_dialogues_are_found_with_their_lines() {
        let page = "# A\n```sh\none\ntwo\n```\n```json\n{}\n```\n```console\n$ three\n3\n…\n$ four\n```\n";
        let blocks = of(page).expect("a page");
        let expected = [step(3, "one\ntwo\n", None), step(10, "three\n", Some(&["3", "…"])), step(13, "four\n", None)];
        assert_eq!(blocks, Blocks { steps: expected.into(), not_run: Vec::new() });
    }

    #[test]
    fn a_command_goes_on_behind_a_backslash_and_inside_quotes() {
        let page = "```console\n$ a \\\n  b\nout\n$ c '{\n}' \"\\\"x\"\nmore\n```\n";
        let expected = [step(2, "a \\\n  b\n", Some(&["out"])), step(5, "c '{\n}' \"\\\"x\"\n", Some(&["more"]))];
        assert_eq!(of(page).expect("a page").steps, expected);
    }

    #[test]
    fn a_reason_leaves_out_the_next_block_only() {
        let page = "<!-- not run: takes minutes -->\n\n```sh\na\n```\n```sh\nb\n```\n<!-- not run: x -->\nText\n```sh\nc\n```\n";
        let blocks = of(page).expect("a page");
        assert_eq!(blocks.not_run, [(3, "takes minutes".to_owned())]);
        assert_eq!(blocks.steps, [step(7, "b\n", None), step(12, "c\n", None)]);
    }

    #[test]
    fn a_block_that_nobody_would_run_is_an_error() {
        assert!(of("```bash\nls\n```\n").is_err());
        assert!(of("```console\nls\n```\n").is_err());
    }
}
