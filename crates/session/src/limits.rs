//! Every limit of sessions by name. The host keeps them as state and passes them in, so that replicas agree.

/// The limits of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Sessions that exist at a time.
    pub sessions_max: u32,
    /// Stored answers of a session.
    pub session_answers_max: u32,
    /// Bytes of stored answers of a session after which it can send no new request.
    pub session_answer_bytes_max: u32,
    /// Unacknowledged pushes of a session. A session with more is ended.
    pub session_pushes_max: u32,
    /// Bytes of unacknowledged pushes. A session with more is ended.
    pub session_push_bytes_max: u32,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            sessions_max: 100_000,
            session_answers_max: 256,
            session_answer_bytes_max: 1 << 20,
            session_pushes_max: 1_024,
            session_push_bytes_max: 4 << 20,
        }
    }
}

/// The limit that a session has reached, so that its request was not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// [`SessionLimits::sessions_max`].
    Sessions,
    /// [`SessionLimits::session_answers_max`].
    Answers,
    /// [`SessionLimits::session_answer_bytes_max`].
    AnswerBytes,
}

impl Bound {
    /// All of them, each at the place of its number.
    pub(crate) const ALL: [Bound; 3] = [Bound::Sessions, Bound::Answers, Bound::AnswerBytes];

    /// The limit's name.
    pub fn name(self) -> &'static str {
        match self {
            Bound::Sessions => "sessions_max",
            Bound::Answers => "session_answers_max",
            Bound::AnswerBytes => "session_answer_bytes_max",
        }
    }
}
