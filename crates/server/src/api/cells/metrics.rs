//! The metrics of cells: none, because the store counts no cells apart from other things.

use crate::metrics::list::Metric;
use crate::metrics::readings::Readings;
use crate::metrics::text::Scrape;

pub(in crate::api) const LIST: &[Metric] = &[];

pub(in crate::api) fn write(_: &Readings<'_>, _: &mut Scrape) {}
