//! The certificates in use, and the files that they are read from again.
//!
//! Touches: the files. Keeps: connections that are there keep the certificate of their handshake; new ones get the newest pair that
//! could be used. What cannot be used is logged once, and is a problem of `/status` until it can.

use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use contract::time::iso;
use rustls::ServerConfig;
use tokio::time::{MissedTickBehavior, interval};

use super::failures::Failures;
use super::files::{Loaded, TlsError, TlsFiles};

/// How often the files are looked at. A pair that is just being replaced does not fit, and is read again the next time: so this is half
/// of the time within which a new one is promised to be in use.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The certificates of a server.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    current: ArcSwap<Loaded>,
    /// Held while they are read, so that an older read never replaces a newer one.
    reading: Mutex<()>,
    /// Never held while they are read, which can take long where a network is between: whoever asks how it is does not wait for that.
    state: Mutex<State>,
    failures: Failures,
    reloads: AtomicU64,
    reloads_failed: AtomicU64,
}

#[derive(Debug)]
struct State {
    /// The files when they were last read.
    seen: Vec<Option<FileVersion>>,
    /// Why they cannot be used, if they cannot.
    error: Option<TlsError>,
}

/// Tells one version of a file from another, behind any links: in Kubernetes, a secret is replaced by pointing a link at another
/// directory. The last two numbers, when the file or its owner changed, nobody can set: a copy may keep the time of its original.
type FileVersion = [i128; 5];

impl Tls {
    /// Reads and checks the files.
    pub fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let seen = versions(&files);
        let loaded = files.load()?;
        Ok(Self {
            files,
            current: ArcSwap::from_pointee(loaded),
            reading: Mutex::default(),
            state: Mutex::new(State { seen, error: None }),
            failures: Failures::default(),
            reloads: AtomicU64::new(0),
            reloads_failed: AtomicU64::new(0),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the files again, and uses them for new connections. If they cannot be used, those in use stay. May block.
    pub fn reload(&self) -> Result<(), TlsError> {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        // Before they are read: what changes meanwhile is seen the next time.
        let seen = versions(&self.files);
        let loaded = self.files.load();
        let mut state = self.state();
        state.seen = seen;
        match loaded {
            Ok(loaded) => {
                let not_after = shown(loaded.not_after);
                self.current.store(Arc::new(loaded));
                state.error = None;
                self.reloads.fetch_add(1, Ordering::Relaxed);
                tracing::info!(certificate = %self.files.certificate.display(), not_after, "certificates reloaded");
                Ok(())
            }
            Err(error) => {
                // A pair that is replaced file by file does not fit for a moment, and a bad one stays bad: said once.
                if state.error.as_ref() != Some(&error) {
                    tracing::error!(%error, "certificates not reloaded; the old ones stay in use");
                }
                state.error = Some(error.clone());
                self.reloads_failed.fetch_add(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Reads the files again if they have changed, or could not be used the last time. May block.
    pub(crate) fn reload_if_changed(&self) {
        let versions = versions(&self.files);
        let is_due = {
            let state = self.state();
            state.error.is_some() || state.seen != versions
        };
        if is_due {
            // It is in the log and in the state.
            let _ = self.reload();
        }
    }

    /// Looks at the files for as long as it is polled.
    pub(crate) async fn watch(self: &Arc<Self>) -> Infallible {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let tls = self.clone();
            // A panic is in the log; the next look is as good as this one.
            let _ = tokio::task::spawn_blocking(move || tls.reload_if_changed()).await;
        }
    }

    /// What the next handshake uses.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.current.load().config.clone()
    }

    /// Why the files cannot be used, if they cannot, and others are in use.
    pub(crate) fn error(&self) -> Option<TlsError> {
        self.state().error.clone()
    }

    /// The file of the certificate.
    pub(crate) fn certificate(&self) -> &Path {
        &self.files.certificate
    }

    /// Until when the certificate in use is valid.
    pub(crate) fn not_after(&self) -> SystemTime {
        self.current.load().not_after
    }

    /// How often the files were read again and could be used, and how often they could not.
    pub(crate) fn reloads(&self) -> (u64, u64) {
        (self.reloads.load(Ordering::Relaxed), self.reloads_failed.load(Ordering::Relaxed))
    }

    pub(crate) fn failures(&self) -> &Failures {
        &self.failures
    }
}

/// A time for people.
pub(crate) fn shown(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    iso(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

fn versions(files: &TlsFiles) -> Vec<Option<FileVersion>> {
    files.all().map(version).collect()
}

fn version(file: &Path) -> Option<FileVersion> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(file).ok()?;
    Some([found.dev().into(), found.ino().into(), found.size().into(), found.ctime().into(), found.ctime_nsec().into()])
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, FileTimes};

    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn open(folder: &Path) -> Tls {
        let [certificate, key] = ["server.pem", "server.key"].map(|name| folder.join(name));
        let made = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        fs::write(&certificate, params.self_signed(&made).expect("a certificate").pem()).expect("written");
        fs::write(&key, made.serialize_pem()).expect("written");
        Tls::open(TlsFiles { certificate, key, client_ca: None }).expect("a pair")
    }

    #[test]
    fn a_copy_with_the_length_and_the_time_of_its_original_is_another_version() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "one").expect("written");
        let (before, modified) =
            (version(&file), fs::metadata(&file).and_then(|found| found.modified()).expect("a time"));
        assert_eq!(version(&file), before);
        // The clock of a file system is coarse.
        std::thread::sleep(Duration::from_millis(50));
        fs::write(&file, "two").expect("written");
        let times = FileTimes::new().set_modified(modified);
        File::options().write(true).open(&file).and_then(|file| file.set_times(times)).expect("set");
        assert_ne!(version(&file), before);
        assert_eq!(version(&folder.path().join("gone")), None);
    }

    #[test]
    fn whoever_asks_how_it_is_does_not_wait_until_files_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let tls = Arc::new(open(folder.path()));
        let reading = tls.reading.lock().expect("no panic");
        let (asked, answers) = std::sync::mpsc::channel();
        let asking = tls.clone();
        std::thread::spawn(move || asked.send((asking.error(), asking.reloads())));
        assert_eq!(answers.recv_timeout(Duration::from_secs(60)).expect("an answer meanwhile"), (None, (0, 0)));
        drop(reading);
        tls.reload().expect("a pair");
        assert_eq!(tls.reloads(), (1, 0));
    }
}
