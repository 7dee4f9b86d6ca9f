//! The client against real servers: every contract, lost answers, restarts, and what is refused.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use client::records::fields;
use client::tls::TlsFiles;
use client::transport::{Answering, HttpTransport, Transport, Unanswered};
use client::{Client, ClientOptions, Error};
use contract::{Expected, Outcome, Value};
use hyper::Request;
use hyper::body::Bytes;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use statehouse::Statehouse;
use testkit::certificates::{Authority, Pair};
use tokio::task::JoinHandle;
use wire::access::TokenText;
use wire::records::PutRecord;
use wire::records::claims::Claim;
use wire::runs::ReadEvents;
use wire::transactions::Transaction;

/// A server over a directory that goes with it.
struct Server {
    address: SocketAddr,
    serving: JoinHandle<()>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    directory: tempfile::TempDir,
}

impl Server {
    async fn start() -> Self {
        Self::over(tempfile::tempdir().expect("a directory"), ([127, 0, 0, 1], 0).into()).await
    }

    async fn over(directory: tempfile::TempDir, at: SocketAddr) -> Self {
        let house = Statehouse::open(directory.path().join("house")).expect("a store");
        let listener = server::listen(at).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let until = async {
                let _ = stopped.await;
            };
            server::serve_all(listener, server::Server::new(house), until).await.expect("served");
        });
        Self { address, serving, stop: Some(stop), directory }
    }

    /// Stops it and starts it again at the same place.
    async fn restart(mut self) -> Self {
        drop(self.stop.take());
        self.serving.await.expect("stopped");
        Self::over(self.directory, self.address).await
    }

    fn client(&self) -> Client {
        Client::connect(&format!("http://{}", self.address)).expect("a client")
    }
}

/// A line that counts the signs of life that are sent on it.
struct Counted {
    line: HttpTransport,
    signs: Arc<AtomicUsize>,
}

impl Transport for Counted {
    fn send(&self, request: Request<Bytes>) -> Answering<'_> {
        let is_sign = request.uri().path().ends_with("/keepalive");
        Box::pin(async move {
            let answered = self.line.send(request).await;
            self.signs.fetch_add(usize::from(is_sign && answered.is_ok()), Ordering::AcqRel);
            answered
        })
    }

    fn named(&self) -> String {
        self.line.named()
    }
}

/// A line on which the answer to every third write is lost.
struct Lossy {
    line: HttpTransport,
    sent: Arc<AtomicUsize>,
}

impl Transport for Lossy {
    fn send(&self, request: Request<Bytes>) -> Answering<'_> {
        Box::pin(async move {
            let lost = request.method() != hyper::Method::GET && self.sent.fetch_add(1, Ordering::Relaxed) % 3 == 2;
            let answered = self.line.send(request).await?;
            match lost {
                false => Ok(answered),
                true => Err(Unanswered { cause: "the line was cut".to_owned(), may_have_arrived: true }),
            }
        })
    }

    fn named(&self) -> String {
        self.line.named()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_contract_is_called() -> Result<(), Error> {
    let server = Server::start().await;
    let client = server.client();
    let cells = client.cells();
    assert_eq!(cells.set("greeting", "hello").await?.version, 1);
    assert_eq!(cells.get("greeting").await?.map(|cell| cell.value.0), Some(Value::from("hello")));
    assert_eq!(cells.get("nothing").await?.map(|cell| cell.version), None);
    let conflict = cells.cas("greeting", Expected::Absent, 1).await.expect_err("it is there");
    assert_eq!((conflict.code(), conflict.outcome()), (Some("SH-1003"), Outcome::NotApplied));
    let long = Value::json("12345678901234567890123456789").expect("JSON");
    cells.set("long", long.clone()).await?;
    assert_eq!(cells.get("long").await?.map(|cell| cell.value.0), Some(long), "to the last digit");

    let records = client.records();
    let task = PutRecord { record_type: Some("task".into()), ..PutRecord::of(fields([("to", "ann")])) };
    records.put("jobs.mail.1", &task, None).await?;
    let claim = Claim { worker: Some("w".into()), ..Claim::of_queue("jobs.") };
    let claimed = records.claim(&claim).await?;
    assert_eq!(claimed.iter().map(|job| job.record.as_str()).collect::<Vec<_>>(), ["jobs.mail.1"]);
    records.step(&claimed[0].token, [("progress", 50)]).await?;
    records.complete(&claimed[0].token, [("result", "sent")]).await?;
    let late = records.complete(&claimed[0].token, [("result", "again")]).await.expect_err("it is over");
    assert_eq!(late.code(), Some("SH-4002"));

    let runs = client.runs();
    let event = r#"{"eventType":"RunStarted","idempotencyKey":"start","eventData":{"n":1.50}}"#;
    assert!(runs.append("order-7", event, None).await?.persisted);
    assert!(!runs.append("order-7", event, Some(0)).await?.persisted, "it is there already");
    let page = runs.events("order-7", &ReadEvents::default()).await?;
    assert!(page.events[0].0.0.contains(r#""eventData":{"n":1.50}"#), "{:?}", page.events);
    assert!(runs.snapshot("order-8").await?.is_none());

    let paid: Transaction =
        wire::from_json_text(r#"{"do":[{"op":"cell.set","name":"paid","value":true}]}"#).expect("one");
    client.transact("order-7", &paid).await?;
    assert!(client.group("order-7").cells().get("paid").await?.is_some());
    assert!(client.catalogue().spaces().await?.spaces.contains(&"default".to_owned()));
    assert!(client.is_ready().await?);
    assert!(client.history().is_some());
    client.close().await
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_whose_answers_are_lost_are_done_once() -> Result<(), Error> {
    let server = Server::start().await;
    let sent = Arc::new(AtomicUsize::new(0));
    let line = HttpTransport::new(&format!("http://{}", server.address)).expect("a line");
    let client = ClientOptions::default().over(Lossy { line, sent: sent.clone() });
    for expected in 1..=20 {
        assert_eq!(client.cells().set("counter", expected).await?.version, u64::try_from(expected).expect("small"));
    }
    assert!(sent.load(Ordering::Relaxed) > 25, "some were sent again");

    let line = HttpTransport::new(&format!("http://{}", server.address)).expect("a line");
    // With a count of its own: the first client gives signs of life meanwhile.
    let unprotected = ClientOptions::default().without_sessions().over(Lossy { line, sent: Arc::default() });
    let mut unknown = 0;
    for _ in 0..6 {
        if let Err(error) = unprotected.cells().set("counter", 0).await {
            assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
            unknown += 1;
        }
    }
    assert_eq!(unknown, 2, "without a session nothing is sent again");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_is_waited_for_and_streams_go_on_behind_it() -> Result<(), Error> {
    let server = Server::start().await;
    let client = server.client();
    let event = |n: u32| format!(r#"{{"eventType":"T","idempotencyKey":"{n}"}}"#);
    client.runs().append("run", event(1), None).await?;
    let mut stream = client.runs().follow("run", 0);
    assert_eq!(stream.next().await?.id, "1");
    let address = server.address;
    let restarted = tokio::spawn(server.restart());
    // Sent while the server is away: it arrives when the server is back.
    client.runs().append("run", event(2), None).await?;
    let server = restarted.await.expect("restarted");
    assert_eq!(server.address, address);
    let next = tokio::time::timeout(Duration::from_secs(30), stream.next()).await.expect("in time")?;
    assert_eq!((next.id.as_str(), next.kind.as_str()), ("2", "event"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_gone_gives_its_jobs_back_and_another_store_is_refused() -> Result<(), Error> {
    let server = Server::start().await;
    let url = format!("http://{}", server.address);
    let signs = Arc::new(AtomicUsize::new(0));
    let line = Counted { line: HttpTransport::new(&url).expect("a line"), signs: signs.clone() };
    let worker = ClientOptions::default().session_timeout(Duration::from_secs(3)).over(line);
    let task = PutRecord { record_type: Some("task".into()), ..PutRecord::of(fields([("n", 1)])) };
    worker.records().put("jobs.1", &task, None).await?;
    let claim = Claim::of_queue("jobs.");
    assert_eq!(worker.records().claim(&claim).await?.len(), 1);
    let other = server.client();
    // A sign comes every third of the timeout: after four, the session would have ended without them.
    while signs.load(Ordering::Acquire) < 4 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(other.records().claim(&claim).await?.len(), 0, "it is held");
    drop(worker);
    let waiting = Claim { wait: Some(wire::values::DurationText(Duration::from_secs(20))), ..claim };
    assert_eq!(other.records().claim(&waiting).await?.len(), 1, "it came back");

    let foreign = ClientOptions::default().history("0000000000000000").connect(&url)?;
    assert_eq!(foreign.cells().get("a").await.expect_err("another store").code(), Some("SH-1034"));
    Ok(())
}

fn token() -> TokenText {
    TokenText::new(&statehouse::draw_token().expect("random bytes"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_not_sent_to_another_machine_without_tls() {
    let options = || ClientOptions::default().token(token()).without_retries().without_sessions();
    let refused = options().connect("http://state.internal:7420").err().expect("refused");
    assert!(
        matches!(&refused, Error::TokenWithoutTls { server } if server == "http://state.internal:7420"),
        "{refused}"
    );
    assert!(refused.next_step().contains("https://") && !refused.retryable());
    assert_eq!(refused.outcome(), Outcome::NotApplied);
    // Of another transport nobody knows, and it learns nothing.
    let signs = Arc::new(AtomicUsize::new(0));
    let server = Server::start().await;
    let line = || HttpTransport::new(&format!("http://{}", server.address)).expect("a line");
    let lossy = Lossy { line: line(), sent: signs.clone() };
    let refused = options().over(lossy).cells().set("a", 1).await.expect_err("refused");
    assert!(matches!(refused, Error::TokenWithoutTls { .. }) && signs.load(Ordering::Relaxed) == 0, "{refused}");
    let lossy = Lossy { line: line(), sent: signs.clone() };
    options().token_without_tls().over(lossy).cells().set("a", 1).await.expect("sent");
    options().over(line()).cells().set("a", 2).await.expect("it is on this machine");
    options().connect("https://state.internal").expect("over TLS");
}

/// Takes a connection over TLS, reads what comes, and goes on without TLS.
fn breaks_off(listener: &TcpListener, pair: &Pair) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.expect("versions").with_no_client_auth();
    let chain = CertificateDer::pem_file_iter(&pair.certificate).expect("a file").collect::<Result<_, _>>();
    let key = PrivateKeyDer::from_pem_file(&pair.key).expect("a key");
    let config = builder.with_single_cert(chain.expect("certificates"), key).expect("a pair");
    let (stream, _) = listener.accept().expect("a caller");
    let mut stream = StreamOwned::new(ServerConnection::new(Arc::new(config)).expect("a server"), stream);
    assert!(stream.read(&mut [0; 4096]).expect("a request") > 0);
    stream.sock.write_all(b"HTTP/1.1 200 OK\r\n\r\n").expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_before_tls_broke_may_have_been_done() {
    let authority = Authority::new("tests");
    let pair = authority.server("server");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    let breaking = std::thread::spawn(move || breaks_off(&listener, &pair));
    let options = ClientOptions::default().tls(TlsFiles::default().ca_file(authority.file()));
    let client = options.without_retries().without_sessions().connect(&url).expect("a client");
    let broken = client.cells().set("a", 1).await.expect_err("it broke");
    breaking.join().expect("a request was read");
    assert_eq!(broken.outcome(), Outcome::Unknown, "{broken}");
}
