//! The projection of a run as a whole.

use crate::script::check;

#[test]
fn events_of_a_run_set_its_status_and_its_times() {
    check(
        "append r k1 X; snapshot r; append r k2 RunApproved; snapshot r; append r k3 RunStarted emitted 2s; snapshot r; \
         append r k4 RunPaused; snapshot r; append r k5 RunResumed; snapshot r; append r k6 RunCompleted emitted 5s; snapshot r",
        "r 1; PENDING at 1; r 2; APPROVED at 2; r 3; RUNNING at 3 from 2s; r 4; PAUSED at 4 from 2s; r 5; \
         RUNNING at 5 from 2s; r 6; COMPLETED at 6 from 2s to 5s took 3s",
    );
}

#[test]
fn each_end_of_a_run_has_its_status() {
    check(
        "append a k RunCompleted emitted 1s; append b k RunFailed emitted 1s; append c k RunCancelled emitted 1s; snapshot a; \
         snapshot b; snapshot c; runs status COMPLETED; runs status FAILED; runs status CANCELLED",
        "a 1; b 1; c 1; COMPLETED at 1 to 1s; FAILED at 1 to 1s; CANCELLED at 1 to 1s; a COMPLETED 1; b FAILED 1; \
         c CANCELLED 1",
    );
}

#[test]
fn a_run_that_is_over_does_not_change_its_status_any_more() {
    let over = "FAILED at";
    check(
        "append r k1 RunStarted emitted 1s; append r k2 RunFailed emitted 2s; append r k3 RunStarted emitted 3s; \
         append r k4 RunCompleted emitted 4s data {\"artifacts\":[{}]}; append r k5 RunCancelled; append r k6 RunPaused; \
         append r k7 RunResumed; append r k8 RunApproved; snapshot r; append r k9 StepStarted step a emitted 9s; snapshot r",
        &format!(
            "r 1; r 2; r 3; r 4; r 5; r 6; r 7; r 8; {over} 8 from 1s to 2s took 1s; r 9; \
             {over} 9 from 1s to 2s took 1s, a RUNNING from 9s"
        ),
    );
}

#[test]
fn a_run_started_when_its_first_start_said_so() {
    check(
        "append r k1 RunStarted emitted 7s; append r k2 RunStarted emitted 3s; snapshot r; append r k3 RunCompleted emitted 5s; \
         snapshot r",
        "r 1; r 2; RUNNING at 2 from 7s; r 3; COMPLETED at 3 from 7s to 5s",
    );
}

#[test]
fn the_time_of_an_event_without_one_is_that_of_its_commit() {
    check(
        "advance 10s; append r k1 RunStarted; advance 5s; append r k2 RunCompleted; snapshot r",
        "r 1; r 2; COMPLETED at 2 from 10s to 15s took 5s",
    );
}

#[test]
fn other_events_advance_the_position_only() {
    check(
        "append r k1 RunStarted emitted 1s; append r k2 SignalAccepted step a; append r k3 SignalRejected; append r k4 Paid step a; \
         append r k5 Runaway; append r k6 StepDone step a; append r k7 runcompleted; snapshot r; rows of runs",
        "r 1; r 2; r 3; r 4; r 5; r 6; r 7; RUNNING at 7 from 1s; 1 heads, 7 events, 7 keys, 1 listed",
    );
}

#[test]
fn a_known_event_is_not_projected_again() {
    check(
        "append r k1 RunStarted emitted 1s; append r k2 RunPaused; append r k1 RunStarted emitted 1s; snapshot r; \
         append r k2 RunCompleted; snapshot r; count runs",
        "r 1; r 2; r 1 known; PAUSED at 2 from 1s; r 2 differs; PAUSED at 2 from 1s; PAUSED 1",
    );
}

#[test]
fn the_end_of_a_run_has_artifacts() {
    check(
        "append r k1 RunStarted data {\"artifacts\":[{\"a\":0}]} emitted 1s; snapshot r; \
         append r k2 RunCompleted data {\"artifactRefs\":[{\"a\":1.0},2,{\"b\":[3]}],\"artifacts\":[{\"c\":4}]} emitted 2s; \
         snapshot r",
        "r 1; RUNNING at 1 from 1s; r 2; COMPLETED at 2 from 1s to 2s took 1s {\"a\":1.0} {\"b\":[3]}",
    );
}

#[test]
fn the_counts_follow_the_status() {
    check(
        "append r k1 X kind a; append s k1 X kind a; append t k1 X kind b; count runs; append r k2 RunStarted; append t k2 RunFailed; \
         count runs; append r k3 RunCompleted; append s k2 RunStarted; append s k3 RunPaused; count runs; append t k3 RunStarted; \
         count runs",
        "r 1; s 1; t 1; a PENDING 2, b PENDING 1; r 2; t 2; a PENDING 1, a RUNNING 1, b FAILED 1; r 3; s 2; s 3; \
         a PAUSED 1, a COMPLETED 1, b FAILED 1; t 3; a PAUSED 1, a COMPLETED 1, b FAILED 1",
    );
}
