//! Metrics of what connections come over: handshakes, certificates, and protection that is missing.

use std::time::SystemTime;

use super::list;
use super::text::Scrape;
use crate::TransportState;
use crate::transport::tls::CAUSES;

/// Writes them; those of TLS are 0 without it.
pub(super) fn write(state: &TransportState, scrape: &mut Scrape) {
    scrape.whole(&list::INSECURE, &[], state.insecure.is_some().into());
    let tls = state.tls.as_ref();
    let not_after = tls.map_or(SystemTime::UNIX_EPOCH, |tls| tls.not_after());
    let since = not_after.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    scrape.real(&list::TLS_NOT_AFTER, &[], since.as_secs_f64());
    let (done, failed) = tls.map_or((0, 0), |tls| tls.reloads());
    scrape.whole(&list::TLS_RELOADS, &["done"], done);
    scrape.whole(&list::TLS_RELOADS, &["failed"], failed);
    scrape.whole(&list::TLS_UNUSABLE, &[], tls.is_some_and(|tls| tls.error().is_some()).into());
    match tls {
        Some(tls) => tls.failures().counts().for_each(|(cause, count)| failed_handshakes(scrape, cause, count)),
        None => CAUSES.iter().for_each(|cause| failed_handshakes(scrape, cause, 0)),
    }
}

fn failed_handshakes(scrape: &mut Scrape, cause: &str, count: u64) {
    scrape.whole(&list::TLS_HANDSHAKES_FAILED, &[cause], count);
}
