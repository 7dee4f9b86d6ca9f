//! The contracts' suites over HTTP, through the typed client: each check gets its own server process and directory.

use std::collections::BTreeMap;
use std::time::Duration;

use client::{Client, ClientOptions};
use contract::records::state_store::{PortableRecord, PortableScan, ScanFilter, StateStore};
use contract::runs::{AppendResult, NewEvent, RunSnapshot, RunStateStore, StoredEvent};
use contract::sessions::{PushedRequest, SessionCredentials, SessionStore};
use contract::{
    AsOf, Cells, Deleted, Error, Expected, History, HistoryPage, Initialised, ListPage, Listed, Moment, Swapped, Value,
    Versioned, Written,
};
use statehouse::sessions::UserMachine;
use tempfile::TempDir;
use testkit::arguments::Arguments;
use testkit::http::block_on;
use testkit::http::cells::HttpCells;
use testkit::http::records::HttpRecords;
use testkit::http::runs::HttpRuns;
use testkit::http::sessions::HttpSessions;
use testkit::report::Report;
use testkit::server_process::{Launch, ServerProcess, binary};

use super::tally_machine::TallyMachine;
use crate::directories::fast_directory;

/// `sim http-suites [--only SUITE]`. A failing suite panics with the broken duty.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let statehouse = binary();
    let serve = |directory: &TempDir| Launch::serve(&statehouse, directory.path().join("house"));
    let this = std::env::current_exe().expect("the path of this program");
    let host = |directory: &TempDir| {
        Launch::program(&this).arguments(["serve-machine", "--data"]).argument(directory.path().join("house"))
    };

    let mut passed = Vec::new();
    let mut suite = |name: &'static str, run: &dyn Fn()| {
        if arguments.text("only").is_none_or(|only| only == name) {
            run();
            println!("{name} passes");
            passed.push(name);
        }
    };
    suite("cells", &|| testkit::cells::suite(|| Kept::start(&serve, HttpCells::new)));
    suite("cells-of-a-group", &|| {
        // One of the suite's names is the group's own.
        let grouped = |client: Client| HttpCells::new(client.group("job/1"));
        testkit::cells::suite(|| Kept::start(&serve, grouped));
    });
    suite("cells-of-a-branch", &|| {
        testkit::cells::suite(|| Kept::start(&serve, |client| HttpCells::new(branch(client))))
    });
    suite("records", &|| {
        let sleep = |_: &Kept<HttpRecords>, by: Duration| std::thread::sleep(by);
        testkit::state_store::suite(|| Kept::start(&serve, HttpRecords::new), sleep);
    });
    suite("records-of-a-branch", &|| {
        let sleep = |_: &Kept<HttpRecords>, by: Duration| std::thread::sleep(by);
        testkit::state_store::suite(|| Kept::start(&serve, |client| HttpRecords::new(branch(client))), sleep);
    });
    suite("runs", &|| {
        let back = |kept: Kept<HttpRuns>| kept.killed_and_back(HttpRuns::new);
        testkit::run_store::suite(|| Kept::start(&serve, HttpRuns::new), back);
    });
    suite("sessions", &|| {
        let machine = |client: Client| HttpSessions::new(client.group("g"), TallyMachine::NUMBER);
        let back = |kept: Kept<HttpSessions>| kept.killed_and_back(machine);
        testkit::session_store::suite(|| Kept::start(&host, machine), back);
    });
    let mut report = Report::new("server");
    report.add("suites", passed.join("+"), "each passes over HTTP", true);
    report
}

/// The client in a new branch of a new space.
fn branch(client: Client) -> Client {
    block_on(client.catalogue().create_space("tenant")).expect("a space");
    let client = client.space("tenant");
    block_on(client.catalogue().create_branch("draft")).expect("a branch");
    client.branch("draft")
}

/// A store behind a server process, with its directory.
struct Kept<S> {
    store: S,
    server: ServerProcess,
    launch: Launch,
    directory: TempDir,
}

impl<S> Kept<S> {
    fn start(launch: &impl Fn(&TempDir) -> Launch, store: impl Fn(Client) -> S) -> Self {
        let directory = fast_directory().expect("a directory");
        Self::open(launch(&directory), directory, store)
    }

    fn open(launch: Launch, directory: TempDir, store: impl Fn(Client) -> S) -> Self {
        let server = launch.start().expect("a server");
        // The default options, with sessions, but without retries, so that refusals are visible.
        let client = testkit::http::Client::to(server.address());
        let store = store(client.typed(ClientOptions::default().without_retries()));
        Self { store, server, launch, directory }
    }

    /// The same directory after the process was killed and restarted.
    fn killed_and_back(self, store: impl Fn(Client) -> S) -> Self {
        self.server.kill();
        Self::open(self.launch, self.directory, store)
    }
}

/// A trait of a contract, by the store.
macro_rules! delegate {
    ($contract:ident for $store:ty: $($name:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        impl $contract for Kept<$store> {
            $(fn $name(&self, $($argument: $type),*) -> $output {
                self.store.$name($($argument),*)
            })*
        }
    };
}

delegate! {
    Cells for HttpCells:
    init(cell: &str, value: Value) -> Result<Initialised, Error>;
    get(cell: &str) -> Result<Option<Value>, Error>;
    get_versioned(cell: &str) -> Result<Option<Versioned>, Error>;
    set(cell: &str, value: Value) -> Result<Written, Error>;
    cas(cell: &str, expected: Expected, value: Value) -> Result<Swapped, Error>;
    delete(cell: &str) -> Result<Deleted, Error>;
    history(cell: &str, page: HistoryPage) -> Result<History, Error>;
    at(cell: &str, moment: Moment) -> Result<AsOf, Error>;
    list(prefix: &str, page: ListPage) -> Result<Listed, Error>;
}

delegate! {
    StateStore for HttpRecords:
    get(key: &str) -> Result<Option<PortableRecord>, Error>;
    put(key: &str, fields: &BTreeMap<String, Vec<u8>>, ttl: Option<Duration>) -> Result<(), Error>;
    delete(key: &str) -> Result<(), Error>;
    get_field(key: &str, field: &str) -> Result<Option<Vec<u8>>, Error>;
    set_fields(key: &str, fields: &BTreeMap<String, Option<Vec<u8>>>) -> Result<(), Error>;
    compare_and_swap(key: &str, field: &str, expected: Option<&[u8]>, new: &[u8]) -> Result<bool, Error>;
    scan(prefix: &str, filter: Option<&ScanFilter>) -> PortableScan<'_>;
    ping() -> bool;
}

delegate! {
    RunStateStore for HttpRuns:
    append_event(run: &str, event: &NewEvent) -> Result<AppendResult, Error>;
    fetch_events(run: &str, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error>;
    get_snapshot(run: &str) -> Result<Option<RunSnapshot>, Error>;
    project_snapshot(run: &str) -> Result<RunSnapshot, Error>;
}

delegate! {
    SessionStore for HttpSessions:
    create(timeout: Duration, capabilities: &[(String, Vec<u8>)]) -> Result<SessionCredentials, Error>;
    request(session: &SessionCredentials, request: u64, lowest_pending: u64, command: &[u8]) -> Result<Vec<u8>, Error>;
    acknowledge(session: &SessionCredentials, upto: u64) -> Result<u64, Error>;
    expire(session: &SessionCredentials) -> Result<bool, Error>;
    requests_for_retry(sent_before: u64, limit: u32) -> Result<Vec<PushedRequest>, Error>;
    has_pending() -> Result<bool, Error>;
    has_overdue(sent_before: u64) -> Result<bool, Error>;
}
