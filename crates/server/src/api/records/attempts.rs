//! Calls of an attempt on its record: step, extend, release, complete, fail. Each identifies the attempt by the
//! record's name and the attempt number, or by the token from the claim.
//!
//! Keeps: every call carries the attempt, and is refused once the attempt is over (SH-4002).

use contract::time::millis;
use statehouse::records::{Claimed, Retry};
use wire::query::NoQuery;
use wire::records::{
    AttemptToken, CompleteAttempt, CompleteToken, ExtendAttempt, ExtendToken, FailAttempt, FailToken, FailedAttempt,
    ReleaseAttempt, ReleaseToken, StepAttempt, StepToken,
};
use wire::values::{DurationText, Members, UserJson};
use wire::written::Written;

use super::fields;
use crate::Server;
use crate::api::scope::{Handles, check_place};
use crate::api::{Answered, Call, Refusal, Reply, RequestScope};

/// An attempt of a record.
struct Attempt {
    handles: Handles,
    claimed: Claimed,
}

impl Attempt {
    fn named(server: &Server, scope: &RequestScope, name: &str, attempt: u64) -> Result<Self, Refusal> {
        let claimed = Claimed::of_attempt(name, scope.group.as_deref(), attempt);
        Ok(Self { handles: scope.open(&server.house)?, claimed })
    }

    fn of(server: &Server, scope: RequestScope, token: AttemptToken) -> Result<Self, Refusal> {
        let AttemptToken(token) = token;
        let handles = RequestScope { group: token.group.clone(), ..scope }.open(&server.house)?;
        check_place(&server.house, &handles.space, "token", token.place)?;
        Ok(Self { handles, claimed: Claimed::of_token(token) })
    }

    fn written(self, written: contract::Written) -> Answered<Written> {
        let (version, commit) = (written.version, written.commit);
        let replayed = self.handles.replayed();
        Ok(Reply::new(Written { name: self.claimed.name, version, commit }).replayed(replayed))
    }

    async fn step(self, given: Option<Members<UserJson>>) -> Answered<Written> {
        let written = self.handles.records().step_later(&self.claimed, fields(given.unwrap_or_default())).await?;
        self.written(written)
    }

    async fn extend(self, lease: Option<DurationText>) -> Answered<Written> {
        let lease = lease.map(|lease| lease.0);
        let written = self.handles.records().extend_later(&self.claimed, lease).await?;
        self.written(written)
    }

    async fn release(self) -> Answered<Written> {
        let written = self.handles.records().release_later(&self.claimed).await?;
        self.written(written)
    }

    async fn complete(self, given: Option<Members<UserJson>>) -> Answered<Written> {
        let given = fields(given.unwrap_or_default());
        let written = self.handles.records().complete_later(&self.claimed, given).await?;
        self.written(written)
    }

    async fn fail(self, error: Option<String>) -> Answered<FailedAttempt> {
        let retry = self.handles.records().fail_later(&self.claimed, error.as_deref().unwrap_or_default()).await?;
        let retry_in_ms = match retry {
            Retry::After(pause) => Some(millis(pause)),
            Retry::Exhausted => None,
        };
        let (replayed, name) = (self.handles.replayed(), self.claimed.name);
        Ok(Reply::new(FailedAttempt { name, retry_in_ms, exhausted: retry_in_ms.is_none() }).replayed(replayed))
    }
}

pub(super) async fn step(server: Server, call: Call<NoQuery, StepAttempt>) -> Answered<Written> {
    Attempt::named(&server, &call.scope, &call.name, call.body.attempt)?.step(call.body.fields).await
}

pub(super) async fn extend(server: Server, call: Call<NoQuery, ExtendAttempt>) -> Answered<Written> {
    Attempt::named(&server, &call.scope, &call.name, call.body.attempt)?.extend(call.body.lease).await
}

pub(super) async fn release(server: Server, call: Call<NoQuery, ReleaseAttempt>) -> Answered<Written> {
    Attempt::named(&server, &call.scope, &call.name, call.body.attempt)?.release().await
}

pub(super) async fn complete(server: Server, call: Call<NoQuery, CompleteAttempt>) -> Answered<Written> {
    Attempt::named(&server, &call.scope, &call.name, call.body.attempt)?.complete(call.body.fields).await
}

pub(super) async fn fail(server: Server, call: Call<NoQuery, FailAttempt>) -> Answered<FailedAttempt> {
    Attempt::named(&server, &call.scope, &call.name, call.body.attempt)?.fail(call.body.error).await
}

pub(super) async fn step_by_token(server: Server, call: Call<NoQuery, StepToken>) -> Answered<Written> {
    Attempt::of(&server, call.scope, call.body.token)?.step(call.body.fields).await
}

pub(super) async fn extend_by_token(server: Server, call: Call<NoQuery, ExtendToken>) -> Answered<Written> {
    Attempt::of(&server, call.scope, call.body.token)?.extend(call.body.lease).await
}

pub(super) async fn release_by_token(server: Server, call: Call<NoQuery, ReleaseToken>) -> Answered<Written> {
    Attempt::of(&server, call.scope, call.body.token)?.release().await
}

pub(super) async fn complete_by_token(server: Server, call: Call<NoQuery, CompleteToken>) -> Answered<Written> {
    Attempt::of(&server, call.scope, call.body.token)?.complete(call.body.fields).await
}

pub(super) async fn fail_by_token(server: Server, call: Call<NoQuery, FailToken>) -> Answered<FailedAttempt> {
    Attempt::of(&server, call.scope, call.body.token)?.fail(call.body.error).await
}
