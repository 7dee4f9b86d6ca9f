//! The manual, the alerts and the dashboard name exactly the metrics that the server has.

use std::collections::BTreeSet;

use statehouse_server::metrics;
use statehouse_server::metrics::list::Kind;

/// Every name of a metric in a text; those of a histogram's parts are the histogram's.
fn names_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let named = words.filter(|word| word.starts_with("statehouse_") || word.starts_with("process_"));
    let histogram = |name: &str| {
        let mut all = metrics::all();
        let of = all.find(|metric| metric.kind == Kind::Histogram && name.starts_with(metric.name))?;
        ["_bucket", "_count", "_sum"].iter().any(|part| name.strip_prefix(of.name) == Some(part)).then_some(of.name)
    };
    named.map(|name| histogram(name).unwrap_or(name).to_owned()).collect()
}

#[test]
fn the_manual_the_alerts_and_the_dashboard_name_what_the_server_has() {
    let list: BTreeSet<String> = metrics::all().map(|metric| metric.name.to_owned()).collect();
    assert_eq!(list.len(), metrics::all().count(), "no name is there twice");
    let manual = include_str!("../../../docs/metrics.md");
    let rows: Vec<&str> = manual.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = metrics::all()
        .map(|metric| {
            let kind = format!("{:?}", metric.kind).to_lowercase();
            let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            format!("| `{}` | {kind} | {} | {} |", metric.name, labels.join(", "), metric.help)
        })
        .collect();
    assert_eq!(rows, expected, "docs/metrics.md has one row for each metric, in their order");

    let alerts = include_str!("../../../monitoring/alerts.yml");
    let dashboard = include_str!("../../../monitoring/dashboard.json");
    let rules: Vec<&str> = alerts.lines().filter(|line| line.trim_start().starts_with("command:")).collect();
    assert_eq!(rules.len(), alerts.matches("- alert: ").count(), "every alert has one command");
    // What a command looks for is a part of a name, and no name.
    let expressions: String = alerts.lines().filter(|line| !line.contains("command:")).collect();
    let mut shown = names_in(dashboard);
    shown.extend(names_in(&expressions));
    shown.extend(names_in(include_str!("../../../monitoring/alerts_test.yml")).into_iter().filter(|name| {
        // The same: what commands look for.
        list.contains(name)
    }));
    let unknown: Vec<_> = shown.difference(&list).collect();
    assert_eq!(unknown, Vec::<&String>::new(), "monitoring/ names metrics that are not there");
    let plotted = names_in(dashboard);
    let missing: Vec<_> = list.difference(&plotted).collect();
    assert_eq!(missing, Vec::<&String>::new(), "the dashboard shows every metric");
    let parsed: serde_json::Value = serde_json::from_str(dashboard).expect("JSON");
    assert!(parsed["panels"].as_array().is_some_and(|panels| panels.len() > 20));
}
