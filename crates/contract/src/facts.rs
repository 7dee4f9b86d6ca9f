//! What everybody must know of a rejection, whatever it is about: its code, its class, and whether to try again.

/// What everybody must know of a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// The stable code.
    pub code: &'static str,
    /// What kind of "no" it is.
    pub class: Class,
    /// Whether the same call, or the same transaction started again, may succeed later.
    pub retryable: bool,
}

impl Facts {
    pub(crate) fn of(code: &'static str, class: Class) -> Self {
        Self { code, class, retryable: false }
    }

    pub(crate) fn retryable(code: &'static str, class: Class) -> Self {
        Self { code, class, retryable: true }
    }
}

/// Kinds of "no". A protocol has one answer for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It makes no sense in any state.
    Invalid,
    /// It is larger than a limit.
    TooLarge,
    /// It makes sense alone, and not here.
    Unprocessable,
    /// Its sender has not shown that it may.
    Forbidden,
    /// What it is about does not exist.
    NotFound,
    /// Something is not as it expects.
    Conflict,
    /// What it is about is gone for good.
    Gone,
    /// Its sender must do something else first.
    Busy,
    /// This node does not know enough yet.
    NotYet,
    /// The stored bytes are damaged.
    Damaged,
}

/// Members of a JSON object: names, and values as JSON.
pub type Members = Vec<(&'static str, String)>;

/// Members as JSON text.
macro_rules! members {
    ($($name:literal => $value:expr),* $(,)?) => {
        vec![$(($name, serde_json::to_string(&$value).expect("a member is JSON"))),*]
    };
}
pub(crate) use members;
