//! `sim scanners`: what scanners of TLS find at a real server: `sslscan`, and `testssl.sh` unless the run is to be short.
//!
//! Keeps: a finding counts unless it is named here, with the reason why it cannot apply; a scan that reached nothing is a failure.
//! Never: connects to anything but this machine.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::Value as JsonValue;
use testkit::arguments::Arguments;
use testkit::certificates::Authority;
use testkit::report::Report;

use super::server::TlsServer;
use crate::tools;

/// Findings of `testssl.sh` that say nothing about the server.
const NOT_OF_THE_SERVER: &[(&str, &str)] = &[
    ("engine_problem", "the OpenSSL of the machine that scans has no engine for GOST"),
    (
        "cert_revocation",
        "the authority of the certificate is one of this test, and publishes no list of what it has revoked",
    ),
    ("DNS_CAArecord", "the name servers of a domain say which authority may sign for it"),
    (
        "HSTS",
        "it makes browsers refuse whatever else is on the host without TLS; this address answers nothing without TLS, and nothing with \
         it that a browser adds by itself",
    ),
];

/// Findings of a whole scan, most of them good.
const FINDINGS_MIN: usize = 100;

/// Protocols that `sslscan` tries: SSL 2 and 3, TLS 1.0 to 1.3.
const PROTOCOLS: usize = 6;

/// `sim scanners [--short]`: without `testssl.sh`, which takes minutes.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let authority = Authority::new("scanners");
    let server = TlsServer::start(&authority, &authority.server("server"), &authority.file(), &[]);
    let mut report = Report::new("secure");
    add(&mut report, "scanners.sslscan", sslscan(server.address()));
    if !arguments.flag("short") {
        add(&mut report, "scanners.testssl", testssl(server.address(), &authority.file()));
    }
    report
}

/// What was looked at, and what is wrong.
struct Scanned {
    looked_at: usize,
    wrong: Vec<String>,
}

fn add(report: &mut Report, item: &str, scanned: Result<Scanned, String>) {
    let scanned = scanned.unwrap_or_else(|error| Scanned { looked_at: 0, wrong: vec![error] });
    scanned.wrong.iter().for_each(|wrong| println!("{item}: {wrong}"));
    let figure = format!("{}-looked-at-{}-found", scanned.looked_at, scanned.wrong.len());
    report.add(item, figure, "nothing of severity LOW or above", scanned.wrong.is_empty() && scanned.looked_at > 0);
}

/// A severity is no word of `sslscan`: all that is not as it must be counts.
fn sslscan(address: SocketAddr) -> Result<Scanned, String> {
    let scan = Command::new(tools::sslscan()?).args(["--xml=-", &address.to_string()]).output();
    let scan = scan.map_err(|error| format!("sslscan: {error}"))?;
    let text = String::from_utf8_lossy(&scan.stdout).into_owned();
    let mut scanned = Scanned { looked_at: 0, wrong: Vec::new() };
    let mut expect = |kind: &str, at_least: usize, is_right: &dyn Fn(&str) -> bool| {
        let begin = format!("<{kind} ");
        let found: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with(&begin)).collect();
        if found.len() < at_least {
            scanned.wrong.push(format!("{kind}: {} of at least {at_least} was tried", found.len()));
        }
        scanned.looked_at += found.len();
        scanned.wrong.extend(found.into_iter().filter(|line| !is_right(line)).map(str::to_owned));
    };
    expect("protocol", PROTOCOLS, &|line| {
        let is_newest = (attribute(line, "type"), attribute(line, "version")) == ("tls", "1.3");
        attribute(line, "enabled") == if is_newest { "1" } else { "0" }
    });
    expect("renegotiation", 0, &|line| attribute(line, "supported") == "0");
    expect("compression", 0, &|line| attribute(line, "supported") == "0");
    expect("heartbleed", 1, &|line| attribute(line, "vulnerable") == "0");
    expect("cipher", 3, &|line| {
        attribute(line, "sslversion") == "TLSv1.3" && ["acceptable", "strong"].contains(&attribute(line, "strength"))
    });
    expect("group", 1, &|line| attribute(line, "bits").parse::<u32>().is_ok_and(|bits| bits >= 128));
    expect("pk", 1, &|line| attribute(line, "error") == "false");
    match scanned.wrong.is_empty() {
        true => Ok(scanned),
        false => {
            scanned.wrong.push(format!("the scan: {text}"));
            Ok(scanned)
        }
    }
}

/// An attribute of a line of XML.
fn attribute<'line>(line: &'line str, name: &str) -> &'line str {
    let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap_or_default();
    rest.split('"').next().unwrap_or_default()
}

fn testssl(address: SocketAddr, authority: &Path) -> Result<Scanned, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("found.json");
    let mut scan = Command::new(tools::testssl()?);
    // It asks what its terminal can do. Whether it found something, the file says.
    scan.env("TERM", "xterm").args(["--quiet", "--color", "0", "--warnings", "off", "--nodns", "none", "--add-ca"]);
    let ran = scan.arg(authority).arg("--jsonfile").arg(&file).arg(address.to_string()).output();
    let ran = ran.map_err(|error| format!("testssl: {error}"))?;
    let text = std::fs::read_to_string(&file);
    let text = text.map_err(|error| format!("testssl: {error}: {}", String::from_utf8_lossy(&ran.stdout)))?;
    let found: Vec<JsonValue> = serde_json::from_str(&text).map_err(|error| format!("testssl: {error}: {text}"))?;
    let said = |finding: &JsonValue, member: &str| finding[member].as_str().unwrap_or_default().to_owned();
    let mut wrong: Vec<String> = found
        .iter()
        .filter(|finding| !["OK", "INFO"].contains(&finding["severity"].as_str().unwrap_or_default()))
        .filter(|finding| NOT_OF_THE_SERVER.iter().all(|(id, _)| *id != said(finding, "id")))
        .map(|finding| format!("{}: {}, {}", said(finding, "severity"), said(finding, "id"), said(finding, "finding")))
        .collect();
    let is_offered = |finding: &JsonValue| finding["id"] == "TLS1_3" && said(finding, "finding").starts_with("offered");
    if found.len() < FINDINGS_MIN || !found.iter().any(is_offered) {
        wrong.push(format!("it did not scan all of it: {} findings", found.len()));
    }
    Ok(Scanned { looked_at: found.len(), wrong })
}
