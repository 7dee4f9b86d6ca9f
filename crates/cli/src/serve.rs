//! `dev` and `serve`: a server on this machine.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use clap::Args;
use client::token::TOKEN_FILE_VARIABLE;
use server::memory::Budget;
use server::{Listeners, Server, descriptors};
use statehouse::shell::Suggested;
use statehouse::{DiskReserve, Opening, Options, Statehouse, terminal};
use tokio::time::{MissedTickBehavior, interval};
use wire::routes::{CELLS_WRITE, RECORDS_PUT};

use crate::config::{ConfigError, Effective, Flag, OFF, TOKENS};
use crate::equipment::{ContractFlags, Equipment, open_for_server};
use crate::exit::Failure;
use crate::own_server::OwnServer;
use crate::reload::Reloader;
use crate::service_manager::ServiceManager;
use crate::stop::{Hangups, Reload, stop};
use crate::transport::{self, TransportFlags};
use crate::{Failed, log, root_token, watchdog};

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
    /// Address to listen on; beyond this machine it needs TLS and tokens [setting server.listen].
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    transport: TransportFlags,
    /// Whether requests must show a token: required or off [setting server.tokens].
    #[arg(long, value_name = "WHETHER")]
    tokens: Option<String>,
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
    /// The settings in effect, with one command's other defaults and additional flags.
    fn gather(
        &self,
        other_defaults: &[(&str, &str)],
        more: impl IntoIterator<Item = Flag>,
    ) -> Result<Effective, ConfigError> {
        let listen = self.listen.map(|address| ("--listen", "server.listen", address.to_string()));
        let memory = self.memory.clone().map(|memory| ("--memory", "memory", memory));
        let log = self.log.clone().map(|log| ("--log", "log", log));
        let tokens = self.tokens.clone().map(|tokens| ("--tokens", TOKENS, tokens));
        let own = [listen, memory, log, tokens].into_iter().flatten().chain(self.transport.given());
        let flags = own.chain(self.of_contracts.given()).chain(more);
        let environment = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let environment = environment.map(|(name, value)| (name, value.to_string_lossy().into_owned()));
        Effective::gather_for(other_defaults, self.config.as_deref(), environment, flags)
    }
}

/// How a server reads its settings again.
struct Regather {
    file: Option<PathBuf>,
    gather: Box<dyn Fn() -> Result<Effective, ConfigError> + Send>,
}

/// Threads for the server's own work, besides one per request.
const MORE_THREADS: usize = 16;

impl Dev {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let any_port = self.random_ports.then(|| ("--random-ports", "server.listen", "127.0.0.1:0".to_owned()));
        // To try things out: nobody but this machine reaches it, and its data is no one else's.
        let effective = self.settings.gather(&[(TOKENS, OFF)], any_port).map_err(|error| Failure::from(&error))?;
        let try_it = |url: &str| {
            println!("try:");
            let (greeting, job) = (CELLS_WRITE.at(&["greeting"]), RECORDS_PUT.at(&["jobs.1"]));
            println!("  curl -X PUT {url}{greeting} -d '\"hello\"'");
            println!("  curl {url}{greeting}");
            println!("  curl -X PUT {url}{job} -d '{{\"type\":\"task\",\"fields\":{{}}}}'");
        };
        match &self.keep {
            Some(directory) => Ok(serve(directory, &effective, None, try_it)?),
            None => {
                let directory = tempfile::tempdir().map_err(Failed::from)?;
                Ok(serve(&directory.path().join("house"), &effective, None, try_it)?)
            }
        }
    }
}

impl Serve {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { data, settings } = self;
        let data = data.map(|path| ("--data", "data", path.to_string_lossy().into_owned()));
        let effective = settings.gather(&[], data.clone()).map_err(|error| Failure::from(&error))?;
        let unnamed =
            || Failure::usage("no data directory; set --data DIR, STATEHOUSE_DATA, or data in a settings file");
        let directory = effective.data().ok_or_else(unnamed)?;
        let file = settings.config.clone();
        let regather = Regather { file, gather: Box::new(move || settings.gather(&[], data.clone())) };
        Ok(serve(&directory, &effective, Some(regather), |_| {})?)
    }
}

/// Serves a directory until it is told to stop; `say` prints more once it is ready. A hangup makes it read its settings again, or
/// ends it if it cannot.
fn serve(data: &Path, effective: &Effective, regather: Option<Regather>, say: impl Fn(&str)) -> Result<(), Failed> {
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
        let listeners = transport::listen(effective).await?;
        let (address, url) = (listeners.local_addr()?, transport::url(&listeners)?);
        let log = log::start(effective.log(), effective.log_format())?;
        let manager = Arc::new(ServiceManager::of_this_process());
        let hangups = Hangups::listen()?;
        tracing::info!(version = env!("CARGO_PKG_VERSION"), data = %data.display(), memory = %split, insecure = listeners.insecure(), "starting");
        let (percent, bytes) = effective.disk_low();
        let options = split.options().disk_reserve(DiskReserve { percent, bytes });
        let options = options.scrub_bytes_per_second(effective.scrub_bytes_per_second());
        let hosts = effective.hosts();
        let (equipment, house) = open(data, options, effective, &listeners, &manager).await?;
        let mut made_root = None;
        if effective.requires_tokens() {
            let file = effective.root_token_file().unwrap_or_else(|| data.join(root_token::FILE));
            if root_token::make_first(&house, &file).map_err(|failure| failure.detail)? {
                tracing::info!(principal = root_token::ROOT, file = %file.display(), "the first administrator was made");
                made_root = Some(file);
            }
        }
        tracing::info!(took = ?began.elapsed(), "started");
        let server = Server::new(house).limited(limits).with_budget(split.budget).answering_to(hosts.clone());
        let server = if effective.requires_tokens() { server.asking_for_tokens() } else { server };
        let server = equipment.into_iter().fold(server, |server, equip| equip(server));
        let serves = format!("serving on {url}");
        let reload = regather.map(|Regather { file, gather }| {
            let (running, log, server) = (effective.clone(), log.filter, server.reloading());
            let certificates = listeners.tls().cloned();
            reload(Reloader { running, gather, file, log, server, certificates }, manager.clone(), serves.clone())
        });
        // Before announcing that it serves: whoever reads that may stop it at once.
        let stop = stop(hangups, reload);
        if !(log.is_json && one_file(std::io::stdout(), std::io::stderr())) {
            let data = terminal::one_line(&data.display().to_string());
            println!("statehouse {} serves {data} on {url}", env!("CARGO_PKG_VERSION"));
            println!("ready in {} ms; stop with ctrl-c", began.elapsed().as_millis());
            if !hosts.names().is_empty() {
                println!("answers to {}, localhost and IP addresses", hosts.names().join(", "));
            }
            if let Some(socket) = listeners.socket() {
                println!("and on the socket {}", terminal::one_line(&socket.display().to_string()));
            }
            if let Some(missing) = listeners.insecure() {
                println!("INSECURE: {missing}");
            }
            if let Some(file) = made_root {
                let export = Suggested::new(["export"]).name(format!("{TOKEN_FILE_VARIABLE}={}", file.display()));
                println!("requests must show a token; that of the first administrator: {}", export.shell());
            }
            say(&url);
        }
        manager.ready(&serves);
        let (told, kept) = (manager.clone(), manager.clone());
        let own = OwnServer::at(address);
        let own = if listeners.tls().is_some() { own.over_tls()? } else { own };
        let load = server.load().clone();
        let watchdog = tokio::spawn(async move { watchdog::keep(&kept, &own, &load).await });
        let stop = async move {
            stop.await;
            told.stopping();
        };
        let served = server::serve_all(listeners, server, stop).await;
        watchdog.abort();
        served?;
        Ok::<(), Failed>(())
    })?;
    // The remaining threads wait for a closed store; do not wait for them.
    runtime.shutdown_background();
    Ok(())
}

/// Reads the settings again whenever it is called, where it may block.
fn reload(reloader: Reloader, manager: Arc<ServiceManager>, serves: String) -> Reload {
    let reloader = Arc::new(Mutex::new(reloader));
    Box::new(move || {
        let (reloader, manager, serves) = (reloader.clone(), manager.clone(), serves.clone());
        Box::pin(async move {
            manager.reloading();
            let done = tokio::task::spawn_blocking(move || {
                reloader.lock().unwrap_or_else(PoisonError::into_inner).reload();
            });
            if let Err(error) = done.await {
                tracing::error!(%error, "the settings were not read again");
            }
            manager.ready(&serves);
        })
    })
}

/// Opens what the contracts' settings name, then the directory. Clients that connect meanwhile are told the progress, and so is
/// the service manager.
async fn open(
    data: &Path,
    options: Options,
    effective: &Effective,
    listeners: &Listeners,
    manager: &ServiceManager,
) -> Result<(Vec<Equipment>, Statehouse), Failed> {
    let opening = Arc::new(Opening::default());
    let (options, data) = (options.opening(opening.clone()), data.to_owned());
    let settings = effective.clone();
    type Sent = Box<dyn std::error::Error + Send + Sync>;
    let opened = tokio::task::spawn_blocking(move || -> Result<_, Sent> {
        let equipment = open_for_server(&settings)?;
        Ok((equipment, options.open(data)?))
    });
    let hosts = effective.hosts();
    let told = async {
        let mut ticks = interval(watchdog::PROGRESS_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            manager.say(&format!("opening the directory: {} % of the journal replayed", opening.percent()));
        }
    };
    tokio::select! {
        opened = opened => opened?.map_err(|error| -> Failed { error }),
        never = server::answer_while_starting(listeners, opening.clone(), &hosts) => match never {},
        () = told, if manager.is_there() => unreachable!("it goes on until the directory is open"),
    }
}

/// Whether two streams are the same file or pipe: text for people would then end up among the lines of the log.
fn one_file(one: impl AsFd, other: impl AsFd) -> bool {
    match (rustix::fs::fstat(one), rustix::fs::fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}
