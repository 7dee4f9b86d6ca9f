//! What a server listens on: an address with or without TLS, and a socket in the file system.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use server::{Exposure, Listeners, Tls};

use crate::Failed;
use crate::config::{Effective, Flag};

/// The flags of `dev` and `serve` that say how clients connect.
#[derive(Args)]
#[group(skip)]
pub(crate) struct TransportFlags {
    /// A socket in the file system to listen on, too [setting server.socket].
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The file of the certificate, in PEM; with it, the address speaks only TLS [setting server.tls_certificate].
    #[arg(long, value_name = "FILE")]
    tls_certificate: Option<PathBuf>,
    /// The file of its private key [setting server.tls_key].
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// The file of the authorities of client certificates [setting server.tls_client_ca].
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
    /// Let other machines reach the server without TLS or without tokens [setting server.insecure].
    #[arg(long)]
    insecure: bool,
}

impl TransportFlags {
    /// Those that are given, with the settings that they set.
    pub(crate) fn given(&self) -> impl Iterator<Item = Flag> {
        let path = |flag, key, path: &Option<PathBuf>| {
            path.as_ref().map(|path| (flag, key, path.to_string_lossy().into_owned()))
        };
        [
            path("--socket", "server.socket", &self.socket),
            path("--tls-certificate", "server.tls_certificate", &self.tls_certificate),
            path("--tls-key", "server.tls_key", &self.tls_key),
            path("--tls-client-ca", "server.tls_client_ca", &self.tls_client_ca),
            self.insecure.then(|| ("--insecure", "server.insecure", "true".to_owned())),
        ]
        .into_iter()
        .flatten()
    }
}

/// Listens as the settings say. Certificates are checked first, so that a refused start has not listened at all.
pub(crate) async fn listen(effective: &Effective) -> Result<Listeners, Failed> {
    let tls = effective.tls_files()?.map(Tls::open).transpose()?;
    let exposure = Exposure {
        has_tls: tls.is_some(),
        asks_for_tokens: effective.requires_tokens(),
        is_insecure_allowed: effective.is_insecure_allowed(),
    };
    let listeners = Listeners::bind(effective.listen(), exposure).await?;
    let listeners = match tls {
        Some(tls) => listeners.over_tls(Arc::new(tls)),
        None => listeners,
    };
    Ok(match effective.socket() {
        Some(socket) => listeners.and_on_socket(&socket)?,
        None => listeners,
    })
}

/// Where clients reach the address.
pub(crate) fn url(listeners: &Listeners) -> Result<String, Failed> {
    let scheme = if listeners.tls().is_some() { "https" } else { "http" };
    Ok(format!("{scheme}://{}", listeners.local_addr()?))
}
