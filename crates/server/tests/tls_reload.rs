//! Certificates that are replaced while the server runs, through real sockets.

mod over_tls;
mod running;

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::time::Duration;

use over_tls::{Answer, OverTls, eventually, files, request};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use testkit::certificates::{Pair, connect};

/// As often as the server looks at its files.
const LOOK: Duration = Duration::from_secs(5);

/// What the server shows to a new connection.
fn shown(served: &OverTls) -> CertificateDer<'static> {
    let mut stream = connect(served.running.address, served.authority.trusted());
    stream.write_all(request("GET", "/livez", "", "").as_bytes()).expect("sent");
    assert_eq!(Answer::read(&mut stream).status, 200);
    stream.conn.peer_certificates().expect("a certificate")[0].clone()
}

fn of(pair: &Pair) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(&pair.certificate).expect("a certificate")
}

fn replace(served: &OverTls, with: &Pair) {
    fs::copy(&with.key, &served.pair.key).expect("copied");
    fs::copy(&with.certificate, &served.pair.certificate).expect("copied");
}

#[test]
fn a_new_pair_is_used_by_new_connections_and_a_bad_one_is_not() {
    let served = OverTls::start(|server| server);
    let first = shown(&served);
    let mut old = connect(served.running.address, served.authority.trusted());
    old.flush().expect("a handshake");
    let second = served.authority.server("second");
    replace(&served, &second);
    assert_eq!(shown(&served), first, "nobody has read the files again");
    served.tls.reload().expect("a pair");
    assert_eq!(shown(&served), of(&second));
    old.write_all(request("GET", "/livez", "", "").as_bytes()).expect("sent");
    assert_eq!(Answer::read(&mut old).status, 200, "what is connected goes on");

    let third = served.authority.server("third");
    fs::copy(&third.key, &served.pair.key).expect("copied");
    let error = served.tls.reload().expect_err("they do not fit").to_string();
    assert!(error.contains("it is not the key of the certificate in"), "{error}");
    assert_eq!(shown(&served), of(&second), "the old pair stays in use");
    let problems = served.problems();
    assert!(problems["certificates_not_reloaded"].contains(&error), "{problems:?}");
    let count = |name: &str| served.scrape()[name];
    assert_eq!(count("statehouse_tls_files_unusable"), 1.0);
    assert_eq!(count("statehouse_tls_reloads_total{result=\"failed\"}"), 1.0);
    assert_eq!(count("statehouse_tls_reloads_total{result=\"done\"}"), 1.0);
    replace(&served, &third);
    served.tls.reload().expect("a pair");
    assert_eq!(shown(&served), of(&third));
    assert!(!served.problems().contains_key("certificates_not_reloaded"));
    assert_eq!(count("statehouse_tls_files_unusable"), 0.0);
    let until = count("statehouse_tls_certificate_not_after_timestamp_seconds");
    assert!(until > 4e9, "rcgen's own end is far away: {until}");
    assert_eq!(count("statehouse_insecure"), 0.0);
}

#[test]
fn the_server_finds_new_files_behind_a_link_by_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().to_owned();
    // As Kubernetes mounts a secret: files that lead through a link to a folder, which is replaced as a whole.
    let mount = move |pair: &Pair, version: &str| {
        let place = at.join(version);
        fs::create_dir(&place).expect("made");
        fs::copy(&pair.certificate, place.join("tls.crt")).expect("copied");
        fs::copy(&pair.key, place.join("tls.key")).expect("copied");
        symlink(version, at.join("new")).expect("linked");
        fs::rename(at.join("new"), at.join("data")).expect("replaced");
        Pair { certificate: at.join("data/tls.crt"), key: at.join("data/tls.key") }
    };
    let served = OverTls::start_with(true, |pair, _| files(&mount(pair, "one"), None), |server| server);
    assert_eq!(shown(&served), of(&served.pair));
    let second = served.authority.server("second");
    mount(&second, "two");
    served.running.advance(LOOK);
    eventually("the new one is used", || shown(&served) == of(&second));
    let bad = Pair { key: served.authority.server("third").key, ..second.clone() };
    mount(&bad, "three");
    served.running.advance(LOOK);
    eventually("it is a problem", || served.problems().contains_key("certificates_not_reloaded"));
    assert_eq!(shown(&served), of(&second));
}
