//! The audit: what was done to the administration of the store, and what was refused.

use contract::Json;
use contract::access::audit::{AuditHead, hex};
use contract::value::Value;
use wire::access::{AuditPage, ReadAudit, ShownAuditHead};
use wire::operations::NoBody;
use wire::values::UserJson;

use super::{Answered, Call, Reply, page_limit};
use crate::Server;

/// The default number of events in a page.
const PAGE_ROWS: usize = 100;

pub(crate) async fn read(server: Server, call: Call<ReadAudit, NoBody>) -> Answered<AuditPage> {
    let (after, limit) = (call.query.after.unwrap_or(0), page_limit(call.query.limit, PAGE_ROWS)?);
    let memory = server.reserve_page().await?;
    let read = server.call(move |house| {
        let audit = house.audit();
        // First, so that the events that follow are not behind it.
        let AuditHead { number, digest } = audit.head()?;
        let events = audit.events(after, limit)?.into_iter();
        let events = events.map(|event| UserJson(Value::Json(Json::from_checked(event))));
        Ok(AuditPage { events: events.collect(), head: ShownAuditHead { number, digest: hex(&digest) } })
    });
    Ok(Reply::page(read.await?, memory))
}
