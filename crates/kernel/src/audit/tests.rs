//! A1: what is recorded is in the commit of what it is about, and what is not done is not recorded.

use crate::script::check;

const SETUP: &str = "principal root admin@*; token root aaaaaaaaaa 1h; as root;";
const MADE: &str = "nobody done principals.set {principal:root,grants:[admin@*],identities:[]} \
                    | nobody done tokens.issue {principal:root,token:aaaaaaaaaa}";

#[test]
fn what_is_done_by_somebody_known_is_recorded_with_it() {
    check(
        &format!("{SETUP} space shop; branch draft; guard agents.; drop draft; audit"),
        &format!(
            "#3; #4; {MADE} \
             | root done spaces.create {{space:shop}} \
             | root done branches.create {{space:default,branch:draft}} \
             | root done guards.set {{space:default,prefix:agents.}} \
             | root done branches.delete {{space:default,branch:draft,number:4}}"
        ),
    );
}

#[test]
fn who_is_not_known_leaves_nothing_until_somebody_is() {
    check("space shop; branch draft; audit", "#2; #3; no audit");
    check(&format!("{SETUP} as nobody; space shop; audit"), &format!("#3; {MADE}"));
}

#[test]
fn what_is_refused_or_changes_nothing_of_the_administration_is_not_recorded() {
    check(
        &format!("{SETUP} space default; set a 1; token nobody bbbbbbbbbb 1h; revoke bbbbbbbbbb; audit"),
        &format!(
            "space \"default\" already exists [SH-1007]; a v1; there is no principal \"nobody\" [SH-6003]; \
             there is no token \"bbbbbbbbbb\" [SH-6004]; {MADE}"
        ),
    );
}

#[test]
fn forced_writes_and_notes_are_recorded() {
    check(
        &format!("guard g; {SETUP} in g: set a 1; in g force: set a 1; note backup.create; audit"),
        &format!(
            "group \"g\" is guarded: a write must carry the fence of the attempt that holds it, and nobody holds it; claim it \
             first, or force the write [SH-4003]; a v1; {MADE} \
             | root forced write {{space:default,branch:main,group:g}} | root permitted backup.create {{}}"
        ),
    );
}

#[test]
fn the_chain_goes_on_over_months_restarts_and_images() {
    check(
        &format!("{SETUP} advance 31d; space a; restart; space b; image; advance 30d; revoke aaaaaaaaaa; audit"),
        &format!(
            "#3; #4; same bytes; {MADE} | root done spaces.create {{space:a}} | root done spaces.create {{space:b}} \
             | root done tokens.revoke {{token:aaaaaaaaaa}}"
        ),
    );
}

#[test]
fn nobody_else_writes_where_the_audit_is() {
    let refused = "there is no space \"_statehouse\" [SH-1005]; ".repeat(6);
    check(
        &format!(
            "{SETUP} in space _statehouse; set a 1; append audit.1970-01 k x; in g force: set a 1; guard a.; branch b; \
             keep none; space _statehouse"
        ),
        &format!("{refused}space \"_statehouse\" already exists [SH-1007]"),
    );
}
