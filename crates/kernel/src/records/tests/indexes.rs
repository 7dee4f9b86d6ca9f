//! Indexes that are declared when there are records already, and the index of `updated_at`.

use crate::script::check;

#[test]
fn an_index_that_is_declared_later_is_used_when_it_is_filled() {
    check(
        "declare job for jobs.; repeat 3 put jobs.% n=%; put g/jobs.4 n=3; declare job for jobs. index n:signed; \
         scan of job where n = 3 examine 1; put jobs.5 n=3; rows of records; scan of job where n = 3; fill job; \
         rows of records; scan of job where n = 3 examine 4; scan of job where n = 3; walk",
        "#2; jobs.3 v1; jobs.4 v1; #2; more; jobs.5 v1; 5 records, 1 names, 8 ready, 2 lanes, 1 indexed, 2 counts; \
         jobs.3, g/jobs.4, jobs.5; 1 of 1; 5 records, 1 names, 8 ready, 2 lanes, 5 indexed, 2 counts; \
         jobs.3, jobs.5, g/jobs.4; jobs.3, jobs.5, g/jobs.4; 0 rounds",
    );
}

#[test]
fn a_step_that_fills_reads_so_many_bytes_and_no_more() {
    check(
        "declare job for jobs.; repeat 6 put jobs.% t=x*1000000; declare job for jobs. index t:text; fill job; fill job; \
         rows of records",
        "#2; jobs.6 v1; #2; 0 of 1; 1 of 1; 6 records, 6 large fields, 10 ready, 2 lanes, 6 indexed, 2 counts",
    );
}

#[test]
fn a_scan_goes_on_in_the_index_that_it_began_in() {
    check(
        "declare job for jobs. index b:signed; put jobs.1 a=1 b=3; put jobs.2 a=2 b=2; put jobs.3 a=3 b=1; \
         declare job for jobs. index b:signed,a:signed; scan of job where a > 0 and b > 0 limit 1; walk; \
         scan of job where a > 0 and b > 0 limit 1 more; scan of job where a > 0 and b > 0 limit 1 more; \
         scan of job where a > 0 and b > 0",
        "#2; jobs.1 v1; jobs.2 v1; jobs.3 v1; #2; jobs.3, more; 1 rounds; jobs.2, more; jobs.1, more; jobs.1, jobs.2, jobs.3",
    );
}

#[test]
fn indexes_are_filled_in_bounded_steps_which_survive_restarts() {
    check(
        "declare job for jobs. index a:signed; repeat 600 put jobs.% a=% n=% t=x; declare job for jobs. index a:signed,n:signed; \
         fill job; rows of records; restart; fill job; image; fill job; \
         declare job for jobs. index a:signed,n:signed,t:text lease 9s; fill job; declare job for jobs. index a:signed,n:signed,t:text; \
         walk; scan of job where n = 600 examine 2; scan of job where t = x limit 2; rows of records",
        "#2; jobs.600 v1; #2; 1 of 2; 600 records, 604 ready, 2 lanes, 856 indexed, 2 counts; 1 of 2; same bytes; \
         2 of 2; #2; 2 of 3; #2; 2 rounds; jobs.600; jobs.1, jobs.10, more; \
         600 records, 604 ready, 2 lanes, 1800 indexed, 2 counts",
    );
}

#[test]
fn what_changes_while_an_index_is_filled_has_its_entries() {
    check(
        "declare job for jobs.; repeat 300 put jobs.% n=%; declare other for o.; declare job for jobs. index n:signed; fill job; \
         repeat 300 patch jobs.% n=7; repeat 100 delete record jobs.%; put jobs.200 as other n=7; put jobs.1 n=8; walk; \
         rows of records; scan of job where n = 8; scan of job where n = 1 examine 1",
        "#2; jobs.300 v1; #3; #2; 0 of 1; jobs.300 v2; jobs.100 v3; jobs.200 v3; jobs.1 v4; 1 rounds; \
         300 records, 205 ready, 2 lanes, 99 due by wall, 200 indexed, 4 counts; jobs.1; none",
    );
}

#[test]
fn indexes_are_filled_in_every_branch_that_exists() {
    check(
        "declare job for jobs.; put jobs.1 n=1; branch draft; branch old; on draft; put jobs.2 n=1; on old; put jobs.3 n=1; \
         declare job for jobs. index n:signed; drop old; on main; walk; scan of job where n = 1 examine 2; on draft; \
         scan of job where n = 1 examine 2; branch late; on late; put jobs.4 n=1; scan of job where n = 1 examine 2",
        "#2; jobs.1 v1; #2; #3; jobs.2 v1; jobs.3 v1; #2; 1 rounds; jobs.1; jobs.2; #4; jobs.4 v1; jobs.4",
    );
}

#[test]
fn the_index_of_updated_at_is_right_to_the_ms_though_it_knows_the_minute_only() {
    let scans: Vec<String> = ["<", "<=", "=", ">=", ">"]
        .iter()
        .flat_map(|test| {
            [29_999, 30_000, 59_999, 60_000, 75_000].map(|at| format!("scan of task where updated_at {test} {at}"))
        })
        .collect();
    check(
        &format!(
            "put gbe.state.tasks.a; advance 30s; put gbe.state.tasks.b; advance 30s; put gbe.state.tasks.c; advance 15s; \
             patch gbe.state.tasks.a x=1; rows of records; {}",
            scans.join("; ")
        ),
        "gbe.state.tasks.a v1; gbe.state.tasks.b v1; gbe.state.tasks.c v1; gbe.state.tasks.a v2; \
         3 records, 9 ready, 4 lanes, 3 indexed, 4 counts; none; none; gbe.state.tasks.b; gbe.state.tasks.b; \
         gbe.state.tasks.b, gbe.state.tasks.c; none; gbe.state.tasks.b; gbe.state.tasks.b; \
         gbe.state.tasks.b, gbe.state.tasks.c; gbe.state.tasks.b, gbe.state.tasks.a, gbe.state.tasks.c; none; \
         gbe.state.tasks.b; none; gbe.state.tasks.c; gbe.state.tasks.a; \
         gbe.state.tasks.b, gbe.state.tasks.a, gbe.state.tasks.c; \
         gbe.state.tasks.b, gbe.state.tasks.a, gbe.state.tasks.c; gbe.state.tasks.a, gbe.state.tasks.c; \
         gbe.state.tasks.a, gbe.state.tasks.c; gbe.state.tasks.a; \
         gbe.state.tasks.b, gbe.state.tasks.a, gbe.state.tasks.c; gbe.state.tasks.a, gbe.state.tasks.c; \
         gbe.state.tasks.a, gbe.state.tasks.c; gbe.state.tasks.a; none",
    );
}
