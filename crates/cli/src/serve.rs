//! `dev` and `serve`: a server on this machine.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use server::gate::Hosts;
use server::memory::Budget;
use server::{Server, descriptors};
use statehouse::{DiskReserve, Opening, Options, Statehouse, terminal};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use wire::routes::{CELLS_WRITE, RECORDS_PUT};

use crate::config::{Effective, Flag};
use crate::equipment::{ContractFlags, Equipment, open_for_server};
use crate::exit::Failure;
use crate::{Failed, log};

/// Run a server to try things out; its data is deleted on exit.
///
/// Examples:
///   statehouse dev
///   statehouse dev --keep ./data --random-ports
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Dev {
    /// Keep the data in this directory.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Listen on any free port.
    #[arg(long, conflicts_with = "listen")]
    random_ports: bool,
    #[command(flatten)]
    settings: Settings,
}

/// Run a server on a data directory, created if missing.
///
/// Examples:
///   statehouse serve --data /var/lib/statehouse
///   statehouse serve --config /etc/statehouse.toml --memory 512MiB
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Serve {
    /// The data directory [setting data].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

/// The settings file, and the flags that both commands share.
#[derive(Args)]
pub(crate) struct Settings {
    /// The settings file, in TOML; `statehouse config init` prints one with all settings.
    #[arg(long, env = "STATEHOUSE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on; only this machine can connect [setting server.listen].
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    of_contracts: ContractFlags,
    /// Memory of the whole process, such as 512MiB [setting memory].
    #[arg(long, value_name = "BYTES")]
    memory: Option<String>,
    /// What to log: error, warn, info, debug, trace or a filter [setting log].
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

impl Settings {
    /// The settings in effect, with one command's additional flags.
    fn gather(&self, more: impl IntoIterator<Item = Flag>) -> Result<Effective, Failure> {
        let listen = self.listen.map(|address| ("--listen", "server.listen", address.to_string()));
        let memory = self.memory.clone().map(|memory| ("--memory", "memory", memory));
        let log = self.log.clone().map(|log| ("--log", "log", log));
        let flags = [listen, memory, log].into_iter().flatten().chain(self.of_contracts.given()).chain(more);
        let environment = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let environment = environment.map(|(name, value)| (name, value.to_string_lossy().into_owned()));
        let gathered = Effective::gather(self.config.as_deref(), environment, flags);
        gathered.map_err(|error| Failure::from(&error))
    }
}

/// Threads for the server's own work, besides one per request.
const MORE_THREADS: usize = 16;

impl Dev {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let any_port = self.random_ports.then(|| ("--random-ports", "server.listen", "127.0.0.1:0".to_owned()));
        let effective = self.settings.gather(any_port)?;
        let try_it = |address: SocketAddr| {
            println!("try:");
            let (greeting, job) = (CELLS_WRITE.at(&["greeting"]), RECORDS_PUT.at(&["jobs.1"]));
            println!("  curl -X PUT http://{address}{greeting} -d '\"hello\"'");
            println!("  curl http://{address}{greeting}");
            println!("  curl -X PUT http://{address}{job} -d '{{\"type\":\"task\",\"fields\":{{}}}}'");
        };
        match &self.keep {
            Some(directory) => Ok(serve(directory, &effective, try_it)?),
            None => {
                let directory = tempfile::tempdir().map_err(Failed::from)?;
                Ok(serve(&directory.path().join("house"), &effective, try_it)?)
            }
        }
    }
}

impl Serve {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let data = self.data.as_ref().map(|path| ("--data", "data", path.to_string_lossy().into_owned()));
        let effective = self.settings.gather(data)?;
        let unnamed =
            || Failure::usage("no data directory; set --data DIR, STATEHOUSE_DATA, or data in a settings file");
        let data = effective.data().ok_or_else(unnamed)?;
        Ok(serve(&data, &effective, |_| {})?)
    }
}

/// Serves a directory until it is told to stop; `say` prints more once it is ready.
fn serve(data: &Path, effective: &Effective, say: impl Fn(SocketAddr)) -> Result<(), Failed> {
    let began = Instant::now();
    let mut limits = effective.limits();
    let split = Budget::find(effective.memory_bytes()).split(&limits);
    split.lower(&mut limits);
    descriptors::raise(&mut limits);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(limits.requests_max + MORE_THREADS)
        .build()?;
    runtime.block_on(async {
        // Listen first: a failed start leaves nothing behind, and clients get an answer during a long replay.
        let listener = server::listen(effective.listen()).await?;
        let address = listener.local_addr()?;
        let json = log::start(effective.log(), effective.log_format())?;
        tracing::info!(version = env!("CARGO_PKG_VERSION"), data = %data.display(), memory = %split, "starting");
        let (percent, bytes) = effective.disk_low();
        let options = split.options().disk_reserve(DiskReserve { percent, bytes });
        let options = options.scrub_bytes_per_second(effective.scrub_bytes_per_second());
        let hosts = effective.hosts();
        let equipment = open_equipment(effective.clone()).await?;
        let house = open(data, options, &listener, &hosts).await?;
        tracing::info!(took = ?began.elapsed(), "started");
        // Before announcing that it serves: whoever reads that may stop it at once.
        let stop = stop();
        if !(json && one_file(std::io::stdout(), std::io::stderr())) {
            let data = terminal::one_line(&data.display().to_string());
            println!("statehouse {} serves {data} on http://{address}", env!("CARGO_PKG_VERSION"));
            println!("ready in {} ms; stop with ctrl-c", began.elapsed().as_millis());
            if !hosts.names().is_empty() {
                println!("answers to {}, localhost and IP addresses", hosts.names().join(", "));
            }
            say(address);
        }
        let server = Server::new(house).limited(limits).with_budget(split.budget).answering_to(hosts);
        let server = equipment.into_iter().fold(server, |server, equip| equip(server));
        server::serve_all(listener, server, stop).await?;
        Ok::<(), Failed>(())
    })?;
    // The remaining threads wait for a closed store; do not wait for them.
    runtime.shutdown_background();
    Ok(())
}

/// Opens what the contracts' settings name.
async fn open_equipment(effective: Effective) -> Result<Vec<Equipment>, Failed> {
    let opened = tokio::task::spawn_blocking(move || open_for_server(&effective)).await?;
    opened.map_err(|error| -> Failed { error })
}

/// Opens the directory. Clients that connect meanwhile are told the progress.
async fn open(data: &Path, options: Options, listener: &TcpListener, hosts: &Hosts) -> Result<Statehouse, Failed> {
    let opening = Arc::new(Opening::default());
    let (options, data) = (options.opening(opening.clone()), data.to_owned());
    let opened = tokio::task::spawn_blocking(move || options.open(data));
    tokio::select! {
        opened = opened => Ok(opened??),
        never = server::answer_while_starting(listener, opening, hosts) => match never {},
    }
}

/// Whether two streams are the same file or pipe: text for people would then end up among the lines of the log.
fn one_file(one: impl AsFd, other: impl AsFd) -> bool {
    match (rustix::fs::fstat(one), rustix::fs::fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

/// Waits for ctrl-c, SIGTERM or SIGHUP, which a closing terminal sends; listens from the call on. The next ctrl-c or SIGTERM
/// ends the process at once: every answered write is in the journal. The next SIGHUP does not, since a shell and the system each
/// send one when a terminal closes.
fn stop() -> impl Future<Output = ()> {
    let signals = Signals::listen();
    async {
        let Ok(mut signals) = signals else {
            // Without a handler the first signal ends the process.
            return std::future::pending().await;
        };
        signals.any().await;
        tokio::spawn(async move {
            signals.told().await;
            tracing::warn!("told to stop again; the journal will be replayed at the next opening");
            std::process::exit(1);
        });
    }
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        let hangup = match is_hangup_ignored() {
            true => None,
            false => Some(signal(SignalKind::hangup())?),
        };
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())?, hangup })
    }

    /// The first signal of any kind.
    async fn any(&mut self) {
        let Self { interrupt, terminate, hangup } = self;
        let hung_up = async {
            match hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hung_up => tracing::info!("hung up: stopping"),
        }
    }

    /// The next deliberate signal.
    async fn told(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Whether this process was started to outlive its terminal, as `nohup` does: a handler would undo that.
fn is_hangup_ignored() -> bool {
    const HANGUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & HANGUP != 0)
}
