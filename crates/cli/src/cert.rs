//! `cert`: certificates to develop with: an authority, and what it signs for servers and clients.
//!
//! Touches: the folder of the certificates. Keeps: only the owner can read its files, and none is replaced. Never: reaches a store.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use contract::access::Identity;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::json;
use statehouse::owner_only;
use statehouse::shell::Suggested;

use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::table::plain;

/// The name of every authority that this command makes; its key follows.
const AUTHORITY: &str = "Statehouse development CA";

/// The files of the authority.
const CA: &str = "ca";

/// Long enough for any try, and short enough for the numbers of a date.
const DAYS_MAX: u16 = 3_650;

/// Certificates to develop with: an authority of your own, and what it signs for servers and clients.
///
/// Whoever has ca.key can be any server and any client. In production, take the certificates of your own authority.
///
/// Examples:
///   statehouse cert ca --dir certs
///   statehouse cert server localhost 127.0.0.1 --dir certs
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Cert {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Make an authority: ca.pem, which servers and clients trust, and ca.key, which signs for them.
    ///
    /// Examples:
    ///   statehouse cert ca
    ///   statehouse cert ca --dir certs --days 30
    #[command(verbatim_doc_comment)]
    Ca {
        #[command(flatten)]
        place: Place,
    },
    /// Make a certificate and a key for a server, signed by the authority in the same folder.
    ///
    /// Examples:
    ///   statehouse cert server
    ///   statehouse cert server state.internal 10.0.0.7 --dir certs --days 30
    #[command(verbatim_doc_comment)]
    Server {
        /// Its host names and addresses. Default: localhost, 127.0.0.1 and ::1.
        #[arg(value_name = "HOST")]
        hosts: Vec<String>,
        /// The name of the files: NAME.pem and NAME.key.
        #[arg(long, value_name = "NAME", default_value = "server")]
        name: String,
        #[command(flatten)]
        place: Place,
    },
    /// Make a certificate and a key for a client, signed by the authority in the same folder.
    ///
    /// A principal is known by its URI: `statehouse principal set mailer ... --identity URI`.
    ///
    /// Examples:
    ///   statehouse cert client spiffe://example.org/mailer
    ///   statehouse cert client spiffe://example.org/mailer --name mailer --dir certs
    #[command(verbatim_doc_comment)]
    Client {
        /// Who it is.
        #[arg(value_name = "URI")]
        uri: String,
        /// The name of the files: NAME.pem and NAME.key.
        #[arg(long, value_name = "NAME", default_value = "client")]
        name: String,
        #[command(flatten)]
        place: Place,
    },
}

/// Where a certificate is written, and how long it is valid.
#[derive(Args)]
struct Place {
    /// The folder of the certificates, made if it is missing.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// How many days it is valid.
    #[arg(long, value_name = "DAYS", default_value = "365", value_parser = clap::value_parser!(u16).range(1..=i64::from(DAYS_MAX)))]
    days: u16,
}

impl Cert {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self.verb {
            Verb::Ca { place } => place.make_authority(&output),
            Verb::Server { hosts, name, place } => {
                let usual = || ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
                let hosts = if hosts.is_empty() { usual() } else { hosts };
                hosts.iter().try_for_each(|host| check_host(host))?;
                let params = CertificateParams::new(hosts).map_err(|error| unusable("a host", &error))?;
                place.make(params, ExtendedKeyUsagePurpose::ServerAuth, &name, &output)
            }
            Verb::Client { uri, name, place } => {
                let Ok(Identity::Uri(uri)) = Identity::parse(&uri) else {
                    let next = "give a URI such as spiffe://example.org/mailer";
                    return Err(Failure::usage(format!("{uri:?} is no URI that a principal can have")).next(next));
                };
                let uri = SanType::URI(uri.as_str().try_into().map_err(|error| unusable("the URI", &error))?);
                let mut params = CertificateParams::default();
                params.subject_alt_names.push(uri);
                place.make(params, ExtendedKeyUsagePurpose::ClientAuth, &name, &output)
            }
        }
    }
}

impl Place {
    fn make_authority(&self, output: &Output) -> Result<(), Failure> {
        let key = new_key()?;
        let mut params = authority(&key);
        self.date(&mut params)?;
        let made = params.self_signed(&key).map_err(|error| unusable("the authority", &error))?;
        self.write(CA, &made.pem(), &key, output)
    }

    /// Makes a certificate that the authority in the folder signs.
    fn make(
        &self,
        mut params: CertificateParams,
        purpose: ExtendedKeyUsagePurpose,
        name: &str,
        output: &Output,
    ) -> Result<(), Failure> {
        if name.is_empty() || name == CA || name.contains('/') || name.starts_with('.') {
            return Err(Failure::usage(format!("{name:?} cannot be the name of the files")).next("give another --name"));
        }
        let (ca, ca_key) = self.authority()?;
        let issuer = Issuer::new(authority(&ca_key), ca_key);
        let key = new_key()?;
        self.date(&mut params)?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let usage = match purpose {
            ExtendedKeyUsagePurpose::ServerAuth => webpki::KeyUsage::server_auth(),
            _ => webpki::KeyUsage::client_auth(),
        };
        params.extended_key_usages = vec![purpose];
        params.use_authority_key_identifier_extension = true;
        let made = params.signed_by(&key, &issuer).map_err(|error| unusable("the certificate", &error))?;
        self.verify(made.der(), &ca, usage)?;
        self.write(name, &made.pem(), &key, output)
    }

    /// The certificate and the key of the authority.
    fn authority(&self) -> Result<(CertificateDer<'static>, KeyPair), Failure> {
        let (certificate, key) = (self.file(CA, "pem"), self.file(CA, "key"));
        let make = || {
            let dir = self.dir.to_string_lossy();
            Suggested::new(["statehouse", "cert", "ca"]).flag("--dir", dir)
        };
        let missing = |path: &Path, error: &dyn std::fmt::Display| {
            let failure = Failure::new(Exit::NotFound, format!("{}: {error}", path.display()));
            failure.run("make an authority", make())
        };
        let text = owner_only::open(&key).and_then(std::io::read_to_string).map_err(|error| missing(&key, &error))?;
        // What is wrong with a key is not repeated: it could be a part of it.
        let signs = KeyPair::from_pem(&text).map_err(|_| missing(&key, &"it has no key that can be used"))?;
        let text = std::fs::read(&certificate).map_err(|error| missing(&certificate, &error))?;
        let found = CertificateDer::from_pem_slice(&text);
        let found = found.map_err(|_| missing(&certificate, &"it has no certificate that can be used"))?;
        Ok((found, signs))
    }

    /// Refuses what nobody would accept: the authority is another one, or has expired.
    fn verify(
        &self,
        made: &CertificateDer<'_>,
        ca: &CertificateDer<'_>,
        usage: webpki::KeyUsage,
    ) -> Result<(), Failure> {
        let refused = |error: webpki::Error| {
            let file = self.file(CA, "pem");
            Failure::usage(format!("{} and ca.key do not sign it: {error}", file.display()))
                .next("use another folder: this command signs only with authorities that it has made")
        };
        let anchor = webpki::anchor_from_trusted_cert(ca).map_err(refused)?;
        let parsed = webpki::EndEntityCert::try_from(made).map_err(refused)?;
        let algorithms = webpki::ALL_VERIFICATION_ALGS;
        parsed.verify_for_usage(algorithms, &[anchor], &[], UnixTime::now(), usage, None, None).map_err(refused)?;
        Ok(())
    }

    /// Valid since yesterday, because clocks differ.
    fn date(&self, params: &mut CertificateParams) -> Result<(), Failure> {
        let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
        let after = |days: i64| {
            let date = today.checked_add(jiff::Span::new().days(days));
            date.map_err(|error| Failure::usage(format!("--days: {error}")))
        };
        let of =
            |date: Date| date_time_ymd(i32::from(date.year()), date.month().unsigned_abs(), date.day().unsigned_abs());
        params.not_before = of(after(-1)?);
        params.not_after = of(after(i64::from(self.days) + 1)?);
        Ok(())
    }

    fn file(&self, name: &str, extension: &str) -> PathBuf {
        self.dir.join(format!("{name}.{extension}"))
    }

    /// Writes both files, or none.
    fn write(&self, name: &str, certificate: &str, key: &KeyPair, output: &Output) -> Result<(), Failure> {
        let (certificate_file, key_file) = (self.file(name, "pem"), self.file(name, "key"));
        let failed = |path: &Path, error: &std::io::Error| {
            Failure::usage(format!("{}: {error}", path.display()))
                .next("give another --dir or --name; no file is replaced")
        };
        owner_only::create_folders(&self.dir).map_err(|error| failed(&self.dir, &error))?;
        let new = |path: &Path| owner_only::create_new(path).map_err(|error| failed(path, &error));
        let mut first = new(&certificate_file)?;
        let put = |file: &mut File, path: &Path, text: &str| {
            let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
            written.map_err(|error| failed(path, &error))
        };
        let second = new(&key_file);
        let is_key_ours = second.is_ok();
        let written = second.and_then(|mut second| {
            put(&mut first, &certificate_file, certificate)?;
            put(&mut second, &key_file, &key.serialize_pem())
        });
        if let Err(failure) = written {
            let _ = std::fs::remove_file(&certificate_file);
            if is_key_ours {
                let _ = std::fs::remove_file(&key_file);
            }
            return Err(failure);
        }
        let made = json!({ "certificate": certificate_file, "key": key_file, "days": self.days });
        output
            .card(&made, &[plain("CERTIFICATE", "certificate").raw(), plain("KEY", "key").raw(), plain("DAYS", "days")])
    }
}

/// Refuses what no client compares with the host of a URL, such as a URL.
fn check_host(host: &str) -> Result<(), Failure> {
    let named = host.strip_prefix("*.").unwrap_or(host);
    match ServerName::try_from(named) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::usage(format!("{host:?} is no host name and no address"))
            .next("give names and addresses such as localhost and 10.0.0.7, without https:// and without a port")),
    }
}

/// What an authority with this key says of itself: the same each time, so that its certificate need not be read to sign with it.
fn authority(key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    let id = params.key_identifier(key);
    let id: String = id.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, format!("{AUTHORITY} {id}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn new_key() -> Result<KeyPair, Failure> {
    KeyPair::generate().map_err(|error| unusable("a key", &error))
}

fn unusable(what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("{what} cannot be used: {error}"))
}
