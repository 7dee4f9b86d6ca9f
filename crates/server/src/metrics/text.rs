//! A scrape as OpenMetrics text, or in the older text format for clients that do not ask for it.
//!
//! Keeps: each metric of the list occurs once, with all its samples together.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use statehouse::durations::{BOUNDS_NS, Counted};

use super::list::{Kind, Metric};

const NS_PER_SECOND: f64 = 1e9;

/// The content type of OpenMetrics, and of the older format.
pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
pub(crate) const OLDER: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Names and values, in the order of the metric's labels.
type Labels = Vec<(&'static str, String)>;

#[derive(Debug)]
enum Sample {
    Whole(u64),
    Real(f64),
    Durations(Box<Counted>),
}

#[derive(Debug)]
struct Family {
    metric: &'static Metric,
    samples: Vec<(Labels, Sample)>,
}

/// The samples of one scrape.
#[derive(Debug, Default)]
pub(crate) struct Scrape {
    families: Vec<Family>,
}

impl Scrape {
    fn add(&mut self, metric: &'static Metric, labels: &[&str], sample: Sample) {
        debug_assert_eq!(metric.labels.len(), labels.len(), "{}", metric.name);
        let labels = metric.labels.iter().copied().zip(labels.iter().map(|value| (*value).to_owned())).collect();
        match self.families.iter_mut().find(|family| family.metric == metric) {
            Some(family) => family.samples.push((labels, sample)),
            None => self.families.push(Family { metric, samples: vec![(labels, sample)] }),
        }
    }

    /// A sample of a counter or a gauge.
    pub(crate) fn whole(&mut self, metric: &'static Metric, labels: &[&str], value: u64) {
        self.add(metric, labels, Sample::Whole(value));
    }

    /// A sample that is not a whole number.
    pub(crate) fn real(&mut self, metric: &'static Metric, labels: &[&str], value: f64) {
        self.add(metric, labels, Sample::Real(value));
    }

    /// A sample of a histogram.
    pub(crate) fn durations(&mut self, metric: &'static Metric, labels: &[&str], counted: Counted) {
        self.add(metric, labels, Sample::Durations(Box::new(counted)));
    }

    /// As OpenMetrics text.
    pub(crate) fn open_metrics(self) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut written = String::with_capacity(32 << 10);
        text::encode(&mut written, &registry)?;
        Ok(written)
    }

    /// In the older text format: there, a counter's own name ends with `_total`, and there is no end mark.
    pub(crate) fn older(self) -> Result<String, fmt::Error> {
        let counters: Vec<_> = self.families.iter().filter(|family| family.metric.kind == Kind::Counter).collect();
        let counters: Vec<&'static str> = counters.iter().map(|family| stem(family.metric)).collect();
        let mut written = String::new();
        for line in self.open_metrics()?.lines().filter(|line| *line != "# EOF") {
            let mut words = line.splitn(4, ' ');
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some("#"), Some(what), Some(name), Some(rest)) if counters.contains(&name) => {
                    written += &format!("# {what} {name}_total {rest}\n");
                }
                _ => {
                    written += line;
                    written.push('\n');
                }
            }
        }
        Ok(written)
    }
}

/// The name of a metric in its description: a counter's is without its suffix.
fn stem(metric: &Metric) -> &'static str {
    metric.name.strip_suffix("_total").unwrap_or(metric.name)
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Family { metric, samples } in &self.families {
            let kind = match metric.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let mut described = encoder.encode_descriptor(stem(metric), metric.help, None, kind)?;
            for (labels, sample) in samples {
                match labels.is_empty() {
                    true => put(&mut described, metric.kind, sample)?,
                    false => put(&mut described.encode_family(labels)?, metric.kind, sample)?,
                }
            }
        }
        Ok(())
    }
}

fn put(encoder: &mut MetricEncoder<'_>, kind: Kind, sample: &Sample) -> fmt::Result {
    match (kind, sample) {
        (Kind::Counter, Sample::Whole(value)) => encoder.encode_counter::<NoLabelSet, _, f64>(value, None),
        (Kind::Counter, Sample::Real(value)) => encoder.encode_counter::<NoLabelSet, _, f64>(value, None),
        (_, Sample::Whole(value)) => encoder.encode_gauge(value),
        (_, Sample::Real(value)) => encoder.encode_gauge(value),
        (_, Sample::Durations(counted)) => {
            let (sum, buckets) = in_seconds(counted);
            encoder.encode_histogram::<NoLabelSet>(sum, counted.count(), &buckets, None)
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a sum of durations is shown, not counted with")]
fn in_seconds(counted: &Counted) -> (f64, Vec<(f64, u64)>) {
    let bounds = BOUNDS_NS.iter().map(|bound| *bound as f64 / NS_PER_SECOND).chain([f64::INFINITY]);
    (counted.sum_ns as f64 / NS_PER_SECOND, bounds.zip(counted.buckets).collect())
}
