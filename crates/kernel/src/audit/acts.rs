//! What a change of the catalogue is called in the audit, and to what it is done: names, and no values.

use contract::access::{Grant, Identity};
use contract::object_text::ObjectText;
use contract::value::Value;

use crate::catalogue::{AccessChange, Catalogue, CatalogueChange, SpaceId};

/// What a change is called, and what it is done to, as a JSON object.
pub(crate) fn act_of(catalogue: &Catalogue, change: &CatalogueChange) -> (&'static str, String) {
    let mut on = ObjectText::default();
    let named =
        |space: SpaceId| catalogue.space(space).map_or_else(|_| format!("#{space}"), |found| found.name.clone());
    let act = match change {
        CatalogueChange::CreateSpace { name } => {
            on.text("space", name);
            "spaces.create"
        }
        CatalogueChange::CreateBranch { space, name } => {
            on.text("space", &named(*space)).text("branch", name);
            "branches.create"
        }
        CatalogueChange::DeleteBranch { space, branch } => {
            let found = catalogue.space(*space).ok().and_then(|space| space.branches().find(|(id, _)| id == branch));
            let name = found.map_or_else(|| format!("#{branch}"), |(_, branch)| branch.name.clone());
            on.text("space", &named(*space)).text("branch", &name).number("number", (*branch).into());
            "branches.delete"
        }
        CatalogueChange::SetRetention { space, retention } => {
            on.text("space", &named(*space)).number("versions", retention.versions_max);
            on.number("age_us", retention.age_us_max);
            "spaces.set_retention"
        }
        CatalogueChange::SetLimits(_) => "limits.set",
        CatalogueChange::DeclareType(declaration) => {
            on.text("space", &named(declaration.space)).text("prefix", &declaration.prefix);
            on.text("type", &declaration.record_type.name);
            "types.declare"
        }
        CatalogueChange::SetGuard { space, prefix, guard } => {
            on.text("space", &named(*space)).text("prefix", prefix);
            if guard.is_some() { "guards.set" } else { "guards.remove" }
        }
        CatalogueChange::RegisterMachine { machine, version } => {
            on.number("machine", (*machine).into()).number("version", (*version).into());
            "machines.register"
        }
        CatalogueChange::Access(change) => access(change, &mut on),
    };
    (act, on.finish())
}

fn access(change: &AccessChange, on: &mut ObjectText) -> &'static str {
    let texts = |texts: Vec<String>| texts.into_iter().map(|text| Value::from(text).to_json_text()).collect::<Vec<_>>();
    match change {
        AccessChange::SetPrincipal(principal) => {
            let grants = texts(principal.grants.iter().map(Grant::to_string).collect());
            let identities = texts(principal.identities.iter().map(Identity::to_string).collect());
            on.text("principal", &principal.name).list("grants", grants.iter().map(String::as_str));
            on.list("identities", identities.iter().map(String::as_str));
            "principals.set"
        }
        AccessChange::RemovePrincipal { principal } => {
            on.text("principal", principal);
            "principals.remove"
        }
        AccessChange::IssueToken { principal, id, .. } => {
            on.text("principal", principal).text("token", id);
            "tokens.issue"
        }
        AccessChange::RevokeToken { id } => {
            on.text("token", id);
            "tokens.revoke"
        }
    }
}
