//! What a request shows of its right to write in a group.

use serde_json::Value as JsonValue;
use testkit::http::Request;

/// What a request shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Nothing,
    Old,
    Right,
    Force,
    OldAndForce,
    OfAnotherGroup,
    OfAnotherHistory,
    OfAnotherSpace,
    OfAnotherBranch,
}

pub(super) const ALL_SHOWN: [Shown; 9] = [
    Shown::Nothing,
    Shown::Old,
    Shown::Right,
    Shown::Force,
    Shown::OldAndForce,
    Shown::OfAnotherGroup,
    Shown::OfAnotherHistory,
    Shown::OfAnotherSpace,
    Shown::OfAnotherBranch,
];

/// Where the token of a group's owner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum In {
    Header,
    Body,
}

/// Tokens of a group.
pub(super) struct Owners {
    pub(super) old: String,
    pub(super) right: String,
    pub(super) other_group: String,
    pub(super) other_history: String,
    pub(super) other_space: String,
    pub(super) other_branch: String,
}

pub(super) fn shows(request: Request, shown: Shown, token_in: In, owners: &Owners) -> Request {
    let token = match shown {
        Shown::Nothing | Shown::Force => None,
        Shown::Old | Shown::OldAndForce => Some(&owners.old),
        Shown::Right => Some(&owners.right),
        Shown::OfAnotherGroup => Some(&owners.other_group),
        Shown::OfAnotherHistory => Some(&owners.other_history),
        Shown::OfAnotherSpace => Some(&owners.other_space),
        Shown::OfAnotherBranch => Some(&owners.other_branch),
    };
    let force = matches!(shown, Shown::Force | Shown::OldAndForce);
    if token_in == In::Body {
        let mut body: JsonValue = serde_json::from_slice(&request.body).expect("a transaction");
        if let Some(token) = token {
            body["owner"] = token.as_str().into();
        }
        if force {
            body["force"] = true.into();
        }
        return request.body(body.to_string());
    }
    let request = match token {
        Some(token) => request.header("statehouse-owner", token),
        None => request,
    };
    if force { request.header("statehouse-force", "true") } else { request }
}
