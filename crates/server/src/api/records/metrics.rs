//! The metrics of records.

use std::collections::BTreeMap;

use statehouse::Overview;
use statehouse::counters::OTHER_TYPES;

use crate::metrics::list::{counter, gauge, metrics};
use crate::metrics::readings::Readings;
use crate::metrics::text::Scrape;

metrics! {
    RECORDS = gauge("statehouse_records", &["type", "state"], "Records that have a type, across all spaces and branches.");
    OLDEST_READY = gauge("statehouse_oldest_ready_seconds", &["type"], "How long the next record has been ready to be claimed, in the queue where that is longest.");
    CLAIMS = counter("statehouse_claims_total", &["type"], "Claimed records.");
    CLAIMERS_WAITING = gauge("statehouse_claimers_waiting", &[], "Workers waiting for something to claim.");
    RECORD_CHANGES = counter("statehouse_record_changes_total", &["reason"], "Ends of attempts and of records, by reason.");
}

pub(in crate::api) fn write(readings: &Readings<'_>, scrape: &mut Scrape) {
    let mut claims: BTreeMap<String, u64> = BTreeMap::new();
    for (record_type, claimed) in &readings.counters.claims {
        *claims.entry(readings.type_label(record_type)).or_default() += claimed.count;
    }
    for (record_type, count) in claims {
        scrape.whole(&CLAIMS, &[&record_type], count);
    }
    let changes = [
        ("released", readings.counters.records_released),
        ("failed", readings.counters.records_failed),
        ("finished", readings.counters.records_finished),
        ("rescued", readings.counters.records_rescued),
        ("exhausted", readings.counters.records_exhausted),
        ("expired", readings.counters.records_expired),
        ("session_ended", readings.counters.records_session_ended),
    ];
    for (reason, count) in changes {
        scrape.whole(&RECORD_CHANGES, &[reason], count);
    }
    if let Some(overview) = &readings.overview {
        there_now(readings, overview, scrape);
    }
}

fn there_now(readings: &Readings<'_>, overview: &Overview, scrape: &mut Scrape) {
    let records = &overview.records;
    let mut counts: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for ((record_type, state), count) in &records.by_state {
        let shown = readings.type_label(record_type);
        // Users also name states; states of types that are not shown by name are not shown either.
        let state = if shown == OTHER_TYPES { OTHER_TYPES } else { state };
        *counts.entry((shown, state)).or_default() += count;
    }
    for ((record_type, state), count) in counts {
        scrape.whole(&RECORDS, &[&record_type, state], count);
    }
    let ready = records.oldest_ready.iter().map(|(ready, age)| (ready.record_type.as_str(), *age));
    for (record_type, age) in readings.longest_by_type(ready) {
        scrape.real(&OLDEST_READY, &[&record_type], age.as_secs_f64());
    }
    scrape.whole(&CLAIMERS_WAITING, &[], overview.claimers_waiting as u64);
}
