//! Images of a store; `docs/formats/image.md`.

use std::io::Write;

use contract::{Error, Failure, FailureKind};
use kernel::image::{self, ImageError};
use kernel::{Applied, Keys};
use kv::{KvError, View};
use session::Halt;

use crate::error::{from_halt, from_kv};

/// The applied row of a view.
pub fn applied(view: &dyn View, keys: &Keys) -> Result<Applied, Error> {
    let row = view.get(&keys.applied()).map_err(|error| from_kv(&error))?;
    let row = row.ok_or_else(|| from_halt(&Halt::Inconsistent("the store holds no state".into())))?;
    Applied::decode(&row).map_err(|halt| from_halt(&halt))
}

/// Writes the content of a view.
pub fn write_view(view: &dyn View, keys: &Keys, out: &mut dyn Write) -> Result<u64, Error> {
    image::write(view, keys, out).map_err(|error| from_image(&error))
}

/// An image could not be written or read.
pub fn from_image(error: &ImageError) -> Error {
    let kind = match error {
        ImageError::Store(error @ KvError::Damaged(_)) => return from_kv(error),
        ImageError::Damaged(_) | ImageError::Halt(_) => FailureKind::Corrupt,
        _ => FailureKind::Stopped,
    };
    Failure::not_applied(kind, error.to_string()).into()
}
