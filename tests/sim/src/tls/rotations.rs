//! `sim rotations`: the certificate of a server is replaced again and again, in every way that people and programs do that, while
//! clients send requests over old and over new connections; and pairs that cannot be used are put in its place.
//!
//! - [`load`]: the clients. [`ways`]: how files are replaced. [`bad_pairs`]: what must not be used.
//!
//! Keeps: a request that fails is counted, whatever the server was doing; no connection is made again where an old one was to last.

mod bad_pairs;
mod load;
mod ways;

use std::path::Path;
use std::time::{Duration, Instant};

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, SignatureAlgorithm};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use testkit::arguments::Arguments;
use testkit::certificates::{Authority, Pair, connect};
use testkit::report::Report;

use self::bad_pairs::BAD_PAIRS;
use self::load::Load;
use self::ways::{Mount, WAYS};
use super::server::{TlsServer, eventually};

/// A new certificate is used by new connections within this time after its files are there.
const SEEN_WITHIN: Duration = Duration::from_secs(10);

/// The same after a hangup.
const SEEN_AT_ONCE: Duration = Duration::from_secs(1);

/// Files are replaced at so many points of the time between two looks of the server, so far from each other.
const PHASES: u64 = 7;
const PHASE: Duration = Duration::from_millis(700);

/// Bad pairs that there must be, and a share of the requests that must have been sent: not a machine's speed is measured.
const BAD_PAIRS_MIN: usize = 20;
const SENT_MIN: f64 = 0.95;

/// Keys of every kind that a certificate of a server usually has, and this program can make.
const KEYS: [&SignatureAlgorithm; 3] = [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519];

/// `sim rotations [--times 10] [--rate 500]`: how often the certificate is replaced, and requests in a second.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let (times, rate) = (arguments.number("times", 10), arguments.number("rate", 500));
    let rotating = Rotating::start();
    let load = Load::start(&rotating.server, &rotating.authority, rate);
    let began = Instant::now();
    let seen: Vec<_> = (0..times).map(|number| rotating.rotate(number)).collect();
    let refused: Vec<_> = (0..BAD_PAIRS.len()).filter(|place| rotating.refuses(*place)).collect();
    let took = began.elapsed();
    let sent = load.stop();
    sent.failures.iter().take(20).for_each(|failure| println!("rotations: {failure}"));
    let mut report = Report::new("secure");
    let figure = format!(
        "{times}-rotations-{}-requests-at-{:.0}/s-{}-new-connections-{}-failed",
        sent.requests,
        sent.requests as f64 / took.as_secs_f64(),
        sent.connections,
        sent.failures.len(),
    );
    let is_enough = sent.requests as f64 >= rate as f64 * took.as_secs_f64() * SENT_MIN;
    let goal = format!("rotations while {rate} requests a second come over old and new connections: 0 failed");
    report.add("rotations.requests", figure, &goal, sent.failures.is_empty() && is_enough && sent.connections > 0);
    let longest = |after_hangup: bool| {
        let of_kind = seen.iter().filter(|one| one.after_hangup == after_hangup);
        of_kind.map(|one| one.after).max().unwrap_or_default()
    };
    let (found, told) = (longest(false), longest(true));
    let figure = format!("found-in-{:.1}s-told-in-{:.2}s-at-most", found.as_secs_f64(), told.as_secs_f64());
    let goal = format!(
        "a new certificate is used by new connections within {} s, and within {} s after SIGHUP",
        SEEN_WITHIN.as_secs(),
        SEEN_AT_ONCE.as_secs()
    );
    report.add("rotations.seen", figure, &goal, !seen.is_empty() && found <= SEEN_WITHIN && told <= SEEN_AT_ONCE);
    let figure = format!("{}-of-{}-bad-pairs-refused", refused.len(), BAD_PAIRS.len());
    let goal = "every bad pair is refused, the old one stays, and the log, /status and the metric say so; at least 20";
    report.add("rotations.refused", figure, goal, refused.len() == BAD_PAIRS.len() && refused.len() >= BAD_PAIRS_MIN);
    report
}

/// How long it took until a new certificate was used.
struct Seen {
    after: Duration,
    after_hangup: bool,
}

/// A server whose certificate is replaced.
struct Rotating {
    server: TlsServer,
    authority: Authority,
    mount: Mount,
}

impl Rotating {
    fn start() -> Self {
        let authority = Authority::new("rotations");
        let mount = Mount::new(&authority.server("first"), &authority.file());
        let server = TlsServer::start(&authority, &mount.pair(), &mount.client_ca(), &[]);
        Self { server, authority, mount }
    }

    /// Makes another pair for the server. The last ways of a turn have one kind of key, whose files have one length.
    fn another(&self, number: u64) -> Pair {
        let kind = KEYS[(usize::try_from(number).expect("few") % WAYS.len()).min(KEYS.len() - 1)];
        let key = KeyPair::generate_for(kind).expect("a key");
        self.authority.server_with(&format!("server-{number}"), &key)
    }

    /// What a new connection is shown.
    fn shown(&self) -> CertificateDer<'static> {
        let mut stream = connect(self.server.address(), self.authority.trusted());
        stream.conn.complete_io(&mut stream.sock).expect("a handshake");
        stream.conn.peer_certificates().expect("a certificate")[0].clone()
    }

    fn is_shown(&self, certificate: &Path) -> bool {
        self.shown() == CertificateDer::from_pem_file(certificate).expect("a certificate")
    }

    /// Replaces the pair in one of the ways, which take turns, and with every second turn by a hangup.
    fn rotate(&self, number: u64) -> Seen {
        let ways = WAYS.len() as u64;
        let (way, after_hangup) =
            (WAYS[usize::try_from(number % ways).expect("few")], (number / ways).is_multiple_of(2));
        let pair = self.another(number);
        if !after_hangup {
            // The last one was seen when the server has just looked.
            std::thread::sleep(PHASE * u32::try_from(number % PHASES).expect("few"));
        }
        self.mount.replace(&pair, way, number);
        let replaced = Instant::now();
        if after_hangup {
            self.server.process.signal("HUP");
        }
        eventually(|| self.is_shown(&pair.certificate).then_some(()));
        let after = replaced.elapsed();
        println!(
            "rotations: {number}, {way:?}: seen {after:?} after it{}",
            if after_hangup { " and a hangup" } else { "" }
        );
        Seen { after, after_hangup }
    }

    /// Puts a bad pair in the place of a good one, and a good one again in its place. Whether all that was said and done which must be.
    fn refuses(&self, place: usize) -> bool {
        let bad = &BAD_PAIRS[place];
        let before = self.shown();
        let failed_before = self.server.metrics()["statehouse_tls_reloads_total{result=\"failed\"}"];
        let logged = self.server.process.stderr().len();
        let good = self.another(place as u64);
        self.mount.put_bad(bad, &good, &self.authority);
        self.server.process.signal("HUP");
        let is_logged = || {
            let lines = self.server.log_after(logged);
            lines.iter().any(|line| {
                line["message"].as_str().is_some_and(|message| message.starts_with("certificates not reloaded"))
                    && line["error"].as_str().is_some_and(|error| error.contains(bad.says))
            })
        };
        let mut wrong = Vec::new();
        if eventually(|| is_logged().then_some(())).is_none() {
            wrong.push(format!("the log does not say {:?}", bad.says));
        }
        let problems = self.server.problems();
        if !problems.get("certificates_not_reloaded").is_some_and(|text| text.contains(bad.says)) {
            wrong.push(format!("/status does not say {:?}: {problems:?}", bad.says));
        }
        let metrics = self.server.metrics();
        if metrics["statehouse_tls_files_unusable"] != 1.0
            || metrics["statehouse_tls_reloads_total{result=\"failed\"}"] <= failed_before
        {
            wrong.push("the metrics do not say it".to_owned());
        }
        if self.shown() != before {
            wrong.push("the old certificate is not in use any more".to_owned());
        }
        self.mount.replace(&good, WAYS[0], place as u64);
        self.mount.put_client_ca(&self.authority.file());
        self.server.process.signal("HUP");
        if eventually(|| self.is_shown(&good.certificate).then_some(())).is_none() {
            wrong.push("a good pair is not used after it".to_owned());
        }
        if self.server.metrics()["statehouse_tls_files_unusable"] != 0.0
            || self.server.problems().contains_key("certificates_not_reloaded")
        {
            wrong.push("what is good again is said to be bad".to_owned());
        }
        wrong.iter().for_each(|wrong| println!("rotations: {}: {wrong}", bad.name));
        wrong.is_empty()
    }
}
