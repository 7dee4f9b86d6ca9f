//! The tour of principals, their tokens and the audit. The server asks nobody for a token, and keeps them all the same.

use std::time::Duration;

use client::Error;
use wire::access::{CheckAccess, IssueToken, ListPrincipals, ReadAudit, SetPrincipal};
use wire::values::DurationText;

use super::Tour;

const WHO: &str = "tour-worker";

impl Tour<'_> {
    pub(super) async fn principals(&self) -> Result<(), Error> {
        let principals = self.typed.principals();
        let body = SetPrincipal {
            grants: vec!["worker@tour/records/jobs.".to_owned()],
            identities: Some(vec!["spiffe://tour/worker".to_owned()]),
            requests_per_second_max: Some(10),
        };
        let set = principals.set(WHO, &body).await?;
        assert_eq!((&set.grants, Some(&set.identities)), (&body.grants, body.identities.as_ref()));
        assert_eq!(principals.get(WHO).await?, set);
        assert!(principals.list(&ListPrincipals::default()).await?.principals.contains(&set));
        self.tokens().await?;
        let ask = |name: &str| CheckAccess {
            principal: Some(WHO.to_owned()),
            verb: "claim".to_owned(),
            area: "records".to_owned(),
            space: Some("tour".to_owned()),
            group: None,
            name: Some(name.to_owned()),
            prefix: None,
        };
        let allowed = principals.check(&ask("jobs.1")).await?;
        assert_eq!((allowed.allowed, allowed.grant.as_ref()), (true, body.grants.first()));
        assert!(!principals.check(&ask("users.1")).await?.allowed);
        assert_eq!(principals.whoami().await?.principal, None);
        principals.remove(WHO).await?;
        let gone = principals.get(WHO).await.expect_err("it was removed");
        assert_eq!(gone.code(), Some("SH-6003"));
        let page = principals.audit(&ReadAudit::default()).await?;
        let last = page.events.last().expect("an event").0.to_json_text();
        assert!(last.contains("principals.remove") && last.contains(WHO), "{last}");
        assert!(page.head.number >= page.events.len() as u64, "{:?}", page.head);
        Ok(())
    }

    async fn tokens(&self) -> Result<(), Error> {
        let principals = self.typed.principals();
        let expires_in = Some(DurationText(Duration::from_secs(3_600)));
        let issued = principals.issue_token(WHO, &IssueToken { expires_in }).await?;
        let shown = principals.get(WHO).await?.tokens;
        assert_eq!((shown[0].token.as_str(), shown[0].expired), (issued.id.as_str(), false));
        principals.revoke_token(&issued.id).await?;
        assert_eq!(principals.get(WHO).await?.tokens, []);
        let again = principals.revoke_token(&issued.id).await.expect_err("it was revoked");
        assert_eq!(again.code(), Some("SH-6004"));
        Ok(())
    }
}
