//! `token`: the tokens of principals, and who a command is sent by.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value as JsonValue, json};
use statehouse::{Statehouse, owner_only};
use wire::access::{CheckAccess, IssueToken, ListPrincipals};
use wire::routes::{ACCESS_CHECK, ACCESS_WHOAMI, PRINCIPALS_LIST, PRINCIPALS_READ, TOKENS_ISSUE};
use wire::values::DurationText;

use crate::connection::{Ask, Connection};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::reach::{Reach, duration};
use crate::repeating::Sure;
use crate::root_token;
use crate::table::{Column, Style, column, plain};

/// Tokens: create, list, rotate and revoke them; who a command is sent by, and what it may do.
///
/// Commands show the token in the file that STATEHOUSE_TOKEN_FILE names, or the one in STATEHOUSE_TOKEN.
///
/// Examples:
///   statehouse token create mailer --expires 30d --out mailer.token
///   statehouse token whoami
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Token {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Issue a token of a principal. It is shown here, and never again.
    ///
    /// Examples:
    ///   statehouse token create mailer --out mailer.token
    ///   statehouse token create mailer --expires 7d -o raw
    #[command(verbatim_doc_comment)]
    Create {
        /// The principal's name; `principal set` creates one.
        principal: String,
        #[command(flatten)]
        issue: Issue,
    },
    /// List the tokens of all principals, or of one, without their secrets.
    ///
    /// Examples:
    ///   statehouse token ls
    ///   statehouse token ls mailer -o json
    #[command(verbatim_doc_comment, visible_alias = "list")]
    Ls {
        /// The principal's name.
        principal: Option<String>,
    },
    /// Issue another token of the principal that sends this command. The old one is good until it is revoked or expires.
    ///
    /// Examples:
    ///   statehouse token rotate --out mailer.token
    ///   statehouse token rotate --expires 30d -o raw
    #[command(verbatim_doc_comment)]
    Rotate {
        #[command(flatten)]
        issue: Issue,
    },
    /// Revoke a token: whoever shows it from now on is not known.
    ///
    /// Examples:
    ///   statehouse token revoke 4fTq0ZxR1b
    ///   statehouse token revoke 4fTq0ZxR1b --yes
    #[command(verbatim_doc_comment)]
    Revoke {
        /// The public part of the token: the ten characters behind `sht_`.
        token: String,
        #[command(flatten)]
        sure: Sure,
    },
    /// Show who sends this command, and what it may do.
    ///
    /// Examples:
    ///   statehouse token whoami
    ///   statehouse token whoami -o json
    #[command(verbatim_doc_comment)]
    Whoami,
    /// Show whether somebody may do something, and which grant permits it.
    ///
    /// Examples:
    ///   statehouse token why claim records --name jobs.7
    ///   statehouse token why write cells --principal mailer --prefix config/
    #[command(verbatim_doc_comment)]
    Why {
        /// What would be done: read, write, claim.
        verb: String,
        /// To what: the name of a contract, or sessions, messages, catalogue, store.
        area: String,
        /// Who; you, if it is left out.
        #[arg(long, value_name = "NAME")]
        principal: Option<String>,
        /// The name of one thing.
        #[arg(long, value_name = "NAME", conflicts_with = "prefix")]
        name: Option<String>,
        /// All things whose names begin with this.
        #[arg(long, value_name = "PREFIX")]
        prefix: Option<String>,
    },
    /// Write a new root token into a data directory that no server has open; every earlier one is revoked.
    ///
    /// Examples:
    ///   statehouse token reset-root /var/lib/statehouse
    ///   statehouse token reset-root /var/lib/statehouse --out root.token
    #[command(verbatim_doc_comment)]
    ResetRoot {
        /// The data directory.
        directory: PathBuf,
        /// The file to write. Default: root.token in the data directory.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

/// How a token is issued.
#[derive(Args, Clone, Debug)]
struct Issue {
    /// How long it is good: from a minute to 90 days.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "90d")]
    expires: Duration,
    /// Write the token into this file, which only you can read, instead of printing it.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

const ISSUED: &[Column] = &[
    plain("PRINCIPAL", "principal"),
    plain("ID", "id"),
    plain("EXPIRES", "expires_at"),
    plain("TOKEN", "token").raw(),
];

/// A token that is in a file, and is not shown.
const KEPT: &[Column] =
    &[plain("PRINCIPAL", "principal"), plain("ID", "id"), plain("EXPIRES", "expires_at"), plain("FILE", "file").raw()];

const TOKENS: &[Column] = &[
    plain("TOKEN", "token").raw(),
    plain("PRINCIPAL", "principal"),
    column("ISSUED", "issued_at", Style::Ago),
    plain("EXPIRES", "expires_at"),
    plain("EXPIRED", "expired"),
];

const WHOAMI: &[Column] = &[
    plain("PRINCIPAL", "principal").raw(),
    column("GRANTS", "grants", Style::Value),
    plain("TOKEN", "token.token"),
    plain("EXPIRES", "token.expires_at"),
];

const WHY: &[Column] = &[
    plain("PRINCIPAL", "principal"),
    plain("NEED", "need"),
    plain("ALLOWED", "allowed").raw(),
    plain("GRANT", "grant"),
];

impl Token {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        if let Verb::ResetRoot { directory, out } = &self.verb {
            return reset_root(directory, out.as_deref(), &output);
        }
        let space = self.reach.space.clone();
        self.reach.run(async |connection| self.verb.run(connection, space, &output).await)
    }
}

impl Verb {
    async fn run(&self, connection: &Connection, space: Option<String>, output: &Output) -> Result<(), Failure> {
        match self {
            Verb::Create { principal, issue } => issue.run(connection, principal, output).await,
            Verb::Ls { principal } => list(connection, principal.as_deref(), output).await,
            Verb::Rotate { issue } => {
                let who = connection.client().principals().whoami().await?;
                let asks_nobody = || Failure::usage("the server asks nobody for a token, so there is none to rotate");
                issue.run(connection, &who.principal.ok_or_else(asks_nobody)?, output).await
            }
            Verb::Revoke { token, sure } => {
                sure.or_ask(&format!("revoke token {token}"))?;
                connection.client().principals().revoke_token(token).await?;
                output.one(&json!({ "token": token, "revoked": true }), &[plain("TOKEN", "token").raw()])
            }
            Verb::Whoami => output.card(&connection.call(ACCESS_WHOAMI, &[]).ask().await?, WHOAMI),
            Verb::Why { verb, area, principal, name, prefix } => {
                let body = CheckAccess {
                    principal: principal.clone(),
                    verb: verb.clone(),
                    area: area.clone(),
                    space,
                    group: connection.group().map(str::to_owned),
                    name: name.clone(),
                    prefix: prefix.clone(),
                };
                output.card(&connection.call(ACCESS_CHECK, &[]).json(&body).ask().await?, WHY)
            }
            Verb::ResetRoot { .. } => unreachable!("it reaches no server"),
        }
    }
}

impl Issue {
    async fn run(&self, connection: &Connection, principal: &str, output: &Output) -> Result<(), Failure> {
        let failed = |path: &Path, error: &std::io::Error| format!("{}: {error}", path.display());
        // Before a token is issued that could not be kept.
        let file = self.out.as_deref().map(|out| match owner_only::create_new(out) {
            Ok(file) => Ok((out, file)),
            Err(error) => Err(Failure::usage(failed(out, &error))),
        });
        let file = file.transpose()?;
        let body = IssueToken { expires_in: Some(DurationText(self.expires)) };
        let issued = connection.call(TOKENS_ISSUE, &[principal]).json(&body).ask().await;
        let Some((path, mut file)) = file else { return output.card(&issued?, ISSUED) };
        let written = issued.and_then(|mut issued| {
            let token = issued.as_object_mut().and_then(|members| members.remove("token"));
            issued["file"] = json!(path);
            let line = format!("{}\n", token.as_ref().and_then(JsonValue::as_str).unwrap_or_default());
            let written = std::io::Write::write_all(&mut file, line.as_bytes()).and_then(|()| file.sync_all());
            written.map_err(|error| Failure::other(failed(path, &error)))?;
            Ok(issued)
        });
        match written {
            Ok(issued) => output.card(&issued, KEPT),
            Err(failure) => {
                let _ = std::fs::remove_file(path);
                Err(failure)
            }
        }
    }
}

/// The tokens of one principal, or of all of them.
async fn list(connection: &Connection, principal: Option<&str>, output: &Output) -> Result<(), Failure> {
    let mut tokens = Vec::new();
    if let Some(principal) = principal {
        let found = connection.call(PRINCIPALS_READ, &[principal]).ask().await?;
        tokens.extend(tokens_of(&found));
        return output.list(&json!({ "tokens": tokens }), "tokens", TOKENS);
    }
    let mut query = ListPrincipals::default();
    loop {
        let page = connection.call(PRINCIPALS_LIST, &[]).query(&query).ask().await?;
        tokens.extend(page["principals"].as_array().into_iter().flatten().flat_map(tokens_of));
        match page["next_after"].as_str() {
            Some(last) => query.after = Some(last.to_owned()),
            None => return output.list(&json!({ "tokens": tokens }), "tokens", TOKENS),
        }
    }
}

/// The tokens of a principal, each with its name.
fn tokens_of(principal: &JsonValue) -> Vec<JsonValue> {
    let tokens = principal["tokens"].as_array().into_iter().flatten().cloned();
    let named = tokens.map(|mut token| {
        token["principal"] = principal["principal"].clone();
        token
    });
    named.collect()
}

/// Works on the directory itself: whoever can open it may do everything anyway.
fn reset_root(directory: &Path, out: Option<&Path>, output: &Output) -> Result<(), Failure> {
    if !directory.is_dir() {
        return Err(Failure::new(Exit::NotFound, format!("there is no directory {}", directory.display())));
    }
    let file = out.map_or_else(|| directory.join(root_token::FILE), Path::to_owned);
    let house = Statehouse::open(directory).map_err(|error| {
        let failure = Failure::from(error);
        let is_open = failure.code.as_deref() == Some("SH-2020");
        if is_open { failure.next("stop its server first") } else { failure }
    })?;
    root_token::reset(&house, &file)?;
    house.close()?;
    let done = json!({ "principal": root_token::ROOT, "file": file });
    output.card(&done, &[plain("PRINCIPAL", "principal"), plain("FILE", "file").raw()])
}
