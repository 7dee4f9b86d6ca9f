//! Guarded groups: who may do what there, for every operation, and what the store goes on doing.

use crate::script::{Stage, check};

/// How every operation is said, of a thing `%`, what makes it possible, and what anybody may do of it to an open name.
const OPERATIONS: &[(&str, &str, &str, ForAnybody)] = &[
    ("init", "", "init % 1", ForAnybody::Always),
    ("set", "", "set % 1", ForAnybody::IfAbsent),
    ("cas", "", "cas % absent 1", ForAnybody::Always),
    ("delete", "set % 1", "delete %", ForAnybody::Never),
    ("put", "", "put % as task", ForAnybody::IfAbsent),
    ("patch", "", "patch % f=1", ForAnybody::IfAbsent),
    ("update", "put %", "update % f=1", ForAnybody::Never),
    ("swap", "", "swap % f none 1", ForAnybody::IfAbsent),
    ("incr", "", "incr % f 1", ForAnybody::IfAbsent),
    ("delete record", "put %", "delete record %", ForAnybody::Never),
    ("touch", "put %", "touch % 10s", ForAnybody::Never),
    ("claim", "put % as task", "claim % by v", ForAnybody::Never),
    ("extend", "put % as task, claim %", "extend % #1", ForAnybody::Never),
    ("release", "put % as task, claim %", "release % #1", ForAnybody::Never),
    ("complete", "put % as task, claim %", "complete % #1", ForAnybody::Never),
    ("fail", "put % as task, claim %", "fail % #1", ForAnybody::Never),
    ("send", "", "send in g then set a 1", ForAnybody::Never),
    ("publish", "", "publish topic x", ForAnybody::Never),
    ("append", "", "append % key Progress", ForAnybody::Always),
    ("close", "append % key Progress", "close %", ForAnybody::Never),
    ("delete run", "append % key Progress", "delete run %", ForAnybody::Never),
    ("fork", "append origin key Progress", "fork % from origin at 1", ForAnybody::Never),
    ("update map", "", "update % k=a@1", ForAnybody::Never),
    ("number", "", "number % 1 k+1 topic:4", ForAnybody::Never),
    ("seal", "", "seal % 7", ForAnybody::Never),
    ("create", "", "create % ordered", ForAnybody::Never),
    ("delete map", "update % k=a@1", "delete map %", ForAnybody::Never),
    ("begin restore", "", "begin restore % monotonic 0", ForAnybody::Never),
    ("restore", "begin restore % monotonic 0", "restore % 2 k=a@1", ForAnybody::Never),
    ("end restore", "begin restore % monotonic 0", "end restore % 2 0 0 0", ForAnybody::Never),
    ("abandon restore", "begin restore % monotonic 0", "abandon restore % 2", ForAnybody::Never),
    ("begin checkpoint", "update % k=a@1", "begin checkpoint %", ForAnybody::Never),
    ("end checkpoint", "update % k=a@1, begin checkpoint %", "end checkpoint % 1", ForAnybody::Never),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForAnybody {
    Never,
    IfAbsent,
    Always,
}

/// The code of a refusal, or that it was done.
fn code(answer: &str) -> &str {
    answer.rsplit_once(" [SH-").map_or("done", |(_, code)| code.trim_end_matches(']'))
}

/// What the last statement of a script is answered with.
fn answer(script: &str) -> String {
    let mut stage = Stage::new(1);
    stage.say(script);
    stage.last_answer().to_owned()
}

/// O1.
#[test]
fn every_operation_needs_the_fence_of_the_owner() {
    let words: Vec<&str> = OPERATIONS.iter().map(|(word, ..)| *word).collect();
    assert_eq!(words, Stage::words_of_ops(), "the table has every operation");
    for (word, before, operation, for_anybody) in OPERATIONS {
        for (name, is_open) in [("thing", false), ("inbox.1", true)] {
            let [before, operation] = [before, operation].map(|text| text.replace('%', name));
            let before = match before.as_str() {
                "" => String::new(),
                before => format!("in agents.7 force: {before}; "),
            };
            // The first owner was replaced by the second.
            let ready = format!(
                "guard agents. open inbox; {before}in agents.7: own by a for 10s; in agents.7 force: own by b for 10s; "
            );
            let say = |head: &str| answer(&format!("{ready}in agents.7{head}: {operation}"));
            let open = is_open && *for_anybody != ForAnybody::Never;
            let told = |head: &str| code(&say(head)).to_owned();
            assert_eq!(told(""), if open { "done" } else { "4003" }, "{word} {name}, no fence: {}", say(""));
            assert_eq!(told(" owned #1"), "4002", "{word} {name}, old fence: {}", say(" owned #1"));
            assert_eq!(told(" owned #2"), "done", "{word} {name}, right fence: {}", say(" owned #2"));
            assert_eq!(told(" force"), "done", "{word} {name}, forced: {}", say(" force"));
            if open && operation.contains(name) {
                // Once more: now the thing is there.
                let again = answer(&format!("{ready}in agents.7 force: {operation}; in agents.7: {operation}"));
                let is_guarded = code(&again) == "4003";
                assert_eq!(is_guarded, *for_anybody == ForAnybody::IfAbsent, "{word} {name}, again: {again}");
            }
        }
    }
}

#[test]
fn each_operation_is_refused_by_name() {
    check(
        "guard g; init g/a 1; set g/a 1; cas g/a absent 1; delete g/a; put g/a; patch g/a f=1; update g/a f=1; swap g/a f none 1; \
         incr g/a f 1; delete record g/a; touch g/a 1s; claim g/a; extend g/a #1; release g/a #1; complete g/a #1; fail g/a #1; \
         in g: send in h then set a 1; in g: publish t p; append g/a k Progress; close g/a; delete run g/a; fork g/b from a at 1; \
         set g 1",
        &[UNFENCED; 23].join("; "),
    );
}

/// A refusal in a group that nobody owns.
const UNFENCED: &str = "group \"g\" is guarded: a write must carry the fence of the attempt that holds it, and nobody holds it; claim it \
                        first, or force the write [SH-4003]";

#[test]
fn an_owner_is_claimed_by_name_and_a_refusal_says_who_has_it_until_when() {
    check(
        "in g: own by a for 10s; in g: own by b; advance 4s; in g: keep-owning #1 for 20s; in g: own by b; in g: disown #1; \
         in g: own by b for 1s; in g: disown #1; in g: keep-owning #1; read g/_statehouse.owner",
        "g/_statehouse.owner #1; \
         the group cannot be claimed yet: attempt 1 is held by \"a\" until 1970-01-01T00:00:10Z [SH-1021]; \
         _statehouse.owner v2; \
         the group cannot be claimed yet: attempt 1 is held by \"a\" until 1970-01-01T00:00:24Z [SH-1021]; \
         _statehouse.owner v3; g/_statehouse.owner #2; \
         attempt 1 of the group is over: it is owned at attempt 2, held by \"b\" [SH-4002]; \
         attempt 1 of the group is over: it is owned at attempt 2, held by \"b\" [SH-4002]; \
         owner owned v4 #2 by b for 1s",
    );
}

#[test]
fn an_owner_that_is_silent_loses_its_group_as_often_as_that_happens() {
    check(
        "guard g; repeat 9 in g: own by w for 1s; tick; advance 2s; tick; read g/_statehouse.owner; in g: own by v for 1s; \
         in g owned #2: set a 1; advance 2s; tick; in g owned #2: set a 2; get g/a",
        "the group cannot be claimed yet: attempt 1 is held by \"w\" until 1970-01-01T00:00:01Z [SH-1021]; \
         owner free v2 #1 1 failed; g/_statehouse.owner #2; a v1; \
         attempt 2 of the group is over: it is free at attempt 2 [SH-4002]; 1 v1",
    );
}

#[test]
fn a_forced_claim_takes_a_group_over_and_no_job() {
    check(
        "declare job for jobs.; in g: own by a for 10s; in g force: own by b for 10s; in g owned #1: set a 1; in g owned #2: set a 2; \
         put jobs.1; claim jobs.1 by a for 10s; in jobs.1 force: claim jobs.1 by b",
        "#2; g/_statehouse.owner #1; g/_statehouse.owner #2; \
         attempt 1 of the group is over: it is owned at attempt 2, held by \"b\" [SH-4002]; a v1; jobs.1 v1; jobs.1 #1; \
         record \"jobs.1\" cannot be claimed yet: attempt 1 is held by \"a\" until 1970-01-01T00:00:10Z [SH-1021]",
    );
}

/// O3.
#[test]
fn nobody_writes_an_owner_in_another_way() {
    let refused = "a write to record \"_statehouse.owner\" cannot be declared: it owns its group, so it is claimed, extended and \
                   released, and nothing else [SH-1018]";
    for owned in ["", "in g: own by a; "] {
        for write in
            ["put % f=1", "patch % f=1", "incr % f 1", "delete record %", "touch % 1s", "complete % #1", "fail % #1"]
        {
            let write = write.replace('%', "_statehouse.owner");
            for head in ["in g", "in g force", "in g owned #1"].iter().take(if owned.is_empty() { 2 } else { 3 }) {
                assert_eq!(answer(&format!("{owned}{head}: {write}")), refused, "{owned}{head}: {write}");
            }
        }
    }
}

#[test]
fn a_claim_of_the_next_records_passes_over_those_of_guarded_groups() {
    check(
        "declare job for jobs.; put g/jobs.1; put h/jobs.2; put g/jobs.3; put jobs.4; guard g; next jobs. 9 by w; next jobs.; oldest 5; \
         in g: own by o; in g owned #1: claim jobs.1 by o; read g/jobs.3; unguard g; next jobs.; in g: release jobs.1 #1; next jobs.; \
         update g/jobs.3 f=1; next jobs.",
        "#2; jobs.1 v1; jobs.2 v1; jobs.3 v1; jobs.4 v1; h/jobs.2 #1, jobs.4 #1; nothing; none; g/_statehouse.owner #1; g/jobs.1 #1; \
         job pending v1; nothing; jobs.1 v3; g/jobs.1 #2; jobs.3 v2; g/jobs.3 #1",
    );
}

#[test]
fn many_that_are_passed_over_hold_nobody_up_for_long() {
    check(
        "declare job for jobs.; repeat 200 put g/jobs.%; put jobs.last; guard g; next jobs.; next jobs.; next jobs.; next jobs.; next jobs.",
        "#2; jobs.200 v1; jobs.last v1; unfinished; unfinished; unfinished; jobs.last #1; nothing",
    );
}

#[test]
fn what_is_put_into_a_guarded_group_is_in_no_queue() {
    check(
        "declare job for jobs. pause 1s..1s; guard g open jobs.; put g/jobs.1; next jobs.; in g: own by o; in g owned #1: claim jobs.1; \
         in g owned #1: fail jobs.1 #1; advance 2s; tick; next jobs.; read g/jobs.1; in g owned #1: claim jobs.1; image; restart",
        "#2; jobs.1 v1; nothing; g/_statehouse.owner #1; g/jobs.1 #1; jobs.1 v3 again in 1s; nothing; job pending v3 #1 1 failed; \
         g/jobs.1 #2; same bytes",
    );
}

#[test]
fn what_the_store_does_by_itself_goes_on() {
    check(
        "declare job for jobs. lease 1s; put g/a ttl 5s f=1; put g/jobs.1; claim g/jobs.1; guard g; advance 2s; tick; read g/jobs.1; \
         advance 4s; tick; read g/a; keep none; walk",
        "#2; a v1; jobs.1 v1; g/jobs.1 #1; job pending v3 #1 1 failed again in 1s; absent; 0 rounds",
    );
}

#[test]
fn a_message_needs_a_fence_unless_it_comes_from_the_group_itself() {
    check(
        "guard g open inbox; in g: own by o; in h: send in g then set a 1; in h: send in g then set inbox 2; \
         in h: send in g force then set b 3; in g owned #1: send after 1s in g then set c 4; in h: send in g owned #1 then set d 5; tick; \
         in g: disown #1; advance 2s; tick; get g/a; get g/inbox; get g/b; get g/c; get g/d",
        "g/_statehouse.owner #1; sent; sent; sent; sent; sent; _statehouse.owner v2; absent; 2 v1; 3 v1; 4 v1; 5 v1",
    );
}

/// O2.
#[test]
fn a_held_record_of_a_guarded_type_is_written_with_its_fence() {
    check(
        "declare job for jobs. guarded; put jobs.1; patch jobs.1 f=1; claim jobs.1 by w for 10s; patch jobs.1 f=2; put jobs.1; \
         touch jobs.1 1s; delete record jobs.1; swap jobs.1 f 1 2; incr jobs.1 f 1; step jobs.1 #1 f=3; in jobs.1 force: patch jobs.1 f=4; \
         complete jobs.1 #1; patch jobs.1 f=5",
        &format!(
            "#2; jobs.1 v1; jobs.1 v2; jobs.1 #1; {}; jobs.1 v4; jobs.1 v5; jobs.1 v6; jobs.1 v7",
            [HELD; 6].join("; ")
        ),
    );
}

/// A refused write to a record that a worker holds.
const HELD: &str = "record \"jobs.1\" is guarded: a write must carry the fence of the attempt that holds it, which is held by \"w\" until \
                    1970-01-01T00:00:10Z; claim it first, or force the write [SH-4003]";

#[test]
fn several_operations_are_open_only_if_each_is() {
    check(
        "guard g open inbox; in g: set inbox 1, append inbox k Progress, put inbox; in g: set inbox.2 1, set other 1; in g: set inbox.3 1, \
         publish t p; list g/",
        &format!("inbox v1, inbox 1, inbox v1; {UNFENCED}; {UNFENCED}; g/inbox=1"),
    );
}

#[test]
fn what_one_operation_creates_the_next_may_not_change() {
    check(
        "guard g open inbox; in g: set inbox 1, set inbox 2; in g: set inbox 1, init inbox 2; get g/inbox",
        &format!("{UNFENCED}; inbox v1, inbox is v1; 1 v1"),
    );
}

#[test]
fn nothing_but_the_owner_of_a_group_is_of_its_type() {
    check(
        "put a as owner; declare owner for owners.; in g: own by w; count records *; next *",
        "\"owner\" is not a record type of this space, or the record has no type [SH-1014]; \
         type \"owner\" cannot be declared: the store itself has a type with this name [SH-1018]; g/_statehouse.owner #1; none; nothing",
    );
}

#[test]
fn the_longest_prefix_decides_and_a_thing_alone_is_its_own_group() {
    check(
        "guard a open x; guard a.b; set a.1/x 1; set a.b.1/x 1; set a.c 1; set b 1; unguard a.b; set a.b.1/x 1; unguard a.b; unguard a; set a.c 1",
        "x v1; group \"a.b.1\" is guarded: a write must carry the fence of the attempt that holds it, and nobody holds it; claim it first, \
         or force the write [SH-4003]; group \"a.c\" is guarded: a write must carry the fence of the attempt that holds it, and nobody \
         holds it; claim it first, or force the write [SH-4003]; b v1; x v1; \
         there is no guard for groups that begin with \"a.b\" [SH-1022]; a.c v1",
    );
}

#[test]
fn a_guard_that_makes_no_sense_is_refused_and_one_in_another_space_is_none() {
    check(
        "guard _statehouse; guard a open _state; guard a open x,x; guard a; space other; in space other; set a 1; in space default; set a 1; image; \
         set a 1",
        "guard \"_statehouse\" cannot be declared: it is not a valid name [SH-1018]; \
         guard \"a\" cannot be declared: one of its open names would open the record that owns a group [SH-1018]; \
         guard \"a\" cannot be declared: two of its names are the same [SH-1018]; #2; a v1; \
         group \"a\" is guarded: a write must carry the fence of the attempt that holds it, and nobody holds it; claim it first, or force \
         the write [SH-4003]; same bytes; \
         group \"a\" is guarded: a write must carry the fence of the attempt that holds it, and nobody holds it; claim it first, or force \
         the write [SH-4003]",
    );
}
