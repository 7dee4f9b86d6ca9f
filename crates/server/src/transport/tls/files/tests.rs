//! Pairs of files that can be used, and those that cannot, each with what is said of it.

use std::fs;

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, date_time_ymd};

use super::*;

struct Pair {
    folder: tempfile::TempDir,
    files: TlsFiles,
}

/// A pair of files, with a certificate of one day in the past, present or future.
fn pair(with: impl FnOnce(&mut CertificateParams)) -> Pair {
    let folder = tempfile::tempdir().expect("a folder");
    let files = TlsFiles {
        certificate: folder.path().join("server.pem"),
        key: folder.path().join("server.key"),
        client_ca: None,
    };
    let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    with(&mut params);
    let key = KeyPair::generate().expect("a key");
    fs::write(&files.certificate, params.self_signed(&key).expect("a certificate").pem()).expect("written");
    fs::write(&files.key, key.serialize_pem()).expect("written");
    Pair { folder, files }
}

/// What is said of a pair; the error names the file and what to do.
fn wrong(files: &TlsFiles, file: &Path) -> String {
    let error = files.load().expect_err("it cannot be used");
    assert_eq!(error.file(), file, "{error}");
    let said = error.to_string();
    let rest = said.strip_prefix(&format!("{}: ", file.display())).expect("the file comes first");
    assert!(rest.contains("; "), "there is a next step: {said}");
    rest.to_owned()
}

#[test]
fn a_pair_that_fits_can_be_used() {
    let pair = pair(|_| {});
    let loaded = pair.files.load().expect("a pair");
    assert!(loaded.not_after > wall_now());
    assert_eq!((loaded.config.alpn_protocols.len(), loaded.config.max_early_data_size), (1, 0));
}

#[test]
fn a_certificate_is_refused_when_it_is_not_valid() {
    let expired = pair(|params| params.not_after = date_time_ymd(2020, 1, 1));
    let said = wrong(&expired.files, &expired.files.certificate);
    assert!(said.starts_with("its certificate has expired at 2020-01-01T00:00:00Z"), "{said}");
    let early = pair(|params| params.not_before = date_time_ymd(4000, 1, 1));
    let said = wrong(&early.files, &early.files.certificate);
    assert!(said.starts_with("its certificate is not valid before 4000-01-01T00:00:00Z"), "{said}");
}

#[test]
fn a_key_is_that_of_the_certificate() {
    let (one, other) = (pair(|_| {}), pair(|_| {}));
    let mixed = TlsFiles { key: other.files.key.clone(), ..one.files.clone() };
    let said = wrong(&mixed, &other.files.key);
    assert!(said.starts_with(&format!("it is not the key of the certificate in {}", one.files.certificate.display())));
}

#[test]
fn a_chain_begins_with_the_certificate_of_the_key_and_has_nothing_else_in_it() {
    let (server, between) = (pair(|_| {}), pair(|_| {}));
    let text = |pair: &Pair| fs::read_to_string(&pair.files.certificate).expect("a certificate");
    let chain = |parts: &[&str]| {
        let file = server.folder.path().join("chain.pem");
        fs::write(&file, parts.concat()).expect("written");
        TlsFiles { certificate: file, ..server.files.clone() }
    };
    let (first, second) = (text(&server), text(&between));
    chain(&[&first, &second]).load().expect("a chain");
    let swapped = chain(&[&second, &first]);
    let said = wrong(&swapped, &swapped.certificate);
    assert!(said.starts_with("its certificates are in the wrong order: "), "{said}");
    let broken = chain(&[&first, "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"]);
    let said = wrong(&broken, &broken.certificate);
    assert!(said.starts_with("what is marked as a certificate in it, number 2, is none: "), "{said}");
}

#[test]
fn a_certificate_for_clients_only_is_refused() {
    let only = |usages: &[ExtendedKeyUsagePurpose]| pair(|params| params.extended_key_usages = usages.to_vec());
    let client = only(&[ExtendedKeyUsagePurpose::ClientAuth]);
    let said = wrong(&client.files, &client.files.certificate);
    assert!(said.starts_with("its certificate is for other uses than those of a server; "), "{said}");
    for usages in [
        &[ExtendedKeyUsagePurpose::ServerAuth][..],
        &[ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth],
    ] {
        only(usages).files.load().expect("it is for servers");
    }
}

#[test]
fn what_does_not_parse_is_named_and_not_repeated() {
    let pair = pair(|_| {});
    let secret = fs::read_to_string(&pair.files.key).expect("a key");
    let line = secret.lines().nth(1).expect("a line of the key").to_owned();
    let cut = format!("-----BEGIN PRIVATE KEY-----\n{line}\n");
    let certificate = |text: &str| {
        let file = pair.folder.path().join("other.pem");
        fs::write(&file, text).expect("written");
        wrong(&TlsFiles { certificate: file.clone(), ..pair.files.clone() }, &file)
    };
    let key = |text: &str| {
        let file = pair.folder.path().join("other.key");
        fs::write(&file, text).expect("written");
        wrong(&TlsFiles { key: file.clone(), ..pair.files.clone() }, &file)
    };
    let said = [
        (certificate(""), "it has no certificate"),
        (certificate(&secret), "it has no certificate"),
        (
            certificate("-----BEGIN CERTIFICATE-----\n%\n-----END CERTIFICATE-----\n"),
            "it is not PEM: a section is not base64",
        ),
        (certificate("-----BEGIN CERTIFICATE-----\nMAA=\n"), "it is not PEM: a section has no end"),
        (
            certificate("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"),
            "what is marked as a certificate",
        ),
        (key(""), "it has no private key"),
        (key(&cut), "its private key is cut or mistyped"),
        (key("-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n"), "it has a key that cannot be used"),
        (
            key("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n"),
            "its key is encrypted",
        ),
        (
            key(
                "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nMAA=\n-----END EC PRIVATE KEY-----\n",
            ),
            "its key is encrypted",
        ),
    ];
    for (said, expected) in said {
        assert!(said.starts_with(expected) && !said.contains(&line), "{expected}: {said}");
    }
    let gone = pair.folder.path().join("gone");
    assert!(wrong(&TlsFiles { key: gone.clone(), ..pair.files.clone() }, &gone).contains("No such file"));
    let folder = pair.folder.path().to_owned();
    assert!(wrong(&TlsFiles { key: folder.clone(), ..pair.files.clone() }, &folder).contains("no file of PEM"));
    let no_ca = TlsFiles { client_ca: Some(pair.files.key.clone()), ..pair.files.clone() };
    assert!(wrong(&no_ca, &pair.files.key).starts_with("it has no certificate"));
}
