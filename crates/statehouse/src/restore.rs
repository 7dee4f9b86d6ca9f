//! New directories from images; `docs/formats/image.md`.

use std::io::Read;
use std::path::Path;

use contract::Error;
use kernel::{Catalogue, image};
use kv::Store;
use node::directory::FilledBy;
use node::error::{from_halt, from_kv};
use node::image::from_image;
use node::parts::Parts;

use crate::options::Options;
use crate::transfer::KEYS;

pub(crate) fn restore(path: &Path, options: &Options, input: &mut dyn Read) -> Result<(), Error> {
    Parts::create(path, options, FilledBy::Opener, |store: &dyn Store| {
        image::restore(input, store, &KEYS).map_err(|error| from_image(&error))?;
        let view = store.view().map_err(|error| from_kv(&error))?;
        let catalogue = Catalogue::load(&*view, &KEYS).map_err(|halt| from_halt(&halt))?;
        Ok(catalogue.buckets)
    })
}
