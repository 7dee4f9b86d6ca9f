//! The kernel on a bare store as a subject: entries of 64 commands, without a journal and without callers.
//!
//! What is left of a command's cost is the kernel, the overlay and the store below. The first two are the same for every
//! store, so that stores can be compared. Latencies are those of whole entries; one that waits for a flush is a stall.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use hdrhistogram::Histogram;
use kernel::records::get::ViewRecords;
use kernel::{
    Append, Body, ClaimNext, Duplicates, EventRef, Fence, Op, RecordAct, RunAct, Transact, TtlArgument, ValueRef,
};
use kv::{KeyRange, Order};
use testkit::arguments::Arguments;
use testkit::random::Random;

use super::population::{QUEUE, RECORDS_PER_RUN, event, parameters, record_name, run_name};
use super::subject::{IN_FLIGHT, Space, Subject, Watched};
use super::watched_store::{Watch, WatchingMaker};
use super::{Plan, measure};
use crate::bare_kernel::{AppliedEntry, BareKernel, ENTRY_COMMANDS, all_done, claimed, keys};
use crate::resources::directory_bytes;
use crate::store_maker::StoreMaker;

/// Longer than any measurement: no lease ends.
const LEASE_US: u64 = 24 * 3_600 * 1_000_000;

/// Measures the stores of a maker at the sizes of `--sizes`, in a directory that is removed again.
///
/// ```no_run
/// # let (_, arguments) = testkit::arguments::Arguments::from_environment().expect("arguments");
/// let maker = std::rc::Rc::new(bench::store_maker::TreeMaker);
/// bench::growth::stores::measure_store("lsm-tree", maker, &arguments);
/// ```
pub fn measure_store(name: &str, maker: Rc<dyn StoreMaker>, arguments: &Arguments) {
    println!("{name}:");
    let plan = Plan::new(arguments);
    let directory = tempfile::tempdir().expect("a directory");
    let mut subject = KernelSubject::create(maker, &directory.path().join("store"));
    measure(&mut subject, &plan, |subject, size| {
        let kernel = subject.kernel.take().expect("it is there between commands");
        let (kernel, took) = kernel.reopen();
        subject.kernel = Some(kernel);
        println!("{size:>9}  reopen: {:.1} ms", took.as_secs_f64() * 1e3);
    });
}

/// A kernel, and what its worker holds.
struct KernelSubject {
    path: PathBuf,
    /// Always there, except while it is reopened.
    kernel: Option<BareKernel>,
    watch: Arc<Watch>,
    claimed: Vec<(String, u64)>,
    records: u64,
    events: u64,
    random: Random,
}

impl KernelSubject {
    fn create(inner: Rc<dyn StoreMaker>, path: &Path) -> Self {
        let watch = Arc::new(Watch::default());
        let maker = Rc::new(WatchingMaker { inner, watch: watch.clone() });
        Self {
            path: path.to_owned(),
            kernel: Some(BareKernel::create_on(maker, path)),
            watch,
            claimed: Vec::new(),
            records: 0,
            events: 0,
            random: Random::new(1),
        }
    }

    fn kernel(&mut self) -> &mut BareKernel {
        self.kernel.as_mut().expect("it is there between reopenings")
    }

    fn append_entry(&mut self, runs: &[u64]) -> AppliedEntry {
        let (first, names) = (self.events, runs.iter().map(|run| run_name(*run)).collect::<Vec<_>>());
        self.events += runs.len() as u64;
        let events: Vec<_> = (first..self.events).map(event).collect();
        let kernel = self.kernel();
        let bodies = names.iter().zip(&events).map(|(run, event)| {
            let duplicates = Duplicates::Answer;
            let append = Append { expected_last: None, duplicates, run_type: "", event: EventRef::from(event) };
            body(kernel, None, Op::Run(run, RunAct::Append(Box::new(append))))
        });
        let bodies: Vec<Body<'_>> = bodies.collect();
        let applied = kernel.apply(&bodies);
        all_done(&applied);
        applied
    }
}

impl Subject for KernelSubject {
    fn load(&mut self, records: Range<u64>) {
        self.records = records.end;
        for part in parts(records.clone(), ENTRY_COMMANDS) {
            let contents: Vec<_> = part.map(|number| (record_name(number), parameters(number))).collect();
            let kernel = self.kernel();
            let bodies = contents.iter().map(|(name, parameters)| {
                let fields =
                    vec![("params", ValueRef::Text(parameters)), ("to", ValueRef::Text("someone@example.org"))];
                kernel.act(name, RecordAct::Put { record_type: Some("task"), ttl: TtlArgument::Persist, fields })
            });
            let bodies: Vec<Body<'_>> = bodies.collect();
            all_done(&kernel.apply(&bodies));
        }
        for part in parts(records.start / RECORDS_PER_RUN..records.end / RECORDS_PER_RUN, ENTRY_COMMANDS) {
            self.append_entry(&part.collect::<Vec<_>>());
        }
    }

    fn claim(&mut self, count: u64, latency_ns: &mut Histogram<u64>) {
        for part in parts(0..count, IN_FLIGHT) {
            let kernel = self.kernel();
            let (space, branch) = (kernel.space, kernel.branch);
            let claim = |_| {
                let lease_us = Some(LEASE_US);
                let claim = ClaimNext {
                    space,
                    branch,
                    prefix: QUEUE,
                    records_max: 1,
                    worker: "worker-1",
                    lease_us,
                    waits: false,
                };
                Body::ClaimNext(claim)
            };
            let bodies: Vec<Body<'_>> = part.map(claim).collect();
            let applied = kernel.apply(&bodies);
            crate::latency::record(latency_ns, applied.took);
            let taken = claimed(&applied);
            assert_eq!(taken.len(), bodies.len(), "enough records are ready");
            self.claimed.extend(taken);
        }
    }

    fn release(&mut self, latency_ns: &mut Histogram<u64>) -> u64 {
        let taken = std::mem::take(&mut self.claimed);
        let kernel = self.kernel();
        for part in taken.chunks(usize::try_from(IN_FLIGHT).expect("few")) {
            let releases = part.iter().map(|(name, attempt)| {
                let attempt = *attempt;
                kernel.act(name, RecordAct::Release { attempt })
            });
            let bodies: Vec<Body<'_>> = releases.collect();
            let applied = kernel.apply(&bodies);
            crate::latency::record(latency_ns, applied.took);
            all_done(&applied);
        }
        taken.len() as u64
    }

    fn step(&mut self, count: u64, latency_ns: &mut Histogram<u64>) {
        let Self { kernel, claimed, random, .. } = self;
        let kernel = kernel.as_mut().expect("it is there between reopenings");
        for part in parts(0..count, IN_FLIGHT) {
            let steps: Vec<_> = part.map(|number| (random.choose(claimed), number.to_string())).collect();
            let bodies = steps.iter().map(|((name, attempt), progress)| {
                let field = |name, value| (name, Some(ValueRef::Text(value)));
                let fields = vec![field("progress", progress), field("stage", "sending"), field("state", "running")];
                let patch = RecordAct::Patch { must_exist: true, fields };
                body(kernel, Some(Fence { record: name, attempt: *attempt }), Op::Record(name, patch))
            });
            let bodies: Vec<Body<'_>> = bodies.collect();
            let applied = kernel.apply(&bodies);
            crate::latency::record(latency_ns, applied.took);
            all_done(&applied);
        }
    }

    fn append(&mut self, count: u64, latency_ns: &mut Histogram<u64>) {
        let runs = self.records / RECORDS_PER_RUN;
        for part in parts(0..count, IN_FLIGHT) {
            let chosen: Vec<u64> = part.map(|_| self.random.below(runs)).collect();
            crate::latency::record(latency_ns, self.append_entry(&chosen).took);
        }
    }

    fn get(&mut self, count: u64, latency_ns: &mut Histogram<u64>) {
        for _ in 0..count {
            let name = record_name(self.random.below(self.records));
            let kernel = self.kernel();
            let started = Instant::now();
            let view = kernel.view();
            let catalogue = kernel.catalogue();
            let id = catalogue.thing(kernel.space, kernel.branch, None, &name).expect("a name");
            let records = ViewRecords::new(&*view, keys(), catalogue).expect("records");
            assert!(records.get(&id).expect("a get").is_some());
            crate::latency::record(latency_ns, started.elapsed());
        }
    }

    fn settle(&mut self) {
        self.kernel().settle();
    }

    fn space(&mut self) -> Space {
        let view = self.kernel().view();
        let rows = view.scan(&KeyRange::all(), Order::Ascending);
        let live = rows.map(|row| row.map(|(key, value)| (key.len() + value.len()) as u64).expect("a row")).sum();
        let files = directory_bytes(&self.path);
        Space { files, store: files, live }
    }

    fn watched(&mut self) -> Option<Watched> {
        Some(self.watch.take())
    }
}

/// A command of one operation.
fn body<'bytes>(kernel: &BareKernel, fence: Option<Fence<'bytes>>, op: Op<'bytes>) -> Body<'bytes> {
    let (space, branch) = (kernel.space, kernel.branch);
    Body::Transact(Transact { fences: fence.into_iter().collect(), ..Transact::new(space, branch, None, vec![op]) })
}

/// Consecutive parts of a range, each of at most `length`.
fn parts(range: Range<u64>, length: u64) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    let step = usize::try_from(length).expect("a short length");
    range.step_by(step).map(move |start| start..end.min(start + length))
}
