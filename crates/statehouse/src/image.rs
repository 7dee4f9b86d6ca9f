//! Images of an open store, and new directories built from them; `docs/formats/image.md`.

use std::io::{Read, Write};
use std::path::Path;

use contract::{Error, Failure, FailureKind};
use kernel::image::{self, ImageError};
use kernel::{Applied, Catalogue};
use kv::{KvError, Store, View};
use session::Halt;

use crate::directory::FilledBy;
use crate::error::{from_halt, from_kv};
use crate::options::Options;
use crate::shard::{Shard, keys};

/// The applied row of a view.
pub(crate) fn applied(view: &dyn View) -> Result<Applied, Error> {
    let row = view.get(&keys().applied()).map_err(|error| from_kv(&error))?;
    let row = row.ok_or_else(|| from_halt(&Halt::Inconsistent("the store holds no state".into())))?;
    Applied::decode(&row).map_err(|halt| from_halt(&halt))
}

pub(crate) fn write(shard: &Shard, out: &mut dyn Write) -> Result<u64, Error> {
    let (view, _) = shard.view()?;
    write_view(&*view, out)
}

/// Writes the content of a view.
pub(crate) fn write_view(view: &dyn View, out: &mut dyn Write) -> Result<u64, Error> {
    image::write(view, &keys(), out).map_err(|error| from_image(&error))
}

pub(crate) fn restore(path: &Path, options: &Options, input: &mut dyn Read) -> Result<(), Error> {
    Shard::create(path, options, FilledBy::Opener, |store: &dyn Store| {
        image::restore(input, store, &keys()).map_err(|error| from_image(&error))?;
        let view = store.view().map_err(|error| from_kv(&error))?;
        let catalogue = Catalogue::load(&*view, &keys()).map_err(|halt| from_halt(&halt))?;
        Ok(catalogue.buckets)
    })
}

fn from_image(error: &ImageError) -> Error {
    let kind = match error {
        ImageError::Store(error @ KvError::Damaged(_)) => return from_kv(error),
        ImageError::Damaged(_) | ImageError::Halt(_) => FailureKind::Corrupt,
        _ => FailureKind::Stopped,
    };
    Failure::not_applied(kind, error.to_string()).into()
}
