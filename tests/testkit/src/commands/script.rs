//! The commands, in an order in which each finds what it needs, and the exit code of each.
//!
//! Commands that depend on time are at the end. Session 1 exists from the start; `closed` is a directory that is not
//! open, `damaged` one with a wrong identity. `{target}` is the store, `{history}` its history.

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

    const fn reads(mut self, stdin: &'static str) -> Self {
        self.stdin = Some(stdin);
        self
    }

    const fn or(mut self, exit: i32) -> Self {
        self.or_exit = Some(exit);
        self
    }

    const fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    const fn goes_on(mut self) -> Self {
        self.goes_on = true;
        self
    }

    const fn refused_at_once(mut self) -> Self {
        self.refused_at_once = true;
        self
    }

    const fn not_golden(mut self) -> Self {
        self.golden = false;
        self
    }

    const fn of_server(mut self) -> Self {
        self.of_server = true;
        self
    }

    const fn loose(mut self) -> Self {
        self.loose = true;
        self
    }
}

const fn ends(line: &'static str, exit: i32) -> Step {
    Step {
        line,
        exit,
        or_exit: None,
        stdin: None,
        alone: false,
        goes_on: false,
        refused_at_once: false,
        golden: true,
        of_server: false,
        loose: false,
    }
}

const fn does(line: &'static str) -> Step {
    ends(line, 0)
}

/// Files that the commands read.
pub(super) const FILES: &[(&str, &str)] = &[
    (
        "order.json",
        r#"{"group":"order-7","if":[{"cell":"paid","absent":true}],"do":[{"op":"cell.set","name":"paid","value":true},{"op":"record.put","name":"charge","fields":{"eur":10},"type":"task"}]}"#,
    ),
    ("user.json", r#"{"name":"Ann","age":41}"#),
    ("statehouse.toml", "[server]\nlisten = \"127.0.0.1:7421\"\n"),
    ("wrong.toml", "[server]\nlissten = \"127.0.0.1:7421\"\n"),
];

/// The script.
pub(super) const STEPS: &[Step] = &[
    // Cells.
    does("cell set greeting hello"),
    does("cell set greeting '\"hello again\"' --expect 1"),
    does("cell set config/app '{\"colour\":\"blue\",\"size\":7}'"),
    does("cell set config/note -").reads("two\nlines"),
    does("cell set config/user @user.json"),
    does("cell set config/five 5 --text"),
    does("cell get greeting"),
    does("cell get config/note"),
    ends("cell get nobody", 3),
    does("cell init retries 0"),
    does("cell init retries 9"),
    does("cell cas leader absent worker-1"),
    ends("cell cas leader absent worker-2", 4),
    ends("cell cas leader 9 worker-2", 4),
    ends("cell cas leader soon worker-2", 2).refused_at_once(),
    ends("cell set greeting", 2).refused_at_once(),
    ends("cell set '' nothing", 2),
    does("cell ls"),
    does("cell ls config/ --limit 2"),
    does("cell ls nothing/"),
    does("cell history greeting"),
    does("cell at greeting 1"),
    ends("cell at greeting soon", 2),
    ends("cell del leader --expect 9", 4),
    does("cell del leader --expect 1"),
    ends("cell del leader", 3),
    does("cell watch config/ --from 0 --limit 2").goes_on(),
    ends("cell get greeting --url http://127.0.0.1:1", 5),
    ends("cell get greeting --url https://127.0.0.1:1", 2),
    ends("cell get greeting --data no-such-directory", 3),
    ends("cell get greeting --data damaged", 5),
    ends("cell get greeting --space nowhere", 3),
    // Records.
    does("rec set users.7 @user.json"),
    does("rec set users.8 name=Bob age=17 --ttl 1h --expect absent"),
    ends("rec set users.8 name=Bob --expect absent", 4),
    does("rec get users.7"),
    ends("rec get users.9", 3),
    does("rec patch users.7 email=ann@example.org --unset age --expect name=Ann"),
    ends("rec patch users.7 email=eve@example.org --expect name=Eve", 4),
    does("rec incr users.8 visits 5"),
    does("rec scan users. --where 'age>=17' --where 'name exists'"),
    does("rec scan users."),
    ends("rec scan users. --where age", 2),
    does("rec ttl users.7"),
    does("rec ttl users.7 2h"),
    ends("rec del users.8", 2),
    does("rec del users.8 --yes"),
    does("rec type"),
    does("rec type mail. '{\"name\":\"mail\",\"attempts_max\":2,\"lease\":\"1h\"}'"),
    does("rec type mail."),
    ends("rec type nothing.", 3),
    does("rec set jobs.1 to=ann@example.org --type task"),
    does("rec set jobs.2 to=bob@example.org --type task"),
    does("why job jobs.1"),
    does("rec count"),
    does("rec claim jobs. --worker w1 --lease 1h"),
    does("why job jobs.1"),
    does("rec step jobs.1 1 state=running progress=40"),
    does("rec extend jobs.1 1 --lease 2h"),
    does("rec complete jobs.1 1 result=sent"),
    ends("rec complete jobs.1 1 result=sent", 4),
    does("why job jobs.1"),
    does("rec claim --name jobs.2 --worker w2"),
    does("rec release jobs.2 1"),
    ends("rec claim nothing.", 3),
    does("rec watch jobs. --from 0 --limit 3").goes_on(),
    does("why job users.7"),
    ends("why job users.8", 3),
    // Runs.
    does("run append order-7 RunStarted --idempotency-key start --emitted-at 2026-11-15T10:00:00Z"),
    does("run append order-7 RunStarted --idempotency-key start --emitted-at 2026-11-15T10:00:00Z"),
    does("run append order-7 StepStarted --step charge --attempt 1 --expect 1"),
    ends("run append order-7 Noted --expect 1", 4),
    does("run append order-7 Noted '{\"eur\":10}' --type shop"),
    does("run show order-7"),
    ends("run show nobody", 3),
    does("run tail order-7").goes_on(),
    does("run tail order-7 --after 1 --follow --limit 1").goes_on(),
    does("run ls"),
    does("run ls --status RUNNING --stuck 1h"),
    ends("run ls --status ODD", 2),
    does("run verify order-7"),
    does("why run order-7"),
    ends("why run nobody", 3),
    does("run fork order-7 2 order-7-again"),
    does("run close order-7-again --group order-7"),
    ends("run append order-7-again Noted --group order-7", 4),
    ends("run del order-7-again --group order-7", 2),
    does("run del order-7-again --group order-7 --yes"),
    // One commit over a group.
    does("txn -f order.json"),
    ends("txn -f order.json", 4),
    ends("txn -f no-such-file", 2),
    does("txn --group order-8 -f -").reads("{\"do\":[{\"op\":\"cell.set\",\"name\":\"paid\",\"value\":false}]}"),
    does("cell get paid --group order-7"),
    // Things in groups.
    does("cell ls paid"),
    does("cell ls paid --limit 1"),
    does("cell ls --group order-8"),
    ends("cell ls --after 'paid%'", 2),
    ends("cell get paid", 3),
    does("rec scan charge"),
    does("rec count --group order-7"),
    does("why job charge"),
    does("rec set charge eur=5 --type task"),
    does("why job charge"),
    does("why job charge --group order-7"),
    ends("why job charge --group order-8", 3),
    does("run append audit RunStarted --idempotency-key a --emitted-at 2026-11-15T10:00:00Z --group order-7"),
    does("run ls"),
    does("run ls a --limit 1"),
    does("run ls --group order-7"),
    does("run ls --status RUNNING"),
    ends("run ls --cursor nonsense", 2),
    does("why run audit"),
    ends("why run order-7-again", 3),
    // Guarded groups.
    does("guard set agents. --open inbox"),
    does("guard ls"),
    ends("guard set _statehouse", 2),
    ends("cell set step 1 --group agents.7", 4),
    does("cell set inbox.1 hello --group agents.7"),
    does("group owner agents.7"),
    does("group own agents.7 --worker w1 --lease 1h"),
    ends("group own agents.7 --worker w2", 4),
    ends("group own agents.7 --worker w2 --wait 200ms", 4),
    does("group owner agents.7"),
    does("group extend 'agents.7#1#h{history}' --lease 2h"),
    ends("group extend 'agents.7#1' --lease 2h", 2).refused_at_once(),
    does("cell set step 1 --group agents.7 --owner 'agents.7#1#h{history}'"),
    ends("cell set step 1 --group agents.8 --owner 'agents.7#1#h{history}'", 2),
    ends("cell set step 1 --group agents.7 --owner nonsense", 2),
    ends("cell get step --group agents.7 --owner 'agents.7#1#h{history}'", 2),
    does("rec set job to=ann@example.org --type task --group agents.7 --owner 'agents.7#1#h{history}'"),
    ends("rec claim --name job --group agents.7", 4),
    does("group own agents.7 --worker w2 --lease 1h --force"),
    ends("cell set step 2 --group agents.7 --owner 'agents.7#1#h{history}'", 4),
    does("cell set step 3 --group agents.7 --force"),
    does("group release 'agents.7#2#h{history}'"),
    ends("group release 'agents.7#2#h{history}'", 4),
    ends("guard rm agents.", 2),
    does("guard rm agents. --yes"),
    ends("guard rm agents. --yes", 3),
    does("cell set step 4 --group agents.7"),
    // Sessions.
    does("session ls").of_server(),
    does("session show s-1").of_server(),
    does("why session s-1").of_server(),
    ends("session kill s-1", 2),
    ends("session kill s-1 --yes", 6),
    ends("session kill s-1 --force", 2),
    does("session kill s-1 --force --yes"),
    ends("session kill s-1 --force --yes", 3),
    ends("session show s-99", 3),
    ends("why session s-99", 3),
    // Changes.
    does("watch config/ --from 0 --limit 1").goes_on(),
    does("watch config/ --from 0 --limit 1 --exec true").goes_on(),
    ends("watch config/ --from 0 --limit 1 --exec false", 1).goes_on().refused_at_once(),
    // Spaces and branches.
    does("space create shop"),
    ends("space create shop", 4),
    does("space ls"),
    does("space retention shop --versions 5"),
    does("space retention shop"),
    does("space usage shop"),
    does("branch create trial"),
    does("branch ls"),
    does("cell set greeting changed --branch trial"),
    does("cell get greeting --branch trial"),
    ends("branch rm trial", 2),
    does("branch rm trial --yes"),
    ends("branch rm trial --yes", 3),
    // Contexts.
    does("ctx ls").alone(),
    does("ctx add here {target}").alone(),
    does("ctx add there http://127.0.0.1:1").alone(),
    ends("ctx add nowhere no-such-directory", 3).alone(),
    does("ctx ls").alone(),
    does("ctx use there").alone(),
    ends("cell ls", 5).alone(),
    does("ctx use here").alone(),
    ends("ctx use nobody", 3).alone(),
    does("ctx check").alone(),
    ends("ctx check there", 5).alone(),
    does("cell get greeting --context here").alone(),
    does("explain SH-1003").alone().not_golden(),
    does("explain 4002").alone().not_golden(),
    ends("explain SH-0000", 3).alone(),
    // Settings.
    does("config init").alone().not_golden(),
    does("config init --to made.toml").alone(),
    ends("config init --to made.toml", 4).alone(),
    does("config check --config statehouse.toml").alone(),
    ends("config check --config wrong.toml", 2).alone(),
    does("config show --origins --config statehouse.toml").alone().not_golden(),
    // Status.
    does("status").or(7).not_golden(),
    ends("status --url http://127.0.0.1:1", 5),
    does("info"),
    does("version"),
    does("check health"),
    does("check disk").loose(),
    does("check clock").of_server().loose(),
    does("check all").not_golden(),
    does("check perf --seconds 1").or(7).not_golden(),
    does("bench get --rate 50 --duration 500ms --callers 2").not_golden(),
    does("bench set --rate 50 --duration 500ms --callers 2").not_golden(),
    does("bench append --rate 50 --duration 500ms --callers 2").not_golden(),
    does("bench claim --rate 50 --duration 500ms --callers 2").not_golden(),
    does("bench mixed --rate 50 --duration 500ms --callers 2 --hdr").not_golden(),
    ends("bench get --rate 0", 2),
    does("doctor closed").alone().loose(),
    ends("doctor damaged", 7).alone().loose(),
    ends("doctor no-such-directory", 3).alone(),
    does("completions bash").alone().not_golden(),
    // All of it, there and back.
    does("backup create monday.shbackup").loose(),
    does("backup verify monday.shbackup").alone().loose(),
    ends("backup verify user.json", 7).alone().loose(),
    does("backup restore monday.shbackup restored").alone().loose(),
    does("export monday.jsonl").loose(),
    does("import monday.jsonl --data imported").alone().loose(),
    // Commands that depend on time.
    does("rec claim jobs. --worker w1"),
    does("rec fail jobs.2 2 --error 'mail server is down'"),
    does("why job jobs.2"),
    ends("nonsense", 2).refused_at_once(),
];
