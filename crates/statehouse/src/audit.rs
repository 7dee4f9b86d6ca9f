//! The audit: what was done to the administration of the store, by whom, and what was refused.

use contract::access::audit::{AUDIT_KIND, AuditHead, Decision, SYSTEM_SPACE};
use contract::object_text::members;
use contract::{Error, Rejection};
use kernel::command::{AuditNote, MACHINE};
use kernel::{Answer, Body};
use node::error::from_kv;
use node::pending::{Decode, Pending};
use session::Envelope;

use crate::house::Statehouse;
use crate::runs::{RunList, Runs};
use crate::sender::Sender;

/// The audit of a store.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::access::{Grant, Principal, audit::AuditHead};
/// house.principals().set(&Principal::new("root").granted(Grant::everything()))?;
/// let (mut head, audit) = (AuditHead::default(), house.audit());
/// for event in audit.events(0, 100)? {
///     assert!(event.contains("principals.set"));
///     head.check(&event).expect("each event names the one before it");
/// }
/// head.check_end(&audit.head()?).expect("and the last is where the audit ends");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Audit {
    house: Statehouse,
}

impl Statehouse {
    /// The audit of this store. It begins with the first principal.
    pub fn audit(&self) -> Audit {
        Audit { house: self.clone() }
    }
}

impl Audit {
    /// How far the audit has come.
    pub fn head(&self) -> Result<AuditHead, Error> {
        let (view, _) = self.house.shard.view()?;
        let row = view.get(&self.house.shard.keys().audit_head()).map_err(|error| from_kv(&error))?;
        let head = row.map(|row| kernel::audit::decode_head(&row)).transpose();
        let damaged =
            |error| node::error::from_halt(&session::Halt::Undecodable { what: "the head of the audit", error });
        Ok(head.map_err(damaged)?.unwrap_or_default())
    }

    /// The events after the one with this number, as JSON, at most `limit`. A page can be shorter; the end is an empty one.
    pub fn events(&self, after: u64, limit: usize) -> Result<Vec<String>, Error> {
        crate::paging::check_page(limit)?;
        let runs = self.house.space(SYSTEM_SPACE).runs();
        let next = after.saturating_add(1);
        // The last run that does not begin behind the place, and those after it.
        let mut months = months(&runs)?;
        let later = months.iter().position(|(first, _)| *first > next).unwrap_or(months.len());
        months.drain(..later.saturating_sub(1));
        for (first, run) in months {
            let page = runs.fetch(&run, next.saturating_sub(first), limit)?;
            if !page.events.is_empty() {
                return Ok(page.events.into_iter().map(|event| event.event.data.as_str().to_owned()).collect());
            }
        }
        Ok(Vec::new())
    }

    /// Records something, in the name of whoever this store was [handed to](Statehouse::sent_by). `on` is a JSON object of names.
    pub fn note(&self, act: &str, on: &str, decision: Decision) -> Pending<()> {
        let catalogue = self.house.shard.shared.catalogue();
        let sender = self.house.sender.as_ref().map(Sender::in_envelope);
        let envelope = Envelope { sender, ..Envelope::without_session(MACHINE, catalogue.revision, b"") };
        let body = Body::Audit(AuditNote { act, on, decision });
        let done = |answer| match answer {
            Answer::Done { .. } => Ok(()),
            Answer::Rejected(rejection) => Err(rejection.into()),
        };
        self.house.shard.access.propose_in(envelope, &catalogue, &body, Decode::Contracts(done))
    }
}

/// The runs of the audit, by month, each with the number of its first event.
fn months(runs: &Runs) -> Result<Vec<(u64, String)>, Error> {
    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let list = RunList::default().with_prefix(format!("{AUDIT_KIND}.")).after(cursor);
        let page = match runs.list(&list) {
            Err(Error::Rejected(Rejection::NoSuchSpace { .. })) => return Ok(Vec::new()),
            page => page?,
        };
        for run in page.runs {
            let first = runs.fetch(&run.name, 0, 1)?;
            let first = first.events.first().and_then(|event| number_of(event.event.data.as_str()));
            found.extend(first.map(|first| (first, run.name)));
        }
        cursor = page.cursor;
        if cursor.is_none() {
            found.sort_unstable();
            return Ok(found);
        }
    }
}

fn number_of(event: &str) -> Option<u64> {
    let all = members(event).ok()?;
    all.iter().find(|member| member.name == "number")?.json.parse().ok()
}
