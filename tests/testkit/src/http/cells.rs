//! The contract of cells, over HTTP.

use std::collections::BTreeMap;

use contract::cells::PastVersion;
use contract::time::iso;
use contract::{
    AsOf, Cells, Deleted, Error, Expected, History, HistoryPage, Initialised, ListPage, Listed, Moment, NameInGroup,
    Rejection, Swapped, Value, Versioned, Written,
};
use serde_json::value::RawValue;
use wire::values::PageCursor;

use super::client::Client;
use super::message::{Request, Response, path_of};
use super::refusals::{NOT_FOUND, code};
use super::values::{from_text, micros, to_text};

/// The cells of a client's place.
pub struct HttpCells {
    client: Client,
}

type Members = BTreeMap<String, Box<RawValue>>;

impl HttpCells {
    /// Cells where the client is.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    fn path(&self, cell: &str) -> String {
        format!("/v1/cells/{}", path_of(cell))
    }

    /// A call that finds nothing gives none.
    fn find(&self, request: Request) -> Result<Option<Response>, Error> {
        let response = self.client.send(request).expect("an answer");
        match response.status {
            404 if code(&response) == NOT_FOUND => Ok(None),
            _ if response.is_success() => Ok(Some(response)),
            _ => Err(super::refusals::refusal(&response)),
        }
    }
}

/// A number among the members of an answer.
fn number(members: &Members, name: &str) -> u64 {
    members[name].get().parse().unwrap_or_else(|_| panic!("{name} is no number: {}", members[name].get()))
}

fn text(members: &Members, name: &str) -> String {
    serde_json::from_str(members[name].get()).unwrap_or_else(|_| panic!("{name} is no text: {}", members[name].get()))
}

fn versioned(members: &Members) -> Versioned {
    let value = from_text(members["value"].get());
    let updated_at = micros(&text(members, "updated_at"));
    Versioned::new(value, number(members, "version"), number(members, "commit"), updated_at)
}

fn past(members: &Members) -> PastVersion {
    let kept = (members["deleted"].get() == "false").then(|| from_text(members["value"].get()));
    let updated_at = micros(&text(members, "updated_at"));
    PastVersion::new(number(members, "version"), kept, number(members, "commit"), updated_at)
}

fn list_of(members: &Members, name: &str) -> Vec<Members> {
    serde_json::from_str(members[name].get()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn written(response: &Response) -> Written {
    let members = response.members();
    Written { version: number(&members, "version"), commit: number(&members, "commit") }
}

impl Cells for HttpCells {
    fn init(&self, cell: &str, value: Value) -> Result<Initialised, Error> {
        let response = self.client.call(Request::post(self.path(cell)).body(to_text(&value)))?;
        let members = response.members();
        Ok(Initialised { version: number(&members, "version"), created: members["created"].get() == "true" })
    }

    fn get(&self, cell: &str) -> Result<Option<Value>, Error> {
        Ok(self.get_versioned(cell)?.map(|found| found.value))
    }

    fn get_versioned(&self, cell: &str) -> Result<Option<Versioned>, Error> {
        let found = self.find(Request::get(self.path(cell)))?;
        Ok(found.map(|response| {
            let found = versioned(&response.members());
            assert_eq!(response.header("etag"), Some(format!("\"{}\"", found.version).as_str()), "the ETag");
            found
        }))
    }

    fn set(&self, cell: &str, value: Value) -> Result<Written, Error> {
        Ok(written(&self.client.call(Request::put(self.path(cell)).body(to_text(&value)))?))
    }

    fn cas(&self, cell: &str, expected: Expected, value: Value) -> Result<Swapped, Error> {
        let request = Request::put(self.path(cell)).body(to_text(&value));
        let request = match expected {
            Expected::Absent => request.header("if-none-match", "*"),
            Expected::Version(version) => request.header("if-match", format!("\"{version}\"")),
        };
        match self.client.call(request) {
            Ok(response) => Ok(Swapped::Written(written(&response))),
            Err(Error::Rejected(Rejection::Conflict { current, .. })) => Ok(Swapped::Conflict { current }),
            Err(error) => Err(error),
        }
    }

    fn delete(&self, cell: &str) -> Result<Deleted, Error> {
        let found = self.find(Request::delete(self.path(cell)))?;
        Ok(Deleted { version: found.map(|response| number(&response.members(), "version")) })
    }

    fn history(&self, cell: &str, page: HistoryPage) -> Result<History, Error> {
        let mut request = Request::get(self.path(cell)).query("view", "history").query("limit", page.limit);
        if let Some(before) = page.before {
            request = request.query("before", before);
        }
        let members = self.client.call(request)?.members();
        let versions = list_of(&members, "versions").iter().map(past).collect();
        Ok(History { versions, next_before: serde_json::from_str(members["next_before"].get()).expect("a number") })
    }

    fn at(&self, cell: &str, moment: Moment) -> Result<AsOf, Error> {
        let request = Request::get(self.path(cell));
        let request = match moment {
            Moment::Version(version) => request.query("at", version),
            Moment::Time(time) => request.query("at", iso(time)),
        };
        let response = self.client.send(request).expect("an answer");
        match response.status {
            200 => Ok(AsOf::Value(versioned(&response.members()))),
            404 if code(&response) == NOT_FOUND => Ok(AsOf::Absent),
            410 => Ok(AsOf::Unavailable { oldest: number(&response.members(), "oldest") }),
            _ => Err(super::refusals::refusal(&response)),
        }
    }

    fn list(&self, prefix: &str, page: ListPage) -> Result<Listed, Error> {
        let mut request = Request::get("/v1/cells").query("prefix", prefix).query("limit", page.limit);
        if let Some(after) = page.after {
            request = request.query("cursor", PageCursor(after.to_cursor().into_bytes()));
        }
        let members = self.client.call(request)?.members();
        let cells = list_of(&members, "cells");
        let group = |cell: &Members| cell.get("group").map(|group| serde_json::from_str(group.get()).expect("a group"));
        let named = |cell: &Members| NameInGroup::new(text(cell, "name"), group(cell));
        let cells = cells.iter().map(|cell| (named(cell), versioned(cell))).collect();
        let cursor: Option<PageCursor> = serde_json::from_str(members["cursor"].get()).expect("a cursor");
        let next_after = cursor.and_then(PageCursor::into_text);
        let next_after = next_after.map(|after| NameInGroup::from_cursor(&after).expect("a cursor of ours"));
        Ok(Listed { cells, next_after })
    }
}
