//! What every volume does: held against those of this crate, and by `fs-hdfs` against HDFS.
#![allow(clippy::disallowed_methods, reason = "a real HDFS is waited for")]

use super::{FilePath, Settled, TEMPORARY_PREFIX, Volume};
use std::io::ErrorKind;
use std::time::Duration;

/// A path of the volume.
pub fn path(text: &str) -> FilePath {
    FilePath::new(text)
}

/// All that a volume promises, on an empty one.
pub fn contract(volume: &dyn Volume) {
    assert_eq!(volume.list(&FilePath::root()).expect("list"), []);
    volume.create_dir_all_durable(&path("a/b")).expect("dirs");
    volume.create_dir_all(&path("a/b")).expect("again");
    let mut file = volume.create(&path("a/b/f")).expect("create");
    file.preallocate(1 << 20);
    assert_eq!(volume.create(&path("a/b/f")).err().expect("it exists").kind(), ErrorKind::AlreadyExists);
    file.append(b"hello").expect("append");
    file.append(b" world").expect("append");
    assert_eq!(file.position(), 11);
    file.sync().expect("sync");
    let large = vec![7; 300_000];
    file.append(&large).expect("append");
    file.append(b"end").expect("append");
    file.flush().expect("flush");
    assert_eq!(file.position(), 300_014);
    drop(file);

    let reader = volume.open(&path("a/b/f")).expect("open");
    assert_eq!(reader.len().expect("len"), 300_014);
    let mut five = [0; 5];
    reader.read_exact_at(&mut five, 6).expect("read");
    assert_eq!(&five, b"world");
    let error = reader.read_exact_at(&mut five, 300_010).expect_err("past the end");
    assert_eq!((error.kind(), error.offset), (ErrorKind::UnexpectedEof, Some(300_010)));
    assert!(error.to_string().contains("a/b/f"), "{error}");

    volume.create(&path("a/old")).expect("create");
    volume.rename(&path("a/b/f"), &path("a/old")).expect("an existing file is replaced");
    reader.read_exact_at(&mut five, 0).expect("the handle outlives the rename");
    assert!(!volume.exists(&path("a/b/f")).expect("stat"));
    let names: Vec<(String, bool, u64)> =
        volume.list(&path("a")).expect("list").into_iter().map(|e| (e.name, e.is_dir, e.len)).collect();
    assert_eq!(names, [("b".to_owned(), true, 0), ("old".to_owned(), false, 300_014)]);
    volume.remove_file(&path("a/old")).expect("remove");
    if volume.capabilities().handle_outlives_removal {
        reader.read_exact_at(&mut five, 0).expect("the handle outlives the removal");
    }

    volume.create(&path("a/one")).expect("create");
    volume.create(&path("a/two")).expect("create");
    let error = volume.rename_new(&path("a/one"), &path("a/two")).expect_err("there is one");
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    assert!(volume.exists(&path("a/one")).expect("stat") && volume.exists(&path("a/two")).expect("stat"));
    let error = volume.rename_new(&path("a/one"), &path("a/b")).expect_err("there is a directory");
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    volume.rename_new(&path("a/one"), &path("a/three")).expect("there is none");
    assert!(volume.rename_new(&path("a/one"), &path("a/four")).expect_err("missing").is_not_found());
    volume.rename_new(&path("a/b"), &path("a/e")).expect("directories move too");
    volume.rename_new(&path("a/e"), &path("a/b")).expect("and back");
    for name in ["a/two", "a/three"] {
        volume.remove_file(&path(name)).expect("remove");
    }

    settling(volume);

    volume.publish(&path("a/id"), b"one").expect("publish");
    let names = [volume.temporary_name("id"), volume.temporary_name("id")];
    assert!(names[0] != names[1] && names.iter().all(|name| name.starts_with(TEMPORARY_PREFIX)), "{names:?}");
    volume.publish(&path("a/id"), b"two").expect("publish");
    assert_eq!(volume.read(&path("a/id")).expect("read"), b"two");
    assert!(volume.open(&path("a/none")).err().expect("missing").is_not_found());
    assert!(volume.remove_file(&path("a/none")).expect_err("missing").is_not_found());
    assert!(volume.list(&path("none")).expect_err("missing").is_not_found());
    assert!(volume.create(&path("none/f")).err().expect("missing").is_not_found());
    assert!(volume.rename(&path("a/none"), &path("a/x")).expect_err("missing").is_not_found());
    assert!(volume.stat(&path("a/none/x")).expect("stat").is_none());
    assert!(volume.stat(&path("a/id/x")).expect("stat").is_none());
    volume.rename(&path("a/b"), &path("c")).expect("directories move too");
    volume.remove_dir_all(&path("a")).expect("remove");
    volume.remove_dir_all(&path("a")).expect("nothing happens");
    assert_eq!(volume.list(&FilePath::root()).expect("list").len(), 1);
}

/// What a writer was told is in the file lies below its settled length, and nothing comes behind it.
fn settling(volume: &dyn Volume) {
    let is_shared = volume.capabilities().shared;
    let settled = |pauses: u32| {
        // A lease's recovery takes the DataNodes' next report to the NameNode, which is no event here.
        for _ in 0..=pauses {
            match volume.settle(&path("a/log")).expect("settled") {
                Settled::Final { len_bytes } => return len_bytes,
                Settled::Pending => std::thread::sleep(Duration::from_millis(250)),
            }
        }
        panic!("not settled after {pauses} pauses");
    };
    let mut file = volume.create(&path("a/log")).expect("create");
    assert!(is_shared || settled(0) == 0);
    file.append(b"flushed").expect("append");
    file.flush().expect("flush");
    file.append(b", forgotten").expect("append");
    if is_shared {
        assert_eq!(settled(80), 7);
        assert!(file.sync().is_err(), "a settled file takes nothing");
        assert!(file.append(b"more").and_then(|()| file.flush()).is_err(), "nor later");
    }
    drop(file);
    assert_eq!(settled(0), 7);
    assert_eq!(volume.read(&path("a/log")).expect("read"), b"flushed");
    volume.remove_file(&path("a/log")).expect("remove");
    assert!(volume.settle(&path("a/log")).expect_err("missing").is_not_found());
    assert_eq!(volume.settle(&path("a")).expect_err("a directory").kind(), ErrorKind::IsADirectory);
}
