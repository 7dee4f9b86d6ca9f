//! The first administrator of a server, and the file with its token.
//!
//! Keeps: the file is durable before its token is good, and the administrator may do nothing before that, so a start that is
//! interrupted leaves no administrator without a token: the next start goes on.

use std::path::Path;

use statehouse::access::{Grant, Principal, Token};
use statehouse::limits::TOKEN_AGE_MAX;
use statehouse::{Statehouse, owner_only};

use crate::exit::Failure;

/// The name of the first administrator.
pub(crate) const ROOT: &str = "root";

/// The file of its token, in the data directory.
pub(crate) const FILE: &str = "root.token";

/// Makes the first administrator of a store that has no principal, or goes on where a start was interrupted that did. Returns whether
/// there was anything to do.
pub(crate) fn make_first(house: &Statehouse, file: &Path) -> Result<bool, Failure> {
    let principals = house.principals();
    let all = principals.list()?;
    if !all.iter().all(|one| one.name == ROOT && one.grants.is_empty()) {
        return Ok(false);
    }
    let token = match file.exists() {
        // Given by whoever starts the server, or written by a start that was interrupted.
        true => read(file)?,
        false => write(file)?,
    };
    if all.is_empty() {
        principals.set(&Principal::new(ROOT))?;
    }
    if principals.token(token.id()).is_err() {
        principals.adopt_token(ROOT, &token, TOKEN_AGE_MAX)?;
    }
    principals.set(&Principal::new(ROOT).granted(Grant::everything()))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_administrator_is_made_whenever_a_start_was_interrupted() {
        for interrupted_after in 0..=3 {
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join(FILE);
            let house = Statehouse::open(folder.path().join("house")).expect("a store");
            let principals = house.principals();
            let token = (interrupted_after > 0).then(|| write(&file).expect("written"));
            if interrupted_after > 1 {
                principals.set(&Principal::new(ROOT)).expect("set");
            }
            if let Some(token) = token.as_ref().filter(|_| interrupted_after > 2) {
                principals.adopt_token(ROOT, token, TOKEN_AGE_MAX).expect("adopted");
            }
            assert!(make_first(&house, &file).expect("made"), "interrupted after {interrupted_after}");
            let read = read(&file).expect("a token");
            assert!(token.is_none_or(|token| token.to_text() == read.to_text()), "the file stays as it is");
            let shown = principals.authenticate(&read).expect("a store");
            let statehouse::Shown::By { principal, .. } = shown else { panic!("{shown:?}") };
            assert_eq!((principal.name.as_str(), &principal.grants[..]), (ROOT, &[Grant::everything()][..]));
            assert!(!make_first(&house, &file).expect("nothing to do"), "once");
        }
    }

    #[test]
    fn nobody_is_made_where_somebody_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(FILE);
        let house = Statehouse::open(folder.path().join("house")).expect("a store");
        let principals = house.principals();
        make_first(&house, &file).expect("made");
        let token = read(&file).expect("a token");
        principals.revoke_token(token.id()).expect("revoked");
        assert!(!make_first(&house, &file).expect("nothing to do"), "what was revoked stays so");
        principals.set(&Principal::new("other")).expect("set");
        principals.remove(ROOT).expect("removed");
        assert!(!make_first(&house, &file).expect("nothing to do"));
        assert_eq!(principals.list().expect("a list").len(), 1);
    }
}
