//! Users' machines: a command in the machine's own encoding. And the pushes of all sessions, for whoever delivers them.
//!
//! Keeps: nothing; a machine is found by its number, which may be left out if there is only one.

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::access::{Area, Verb};
use statehouse::Group;
use statehouse::sessions::{SessionStore, UserMachine};
use wire::operations::NoBody;
use wire::query::NoQuery;
use wire::sessions::{MachineRequest, PushesWaiting, RetriedPush, RetriedPushes, RetryPushes, WaitingPushes};
use wire::values::{Payload, SessionId};

use super::sessions::session_of;
use super::{Answered, Call, RawBytes, Refusal, Reply, refuse_zero};
use crate::Server;
use crate::access::Permission;

/// The group of a machine's state, if a request names none.
const GROUP: &str = "default";
/// The default number of pushes in an answer.
const PUSHES: u32 = 100;

/// The machines that accept requests, by number.
pub(crate) type Machines = Arc<BTreeMap<u16, Machine>>;

/// Creates the contract of sessions in front of one machine, in a group.
pub(crate) type Machine = Arc<dyn Fn(&Group) -> Box<dyn SessionStore> + Send + Sync>;

impl Server {
    /// The server, which also sends requests to a machine that its directory was opened with.
    pub fn hosting<M: UserMachine>(mut self) -> Self {
        let machine: Machine = Arc::new(|group| Box::new(group.machine::<M>().portable()));
        Arc::make_mut(&mut self.machines).insert(M::NUMBER, machine);
        self
    }
}

/// What a command needs: to act as a session, and to write the machine in its group.
pub(crate) fn permission() -> Permission<MachineRequest, RawBytes> {
    let area = Area::Session;
    Permission::of(format!("{} and {} {area}", Verb::Session, Verb::Write), move |asking, needs| {
        let group = asking.group.unwrap_or(GROUP);
        needs.everything(Verb::Session, area);
        needs.thing(Verb::Write, area, Some(group), group);
    })
}

/// The body is the command, the answer's body is the machine's response.
pub(crate) async fn request(server: Server, call: Call<MachineRequest, RawBytes>) -> Result<RawBytes, Refusal> {
    let Call { mut scope, name, query, body: RawBytes(command), .. } = call;
    let session = session_of(&name)?;
    let secret = scope.secret.take();
    let machine = machine(&server, query.machine)?;
    let Some(request) = scope.session.take() else {
        return Err(Refusal::invalid("Statehouse-Request", "Statehouse-Request is missing"));
    };
    let named = scope.group.take().unwrap_or_else(|| GROUP.to_owned());
    let (_, group) = scope.open_group(&server.house, &named)?;
    let answer = server.call(move |house| {
        let shown = house.sessions().shown(session, secret)?;
        machine(&group).request(&shown, request.request, request.lowest_pending, &command)
    });
    Ok(RawBytes(answer.await?.into()))
}

fn machine(server: &Server, number: Option<u16>) -> Result<Machine, Refusal> {
    let found = match number {
        Some(number) => server.machines.get(&number),
        None if server.machines.len() > 1 => {
            let numbers: Vec<_> = server.machines.keys().collect();
            return Err(Refusal::invalid("machine", format!("?machine= is missing; the server hosts {numbers:?}")));
        }
        None => server.machines.values().next(),
    };
    let named = number.map_or_else(|| "of any number".to_owned(), |number| number.to_string());
    found.cloned().ok_or_else(|| Refusal::not_found("machine", named))
}

/// Whether any push is unacknowledged, and whether any was last sent before a time. Hints.
pub(crate) async fn waiting(server: Server, call: Call<WaitingPushes, NoBody>) -> Answered<PushesWaiting> {
    let sent_before = call.query.sent_before_us;
    let found = server.call(move |house| {
        let sessions = house.sessions();
        let overdue = sent_before.map(|sent_before| sessions.has_overdue(sent_before)).transpose()?;
        Ok(PushesWaiting { pending: sessions.has_pending()?, overdue })
    });
    Ok(Reply::new(found.await?))
}

/// Takes the pushes last sent before a time, and marks them as sent now.
pub(crate) async fn retry(server: Server, call: Call<NoQuery, RetryPushes>) -> Answered<RetriedPushes> {
    let RetryPushes { sent_before_us, limit } = call.body;
    refuse_zero("limit", limit.map(u64::from))?;
    let limit = limit.unwrap_or(PUSHES);
    let pushes = server.call(move |house| house.sessions().requests_for_retry(sent_before_us, limit)).await?;
    let pushes = pushes.into_iter().map(|push| RetriedPush {
        session: SessionId(push.session),
        number: push.number,
        last_sent_us: push.last_sent_us,
        payload: Payload(push.payload),
    });
    Ok(Reply::new(RetriedPushes { pushes: pushes.collect() }))
}
