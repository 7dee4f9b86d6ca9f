//! Who may do what: principals, their tokens, and what they were granted.
//!
//! A request comes from a principal, which shows a token, a client certificate, or its user number on a unix socket. What the
//! request would do is a list of needs, and each must be covered by one grant of the principal. There are no rules that deny:
//! what no grant covers is refused.
//!
//! - [`verb`]: what can be done, and the roles, which are sets of verbs.
//! - [`area`]: what it can be done to: the things of a contract, or what is no contract's.
//! - [`grant`]: one permission. [`need`]: what a request would do.
//! - [`audit`]: what was done and refused, as a chain of events.
//! - [`principal`]: who, with grants, tokens and identities. [`token`]: the text that proves it.
//!
//! Never: a token's secret in a log, an error or the store. A store keeps digests.

pub mod area;
pub mod audit;
pub mod grant;
pub mod need;
pub mod principal;
mod rejection;
pub mod token;
pub mod verb;

pub use area::Area;
pub use grant::Grant;
pub use need::{Need, Things};
pub use principal::{Identity, IssuedToken, Principal};
pub use rejection::AccessRejection;
pub use token::Token;
pub use verb::{Role, Verb, Verbs};
