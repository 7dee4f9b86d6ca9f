//! The first administrator of a server, and the file with its token.
//!
//! Keeps: the file is durable before its token is good, so a start that is interrupted leaves no administrator without a token.

use std::path::Path;

use statehouse::access::{Grant, Principal, Token};
use statehouse::limits::TOKEN_AGE_MAX;
use statehouse::{Statehouse, owner_only};

use crate::exit::Failure;

/// The name of the first administrator.
pub(crate) const ROOT: &str = "root";

/// The file of its token, in the data directory.
pub(crate) const FILE: &str = "root.token";

/// Makes the first administrator of a store that has no principal. Returns whether there was none.
pub(crate) fn make_first(house: &Statehouse, file: &Path) -> Result<bool, Failure> {
    let principals = house.principals();
    if !principals.is_empty() {
        return Ok(false);
    }
    let token = match file.exists() {
        // Given by whoever starts the server, or written by a start that was interrupted.
        true => read(file)?,
        false => write(file)?,
    };
    principals.set(&Principal::new(ROOT).granted(Grant::everything()))?;
    principals.adopt_token(ROOT, &token, TOKEN_AGE_MAX)?;
    Ok(true)
}

/// Makes the first administrator again, with a new token in place of all that it has.
pub(crate) fn reset(house: &Statehouse, file: &Path) -> Result<(), Failure> {
    let principals = house.principals();
    let token = write(file)?;
    principals.set(&Principal::new(ROOT).granted(Grant::everything()))?;
    for old in &principals.get(ROOT)?.tokens {
        principals.revoke_token(&old.id)?;
    }
    principals.adopt_token(ROOT, &token, TOKEN_AGE_MAX)?;
    Ok(())
}

/// Reads the token of a file. The refusal does not repeat what is no token: it may be most of a secret.
fn read(file: &Path) -> Result<Token, Failure> {
    let text = owner_only::open(file).and_then(std::io::read_to_string);
    let text = text.map_err(|error| Failure::other(format!("{}: {error}", file.display())))?;
    let token = Token::parse(text.lines().next().unwrap_or_default().trim());
    token.ok_or_else(|| {
        let detail = format!("{} has no token; it was cut, or mistyped", file.display());
        Failure::usage(detail).next("delete the file, and the server writes another one")
    })
}

fn write(file: &Path) -> Result<Token, Failure> {
    let token = statehouse::draw_token()?;
    let written = owner_only::replace(file, format!("{}\n", token.to_text()).as_bytes());
    written.map_err(|error| Failure::other(format!("{}: {error}", file.display())))?;
    Ok(token)
}
