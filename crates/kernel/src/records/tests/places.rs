//! Groups, branches and spaces: what is apart, and what is not.

use crate::script::check;

#[test]
fn a_group_has_its_own_records_and_shares_the_one_with_its_name() {
    check(
        "put a x=own; put g/a x=in-g; put h/a x=in-h; read a; read g/a; read h/a; put g/g x=shared; read g; patch g y=1; \
         read g/g; delete record g/a; read a; rows of records",
        "a v1; a v1; a v1; v1 x=own; v1 x=in-g; v1 x=in-h; g v1; v1 x=shared; g v2; v2 x=shared y=1; a v2; v1 x=own; \
         4 records, 1 names, 1 due by wall",
    );
}

#[test]
fn a_cell_a_record_and_a_run_can_have_the_same_name() {
    check(
        "set a 1; put a x=1; append a k Started; get a; read a; events a; delete a; read a; delete record a; events a; \
         delete run a; get a; read a; set a 2; put a; append a k2 Started",
        "a v1; a v1; a 1; 1 v1; v1 x=1; 1 Started of 1; a v2; v1 x=1; a v2; 1 Started of 1; a at 1; absent; absent; a v3; a v3; \
         run \"a\" was deleted at sequence 1; its name is never reused [SH-3006]",
    );
}

#[test]
fn a_branch_begins_without_records_and_its_rows_go_after_it() {
    check(
        "declare job for jobs. index n:signed; put jobs.1 n=1; branch draft; on draft; read jobs.1; put jobs.1 n=2; \
         put g/jobs.2 n=y*2000; claim jobs.1; scan of job where n > 0; count records; on main; read jobs.1; drop draft; walk; \
         rows of records; tick; rows of records; count records; next jobs. 5",
        "#2; jobs.1 v1; #2; absent; jobs.1 v1; jobs.2 v1; jobs.1 #1; jobs.1; job claimed 1, job pending 1; job pending v1 n=1; \
         1 rounds; 1 records, 2 ready, 2 lanes, 1 indexed, 2 counts; 1 records, 2 ready, 2 lanes, 1 indexed, 2 counts; \
         job pending 1; jobs.1 #1",
    );
}

#[test]
fn nothing_of_a_deleted_branch_is_rescued_or_expires() {
    check(
        "declare job for jobs. lease 5s sweep rescued exhausted; branch draft; on draft; put g/jobs.1; put g/jobs.2 ttl 5s; \
         next jobs. by w; on main; drop draft; advance 10s; tick; messages; rows of records; walk; rows of records",
        "#2; #2; jobs.1 v1; jobs.2 v1; g/jobs.1 #1; none; 1 ready, 2 lanes, 2 counts; 1 rounds; none",
    );
}

#[test]
fn a_deleted_branch_takes_no_writes() {
    let gone = "there is no branch \"#2\" in this space [SH-1006]";
    check(
        "branch draft; on draft; put a; drop draft; put a; in g if record a absent: set c 1; in g fence a #1: set c 1; \
         append r k Started; branch draft; on draft; put a",
        &format!("#2; a v1; {gone}; {gone}; {gone}; {gone}; #3; a v1"),
    );
}

#[test]
fn spaces_have_their_own_records_types_and_queues() {
    check(
        "declare job for jobs.; space other; put jobs.1; in space other; read jobs.1; put jobs.1 x=1; read jobs.1; \
         put jobs.2 as job; declare job for jobs. lease 5s; put jobs.3; next jobs. 5; read jobs.3; in space default; read jobs.1; \
         next jobs. 5",
        "#2; #2; jobs.1 v1; absent; jobs.1 v1; v1 x=1; \"job\" is not a record type of this space, or the record has no type \
         [SH-1014]; #2; jobs.3 v1; jobs.3 #1; job claimed v2 #1 by somebody for 5s; job pending v1; jobs.1 #1",
    );
}

#[test]
fn an_image_has_everything_of_records() {
    check(
        "declare job for jobs. lease 10s order n index t:text; put jobs.1 n=2 t=x; put g/jobs.2 n=1 t=y*2000; put jobs.3 ttl 5s; \
         put a; delete record a; next jobs. by w; in g: send after 5s in h then put x, publish t p; image; next jobs. 2; \
         scan of job where t > a; count records; messages; advance 5s; tick; image; read h/x; read jobs.3; put a; advance 5s; \
         tick; read jobs.3; read g/jobs.2; image",
        "#2; jobs.1 v1; jobs.2 v1; jobs.3 v1; a v1; a v2; jobs.3 #1; sent, sent; same bytes; g/jobs.2 #1, jobs.1 #1; \
         jobs.1, g/jobs.2; job claimed 3; g to t: p, g to a group at 5s; same bytes; v1; absent; a v3; absent; \
         job pending v3 #1 1 failed again in 1s n=1 t=y*2000; same bytes",
    );
}
