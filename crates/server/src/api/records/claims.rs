//! Claims: the next jobs of a prefix, or one record by name, optionally waiting for one.

use statehouse::records::ClaimOptions;
use wire::query::NoQuery;
use wire::records::claims::{Claim, ClaimAnswer};

use super::forms;
use crate::Server;
use crate::api::{Answered, Call, Refusal, Reply, refuse_zero};

pub(super) async fn claim(server: Server, call: Call<NoQuery, Claim>) -> Answered<ClaimAnswer> {
    let Call { scope, body, wait, .. } = call;
    refuse_zero("n", body.n.map(u64::from))?;
    let mut options = ClaimOptions::worker(body.worker.unwrap_or_default());
    if let Some(lease) = body.lease {
        options = options.lease(lease.0);
    }
    let handles = scope.open(&server.house)?;
    let records = handles.records();
    let time_over = server.waited(wait);
    let claimed = match (body.name, body.prefix) {
        (Some(_), Some(_)) => {
            return Err(Refusal::invalid("prefix", "a claim has a name or a prefix, not both"));
        }
        (None, None) => {
            let detail = "prefix is missing: name the queues to claim from, or \"\" for all of them";
            return Err(Refusal::invalid("prefix", detail));
        }
        (Some(_), None) if body.n.is_some_and(|n| n != 1) => {
            return Err(Refusal::invalid("n", "n must be 1: a claim by name takes one record"));
        }
        (None, Some(_)) if scope.group.is_some() => {
            let detail = "a claim by prefix covers all groups; only a claim by name takes a group";
            return Err(Refusal::invalid("group", detail));
        }
        (Some(name), None) if wait.is_zero() => vec![records.claim_later(&name, &options).await?],
        (Some(name), None) => vec![records.claim_until(&name, &options, time_over).await?],
        (None, Some(prefix)) if wait.is_zero() => {
            records.claim_next_later(&prefix, body.n.unwrap_or(1), &options).await?
        }
        (None, Some(prefix)) => records.claim_next_until(&prefix, body.n.unwrap_or(1), &options, time_over).await?,
    };
    let claimed = claimed.into_iter().map(forms::claimed).collect();
    Ok(Reply::new(ClaimAnswer { claimed }).replayed(handles.replayed()))
}
