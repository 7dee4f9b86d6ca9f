//! The token of the environment. A token is never an argument of a program: everybody on a machine can read those.

use contract::access::Token;
use wire::access::TokenText;

/// Names the file with the token.
pub const TOKEN_FILE_VARIABLE: &str = "STATEHOUSE_TOKEN_FILE";

/// Holds the token itself.
pub const TOKEN_VARIABLE: &str = "STATEHOUSE_TOKEN";

/// Permits that a token is sent to another machine without TLS.
pub const WITHOUT_TLS_VARIABLE: &str = "STATEHOUSE_TOKEN_WITHOUT_TLS";

/// What it must be.
pub const ALLOW: &str = "allow";

/// Whether the environment permits that a token is sent without TLS.
pub fn is_sent_without_tls(environment: &dyn Fn(&str) -> Option<String>) -> Result<bool, String> {
    match environment(WITHOUT_TLS_VARIABLE).filter(|value| !value.is_empty()) {
        None => Ok(false),
        Some(value) if value == ALLOW => Ok(true),
        Some(_) => Err(format!("{WITHOUT_TLS_VARIABLE} must be {ALLOW}, or not set")),
    }
}

/// The token that the environment names; none if it names none. The error does not repeat what is no token: it may be most of a secret.
pub fn of_environment(environment: &dyn Fn(&str) -> Option<String>) -> Result<Option<TokenText>, String> {
    let said = |name: &str| environment(name).filter(|value| !value.is_empty());
    let (text, from) = match (said(TOKEN_FILE_VARIABLE), said(TOKEN_VARIABLE)) {
        (Some(_), Some(_)) => {
            return Err(format!("{TOKEN_FILE_VARIABLE} and {TOKEN_VARIABLE} are both set; unset one of them"));
        }
        (Some(path), None) => {
            let read = std::fs::read_to_string(&path);
            (read.map_err(|error| format!("{TOKEN_FILE_VARIABLE}: {path}: {error}"))?, path)
        }
        (None, Some(text)) => (text, TOKEN_VARIABLE.to_owned()),
        (None, None) => return Ok(None),
    };
    let token = Token::parse(text.lines().next().unwrap_or_default().trim());
    let token = token.ok_or_else(|| format!("{from} has no token; it was cut, or mistyped"))?;
    Ok(Some(TokenText::new(&token)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_in_a_file_or_in_a_variable_and_never_repeated() {
        let token = Token::of(1, [2; 32]).to_text();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        std::fs::write(&file, format!("{token}\n")).expect("written");
        let path = file.to_str().expect("UTF-8").to_owned();
        let of = |file: Option<&str>, direct: Option<&str>| {
            let (file, direct) = (file.map(str::to_owned), direct.map(str::to_owned));
            of_environment(&move |name| match name {
                TOKEN_FILE_VARIABLE => file.clone(),
                TOKEN_VARIABLE => direct.clone(),
                _ => None,
            })
        };
        assert_eq!(of(None, None), Ok(None));
        assert_eq!(of(Some(""), Some("")), Ok(None));
        for found in [of(Some(&path), None), of(None, Some(&token))] {
            assert_eq!(found.expect("a token").expect("there").to_text(), token);
        }
        assert!(of(Some(&path), Some(&token)).is_err());
        assert!(of(Some("/nowhere"), None).expect_err("no file").contains("/nowhere"));
        let cut = of(None, Some(&token[..40])).expect_err("cut");
        assert!(!cut.contains(&token[15..39]), "{cut}");
    }

    #[test]
    fn only_one_word_permits_a_token_without_tls() {
        let of = |value: Option<&str>| {
            let value = value.map(str::to_owned);
            is_sent_without_tls(&move |name| (name == WITHOUT_TLS_VARIABLE).then(|| value.clone()).flatten())
        };
        assert_eq!((of(None), of(Some("")), of(Some("allow"))), (Ok(false), Ok(false), Ok(true)));
        assert!(of(Some("1")).is_err() && of(Some("Allow")).is_err());
    }
}
