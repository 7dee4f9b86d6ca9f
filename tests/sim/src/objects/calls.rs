//! The parts of the test: all calls with what they answered, a writer that is killed, a long stream, and settings that cannot work.
//!
//! Touches: the target. Keeps: what is printed is the same for every store that does as documented.

use std::fmt::Debug;
use std::io::{Read, Write};
use std::time::Duration;

use objects::{Objects, ObjectsError};

use super::peak_memory_mib;

/// Whose answers are lost.
pub(super) const LOST_PUT: &str = "lost.put";
pub(super) const LOST_UPLOAD: &str = "lost.upload";

/// More than two parts of an upload.
const LARGE: usize = (17 << 20) + 1;

/// What was answered, a line for each call.
struct Transcript {
    objects: Objects,
    lines: Vec<String>,
}

/// Runs every call.
pub(super) fn all(target: &str) -> Result<String, String> {
    // The second opening finds the probe of the first.
    drop(open(target)?);
    let mut all = Transcript { objects: open(target)?, lines: Vec::new() };
    all.objects_of(&[0, 1, 5 << 20, 8 << 20, LARGE])?;
    all.conflicts()?;
    all.lost_answers()?;
    all.listings();
    all.names();
    for (name, _) in all.objects.list("").map_err(|error| error.to_string())? {
        all.call(&format!("delete {name}"), |objects| objects.delete(&name));
    }
    all.call("list, at the end", |objects| objects.list(""));
    all.call("folders, at the end", |objects| objects.folders(""));
    Ok(all.lines.join("\n"))
}

fn open(target: &str) -> Result<Objects, String> {
    Objects::open(target).map_err(|error| error.to_string())
}

fn bytes(size: usize) -> Vec<u8> {
    (0..size).map(|n| (n % 251).to_le_bytes()[0]).collect()
}

/// Writes in pieces that fit no part.
fn written(objects: &Objects, name: &str, bytes: &[u8]) -> Result<objects::ObjectWriter, ObjectsError> {
    let mut writer = objects.writer(name)?;
    for piece in bytes.chunks(999_983) {
        writer.write_all(piece).map_err(|error| ObjectsError::from_io(&error).cloned().expect("one of ours"))?;
    }
    Ok(writer)
}

impl Transcript {
    fn call<T: Debug>(&mut self, what: &str, call: impl FnOnce(&Objects) -> Result<T, ObjectsError>) {
        let answer = match call(&self.objects) {
            Ok(answer) => format!("{answer:?}"),
            Err(error) => error.to_string().replace(self.objects.target(), "TARGET"),
        };
        self.lines.push(format!("{what}: {answer}"));
    }

    /// Objects of sizes around those of parts and pieces, written in both ways.
    fn objects_of(&mut self, sizes: &[usize]) -> Result<(), String> {
        for size in sizes {
            let bytes = bytes(*size);
            let (at_once, in_pieces) = (format!("sizes/{size}/at-once"), format!("sizes/{size}/in-pieces"));
            self.call(&format!("create {at_once}"), |objects| objects.create(&at_once, &bytes));
            self.call(&format!("write {in_pieces}"), |objects| {
                let writer = written(objects, &in_pieces, &bytes)?;
                let before = objects.size(&in_pieces)?;
                Ok((before, writer.finish()?))
            });
            for name in [at_once, in_pieces] {
                self.call(&format!("size {name}"), |objects| objects.size(&name));
                self.call(&format!("read {name}"), |objects| Ok(objects.read(&name, *size as u64)? == bytes));
                let mut read = Vec::new();
                let mut reader = self.objects.reader(&name).map_err(|error| error.to_string())?;
                let said = reader.size();
                reader.read_to_end(&mut read).map_err(|error| error.to_string())?;
                self.lines.push(format!("reader {name}: {said} bytes, {}", read == bytes));
            }
        }
        self.call("read too much", |objects| objects.read("sizes/1/at-once", 0));
        Ok(())
    }

    /// Names that exist, from the start or in the middle, and writers that are dropped.
    fn conflicts(&mut self) -> Result<(), String> {
        self.call("create taken", |objects| objects.create("taken", b"first"));
        self.call("create taken again", |objects| objects.create("taken", b"first"));
        self.call("writer taken", |objects| objects.writer("taken").map(drop));
        for size in [100, LARGE] {
            let name = format!("raced.{size}");
            let late = written(&self.objects, &name, &bytes(size)).map_err(|error| error.to_string())?;
            self.call(&format!("create {name} meanwhile"), |objects| objects.create(&name, b"first"));
            self.call(&format!("finish {name}"), |_| late.finish());
            self.call(&format!("read {name}"), |objects| objects.read(&name, 5));
            let dropped = format!("dropped.{size}");
            drop(written(&self.objects, &dropped, &bytes(size)).map_err(|error| error.to_string())?);
            self.call(&format!("size {dropped}"), |objects| objects.size(&dropped));
        }
        // Many at once: one of them.
        let writers: Vec<_> = (0..8)
            .map(|n: u8| {
                let objects = self.objects.clone();
                std::thread::spawn(move || objects.create("many", &[n; 1000]).is_ok())
            })
            .collect();
        let won = writers.into_iter().filter_map(|writer| writer.join().ok()).filter(|won| *won).count();
        self.lines.push(format!("create many: {won} of 8"));
        self.call("delete many", |objects| objects.delete("many"));
        self.call("delete many again", |objects| objects.delete("many"));
        self.call("reader many", |objects| objects.reader("many").map(drop));
        self.call("create many after all", |objects| objects.create("many", b"again"));
        Ok(())
    }

    fn lost_answers(&mut self) -> Result<(), String> {
        self.call("create with a lost answer", |objects| objects.create(LOST_PUT, b"bytes"));
        self.call("create it again", |objects| objects.create(LOST_PUT, b"bytes"));
        let upload = written(&self.objects, LOST_UPLOAD, &bytes(LARGE)).map_err(|error| error.to_string())?;
        self.call("finish with a lost answer", |_| upload.finish());
        self.call("size of it", |objects| objects.size(LOST_UPLOAD));
        Ok(())
    }

    fn listings(&mut self) {
        for name in ["tree/b/2", "tree/b/10", "tree/a/x/y", "tree/leaf", "tree2/c"] {
            self.call(&format!("create {name}"), |objects| objects.create(name, b"leaf"));
        }
        for prefix in ["", "tree", "tree/b", "tree/a", "tre", "tree/leaf", "none"] {
            self.call(&format!("list {prefix:?}"), |objects| objects.list(prefix));
            self.call(&format!("folders {prefix:?}"), |objects| objects.folders(prefix));
        }
        // More than a page of S3.
        for n in 0..1_100 {
            if let Err(error) = self.objects.create(&format!("page/{n}"), b"") {
                self.lines.push(format!("create page/{n}: {error}"));
            }
        }
        self.call("list more than a page", |objects| objects.list("page").map(|listed| listed.len()));
    }

    fn names(&mut self) {
        for name in ["", "/a", "a/", "a//b", "../a", "a b", "ä", ".objects/probe"] {
            self.call(&format!("create {name:?}"), |objects| objects.create(name, b""));
        }
        self.call("create A-z_0.9=", |objects| objects.create("A-z_0.9=", b"letters"));
        self.call("read A-z_0.9=", |objects| objects.read("A-z_0.9=", 10));
    }
}

/// Writes most of an object, and waits for its end.
pub(super) fn hold(target: &str) -> Result<String, String> {
    let objects = open(target)?;
    let _writer = written(&objects, "held", &bytes(LARGE)).map_err(|error| error.to_string())?;
    println!("written");
    std::thread::sleep(Duration::from_secs(600));
    Err("nobody killed this process".to_owned())
}

/// What is there after [`hold`] was killed.
pub(super) fn after_kill(target: &str) -> Result<String, String> {
    let look = || {
        let objects = Objects::open(target)?;
        let listed = objects.list("")?;
        let size = objects.size("held")?;
        objects.create("held", b"free")?;
        objects.delete("held")?;
        Ok((listed, size))
    };
    match look() {
        Ok((listed, None)) if listed.is_empty() => Ok("nothing".to_owned()),
        Ok(found) => Err(format!("it is listed: {found:?}")),
        Err(error) => Err(ObjectsError::to_string(&error)),
    }
}

/// Writes and reads a long object, and says how much memory that took.
pub(super) fn stream(target: &str, mib: u64) -> Result<String, String> {
    let objects = open(target)?;
    let piece = bytes(1 << 20);
    let failed = |error: std::io::Error| error.to_string();
    let mut writer = objects.writer("long").map_err(|error| error.to_string())?;
    for _ in 0..mib {
        writer.write_all(&piece).map_err(failed)?;
    }
    writer.finish().map_err(|error| error.to_string())?;
    let mut reader = objects.reader("long").map_err(|error| error.to_string())?;
    let mut read = vec![0; 1 << 20];
    for n in 0..mib {
        reader.read_exact(&mut read).map_err(failed)?;
        if read != piece {
            return Err(format!("MiB {n} came back different"));
        }
    }
    objects.delete("long").map_err(|error| error.to_string())?;
    peak_memory_mib().map(|peak| peak.to_string())
}

/// The refusal of a target.
pub(super) fn refused(target: &str) -> Result<String, String> {
    match Objects::open(target) {
        Ok(_) => Err(format!("{target} was opened")),
        Err(error) => Ok(error.to_string()),
    }
}
