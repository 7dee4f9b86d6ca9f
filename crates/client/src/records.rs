//! Records, their types, and the attempts that work on them.

use contract::{Expected, Value};
use wire::records::claims::{Claim, ClaimAnswer, ClaimedRecord};
use wire::records::types::{DeclareType, ShownType, TypeList};
use wire::records::{
    AttemptToken, CompleteToken, CountRecords, ExtendToken, FailToken, FailedAttempt, PatchRecord, Patched, PutRecord,
    ReadRecord, Record, RecordCounts, RecordPage, ReleaseToken, ScanRecords, StepToken,
};
use wire::routes::{
    ATTEMPTS_COMPLETE, ATTEMPTS_EXTEND, ATTEMPTS_FAIL, ATTEMPTS_RELEASE, ATTEMPTS_STEP, RECORDS_CLAIM, RECORDS_COUNTS,
    RECORDS_DELETE, RECORDS_PATCH, RECORDS_PUT, RECORDS_READ, RECORDS_SCAN, Route, TYPES_DECLARE, TYPES_LIST,
};
use wire::values::{DurationText, Members, UserJson};
use wire::written::{Deleted, Written};

use crate::call::Call;
use crate::catalogue::Catalogue;
use crate::client::Client;
use crate::error::Error;

/// The records of a client's place.
#[derive(Clone)]
pub struct Records<'client> {
    client: &'client Client,
}

impl Client {
    /// The records here.
    pub fn records(&self) -> Records<'_> {
        Records { client: self }
    }
}

impl Catalogue<'_> {
    /// The record types of the client's space.
    pub async fn types(&self) -> Result<TypeList, Error> {
        self.call(TYPES_LIST, &[]).read().await
    }

    /// Declares a type for the records with a name prefix.
    pub async fn declare_type(&self, prefix: &str, declared: &DeclareType) -> Result<ShownType, Error> {
        let call = self.call(TYPES_DECLARE, &[prefix]).json(declared);
        call.repeatable().read().await
    }
}

/// Fields in the form that is sent.
pub fn fields<N: Into<String>, V: Into<Value>>(fields: impl IntoIterator<Item = (N, V)>) -> Members<UserJson> {
    fields.into_iter().map(|(name, value)| (name.into(), UserJson(value.into()))).collect()
}

impl Records<'_> {
    fn call(&self, route: Route, record: &str) -> Call {
        self.client.call(route, &[record])
    }

    /// A record; none if it does not exist.
    pub async fn get(&self, record: &str) -> Result<Option<Record>, Error> {
        self.call(RECORDS_READ, record).find().await
    }

    /// A record with one of its fields, or with none if it lacks it; none if it does not exist.
    pub async fn get_only(&self, record: &str, field: &str) -> Result<Option<Record>, Error> {
        self.call(RECORDS_READ, record).query(&ReadRecord { field: Some(field.to_owned()) }).find().await
    }

    /// Records that match; see [`ScanRecords`].
    pub async fn scan(&self, query: &ScanRecords) -> Result<RecordPage, Error> {
        self.client.call(RECORDS_SCAN, &[]).query(query).read().await
    }

    /// Counts of records by type and state.
    pub async fn counts(&self, prefix: &str) -> Result<RecordCounts, Error> {
        let query = CountRecords { prefix: Some(prefix.to_owned()) };
        self.client.call(RECORDS_COUNTS, &[]).query(&query).read().await
    }

    /// Replaces a record; with `expected`, only if it is as expected.
    pub async fn put(&self, record: &str, put: &PutRecord, expected: Option<Expected>) -> Result<Written, Error> {
        self.call(RECORDS_PUT, record).json(put).if_expected(expected).read().await
    }

    /// Changes fields of a record in one commit; with `version`, only at that version.
    pub async fn patch(&self, record: &str, patch: &PatchRecord, version: Option<u64>) -> Result<Patched, Error> {
        self.call(RECORDS_PATCH, record).json(patch).if_version(version).read().await
    }

    /// Deletes a record; none if it does not exist. With `version`, only at that version.
    pub async fn delete(&self, record: &str, version: Option<u64>) -> Result<Option<Deleted>, Error> {
        self.call(RECORDS_DELETE, record).if_version(version).find().await
    }

    /// Claims records for a worker; with [`Claim::wait`], waits for one.
    pub async fn claim(&self, claim: &Claim) -> Result<Vec<ClaimedRecord>, Error> {
        let call = self.client.call(RECORDS_CLAIM, &[]).json(claim);
        let answer: ClaimAnswer = call.waiting(claim.wait.map(|wait| wait.0)).read().await?;
        Ok(answer.claimed)
    }

    /// Parses the token of a claim.
    fn token(token: &str) -> Result<AttemptToken, Error> {
        AttemptToken::parse(token).ok_or_else(|| Error::Unsendable { cause: format!("{token:?} is not a claim token") })
    }

    fn attempt(&self, route: Route) -> Call {
        self.client.call(route, &[])
    }

    /// Writes fields if the attempt is current.
    pub async fn step<N: Into<String>, V: Into<Value>>(
        &self,
        token: &str,
        of: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Written, Error> {
        let body = StepToken { token: Self::token(token)?, fields: Some(fields(of)) };
        self.attempt(ATTEMPTS_STEP).json(&body).read().await
    }

    /// Extends the lease to this long from now, or to the lease of its type.
    pub async fn extend(&self, token: &str, lease: Option<std::time::Duration>) -> Result<Written, Error> {
        let body = ExtendToken { token: Self::token(token)?, lease: lease.map(DurationText) };
        self.attempt(ATTEMPTS_EXTEND).json(&body).read().await
    }

    /// Releases the record: it can be claimed at once.
    pub async fn release(&self, token: &str) -> Result<Written, Error> {
        self.attempt(ATTEMPTS_RELEASE).json(&ReleaseToken { token: Self::token(token)? }).read().await
    }

    /// Completes the record, writing fields in the same commit.
    pub async fn complete<N: Into<String>, V: Into<Value>>(
        &self,
        token: &str,
        of: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Written, Error> {
        let body = CompleteToken { token: Self::token(token)?, fields: Some(fields(of)) };
        self.attempt(ATTEMPTS_COMPLETE).json(&body).read().await
    }

    /// Reports that the attempt failed: the record is retried after a back-off, unless its attempts are used up.
    pub async fn fail(&self, token: &str, error: &str) -> Result<FailedAttempt, Error> {
        let body = FailToken { token: Self::token(token)?, error: Some(error.to_owned()) };
        self.attempt(ATTEMPTS_FAIL).json(&body).read().await
    }
}
