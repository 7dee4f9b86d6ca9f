//! `rec type`: the record types of a space.

use clap::Args;
use statehouse::shell::Suggested;
use wire::records::types::DeclareType;
use wire::routes::{TYPES_DECLARE, TYPES_LIST};

use crate::connection::{Ask, Connection};
use crate::exit::{Exit, Failure};
use crate::given;
use crate::output::Output;
use crate::table::{Column, Style, column, plain};

/// The arguments of `rec type`.
#[derive(Args)]
pub(crate) struct Type {
    /// The name prefix that the type is declared for.
    prefix: Option<String>,
    /// The declaration in JSON, as text, @FILE or - for stdin. Default: show the current one.
    declaration: Option<String>,
}

const TYPES: &[Column] = &[
    plain("TYPE", "name").raw(),
    column("PREFIXES", "prefixes", Style::Value),
    column("LEASE", "lease_ms", Style::Millis),
    plain("ATTEMPTS", "attempts_max"),
    plain("STATE FIELD", "state_field"),
];

impl Type {
    pub(crate) async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        if let (Some(prefix), Some(declaration)) = (&self.prefix, &self.declaration) {
            let body: DeclareType = given::document("the declaration", &given::text(declaration)?)?;
            let declared = connection.call(TYPES_DECLARE, &[prefix]).json(&body).ask().await?;
            return output.told(&format!("declared for {prefix:?}"), &declared);
        }
        let mut found = connection.call(TYPES_LIST, &[]).ask().await?;
        let Some(prefix) = &self.prefix else {
            return output.list(&found, "types", TYPES);
        };
        let types = found["types"].as_array_mut().map(std::mem::take).unwrap_or_default();
        match types
            .into_iter()
            .find(|declared| declared["prefixes"].as_array().into_iter().flatten().any(|one| one == prefix.as_str()))
        {
            Some(declared) => output.card(&declared, TYPES),
            None => Err(Failure::new(Exit::NotFound, format!("no type is declared for prefix {prefix:?}"))
                .run("list the types", Suggested::new(["statehouse", "rec", "type"]))),
        }
    }
}
