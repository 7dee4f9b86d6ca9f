//! `dev` and `serve`: a server on this machine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use statehouse::Statehouse;

use crate::Failed;

/// Where a server listens if it is not said: the port that every example uses.
const LISTEN: &str = "127.0.0.1:7420";

/// A server to try things on: its data goes when it stops.
///
/// Examples:
///   statehouse dev
///   statehouse dev --listen 127.0.0.1:7421
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Dev {
    /// Where to listen; only this machine can connect.
    #[arg(long, env = "STATEHOUSE_LISTEN", default_value = LISTEN)]
    listen: SocketAddr,
}

/// A server over a directory, which is made if it does not exist.
///
/// Examples:
///   statehouse serve --data /var/lib/statehouse
///   statehouse serve --data ./data --listen 127.0.0.1:7421
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Serve {
    /// The directory.
    #[arg(long, env = "STATEHOUSE_DATA")]
    data: PathBuf,
    /// Where to listen; only this machine can connect.
    #[arg(long, env = "STATEHOUSE_LISTEN", default_value = LISTEN)]
    listen: SocketAddr,
}

impl Dev {
    pub(crate) fn run(self) -> Result<(), Failed> {
        let directory = tempfile::tempdir()?;
        serve(&directory.path().join("house"), self.listen)
    }
}

impl Serve {
    pub(crate) fn run(self) -> Result<(), Failed> {
        serve(&self.data, self.listen)
    }
}

fn serve(data: &Path, listen: SocketAddr) -> Result<(), Failed> {
    let began = Instant::now();
    let house = Statehouse::open(data)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = server::listen(listen).await?;
        let address = listener.local_addr()?;
        println!("statehouse {} serves {} on http://{address}", env!("CARGO_PKG_VERSION"), data.display());
        println!("ready in {} ms; stop with ctrl-c", began.elapsed().as_millis());
        server::serve(listener, house, stop()).await
    })?;
    Ok(())
}

/// Waits for ctrl-c or a SIGTERM.
async fn stop() {
    let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) else {
        let _ = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
