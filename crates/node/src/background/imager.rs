//! Writes an image of the whole store into a folder whenever one is due, and keeps the newest few.
//!
//! An image is written under a temporary name, synced, and then renamed, so a file with an image's name is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use contract::{Error, Failure, FailureKind};
use session::SinceImage;

use crate::access::Access;
use crate::background::plans::ImagePlan;
use crate::background::repeating::Repeating;
use crate::directory::owner_only;
use crate::error::cannot_open;

/// How often to check whether an image is due.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The name of an image: this, the index of the last entry in twenty digits, and [`IMAGE_END`].
const IMAGE_BEGINNING: &str = "image-";
const IMAGE_END: &str = ".shimage";
const UNFINISHED_END: &str = ".unfinished";

/// Starts the thread.
pub(crate) fn start(access: Access, plan: ImagePlan) -> Result<Repeating, Error> {
    owner_only::create_folders(&plan.folder)
        .map_err(|error| cannot_open(format!("could not create the folder {}: {error}", plan.folder.display())))?;
    let mut last = Last { index: newest(&plan.folder), bytes: access.entry_bytes(), at_us: now_us(&access) };
    Repeating::start("image", LOOK_EVERY, move |_| match look(&access, &plan, last) {
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
fn look(access: &Access, plan: &ImagePlan, last: Last) -> Result<Last, Error> {
    let (view, _) = access.view()?;
    let index = crate::image::applied(&*view)?.index;
    let now = Last { index, bytes: access.entry_bytes(), at_us: now_us(access) };
    let since = SinceImage {
        entries: now.index.saturating_sub(last.index),
        bytes: now.bytes.saturating_sub(last.bytes),
        age: Duration::from_micros(now.at_us.saturating_sub(last.at_us)),
    };
    if !plan.policy.is_due(&since) {
        return Ok(last);
    }
    let unwritten = |error: io::Error| Failure::not_applied(FailureKind::Stopped, format!("an image: {error}"));
    let name = format!("{IMAGE_BEGINNING}{index:020}{IMAGE_END}");
    let unfinished = plan.folder.join(format!("{name}{UNFINISHED_END}"));
    // The remains of a killed process, or a planted link: either is removed, and not written through.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unwritten(error).into()),
        _ => {}
    }
    let mut out = BufWriter::new(owner_only::create_new(&unfinished).map_err(unwritten)?);
    crate::image::write_view(&*view, &mut out)?;
    let mut finish = || {
        out.flush()?;
        out.get_ref().sync_all()?;
        fs::rename(&unfinished, plan.folder.join(&name))?;
        File::open(&plan.folder)?.sync_all()?;
        for old in images(&plan.folder)?.into_iter().rev().skip(plan.kept.max(1)) {
            fs::remove_file(old)?;
        }
        Ok(())
    };
    finish().map_err(unwritten)?;
    Ok(now)
}

/// The images in a folder, oldest first.
fn images(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if index_of(&path).is_some() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn index_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix(IMAGE_BEGINNING)?.strip_suffix(IMAGE_END)?.parse().ok()
}

/// The last entry of the newest image; 0 if there is none.
fn newest(folder: &Path) -> u64 {
    images(folder).ok().and_then(|found| index_of(found.last()?)).unwrap_or(0)
}
