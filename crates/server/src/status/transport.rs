//! Problems with what connections come over: certificates that cannot be replaced or expire, and protection that is missing.

use std::time::{Duration, SystemTime};

use contract::shell::Suggested;

use super::trouble::{Severity, Trouble, long_time};
use crate::TransportState;
use crate::dates::wall_now;
use crate::transport::tls::shown;

/// A certificate that expires before this is a problem.
const EXPIRES_SOON: Duration = Duration::from_secs(14 * 24 * 3_600);

/// Everything about connections that somebody should look at.
pub(super) fn problems(state: &TransportState) -> Vec<Trouble> {
    let mut found: Vec<Trouble> = Vec::new();
    found.extend(state.insecure.as_deref().map(insecure));
    if let Some(tls) = &state.tls {
        let certificate = tls.certificate().display().to_string();
        found.extend(expiring(&certificate, tls.not_after(), wall_now()));
        found.extend(tls.error().map(|error| not_reloaded(&certificate, &error.to_string())));
    }
    found
}

fn insecure(missing: &str) -> Trouble {
    Trouble {
        problem: "insecure",
        severity: Severity::Warning,
        object: "server".into(),
        text: format!(
            "{missing}, because server.insecure is set: whoever reaches the address can read or change what is sent, or stored"
        ),
        number: 1.0,
        threshold: 0.0,
        unit: "addresses",
        command: Suggested::new(["statehouse", "config", "show", "--origins"]),
    }
}

fn not_reloaded(certificate: &str, error: &str) -> Trouble {
    Trouble {
        problem: "certificates_not_reloaded",
        severity: Severity::Warning,
        object: certificate.into(),
        text: format!("the files have changed and cannot be used, so the old ones stay in use: {error}"),
        number: 1.0,
        threshold: 0.0,
        unit: "unusable files",
        command: look_at(certificate),
    }
}

fn expiring(certificate: &str, not_after: SystemTime, now: SystemTime) -> Option<Trouble> {
    let left = not_after.duration_since(now).unwrap_or_default();
    let at = shown(not_after);
    let (severity, text) = match left.is_zero() {
        true => (Severity::Critical, format!("it has expired at {at}: no client that checks it can connect")),
        false => (Severity::Warning, format!("it expires in {}, at {at}", long_time(left))),
    };
    (left < EXPIRES_SOON).then(|| Trouble {
        problem: "certificate_expires",
        severity,
        object: certificate.into(),
        text,
        number: left.as_secs_f64(),
        threshold: EXPIRES_SOON.as_secs_f64(),
        unit: "seconds",
        command: look_at(certificate),
    })
}

fn look_at(certificate: &str) -> Suggested {
    Suggested::new(["openssl", "x509", "-noout", "-dates", "-ext", "subjectAltName", "-in", certificate])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_a_problem_two_weeks_before_it_expires() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let severity = |left: Duration| expiring("server.pem", now + left, now).map(|found| found.severity);
        assert_eq!(severity(EXPIRES_SOON), None);
        assert_eq!(severity(EXPIRES_SOON - Duration::from_secs(1)), Some(Severity::Warning));
        assert_eq!(severity(Duration::ZERO), Some(Severity::Critical));
        let long_ago = expiring("server.pem", now - EXPIRES_SOON, now).expect("expired");
        assert_eq!((long_ago.severity, long_ago.number), (Severity::Critical, 0.0));
    }
}
