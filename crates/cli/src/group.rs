//! `group`: owning a group, so that nobody else writes it where it is guarded.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use statehouse::shell::Suggested;
use wire::owners::{ExtendOwner, OwnGroup, OwnerToken, ReleaseOwner};
use wire::routes::{GROUPS_EXTEND, GROUPS_OWN, GROUPS_OWNER, GROUPS_RELEASE};
use wire::values::DurationText;

use crate::connection::{Ask, Connection};
use crate::exit::Failure;
use crate::output::Output;
use crate::reach::{Reach, duration};
use crate::table::{Column, Style, column, plain};

/// Who owns a group: own it, extend it, release it.
///
/// Examples:
///   statehouse group own agents.7 --worker w1 --wait 30s
///   statehouse cell set step 1 --group agents.7 --owner 'agents.7#1#h0123456789abcdef'
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Group {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Own a group, and print the token that proves it. With --force, take it from whoever owns it.
    ///
    /// Examples:
    ///   statehouse group own agents.7 --worker w1 -o raw
    ///   statehouse group own agents.7 --worker w1 --lease 5m --wait 30s
    #[command(verbatim_doc_comment)]
    Own {
        /// The group's name.
        name: String,
        /// Name of the worker.
        #[arg(long)]
        worker: Option<String>,
        /// How long it is owned unless it is extended. Default: 30s.
        #[arg(long, value_parser = duration)]
        lease: Option<Duration>,
        /// How long to wait if another owns it.
        #[arg(long, value_parser = duration, default_value = "0s")]
        wait: Duration,
    },
    /// Show who owns a group.
    ///
    /// Examples:
    ///   statehouse group owner agents.7
    ///   statehouse group owner agents.7 -o json
    #[command(verbatim_doc_comment)]
    Owner {
        /// The group's name.
        name: String,
    },
    /// Own a group longer.
    ///
    /// Examples:
    ///   statehouse group extend 'agents.7#1#h0123456789abcdef'
    ///   statehouse group extend 'agents.7#1#h0123456789abcdef' --lease 5m
    #[command(verbatim_doc_comment)]
    Extend {
        /// The token of the owner.
        #[arg(value_parser = token)]
        token: OwnerToken,
        /// The lease, starting now. Default: 30s.
        #[arg(long, value_parser = duration)]
        lease: Option<Duration>,
    },
    /// Give a group up; the next one can own it at once.
    ///
    /// Examples:
    ///   statehouse group release 'agents.7#1#h0123456789abcdef'
    ///   statehouse group release "$TOKEN"
    #[command(verbatim_doc_comment)]
    Release {
        /// The token of the owner.
        #[arg(value_parser = token)]
        token: OwnerToken,
    },
}

fn token(text: &str) -> Result<OwnerToken, String> {
    OwnerToken::parse(text).ok_or_else(|| "it is not a token of a group; `statehouse group own` prints one".to_owned())
}

const OWNED: &[Column] = &[plain("GROUP", "group"), plain("ATTEMPT", "attempt"), plain("TOKEN", "token").raw()];

const OWNER: &[Column] = &[
    plain("GROUP", "group"),
    plain("OWNER", "holder.worker").raw(),
    plain("SESSION", "holder.session").optional(),
    column("LEASE LEFT", "holder.lease_ms", Style::Millis),
    plain("GUARD", "guard"),
];

const RELEASED: &[Column] = &[plain("GROUP", "group").raw(), plain("ATTEMPT", "attempt")];

impl Group {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| self.verb.run(connection, &output).await)
    }
}

/// Whoever is refused because it does not own a group any more is told who does.
pub(crate) fn of_owner(failure: Failure) -> Failure {
    match failure.owned_group() {
        Some(group) if failure.code.as_deref() == Some("SH-4002") => {
            let owner = Suggested::new(["statehouse", "group", "owner"]).name(group);
            failure.run("stop writing there; see who owns it", owner)
        }
        _ => failure,
    }
}

impl Verb {
    async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        self.ask(connection, output).await.map_err(Self::explained)
    }

    fn explained(failure: Failure) -> Failure {
        match failure.owned_group() {
            Some(group) => {
                let owner = Suggested::new(["statehouse", "group", "owner"]).name(group);
                failure.run("see who owns it", owner)
            }
            None => failure,
        }
    }

    async fn ask(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        match self {
            Verb::Own { name, worker, lease, wait } => {
                let body = OwnGroup {
                    worker: worker.clone(),
                    lease: lease.map(DurationText),
                    wait: Some(DurationText(*wait)),
                };
                let call = connection.call(GROUPS_OWN, &[name]).json(&body).waiting(Some(*wait));
                output.one(&call.ask().await?, OWNED)
            }
            Verb::Owner { name } => output.one(&connection.call(GROUPS_OWNER, &[name]).ask().await?, OWNER),
            Verb::Extend { token, lease } => {
                let body = ExtendOwner { token: token.clone(), lease: lease.map(DurationText) };
                let call = connection.call(GROUPS_EXTEND, &[&token.group]).json(&body);
                output.one(&call.ask().await?, OWNED)
            }
            Verb::Release { token } => {
                let body = ReleaseOwner { token: token.clone() };
                connection.call(GROUPS_RELEASE, &[&token.group]).json(&body).ask().await?;
                output.one(&json!({ "group": token.group, "attempt": token.attempt }), RELEASED)
            }
        }
    }
}
