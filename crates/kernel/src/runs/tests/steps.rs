//! The steps in the projection of a run.

use crate::script::{Stage, check};

#[test]
fn each_event_of_a_step_sets_its_status_and_times() {
    check(
        "append r k1 StepStarted step b emitted 1s; append r k2 StepStarted step a emitted 2s; snapshot r; \
         append r k3 StepCompleted step b emitted 3s; append r k4 StepFailed step a emitted 4s; \
         append r k5 StepSkipped step c emitted 5s; append r k6 StepCompleted step d emitted 6s; snapshot r",
        "r 1; r 2; PENDING at 2, a RUNNING from 2s, b RUNNING from 1s; r 3; r 4; r 5; r 6; \
         PENDING at 6, a FAILED from 2s to 4s error \"\" \"\", b SUCCESS from 1s to 3s, c SKIPPED to 5s, d SUCCESS to 6s",
    );
}

#[test]
fn a_step_that_starts_again_is_running_again() {
    check(
        "append r k1 StepStarted step a logical 1 engine 7 emitted 1s; \
         append r k2 StepFailed step a logical 1 engine 7 emitted 2s data {\"code\":\"E\",\"message\":\"m\"}; snapshot r; \
         append r k3 StepStarted step a logical 2 emitted 3s; snapshot r; append r k4 StepCompleted step a emitted 4s; snapshot r",
        "r 1; r 2; PENDING at 2, a FAILED logical 1 engine 7 from 1s to 2s error \"E\" \"m\"; r 3; \
         PENDING at 3, a RUNNING logical 2 from 3s; r 4; PENDING at 4, a SUCCESS from 3s to 4s",
    );
}

#[test]
fn the_error_of_a_step_is_in_the_content_or_in_its_error() {
    check(
        "append r k1 StepFailed step a emitted 1s data {\"error\":{\"code\":\"E\",\"message\":\"m\",\"retryable\":true},\"code\":\"X\"}; \
         append r k2 StepFailed step b emitted 1s data {\"code\":\"F\",\"retryable\":false}; \
         append r k3 StepFailed step c emitted 1s data {\"error\":\"text\"}; append r k4 StepFailed step d emitted 1s; snapshot r",
        "r 1; r 2; r 3; r 4; PENDING at 4, a FAILED to 1s error \"E\" \"m\" retryable, b FAILED to 1s error \"F\" \"\", \
         c FAILED to 1s error \"\" \"\", d FAILED to 1s error \"\" \"\"",
    );
}

#[test]
fn an_event_of_no_step_projects_none() {
    check(
        "append r k1 StepStarted; append r k2 StepFailed; append r k3 RunStarted step a emitted 1s; snapshot r; rows of runs",
        "r 1; r 2; r 3; RUNNING at 3 from 1s; 1 heads, 3 events, 3 keys, 1 listed",
    );
}

#[test]
fn the_artifacts_of_a_step_are_collected() {
    check(
        "append r k1 StepCompleted step a emitted 1s data {\"artifacts\":[{\"n\":1},\"x\",{\"n\":1}]}; \
         append r k2 StepFailed step a emitted 2s data {\"artifactRefs\":[{\"n\":2}],\"code\":\"E\"}; \
         append r k3 StepStarted step a emitted 3s data {\"artifacts\":[{\"n\":3}]}; snapshot r; \
         append r k4 StepCompleted step a emitted 4s data {\"artifacts\":{\"n\":4}}; snapshot r",
        "r 1; r 2; r 3; PENDING at 3, a RUNNING from 3s {\"n\":1} {\"n\":1} {\"n\":2}; r 4; \
         PENDING at 4, a SUCCESS from 3s to 4s {\"n\":1} {\"n\":1} {\"n\":2}",
    );
}

#[test]
fn a_step_and_a_run_keep_64_artifacts_each() {
    let artifacts = |count: u32| (1..=count).map(|number| format!(" {{\"n\":{number}}}")).collect::<String>();
    let list = (1..=65).map(|number| format!("{{\"n\":{number}}}")).collect::<Vec<_>>().join(",");
    check(
        &format!(
            "repeat 65 append r k% StepCompleted step a emitted 1s data {{\"artifacts\":[{{\"n\":%}}]}}; \
             append r end RunCompleted emitted 2s data {{\"artifacts\":[{list}]}}; snapshot r"
        ),
        &format!("r 65; r 66; COMPLETED at 66 to 2s{0}, a SUCCESS to 1s{0}", artifacts(64)),
    );
}

#[test]
fn the_artifacts_of_a_step_have_64_kib_and_its_error_4_kib() {
    let sized = |bytes: usize| format!("{{\"n\":\"{}\"}}", "x".repeat(bytes - 8));
    let (half, most, more) = (sized(32 << 10), sized(32 << 10), sized((32 << 10) + 1));
    let append = |key: &str, artifacts: &str| {
        format!("append r {key} StepCompleted step a emitted 1s data {{\"artifacts\":[{artifacts}]}}; ")
    };
    let last = |script: &str| Stage::new(1).say(script).rsplit("; ").next().map(str::to_owned).unwrap();
    let script = append("1", &half) + &append("2", &format!("{more},{most}")) + &append("3", "{}") + "snapshot r";
    assert_eq!(last(&script), format!("PENDING at 3, a SUCCESS to 1s {half} {most}"), "what does not fit is left out");
    for (bytes, kept) in [(4096, 4096), (4097, 4096)] {
        let text = "x".repeat(bytes);
        let script = format!(
            "append r k StepFailed step a emitted 1s data {{\"error\":{{\"code\":\"{text}\",\"message\":\"{text}\"}}}}; \
             snapshot r"
        );
        assert_eq!(last(&script).matches('x').count(), 2 * kept, "{bytes}");
    }
}

#[test]
fn a_correction_replaces_what_it_names() {
    check(
        "append r k1 StepStarted step a attempt 1 emitted 1s; \
         append r k2 StepFailed step a emitted 2s data {\"error\":{\"code\":\"E\"},\"artifacts\":[{\"n\":1}]}; snapshot r; \
         append r k3 StepCorrected step a emitted 9s data {\"status\":\"SUCCESS\"}; snapshot r; \
         append r k4 StepCorrected step a emitted 9s data {\"artifacts\":[{\"n\":2}],\"completedAt\":null}; snapshot r; \
         append r k5 StepCorrected step a emitted 9s data {\"status\":\"FAILED\",\"error\":{\"code\":\"F\"}}; snapshot r; \
         append r k6 StepCorrected step a emitted 9s data {\"status\":\"NONE\",\"startedAt\":7,\"error\":null}; snapshot r; \
         append r k7 StepCorrected step b emitted 9s data {\"status\":\"SKIPPED\"}; append r k8 StepCorrected emitted 9s data {\"status\":\"FAILED\"}; \
         append r k9 StepCorrected step a emitted 9s data []; snapshot r; \
         append r k10 StepCorrected step a emitted 9s data {\"artifacts\":7,\"error\":[],\"stauts\":\"SUCCESS\",\"startedAt\":{}}; \
         snapshot r",
        "r 1; r 2; PENDING at 2, a FAILED from 1s to 2s error \"E\" \"\" {\"n\":1}; \
         r 3; PENDING at 3, a SUCCESS from 1s to 2s {\"n\":1}; r 4; PENDING at 4, a SUCCESS from 1s {\"n\":2}; \
         r 5; PENDING at 5, a FAILED from 1s error \"F\" \"\" {\"n\":2}; r 6; PENDING at 6, a FAILED from 1s {\"n\":2}; \
         r 7; r 8; r 9; PENDING at 9, a FAILED from 1s {\"n\":2}, b SKIPPED; \
         r 10; PENDING at 10, a FAILED from 1s {\"n\":2}, b SKIPPED",
    );
}

/// Events of further steps are only counted, and steps that are known go on.
#[test]
fn a_run_keeps_10_000_steps_and_counts_what_it_leaves_out() {
    let batch = |first: u32| {
        let step = |number: u32| format!("append r k{number} StepStarted step s{number} emitted 1s");
        format!("in g: {}; ", (first..first + 125).map(step).collect::<Vec<_>>().join(", "))
    };
    let appends: String = (0..80).map(|number| batch(number * 125)).collect();
    let mut stage = Stage::new(1);
    stage.say(&appends);
    let mut last_of_snapshot = |statement: &str| {
        stage
            .say(&format!("{statement}; snapshot g/r"))
            .rsplit_once("; ")
            .map(|(_, snapshot)| snapshot.to_owned())
            .unwrap()
    };
    let full = last_of_snapshot("append g/r full X");
    assert!(full.starts_with("PENDING at 10001, s0 RUNNING"), "{}", &full[..40]);
    assert_eq!(full.matches("RUNNING").count(), 10_000);
    let more =
        last_of_snapshot("append g/r more StepStarted step one-more; append g/r again StepCompleted step one-more");
    assert!(more.starts_with("PENDING at 10003 2 left out, s0 RUNNING"), "{}", &more[..40]);
    assert_eq!(more.matches("RUNNING").count(), 10_000);
    let known = last_of_snapshot("append g/r known StepSkipped step s7 emitted 9s");
    assert!(known.contains("s7 SKIPPED from 1s to 9s") && known.starts_with("PENDING at 10004 2 left out"));
}
