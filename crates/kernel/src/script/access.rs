//! Principals and tokens, and the audit.
//!
//! ```text
//! principal NAME [GRANT ...] [uid:7 ...]      no principal NAME      token NAME ID 10s      revoke ID
//! as NAME (who sends what follows)            as nobody              note ACT               audit
//! ```

use contract::access::audit::{AuditHead, Decision};
use contract::access::token::TokenDigest;
use contract::access::{Grant, Identity, Principal};

use super::Stage;
use super::words::time_us;
use crate::audit::decode_head;
use crate::catalogue::AccessChange;
use crate::command::{AuditNote, Body};
use crate::runs::read;

impl Stage {
    /// A change of principals and tokens.
    pub(super) fn access_change(words: &[&str]) -> Option<AccessChange> {
        Some(match words {
            ["principal", name, said @ ..] => {
                let principal = said.iter().fold(Principal::new(*name), |principal, word| match Grant::parse(word) {
                    Ok(grant) => principal.granted(grant),
                    Err(_) => principal.known_as(Identity::parse(word).unwrap()),
                });
                AccessChange::SetPrincipal(Box::new(principal))
            }
            ["no", "principal", name] => AccessChange::RemovePrincipal { principal: (*name).to_owned() },
            ["token", principal, id, age] => AccessChange::IssueToken {
                principal: (*principal).to_owned(),
                id: (*id).to_owned(),
                digest: TokenDigest::from_bytes([7; 32]),
                age_us: time_us(age),
            },
            ["revoke", id] => AccessChange::RevokeToken { id: (*id).to_owned() },
            _ => return None,
        })
    }

    /// Records something that is done elsewhere.
    pub(super) fn note_act(&mut self, act: &str) -> String {
        self.propose(&Body::Audit(AuditNote { act, on: "{}", decision: Decision::Permitted }))
    }

    /// Each event of the audit: who did what, and what became of it. The events name each other, and the last is where the audit
    /// ends.
    pub(super) fn audit(&self) -> String {
        let (view, keys, catalogue) = (self.view(), self.kernel.keys(), self.kernel.catalogue());
        let Some(space) = catalogue.system_space() else { return "no audit".into() };
        let main = catalogue.space(space).unwrap().branch_named("main").unwrap();
        let mut head = AuditHead::default();
        let mut shown = Vec::new();
        for month in ["1970-01", "1970-02", "1970-03"] {
            let name = format!("audit.{month}");
            let run = catalogue.thing(space, main, None, &name).unwrap();
            let Ok(found) = read::head(&*view, &keys, &run).unwrap() else { continue };
            for event in read::fetch(&*view, &keys, &run, &found, 0, 1_000).unwrap().events {
                let event = event.event.data.as_str().to_owned();
                head.check(&event).unwrap_or_else(|fault| panic!("{fault}"));
                let of = |name: &str| {
                    let members = contract::object_text::members(&event).unwrap();
                    let found = members.iter().find(|member| member.name == name).map(|member| member.json.to_owned());
                    found.unwrap_or_else(|| "nobody".into()).replace('"', "")
                };
                shown.push(format!("{} {} {} {}", of("principal"), of("decision"), of("act"), of("on")));
            }
        }
        let end = view.get(&keys.audit_head()).unwrap().map(|row| decode_head(&row).unwrap()).unwrap_or_default();
        head.check_end(&end).unwrap_or_else(|fault| panic!("{fault}"));
        shown.join(" | ")
    }
}
