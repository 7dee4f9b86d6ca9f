//! SeaweedFS on the loopback: a master, a volume server, a filer and the API of S3 in one process.
//!
//! Touches: a child process, and its folder. Keeps: only this machine reaches it; it ends with its value, by its process id.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use testkit::http::{Client, Request};
use testkit::server_process::{Launch, ServerProcess};

const READY_MAX: Duration = Duration::from_secs(120);

const KEY: &str = "key-of-the-test";
const SECRET: &str = "secret-of-the-test";

/// The server.
pub(super) struct Seaweed {
    process: ServerProcess,
    address: SocketAddr,
}

impl Seaweed {
    /// Starts it, and waits until it answers.
    pub(super) fn start(program: &Path, folder: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("SeaweedFS: {error}");
        std::fs::create_dir(folder).map_err(failed)?;
        let users = folder.join("users.json");
        let actions = r#"["Admin", "Read", "Write", "List", "Tagging"]"#;
        let credentials = format!(r#"[{{"accessKey": "{KEY}", "secretKey": "{SECRET}"}}]"#);
        let identity = format!(r#"{{"name": "test", "credentials": {credentials}, "actions": {actions}}}"#);
        std::fs::write(&users, format!(r#"{{"identities": [{identity}]}}"#)).map_err(failed)?;
        // Held together, so that each is another one.
        let free: Result<Vec<TcpListener>, _> = (0..8).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
        let free = free.map_err(failed)?;
        let ports: Result<Vec<SocketAddr>, _> = free.iter().map(TcpListener::local_addr).collect();
        let ports = ports.map_err(failed)?;
        drop(free);
        let named = ["master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port"];
        let named = named.into_iter().chain(["filer.port.grpc", "s3.port.grpc", "s3.port"]);
        let mut launch = Launch::program(program).arguments(["server", "-s3", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]);
        for (name, address) in named.zip(&ports) {
            launch = launch.argument(format!("-{name}={}", address.port()));
        }
        let launch = launch
            .argument(format!("-dir={}", folder.display()))
            .argument(format!("-s3.config={}", users.display()))
            .arguments(["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"])
            .arguments(["-master.volumeSizeLimitMB=1024", "-volume.max=20", "-volume.minFreeSpace=1"]);
        let mut process = launch.start_opening()?;
        let began = Instant::now();
        let address = ports[7];
        while Client::to(address).call(Request::get("/status")).is_err() {
            if let Some(ended) = process.ended() {
                return Err(format!("SeaweedFS ended: {ended}: {}", process.stderr()));
            }
            if began.elapsed() > READY_MAX {
                return Err(format!("SeaweedFS does not answer: {}", process.stderr()));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(Self { process, address })
    }

    /// Where it serves S3.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it.
    pub(super) fn stop(self) {
        self.process.terminate(Duration::from_secs(30));
    }
}

/// What a process needs to reach it through an endpoint.
pub(super) fn environment(endpoint: &str) -> Vec<(String, String)> {
    let values = [
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ACCESS_KEY_ID", KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_REGION", "us-east-1"),
        ("NO_PROXY", "127.0.0.1"),
    ];
    values.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}
