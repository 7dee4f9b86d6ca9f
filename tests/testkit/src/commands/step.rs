//! One command of the script: its words, what it reads, how it must end, and what of its output is compared.

/// One command.
pub(super) struct Step {
    /// Its words, as a shell would read them; `'` quotes.
    pub(super) line: &'static str,
    /// Its required exit code.
    pub(super) exit: i32,
    /// An alternative exit code: a verdict on the speed of this machine.
    pub(super) or_exit: Option<i32>,
    /// Its stdin; closed by default.
    pub(super) stdin: Option<&'static str>,
    /// Whether the environment does not name the store.
    pub(super) alone: bool,
    /// Whether it goes to the server that asks for a token, with the token of its first administrator.
    pub(super) guarded: bool,
    /// Whether it prints one document for each thing it sees, not one for all.
    pub(super) goes_on: bool,
    /// Whether the command line itself refuses it, in words.
    pub(super) refused_at_once: bool,
    /// Whether its table is compared with the golden one.
    pub(super) golden: bool,
    /// Whether its output differs for a directory, where clients are never connected.
    pub(super) of_server: bool,
    /// Whether its numbers differ from run to run.
    pub(super) loose: bool,
}

impl Step {
    pub(super) fn words(&self) -> Vec<String> {
        let (mut words, mut word, mut quoted, mut begun) = (Vec::new(), String::new(), false, false);
        for letter in self.line.chars() {
            match letter {
                '\'' => (quoted, begun) = (!quoted, true),
                ' ' if !quoted => {
                    if begun {
                        words.push(std::mem::take(&mut word));
                    }
                    begun = false;
                }
                _ => {
                    word.push(letter);
                    begun = true;
                }
            }
        }
        if begun {
            words.push(word);
        }
        words
    }

    pub(super) const fn reads(mut self, stdin: &'static str) -> Self {
        self.stdin = Some(stdin);
        self
    }

    pub(super) const fn or(mut self, exit: i32) -> Self {
        self.or_exit = Some(exit);
        self
    }

    pub(super) const fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    pub(super) const fn guarded(mut self) -> Self {
        self.guarded = true;
        self
    }

    pub(super) const fn goes_on(mut self) -> Self {
        self.goes_on = true;
        self
    }

    pub(super) const fn refused_at_once(mut self) -> Self {
        self.refused_at_once = true;
        self
    }

    pub(super) const fn not_golden(mut self) -> Self {
        self.golden = false;
        self
    }

    pub(super) const fn of_server(mut self) -> Self {
        self.of_server = true;
        self
    }

    pub(super) const fn loose(mut self) -> Self {
        self.loose = true;
        self
    }
}

/// A command that ends with an exit code.
pub(super) const fn ends(line: &'static str, exit: i32) -> Step {
    Step {
        line,
        exit,
        or_exit: None,
        stdin: None,
        alone: false,
        guarded: false,
        goes_on: false,
        refused_at_once: false,
        golden: true,
        of_server: false,
        loose: false,
    }
}

/// A command that succeeds.
pub(super) const fn does(line: &'static str) -> Step {
    ends(line, 0)
}
