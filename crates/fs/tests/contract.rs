//! What every volume does, held against each of them.
#![allow(clippy::disallowed_methods, reason = "a test looks at what the volume made")]

mod shared;

use basalt_fs::{FaultKind, FilePath, LocalVolume, MemVolume, Settled, TEMPORARY_PREFIX, Volume};
use shared::{contract, path};
use std::io::ErrorKind;
use std::path::PathBuf;

/// A directory of this test that goes when it is done.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let root = self.0.parent().expect("a parent").to_owned();
        let volume = LocalVolume::open(&root).expect("open");
        let name = self.0.file_name().and_then(|n| n.to_str()).expect("a name");
        volume.remove_dir_all(&FilePath::new(name)).expect("remove");
    }
}

/// A file left by a process that died while it published is in nobody's way, and one that is being written now is not touched.
#[test]
fn publishing_passes_over_the_temporary_file_of_another() {
    let volume = MemVolume::new();
    let taken = volume.temporary_name("id");
    let next = taken.replace("-1", "-2");
    for name in [&taken, &next] {
        volume.put_file(&path(name), b"of another");
    }
    volume.publish(&path("id"), b"mine").expect("published");
    assert_eq!(volume.read(&path("id")).expect("read"), b"mine");
    for name in [&taken, &next] {
        assert_eq!(volume.read(&path(name)).expect("read"), b"of another");
    }
}

/// A file that could not be written leaves neither a name that readers know nor one that they do not.
#[test]
fn publishing_that_fails_leaves_nothing() {
    let volume = MemVolume::new();
    volume.publish(&path("id"), b"old").expect("published");
    volume.fail_sync(1, FaultKind::Io);
    volume.publish(&path("id"), b"new").expect_err("the disk fails");
    assert_eq!(volume.read(&path("id")).expect("read"), b"old");
    assert_eq!(volume.all_files(), [path("id")]);
}

#[test]
fn memory_keeps_the_contract() {
    contract(&MemVolume::new());
}

#[test]
fn the_local_disk_keeps_the_contract() {
    let scratch = Scratch::new("contract");
    let volume = LocalVolume::open(&scratch.0).expect("open");
    assert!((&volume as &dyn Volume).free_bytes().expect("free").is_some_and(|free| free > 0));
    contract(&volume);
}

#[test]
fn a_volume_has_one_owner_who_is_named() {
    let scratch = Scratch::new("lock");
    let volume = LocalVolume::open(&scratch.0).expect("open");
    assert_eq!(volume.claimed_by().expect("asked"), None);
    let lock = volume.lock().expect("lock");
    assert_eq!(volume.claimed_by().expect("asked"), Some(std::process::id()), "who only asks is told");
    let error = LocalVolume::open(&scratch.0).expect("open").lock().expect_err("locked");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(error.to_string().contains(&format!("pid {}", std::process::id())), "{error}");
    drop(lock);
    LocalVolume::open(&scratch.0).expect("open").lock().expect("free again");
}

#[test]
fn room_reserved_by_a_killed_process_is_given_back() {
    use std::os::unix::fs::MetadataExt;
    let scratch = Scratch::new("reserved");
    let volume = LocalVolume::open(&scratch.0).expect("open");
    let mut file = volume.create(&path("log")).expect("create");
    file.preallocate(8 << 20);
    file.append(b"all there is").expect("append");
    file.sync().expect("sync");
    // Killed: nothing of it is dropped in order.
    std::mem::forget(file);
    let held_bytes = || std::fs::metadata(scratch.0.join("log")).expect("the file").blocks() * 512;
    println!("{} bytes held", held_bytes());
    (&volume as &dyn Volume).release_reserved(&path("log")).expect("released");
    assert!(held_bytes() < 1 << 20, "{} bytes held for 12", held_bytes());
    assert_eq!(volume.read(&path("log")).expect("read"), b"all there is");
}

/// As the writer of store files hands over what it gathers: the first whole pieces, the rest again with what follows; now and then through the buffer.
fn straight(volume: &dyn Volume) {
    let pattern: Vec<u8> = (0..600_000_u32).map(|n| (n % 251) as u8).collect();
    for past_cache in [true, false] {
        for aligned in [true, false] {
            let name = path(&format!("past{past_cache}aligned{aligned}"));
            let mut out =
                if past_cache { volume.create_past_cache(&name) } else { volume.create(&name) }.expect("created");
            let (mut wanted, mut memory) = (Vec::new(), vec![0; 2_000_000]);
            let place = memory.as_ptr().align_offset(4096) + usize::from(!aligned);
            let mut held = 0;
            for n in 0..40 {
                let piece = &pattern[n..n + [66_123, 600_000 - 40, 1, 4096, 131_072, 300_001][n % 6]];
                wanted.extend_from_slice(piece);
                memory[place + held..][..piece.len()].copy_from_slice(piece);
                held += piece.len();
                let count = out.append_straight(&memory[place..place + held]).expect("appended");
                memory.copy_within(place + count..place + held, place);
                held -= count;
                assert_eq!(out.position(), (wanted.len() - held) as u64);
                if n == 25 {
                    out.append(&memory[place..place + held]).expect("appended");
                    held = 0;
                }
            }
            out.append(&memory[place..place + held]).expect("appended");
            out.sync().expect("synced");
            assert!(volume.read(&name).expect("read") == wanted, "past the cache {past_cache}, aligned {aligned}");
        }
    }
}

#[test]
fn what_is_appended_straight_arrives_in_order() {
    straight(&MemVolume::new());
    let scratch = Scratch::new("straight");
    straight(&LocalVolume::open(&scratch.0).expect("open"));
}

/// Pieces go out where the file's length is round, whatever their lengths, and however often what was gathered is flushed between.
#[test]
fn pieces_of_every_length_arrive_in_order() {
    let scratch = Scratch::new("pieces");
    let volume = LocalVolume::open(&scratch.0).expect("opened");
    let pattern: Vec<u8> = (0..600_000_u32).map(|n| (n % 251) as u8).collect();
    let lens = [1, 70_001, 131_072, 131_071, 2, 200_000, 65_536, 65_536, 0, 66_123, 300_000, 131_073, 5];
    for flush_every in [1, 3, 100] {
        let name = path(&format!("every{flush_every}"));
        let (mut out, mut wanted) = (volume.create(&name).expect("created"), Vec::new());
        for n in 0..60 {
            let piece = &pattern[n..n + lens[(n * n) % lens.len()]];
            out.append(piece).expect("appended");
            wanted.extend_from_slice(piece);
            assert_eq!(out.position(), wanted.len() as u64);
            if n % flush_every == 0 {
                out.flush().expect("flushed");
                assert!(volume.read(&name).expect("read") == wanted, "after {n} pieces");
            }
        }
        out.sync().expect("synced");
        assert!(volume.read(&name).expect("read") == wanted, "flushed every {flush_every}");
    }
}

/// More than stays in the page cache behind the end.
#[test]
fn a_file_that_is_written_behind_and_forgotten_reads_back_whole() {
    let scratch = Scratch::new("behind");
    let volume = LocalVolume::open(&scratch.0).expect("opened");
    let mut out = volume.create(&path("log")).expect("created");
    let piece: Vec<u8> = (0..1 << 20).map(|n: u32| (n % 251) as u8).collect();
    for n in 0..40u8 {
        out.append(&[n]).expect("appended");
        out.append(&piece).expect("appended");
        out.flush().expect("flushed");
        out.write_behind();
    }
    out.sync().expect("synced");
    drop(out);
    let file = volume.open(&path("log")).expect("opened");
    file.forget();
    let mut buffer = vec![0; piece.len() + 1];
    for n in 0..40u8 {
        let offset = u64::from(n) * buffer.len() as u64;
        file.read_exact_at(&mut buffer, offset).expect("read");
        assert!(buffer[0] == n && buffer[1..] == piece, "piece {n} is not what was written");
    }
}

/// Whole buffers, what is left over, and what comes after a flush has taken what was left over.
fn past_the_cache(volume: &dyn Volume) {
    let pattern: Vec<u8> = (0..3_300_000_u32).map(|n| (n % 251) as u8).collect();
    for len in [0, 1, 4095, 4096, 4097, 1 << 20, (1 << 20) + 1, 3_300_000] {
        let name = path(&format!("f{len}"));
        let mut file = volume.create_past_cache(&name).expect("created");
        pattern[..len].chunks(70_001).for_each(|piece| file.append(piece).expect("appended"));
        assert_eq!(file.position(), len as u64);
        file.sync().expect("synced");
        assert!(volume.read(&name).expect("read") == pattern[..len], "{len} bytes");
        file.append(&pattern).expect("appended");
        file.flush().expect("flushed");
        file.append(b"end").expect("appended");
        file.sync().expect("synced");
        assert_eq!(file.position(), (len + pattern.len() + 3) as u64);
        drop(file);
        assert!(volume.read(&name).expect("read") == [&pattern[..len], &pattern, b"end"].concat(), "{len} bytes");
        assert_eq!(volume.create_past_cache(&name).err().expect("it exists").kind(), ErrorKind::AlreadyExists);
    }
}

#[test]
fn a_file_written_past_the_page_cache_reads_back_whole() {
    past_the_cache(&MemVolume::new());
    let scratch = Scratch::new("direct");
    past_the_cache(&LocalVolume::open(&scratch.0).expect("open"));
}

/// The file system in memory knows no `O_DIRECT` on older kernels, and nothing but pages on newer ones.
#[test]
fn a_file_system_in_memory_takes_files_past_the_page_cache_as_any_others() {
    let scratch = Scratch(PathBuf::from("/dev/shm").join(format!("basalt-direct-{}", std::process::id())));
    past_the_cache(&LocalVolume::open(&scratch.0).expect("open"));
}

#[test]
fn pages_of_a_file_written_past_the_page_cache_are_not_taken() {
    let scratch = Scratch::new("pages");
    let volume = LocalVolume::open(&scratch.0).expect("open");
    let resident = |name: &str| {
        let status =
            std::process::Command::new("fincore").args(["-bn", "-o", "RES"]).arg(scratch.0.join(name)).output();
        status
            .ok()
            .filter(|out| out.status.success())
            .and_then(|out| String::from_utf8(out.stdout).ok()?.trim().parse().ok())
    };
    let write = |name: &str, mut file: Box<dyn basalt_fs::Appender>| {
        (0..8).for_each(|_| file.append(&vec![7; 1 << 20]).expect("appended"));
        file.append(b"and the rest").expect("appended");
        file.sync().expect("synced");
        let bytes: Option<u64> = resident(name);
        bytes
    };
    let usual = write("usual", volume.create(&path("usual")).expect("created"));
    let past = write("past", (&volume as &dyn Volume).create_past_cache(&path("past")).expect("created"));
    // Without the tool, or where the file system refuses, there is nothing to compare.
    let (Some(usual), Some(past)) = (usual, past) else { return };
    println!("{usual} and {past} bytes in the page cache");
    assert!(past <= 1 << 20 || past == usual, "{past} of {usual} bytes");
}

/// Whatever part of a file is read past the page cache is what was written, and where the file ends is an error as ever.
#[test]
fn files_read_past_the_cache_are_the_same_bytes() {
    let scratch = Scratch::new("direct-reads");
    let volume = LocalVolume::open(&scratch.0).expect("opened");
    let bytes: Vec<u8> = (0..700_001u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let name = path("file");
    let mut file = volume.create(&name).expect("created");
    file.append(&bytes).expect("appended");
    file.sync().expect("synced");
    let file = volume.open(&name).expect("opened");
    // What is open has its bytes whatever its name is by now.
    volume.rename(&name, &path("renamed")).expect("renamed");
    file.past_cache();
    file.will_need(0, 100_000);
    let rng = base::Rng::seeded(7);
    let mut parts = vec![
        (0, bytes.len()),
        (0, 1),
        (4095, 2),
        (4096, 4096),
        (bytes.len() - 1, 1),
        (8192, 256 << 10),
        (bytes.len(), 0),
    ];
    parts.extend((0..300).map(|_| {
        let from = rng.below(bytes.len() as u64) as usize;
        (from, rng.below((bytes.len() - from) as u64 + 1) as usize)
    }));
    for (from, len) in parts {
        let mut read = vec![0; len];
        file.read_exact_at(&mut read, from as u64).expect("read");
        assert!(read == bytes[from..from + len], "{len} bytes from {from}");
        read.fill(0);
        file.read_sequential_at(&mut read, from as u64).expect("read");
        assert!(read == bytes[from..from + len], "{len} bytes from {from} by who reads on");
        file.forget_range(from as u64, len as u64);
    }
    for (from, len) in [(bytes.len() - 1, 2), (bytes.len(), 1), (bytes.len() + 9000, 1), (0, bytes.len() + 1)] {
        let error = file.read_exact_at(&mut vec![0; len], from as u64).expect_err("it ends before");
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{len} bytes from {from}");
        let error = file.read_sequential_at(&mut vec![0; len], from as u64).expect_err("it ends before");
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{len} bytes from {from} by who reads on");
    }
}

/// Room that is reserved in memory is memory that is taken: nothing is reserved there.
#[test]
#[cfg(target_os = "linux")]
fn a_file_in_memory_takes_no_more_than_it_holds() {
    use std::os::unix::fs::MetadataExt as _;
    let shared_memory = PathBuf::from("/dev/shm");
    if !shared_memory.is_dir() {
        println!("skipped: /dev/shm is not mounted");
        return;
    }
    let scratch = Scratch(shared_memory.join(format!("basalt-contract-{}", std::process::id())));
    let volume = LocalVolume::open(&scratch.0).expect("opened");
    let mut file = volume.create(&path("log")).expect("created");
    file.preallocate(32 << 20);
    file.append(b"a few bytes").expect("appended");
    file.sync().expect("synced");
    let held = std::fs::metadata(scratch.0.join("log")).expect("there").blocks() * 512;
    assert!(held < 1 << 20, "{held} bytes");
}
