//! `letter`: dead letters, messages that their group refused.

use clap::{Args, Subcommand};
use wire::letters::{ChooseLetter, ListLetters};
use wire::routes::{LETTERS_DROP, LETTERS_LIST, LETTERS_RETRY};
use wire::values::PageCursor;

use crate::connection::{Ask, Connection};
use crate::exit::Failure;
use crate::output::Output;
use crate::reach::Reach;
use crate::repeating::{Listing, Sure};
use crate::table::{Column, Style, column, plain};

/// Dead letters: messages that their group refused, kept for a week.
///
/// Examples:
///   statehouse letter ls
///   statehouse letter retry 7 --group stock
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Letter {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List dead letters, of one group or of all.
    ///
    /// Examples:
    ///   statehouse letter ls
    ///   statehouse letter ls --group stock -o json
    #[command(verbatim_doc_comment)]
    Ls {
        /// Start at this cursor, as the previous page ended with.
        #[arg(long, value_parser = cursor)]
        cursor: Option<PageCursor>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Send a dead letter again. If it is refused again, it stays as it is. With --force, it may write although its group is
    /// guarded.
    ///
    /// Examples:
    ///   statehouse letter retry 7 --group stock
    ///   statehouse letter retry 7 --group stock --force
    #[command(verbatim_doc_comment)]
    Retry {
        /// The dead letter's number in its group.
        number: u64,
    },
    /// Drop a dead letter.
    ///
    /// Examples:
    ///   statehouse letter drop 7 --group stock
    ///   statehouse letter drop 7 --group stock --yes
    #[command(verbatim_doc_comment)]
    Drop {
        /// The dead letter's number in its group.
        number: u64,
        #[command(flatten)]
        sure: Sure,
    },
}

fn cursor(text: &str) -> Result<PageCursor, String> {
    PageCursor::parse(text).ok_or_else(|| "it is not a cursor; `statehouse letter ls` prints one".to_owned())
}

const LETTERS: &[Column] = &[
    plain("GROUP", "group"),
    plain("NUMBER", "number").raw(),
    plain("FROM", "source"),
    plain("REFUSED", "at"),
    plain("CODE", "code"),
    column("ON", "names", Style::Value),
];

const DONE: &[Column] = &[plain("NUMBER", "number").raw(), plain("COMMIT", "commit")];

impl Letter {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| self.verb.run(connection, &output).await)
    }
}

impl Verb {
    async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        match self {
            Verb::Ls { cursor, listing } => {
                let query = ListLetters { limit: Some(listing.limit), cursor: cursor.clone() };
                let once = async || {
                    let found = connection.call(LETTERS_LIST, &[]).query(&query).ask().await?;
                    output.list(&found, "letters", LETTERS)?;
                    match found["cursor"].as_str() {
                        Some(next) => output.more("there may be more", "--cursor", next),
                        None => Ok(()),
                    }
                };
                listing.run(output, once).await
            }
            Verb::Retry { number } => {
                let body = ChooseLetter { number: *number };
                output.one(&connection.call(LETTERS_RETRY, &[]).json(&body).ask().await?, DONE)
            }
            Verb::Drop { number, sure } => {
                sure.or_ask(&format!("drop the message {number}"))?;
                let body = ChooseLetter { number: *number };
                output.one(&connection.call(LETTERS_DROP, &[]).json(&body).ask().await?, DONE)
            }
        }
    }
}
