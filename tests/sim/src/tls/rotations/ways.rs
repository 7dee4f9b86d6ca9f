//! The files of a server's certificate, and the ways in which they are replaced.
//!
//! Keeps: the paths that the server knows stay the same, whatever is behind them.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use testkit::certificates::{Authority, Pair};

use super::bad_pairs::{BadPair, Content, Which};

/// How a pair is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// New files are renamed over the old ones.
    Renamed,
    /// The same files get another content.
    Rewritten,
    /// The files are links through another link to a folder, and that one is replaced: as Kubernetes mounts a secret.
    FolderLinked,
    /// Each file is a link, which is replaced: as certbot has it.
    Linked,
    /// The same files get another content, and the time of the old one.
    RewrittenWithOldTime,
}

/// All of them.
pub(super) const WAYS: [Way; 5] =
    [Way::Renamed, Way::Rewritten, Way::FolderLinked, Way::Linked, Way::RewrittenWithOldTime];

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const CLIENT_CA: &str = "ca.crt";

/// The link to the folder of files in Kubernetes.
const FOLDER: &str = "..data";

/// The folder of the files.
pub(super) struct Mount {
    folder: tempfile::TempDir,
}

impl Mount {
    pub(super) fn new(pair: &Pair, client_ca: &Path) -> Self {
        let mount = Self { folder: tempfile::tempdir().expect("a folder") };
        mount.put_client_ca(client_ca);
        mount.replace(pair, Way::Rewritten, 0);
        mount
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The files that the server knows.
    pub(super) fn pair(&self) -> Pair {
        Pair { certificate: self.at(CERTIFICATE), key: self.at(KEY) }
    }

    pub(super) fn client_ca(&self) -> PathBuf {
        self.at(CLIENT_CA)
    }

    pub(super) fn put_client_ca(&self, from: &Path) {
        fs::copy(from, self.client_ca()).expect("copied");
    }

    /// Replaces the pair; the key comes first, so that for a moment nothing fits.
    pub(super) fn replace(&self, pair: &Pair, way: Way, number: u64) {
        let files = [(&pair.key, KEY), (&pair.certificate, CERTIFICATE)];
        match way {
            Way::Renamed => files.iter().for_each(|(from, name)| {
                fs::copy(from, self.at(".new")).expect("copied");
                fs::rename(self.at(".new"), self.at(name)).expect("renamed");
            }),
            Way::Rewritten => files.iter().for_each(|(from, name)| self.rewrite(from, name)),
            Way::RewrittenWithOldTime => files.iter().for_each(|(from, name)| {
                let modified = fs::metadata(self.at(name)).and_then(|found| found.modified()).expect("a time");
                self.rewrite(from, name);
                let file = File::options().write(true).open(self.at(name)).expect("opened");
                file.set_times(FileTimes::new().set_modified(modified)).expect("set");
            }),
            Way::Linked => files.iter().for_each(|(from, name)| self.link(name, from)),
            Way::FolderLinked => {
                let version = format!("..{number}");
                fs::create_dir(self.at(&version)).expect("made");
                for (from, name) in files {
                    fs::copy(from, self.at(&version).join(name)).expect("copied");
                }
                self.link(FOLDER, Path::new(&version));
                files.iter().for_each(|(_, name)| {
                    let behind = Path::new(FOLDER).join(name);
                    if fs::read_link(self.at(name)).ok().as_deref() != Some(&behind) {
                        self.link(name, &behind);
                    }
                });
            }
        }
    }

    /// Writes another content into the same file.
    fn rewrite(&self, from: &Path, name: &str) {
        fs::write(self.at(name), fs::read(from).expect("read")).expect("written");
    }

    /// Replaces what has a name by a link.
    fn link(&self, name: &str, to: &Path) {
        symlink(to, self.at(".link")).expect("linked");
        fs::rename(self.at(".link"), self.at(name)).expect("renamed");
    }

    /// Puts a pair that cannot be used in the place of the one that is there: what is bad of it first, so that nothing fits meanwhile.
    pub(super) fn put_bad(&self, bad: &BadPair, good: &Pair, authority: &Authority) {
        let mut contents = (bad.made)(good, authority);
        for (which, file) in [(Which::Key, &good.key), (Which::Certificate, &good.certificate)] {
            if contents.iter().all(|(bad, _)| *bad != which) {
                contents.push((which, Content::Bytes(fs::read(file).expect("read"))));
            }
        }
        for (which, content) in contents {
            let name = match which {
                Which::Certificate => CERTIFICATE,
                Which::Key => KEY,
                Which::ClientCa => CLIENT_CA,
            };
            match content {
                Content::Bytes(bytes) => {
                    fs::write(self.at(".new"), bytes).expect("written");
                    fs::rename(self.at(".new"), self.at(name)).expect("renamed");
                }
                Content::Link(to) => self.link(name, &to),
                Content::Nothing => fs::remove_file(self.at(name)).expect("removed"),
            }
        }
    }
}
