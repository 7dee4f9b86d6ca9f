//! Those who write: each counts, and writes a history, with requests of a session that it repeats until they are answered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use statehouse::runs::NewEvent;
use statehouse::sessions::{SessionCredentials, SessionOptions};
use statehouse::{Error, Json, Statehouse};

const PAUSE: Duration = Duration::from_millis(1);

/// The owner, as far as anybody knows.
pub(super) type Owner = Arc<RwLock<Statehouse>>;

pub(super) fn owner(of: &Owner) -> Statehouse {
    of.read().expect("no panic").clone()
}

/// What a worker has been told.
pub(super) struct Worker {
    number: u64,
    session: SessionCredentials,
    /// Requests that were answered.
    pub(super) acknowledged: u64,
    /// Times that a request had to be sent again.
    pub(super) repeated: u64,
}

/// The workers at work.
pub(super) struct Workers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Worker>>,
}

impl Workers {
    pub(super) fn start(count: u64, of: &Owner) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let threads = (0..count).map(|number| {
            let (of, stop) = (of.clone(), stop.clone());
            std::thread::spawn(move || Worker::begin(number, &of).run(&of, &stop))
        });
        Self { threads: threads.collect(), stop }
    }

    pub(super) fn stop(self) -> Vec<Worker> {
        self.stop.store(true, Ordering::SeqCst);
        self.threads.into_iter().map(|thread| thread.join().expect("a worker ends")).collect()
    }
}

impl Worker {
    fn begin(number: u64, of: &Owner) -> Self {
        let options = SessionOptions::default().timeout(Duration::from_secs(600));
        let session = loop {
            // A session that was opened and not answered is never used.
            match owner(of).sessions().open_with(options.clone()) {
                Ok(session) => break session.credentials().clone(),
                Err(_) => std::thread::sleep(PAUSE),
            }
        };
        Self { number, session, acknowledged: 0, repeated: 0 }
    }

    fn run(mut self, of: &Owner, stop: &AtomicBool) -> Self {
        while !stop.load(Ordering::SeqCst) {
            let request = self.acknowledged + 1;
            while let Err(error) = self.send(&owner(of), request) {
                assert!(matches!(error, Error::Failed(_)), "worker {}, request {request}: {error}", self.number);
                self.repeated += 1;
                std::thread::sleep(PAUSE);
            }
            self.acknowledged = request;
        }
        self
    }

    /// Odd requests count, even ones append: the answer says that it was done once.
    fn send(&self, house: &Statehouse, request: u64) -> Result<(), Error> {
        let space = house.sessions().request_in(&self.session, request, request, "default")?;
        let done = request.div_ceil(2);
        match request % 2 {
            1 => {
                let counted = space.records().increment(&self.record(), "count", 1)?;
                assert_eq!(counted, i64::try_from(done).expect("small"), "worker {}: counted twice", self.number);
            }
            _ => {
                let event = NewEvent::new(
                    "StepStarted",
                    format!("event-{request}"),
                    "2026-11-18T10:00:00Z",
                    Json::new("{}").expect("JSON"),
                );
                let appended = space.runs().append(&self.run_name(), &event)?;
                assert_eq!(appended.run_seq, done, "worker {}: appended twice", self.number);
            }
        }
        Ok(())
    }

    fn record(&self) -> String {
        format!("counts.{}", self.number)
    }

    fn run_name(&self) -> String {
        format!("history-{}", self.number)
    }

    /// Compares what the store has with what was acknowledged; none if they are equal.
    pub(super) fn difference(&self, house: &Statehouse) -> Option<String> {
        let counted = house.records().get(&self.record()).expect("readable");
        let counted = counted.and_then(|record| record.fields.get("count")?.value.as_integer()).unwrap_or(0);
        let snapshot = house.runs().snapshot(&self.run_name()).expect("readable");
        let appended = snapshot.map_or(0, |snapshot| snapshot.last_event_seq);
        let expected = (self.acknowledged.div_ceil(2), self.acknowledged / 2);
        let found = (u64::try_from(counted).unwrap_or(u64::MAX), appended);
        (found != expected).then(|| format!("worker {}: {found:?} instead of {expected:?}", self.number))
    }
}
