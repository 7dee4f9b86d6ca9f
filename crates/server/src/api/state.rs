//! The commands of the state primitive, executed one by one.

use contract::access::Verb;
use statehouse::seed::{self, Command, Output};
use wire::query::NoQuery;
use wire::state::{State, StateCas, StateCommand, StateGet, StateGetv, StateInit, StateOutput, StateSet};
use wire::values::UserJson;

use super::{Answered, Call, Reply};
use crate::Server;
use crate::access::Permission;

/// What a command needs, in the group of all of them.
pub(crate) fn permission() -> Permission<NoQuery, StateCommand> {
    Permission::of("read, cas or write cells", |asking, needs| {
        let (verb, cell) = match asking.body {
            StateCommand::StateInit(StateInit { branch: _, cell, value: _ }) => (Verb::Cas, cell),
            StateCommand::StateGet(StateGet { branch: _, cell }) => (Verb::Read, cell),
            StateCommand::StateGetv(StateGetv { branch: _, cell }) => (Verb::Read, cell),
            StateCommand::StateCas(StateCas { branch: _, cell, expected_counter: _, value: _ }) => (Verb::Cas, cell),
            StateCommand::StateSet(StateSet { branch: _, cell, value: _ }) => (Verb::Write, cell),
        };
        needs.cell(verb, seed::GROUP, cell);
    })
}

pub(crate) async fn command(server: Server, call: Call<NoQuery, StateCommand>) -> Answered<StateOutput> {
    let Call { mut scope, body, .. } = call;
    scope.group = Some(seed::GROUP.to_owned());
    let command = match body {
        StateCommand::StateInit(of) => Command::StateInit { branch: of.branch, cell: of.cell, value: of.value.0 },
        StateCommand::StateGet(of) => Command::StateGet { branch: of.branch, cell: of.cell },
        StateCommand::StateGetv(of) => Command::StateGetv { branch: of.branch, cell: of.cell },
        StateCommand::StateCas(of) => Command::StateCas {
            branch: of.branch,
            cell: of.cell,
            expected_counter: of.expected_counter,
            value: of.value.0,
        },
        StateCommand::StateSet(of) => Command::StateSet { branch: of.branch, cell: of.cell, value: of.value.0 },
    };
    scope.branch = Some(seed::branch_of(&command).to_owned());
    let handles = scope.open(&server.house)?;
    let executed = server.call(move |_| Ok((seed::execute_alone(&handles.cells(), command)?, handles.replayed())));
    let (output, replayed) = executed.await?;
    let shown = |state: seed::State| State {
        value: UserJson(state.value),
        version: state.version,
        updated_at: state.updated_at,
    };
    let output = match output {
        Output::Maybe(value) => StateOutput::Maybe(value.map(UserJson)),
        Output::Version(version) => StateOutput::Version(version),
        Output::MaybeVersion(version) => StateOutput::MaybeVersion(version),
        Output::MaybeVersions(states) => {
            StateOutput::MaybeVersions(states.map(|states| states.into_iter().map(shown).collect()))
        }
    };
    Ok(Reply::new(output).replayed(replayed))
}
