//! The secrets of sessions: drawn here, because the kernel draws nothing, and checked here, before anything is proposed.
//!
//! Keeps: E7. Only digests of secrets reach the journal, the store and the memory of the node.

use contract::{Error, Failure, FailureKind, SessionRejection, SessionSecret};
use session::SecretDigest;
use sha2::{Digest, Sha256};

use crate::error::from_halt;
use crate::sessions::keeper::Shown;
use crate::shard::Shard;

/// Draws a secret with the randomness of the operating system.
pub fn draw() -> Result<SessionSecret, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        let message = format!("the operating system gave no random bytes for the secret of a session: {error}");
        Failure::not_applied(FailureKind::Busy, message)
    })?;
    Ok(SessionSecret::from_bytes(bytes))
}

/// What is stored of a secret.
pub fn digest(secret: &SessionSecret) -> SecretDigest {
    SecretDigest::new(Sha256::digest(secret.as_bytes()).into())
}

/// Who wants to act as a session's client.
#[derive(Clone, Copy, Default)]
pub struct Client<'client> {
    /// The secret that it shows.
    pub secret: Option<&'client SessionSecret>,
    /// Who it is, if it is known.
    pub principal: Option<&'client str>,
    /// The space that it would act in; none for what concerns the session alone.
    pub space: Option<&'client str>,
}

impl Shard {
    /// Admits a client to a session, and counts as a sign of its life. Everything that is done in the name of a session by its
    /// number passes here first, and no session that this node does not know passes: it might be the next one to be created,
    /// by somebody else.
    pub fn admit(&self, session: u64, client: &Client<'_>) -> Result<(), Error> {
        self.check_tenure()?;
        let Client { secret, principal, space } = *client;
        let secret = secret.map(digest);
        let shown = Shown { secret: secret.as_ref(), principal, space };
        let Err(refused) = self.keeper.admit(session, &shown, self.now()) else { return Ok(()) };
        if refused == SessionRejection::Expired {
            // Whoever cannot be checked because of damage has not expired.
            let (view, _) = self.view()?;
            session::row::session(&*view, &self.keys().sessions(), session).map_err(|halt| from_halt(&halt))?;
        }
        Err(contract::Rejection::Session(refused).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of the stored format; `docs/formats/sessions.md`.
    #[test]
    fn golden_digest() {
        // The SHA-256 of 16 zero bytes.
        let hex = "374708fff7719dd5979ec875d56cd2286f6d3cf7ec317a3b25632aab28ec37bb";
        let mut bytes = [0; 32];
        for (byte, place) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&hex[place..place + 2], 16).expect("digits");
        }
        assert_eq!(digest(&SessionSecret::from_bytes([0; 16])), SecretDigest::new(bytes));
    }

    #[test]
    fn each_secret_is_another() {
        let (one, other) = (draw().expect("drawn"), draw().expect("drawn"));
        assert_ne!(one, other);
        assert_ne!(one, SessionSecret::from_bytes([0; 16]));
    }
}
