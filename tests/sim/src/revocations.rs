//! `sim revocations`: tokens are revoked while their principals send requests, wait and follow. How long each goes on after that.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::arguments::Arguments;
use testkit::http::{Client, Request, Response};
use testkit::report::Report;
use testkit::server_process::{Launch, binary};

use crate::directories::fast_directory;

/// A revoked token is refused within this time.
const REFUSED_WITHIN: Duration = Duration::from_millis(100);

/// What its principal had going is cut within this time.
const CUT_WITHIN: Duration = Duration::from_secs(1);

/// How long somebody sends before the token is revoked.
const BEFORE: Duration = Duration::from_millis(60);

/// How long each went on after the revocation was sent.
struct Revocation {
    refused: Duration,
    wait: Duration,
    stream: Duration,
}

/// Revokes tokens of a real server, one after another.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let times = arguments.number("times", 20);
    let directory = fast_directory().expect("a directory");
    let data = directory.path().join("house");
    let launch = Launch::serve(binary(), &data).asking_for_tokens();
    let server = launch.start().expect("a server");
    let root = std::fs::read_to_string(data.join("root.token")).expect("the token of the first administrator");
    let revoking = Revoking { client: Client::to(server.address()), root: root.trim().to_owned() };
    let all: Vec<_> = (0..times).map(|number| revoking.revoke(&format!("worker-{number}"))).collect();
    let mut report = Report::new("secure");
    for (item, within, what, times) in [
        ("revoked.refused", REFUSED_WITHIN, "refused", all.iter().map(|one| one.refused).collect::<Vec<_>>()),
        ("revoked.waits", CUT_WITHIN, "a wait cut", all.iter().map(|one| one.wait).collect()),
        ("revoked.streams", CUT_WITHIN, "a stream cut", all.iter().map(|one| one.stream).collect()),
    ] {
        let p99 = percentile(times);
        let figure = format!("{:.1}ms-p99-of-{}", p99.as_secs_f64() * 1_000.0, all.len());
        let goal = format!("{what} at most {} ms after the revocation, p99", within.as_millis());
        report.add(item, figure, &goal, p99 <= within && !all.is_empty());
    }
    report
}

/// The 99th percentile; of a hundred or less, the longest.
fn percentile(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let place = (times.len() * 99).div_ceil(100).max(1) - 1;
    times.get(place).copied().unwrap_or(Duration::MAX)
}

struct Revoking {
    client: Client,
    root: String,
}

impl Revoking {
    fn by(&self, token: &str, request: Request) -> Response {
        self.client.send(request.header("authorization", format!("Bearer {token}"))).expect("an answer")
    }

    fn by_root(&self, request: Request) -> Response {
        let answer = self.by(&self.root, request);
        assert!(answer.is_success(), "{}", answer.text());
        answer
    }

    fn revoke(&self, principal: &str) -> Revocation {
        let path = format!("/v1/principals/{principal}");
        self.by_root(Request::put(&path).body(json!({ "grants": ["worker@default"] }).to_string()));
        let issued = self.by_root(Request::post(format!("{path}/tokens")).body("{}")).json();
        let token = issued["token"].as_str().expect("a token");
        let follows = Request::get("/v1/changes").query("follow", "true");
        let mut stream =
            self.client.follow(follows.header("authorization", format!("Bearer {token}"))).expect("a stream");
        assert!(stream.head().is_success(), "{}", stream.head().text());
        std::thread::scope(|scope| {
            let sends = scope.spawn(|| self.sends_until_refused(token));
            let waits = scope.spawn(|| {
                let claim = json!({ "prefix": "nothing.", "wait": "60s" });
                let answer = self.by(token, Request::post("/v1/claims").body(claim.to_string()));
                assert_eq!(answer.status, 200, "nothing was claimed: {}", answer.text());
                Instant::now()
            });
            let follows = scope.spawn(move || {
                while matches!(stream.next(), Ok(Some(_))) {}
                Instant::now()
            });
            std::thread::sleep(BEFORE);
            let revoked = Instant::now();
            self.by_root(Request::delete(format!("/v1/tokens/{}", &token[4..14])));
            let after = |at: Instant| at.saturating_duration_since(revoked);
            let refused = after(sends.join().expect("it was refused"));
            let (wait, stream) = (waits.join().expect("it was cut"), follows.join().expect("it was cut"));
            Revocation { refused, wait: after(wait), stream: after(stream) }
        })
    }

    /// When the last request was sent that was answered.
    fn sends_until_refused(&self, token: &str) -> Instant {
        let mut answered = None;
        loop {
            let sent = Instant::now();
            match self.by(token, Request::get("/v1/whoami")).status {
                200 => answered = Some(sent),
                401 => return answered.expect("it was answered before"),
                status => panic!("a request was answered {status}"),
            }
        }
    }
}
