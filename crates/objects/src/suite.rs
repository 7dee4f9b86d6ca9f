//! What every store of objects does: run by the tests of the folder and of the bucket.

use std::io::{Read, Write};

use crate::{Objects, ObjectsError};

/// Runs all calls on an empty store, and leaves it empty.
pub(crate) fn run(objects: &Objects) {
    writes_and_reads(objects);
    existing_names_are_refused(objects);
    pieces(objects);
    listings(objects);
    wrong_names_are_refused(objects);
    other_runtimes(objects);
    for (name, _) in objects.list("").unwrap() {
        objects.delete(&name).unwrap();
    }
    assert_eq!((objects.list("").unwrap(), objects.folders("").unwrap()), (Vec::new(), Vec::new()));
}

fn writes_and_reads(objects: &Objects) {
    assert_eq!(objects.size("one").unwrap(), None);
    let missing = ObjectsError::Missing { name: "one".into(), target: objects.target().into() };
    assert_eq!(objects.reader("one").err(), Some(missing.clone()));
    assert_eq!(objects.read("one", 10), Err(missing));
    for (name, bytes) in [("one", &b"bytes"[..]), ("deep/er/empty", b"")] {
        objects.create(name, bytes).unwrap();
        let size = bytes.len() as u64;
        assert_eq!(objects.size(name).unwrap(), Some(size));
        assert_eq!(objects.read(name, size).unwrap(), bytes);
        let mut read = Vec::new();
        let mut reader = objects.reader(name).unwrap();
        assert_eq!(reader.size(), size);
        reader.read_to_end(&mut read).unwrap();
        assert_eq!((read, reader.read(&mut [0]).unwrap()), (bytes.to_vec(), 0));
    }
    let large = objects.read("one", 4).unwrap_err();
    assert!(matches!(&large, ObjectsError::TooLarge { name, bytes: 5, max: 4, .. } if name == "one"), "{large}");
    objects.delete("one").unwrap();
    objects.delete("one").unwrap();
    assert_eq!(objects.size("one").unwrap(), None);
    objects.create("one", b"again").unwrap();
    assert_eq!(objects.read("one", 5).unwrap(), b"again");
}

fn existing_names_are_refused(objects: &Objects) {
    objects.create("taken", b"first").unwrap();
    let exists = ObjectsError::Exists { name: "taken".into(), target: objects.target().into() };
    assert_eq!(objects.create("taken", b"second"), Err(exists.clone()));
    // The same bytes are another object all the same.
    assert_eq!(objects.create("taken", b"first"), Err(exists.clone()));
    assert_eq!(objects.writer("taken").err(), Some(exists));
    for size in [100, 20 << 20] {
        let name = format!("raced-{size}");
        let mut late = objects.writer(&name).unwrap();
        late.write_all(&vec![7; size]).unwrap();
        objects.create(&name, b"first").unwrap();
        assert!(matches!(late.finish(), Err(ObjectsError::Exists { .. })));
        assert_eq!(objects.read(&name, 5).unwrap(), b"first");
    }
    assert_eq!(objects.read("taken", 5).unwrap(), b"first");
}

fn pieces(objects: &Objects) {
    for size in [0_usize, 1, (8 << 20) - 1, 8 << 20, (16 << 20) + 1] {
        let bytes: Vec<u8> = (0..size).map(|n| (n % 251).to_le_bytes()[0]).collect();
        let name = format!("pieces/{size}");
        let mut writer = objects.writer(&name).unwrap();
        for piece in bytes.chunks(1_000_003) {
            writer.write_all(piece).unwrap();
        }
        writer.flush().unwrap();
        assert_eq!(objects.size(&name).unwrap(), None);
        assert_eq!(writer.finish().unwrap(), size as u64);
        assert!(objects.read(&name, size as u64).unwrap() == bytes, "{size}");
    }
    for size in [10, 20 << 20] {
        let mut dropped = objects.writer("dropped").unwrap();
        dropped.write_all(&vec![1; size]).unwrap();
        drop(dropped);
        assert_eq!(objects.size("dropped").unwrap(), None);
    }
    objects.create("dropped", b"").unwrap();
}

fn listings(objects: &Objects) {
    for name in ["tree/b/2", "tree/b/10", "tree/a/x/y", "tree/leaf", "tree2/c"] {
        objects.create(name, name.as_bytes()).unwrap();
    }
    let listed = |prefix: &str| -> Vec<String> {
        let listed = objects.list(prefix).unwrap();
        assert!(listed.iter().all(|(name, size)| *size == name.len() as u64), "{listed:?}");
        listed.into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(listed("tree"), ["tree/a/x/y", "tree/b/10", "tree/b/2", "tree/leaf"]);
    assert_eq!(listed("tree/b"), ["tree/b/10", "tree/b/2"]);
    assert_eq!(listed("tree/leaf"), [""; 0]);
    assert_eq!(listed("tre"), [""; 0]);
    assert_eq!(objects.folders("tree").unwrap(), ["a", "b"]);
    assert_eq!(objects.folders("tree/a").unwrap(), ["x"]);
    assert_eq!(objects.folders("tree/b").unwrap(), [""; 0]);
    assert_eq!(objects.folders("none").unwrap(), [""; 0]);
    assert_eq!(objects.folders("").unwrap(), ["deep", "pieces", "tree", "tree2"]);
    let all = objects.list("").unwrap();
    assert!(all.is_sorted() && all.iter().any(|(name, _)| name == "tree2/c"), "{all:?}");
    assert!(!all.iter().any(|(name, _)| name.contains(".objects")), "{all:?}");
}

fn wrong_names_are_refused(objects: &Objects) {
    for name in ["", "/a", "a/", "../a", "a b", ".objects/probe"] {
        let refused = |error: ObjectsError| {
            let said = error.to_string();
            let is_name = matches!(&error, ObjectsError::Name { name: named, .. } if named == name);
            assert!(is_name && said.contains(objects.target()), "{said}");
        };
        refused(objects.create(name, b"").unwrap_err());
        refused(objects.writer(name).err().unwrap());
        refused(objects.reader(name).err().unwrap());
        refused(objects.read(name, 1).unwrap_err());
        refused(objects.size(name).unwrap_err());
        refused(objects.delete(name).unwrap_err());
        if !name.is_empty() {
            refused(objects.list(name).unwrap_err());
            refused(objects.folders(name).unwrap_err());
        }
    }
}

/// A thread of another runtime may call, and drop, what has threads of its own.
fn other_runtimes(objects: &Objects) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let in_runtime = objects.clone();
    runtime.block_on(async move {
        in_runtime.create("from.a.task", b"").unwrap();
        let blocking = in_runtime.clone();
        let size = tokio::task::spawn_blocking(move || blocking.size("from.a.task")).await.unwrap();
        assert_eq!(size.unwrap(), Some(0));
        drop(in_runtime.writer("dropped.in.a.task").unwrap());
    });
}
