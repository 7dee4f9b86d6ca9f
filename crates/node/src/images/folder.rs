//! Images in a folder.
//!
//! An image is written under a temporary name, synced, and then renamed, so a file with an image's name is complete.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::{ImageRef, ImageStore};
use crate::directory::owner_only;

/// The name of an image: this, the index of the last entry in twenty digits, and [`IMAGE_END`].
const IMAGE_BEGINNING: &str = "image-";
const IMAGE_END: &str = ".shimage";
const UNFINISHED_END: &str = ".unfinished";

/// Images in a folder that only its owner can read.
#[derive(Clone, Debug)]
pub struct FolderImages {
    folder: PathBuf,
}

impl FolderImages {
    /// The images in a folder, which is created if it does not exist.
    pub fn open(folder: &Path) -> io::Result<Self> {
        owner_only::create_folders(folder)?;
        Ok(Self { folder: folder.to_owned() })
    }

    fn path(&self, image: ImageRef) -> PathBuf {
        self.folder.join(name(image))
    }

    /// All of them, oldest first.
    fn list(&self) -> io::Result<Vec<ImageRef>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            found.extend(named(&entry?.path()));
        }
        found.sort();
        Ok(found)
    }
}

fn name(image: ImageRef) -> String {
    format!("{IMAGE_BEGINNING}{:020}{IMAGE_END}", image.index)
}

/// The image in a file that has exactly the name of one: others are somebody else's.
fn named(path: &Path) -> Option<ImageRef> {
    let found = path.file_name()?.to_str()?;
    let number = found.strip_prefix(IMAGE_BEGINNING)?.strip_suffix(IMAGE_END)?;
    Some(ImageRef { index: number.parse().ok()? }).filter(|image| name(*image) == found)
}

impl ImageStore for FolderImages {
    fn put(&self, image: ImageRef, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let unfinished = self.folder.join(name(image) + UNFINISHED_END);
        // The remains of a killed process, or a planted link: either is removed, and not written through.
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut out = BufWriter::new(owner_only::create_new(&unfinished)?);
        write(&mut out)?;
        out.flush()?;
        out.get_ref().sync_all()?;
        fs::rename(&unfinished, self.path(image))?;
        File::open(&self.folder)?.sync_all()
    }

    fn newest(&self) -> io::Result<Option<ImageRef>> {
        Ok(self.list()?.pop())
    }

    fn open(&self, image: ImageRef) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(BufReader::new(File::open(self.path(image))?)))
    }

    fn forget(&self, kept: usize) -> io::Result<()> {
        for old in self.list()?.into_iter().rev().skip(kept.max(1)) {
            fs::remove_file(self.path(old))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(images: &FolderImages, index: u64, content: &[u8]) -> io::Result<()> {
        images.put(ImageRef { index }, &mut |out| out.write_all(content))
    }

    #[test]
    fn the_newest_are_kept_and_read_as_written() {
        let scratch = tempfile::tempdir().expect("a folder");
        let images = FolderImages::open(&scratch.path().join("images")).expect("created");
        assert_eq!(images.newest().expect("readable"), None);
        for index in [9, 100, 20] {
            put(&images, index, index.to_string().as_bytes()).expect("written");
        }
        images.forget(2).expect("removed");
        assert_eq!(images.list().expect("readable"), [20, 100].map(|index| ImageRef { index }));
        let mut content = String::new();
        let newest = images.newest().expect("readable").expect("there is one");
        images.open(newest).expect("there").read_to_string(&mut content).expect("text");
        assert_eq!(content, "100");
        std::fs::write(scratch.path().join("images/image-7.shimage"), "somebody else's").expect("written");
        images.forget(0).expect("removed");
        assert_eq!(images.list().expect("readable"), [ImageRef { index: 100 }], "one always stays");
    }

    #[test]
    fn what_was_not_finished_is_no_image() {
        let scratch = tempfile::tempdir().expect("a folder");
        let images = FolderImages::open(scratch.path()).expect("created");
        let failed = images.put(ImageRef { index: 5 }, &mut |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("it ends here"))
        });
        assert!(failed.is_err());
        assert_eq!(images.newest().expect("readable"), None);
        put(&images, 5, b"whole").expect("the remains are not in the way");
        assert_eq!(images.newest().expect("readable"), Some(ImageRef { index: 5 }));
    }
}
