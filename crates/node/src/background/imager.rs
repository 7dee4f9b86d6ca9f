//! Writes an image of the whole store whenever one is due, and keeps the newest few.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use contract::{Error, Failure, FailureKind};
use session::SinceImage;

use crate::access::Access;
use crate::background::plans::ImagePlan;
use crate::background::repeating::Repeating;
use crate::image;
use crate::images::{ImageRef, ImageStore};

/// How often to check whether an image is due.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Starts the thread.
pub(crate) fn start(access: Access, images: Arc<dyn ImageStore>, plan: ImagePlan) -> Result<Repeating, Error> {
    let newest = images.newest().ok().flatten().map_or(0, |image| image.index);
    let mut last = Last { index: newest, bytes: access.entry_bytes(), at_us: now_us(&access) };
    Repeating::start("image", LOOK_EVERY, move |_| match look(&access, &*images, &plan, last) {
        Ok(now) => last = now,
        Err(error) => tracing::warn!(%error, folder = %plan.folder.display(), "could not write an image"),
    })
}

#[derive(Clone, Copy)]
struct Last {
    index: u64,
    bytes: u64,
    at_us: u64,
}

fn now_us(access: &Access) -> u64 {
    access.clock().monotonic_us()
}

/// Writes an image if one is due.
fn look(access: &Access, images: &dyn ImageStore, plan: &ImagePlan, last: Last) -> Result<Last, Error> {
    let (view, _) = access.view()?;
    let index = image::applied(&*view, &access.keys())?.index;
    let now = Last { index, bytes: access.entry_bytes(), at_us: now_us(access) };
    let since = SinceImage {
        entries: now.index.saturating_sub(last.index),
        bytes: now.bytes.saturating_sub(last.bytes),
        age: Duration::from_micros(now.at_us.saturating_sub(last.at_us)),
    };
    if !plan.policy.is_due(&since) {
        return Ok(last);
    }
    let mut unreadable = None;
    let written = images.put(ImageRef { index }, &mut |out| match image::write_view(&*view, &access.keys(), out) {
        Ok(_) => Ok(()),
        Err(error) => Err(io::Error::other(unreadable.insert(error).to_string())),
    });
    match (written.and_then(|()| images.forget(plan.kept)), unreadable) {
        (Ok(()), _) => Ok(now),
        (Err(_), Some(error)) => Err(error),
        (Err(error), None) => Err(Failure::not_applied(FailureKind::Stopped, format!("an image: {error}")).into()),
    }
}
