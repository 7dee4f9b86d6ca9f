//! `session`: clients whose requests are executed exactly once.

use clap::{Args, Subcommand};
use serde_json::json;
use statehouse::shell::Suggested;
use wire::routes::{SESSIONS_END, SESSIONS_LIST, SESSIONS_READ};
use wire::sessions::{EndSession, EndedSession, ListSessions};

use crate::connection::{Ask, Connection};
use crate::exit::{Exit, Failure};
use crate::given;
use crate::output::Output;
use crate::reach::Reach;
use crate::repeating::{Listing, Sure};
use crate::table::{Column, Style, column, plain};

/// Client sessions: list, inspect and end them.
///
/// Examples:
///   statehouse session ls
///   statehouse session show s-7 -o json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Session {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List sessions.
    ///
    /// Examples:
    ///   statehouse session ls
    ///   statehouse session ls --watch
    #[command(verbatim_doc_comment)]
    Ls {
        /// Start after this session.
        #[arg(long, value_name = "SESSION")]
        after: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show a session.
    ///
    /// Examples:
    ///   statehouse session show s-7
    ///   statehouse session show s-7 -o json
    #[command(verbatim_doc_comment)]
    Show {
        /// The session's id, as shown by `session ls`.
        session: String,
    },
    /// End a session: release what it holds, and delete its stored answers and pushes.
    ///
    /// Only the client of a session knows its secret. Operators end it without one, with --force.
    ///
    /// Examples:
    ///   statehouse session kill s-7 --force
    ///   statehouse session kill s-7 --force --yes
    #[command(verbatim_doc_comment)]
    Kill {
        /// The session's id, as shown by `session ls`.
        session: String,
        #[command(flatten)]
        sure: Sure,
    },
}

pub(crate) const SESSION: &[Column] = &[
    plain("SESSION", "session").raw(),
    plain("STATE", "state"),
    column("TIMEOUT", "timeout_ms", Style::Millis),
    plain("LAST REQUEST", "last_request"),
    plain("LOWEST PENDING", "lowest_pending"),
    plain("STORED ANSWERS", "stored_answers"),
    plain("LAST PUSH", "last_push"),
    plain("ACKNOWLEDGED", "acknowledged"),
];

impl Session {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| self.verb.run(connection, &output).await)
    }
}

impl Verb {
    async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        match self {
            Verb::Ls { after, listing } => {
                let query = ListSessions { after: given::word_if_given("--after", after)?, limit: Some(listing.limit) };
                let once = async || {
                    let found = connection.call(SESSIONS_LIST, &[]).query(&query).ask().await?;
                    output.list(&found, "sessions", SESSION)?;
                    match found["next_after"].as_str() {
                        Some(last) => output.more("there are more", "--after", last),
                        None => Ok(()),
                    }
                };
                listing.run(output, once).await
            }
            Verb::Show { session } => output.card(&connection.call(SESSIONS_READ, &[session]).ask().await?, SESSION),
            Verb::Kill { session, sure } => {
                sure.or_ask(&format!("end session {session} and release what it holds"))?;
                let query = EndSession { force: connection.is_forced().then_some(true) };
                let ended: EndedSession = connection.call(SESSIONS_END, &[session]).query(&query).read().await?;
                if !ended.ended {
                    return Err(Failure::new(Exit::NotFound, format!("there is no session {session}"))
                        .run("list the sessions", Suggested::new(["statehouse", "session", "ls"])));
                }
                let ended = json!({ "session": session, "ended": true });
                output.one(&ended, &[plain("SESSION", "session").raw(), plain("ENDED", "ended")])
            }
        }
    }
}
