//! Against a real HDFS, where `BASALT_TEST_HDFS` names one (`hdfs://127.0.0.1:8020`).
#![allow(clippy::disallowed_methods, reason = "waits for a real HDFS, and measures it")]

#[path = "../../fs/tests/shared/several.rs"]
mod several;
#[path = "../../fs/tests/shared/mod.rs"]
mod shared;

use basalt_fs_hdfs::{HdfsVolume, Location, Settings, lock_root};
use fs::{FileKind, FilePart, FilePath, HostBytes, Placement, Settled, TEMPORARY_PREFIX, Volume, VolumeHints};
use shared::{contract, path};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// A directory of this test on the HDFS, which goes when it is done.
struct Scratch {
    volume: HdfsVolume,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let name = FilePath::root();
        if let Err(error) = self.volume.remove_dir_all(&name) {
            println!("{} stays: {error}", self.volume.location());
        }
    }
}

fn settings() -> Settings {
    Settings {
        config_directory: std::env::var("BASALT_TEST_HDFS_CONF").ok(),
        overrides: Vec::new(),
        deadline: Duration::from_secs(60),
        unique: u64::from(std::process::id()),
    }
}

/// `None`, with a line, where there is no HDFS to test on.
fn scratch(name: &str) -> Option<Scratch> {
    let Ok(hdfs) = std::env::var("BASALT_TEST_HDFS") else {
        println!("skipped: BASALT_TEST_HDFS names no HDFS");
        return None;
    };
    let location = Location::parse(&format!("{hdfs}/basalt-test/{name}-{}", std::process::id())).expect("a location");
    let volume = HdfsVolume::open(&location, &settings()).expect("an HDFS");
    Some(Scratch { volume })
}

/// Of a file that another client may be writing.
fn settled(volume: &dyn Volume, path: &FilePath) -> u64 {
    for _ in 0..80 {
        if let Settled::Final { len_bytes } = volume.settle(path).expect("settled") {
            return len_bytes;
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    panic!("{path} was not settled in 20 s");
}

#[test]
fn hdfs_keeps_the_contract() {
    let Some(scratch) = scratch("contract") else { return };
    contract(&scratch.volume);
}

/// What a file says that is open, and what is asked by its name; a block counts whole for who has a part of it.
#[test]
fn a_file_says_on_which_machines_its_blocks_are() {
    let Some(scratch) = scratch("blocks") else { return };
    let overrides = vec![("dfs.blocksize".to_owned(), (1 << 20).to_string())];
    let volume = HdfsVolume::open(scratch.volume.location(), &Settings { overrides, ..settings() }).expect("an HDFS");
    let (name, len_bytes) = (path("file"), (2 << 20) + 1000);
    let mut file = volume.create(&name).expect("created");
    file.append(&vec![7; len_bytes as usize]).expect("appended");
    file.finish().expect("closed");
    let volume: &dyn Volume = &volume;
    assert!(volume.capabilities().names_hosts);
    let open = volume.open(&name).expect("opened");
    for (part, bytes) in
        [(FilePart::Whole, len_bytes), (FilePart::FirstHalf, len_bytes / 2), (FilePart::SecondHalf, len_bytes / 2)]
    {
        let hosts = volume.block_hosts(&name, part).expect("asked").expect("HDFS tells");
        assert_eq!(open.block_hosts(part), Some(hosts.clone()));
        // How many blocks it has is the cluster's to say.
        assert!((bytes..=len_bytes).contains(&hosts.total_bytes()), "{part:?}: {hosts:?}");
        let on: Vec<(&str, HostBytes)> = hosts.hosts().collect();
        println!("{part:?}: {on:?}");
        assert!(!on.is_empty() && on.iter().all(|(host, on)| !host.is_empty() && on.bytes <= len_bytes), "{on:?}");
        assert!(on.iter().map(|(_, on)| on.bytes).sum::<u64>() >= hosts.total_bytes(), "each is somewhere: {on:?}");
    }
    let error = volume.block_hosts(&path("none"), FilePart::Whole).expect_err("there is no such file");
    assert!(error.is_not_found(), "{error}");
}

/// Another client's file: what it flushed is there after the recovery, and it can write no more.
#[test]
fn settling_another_clients_file_keeps_what_it_flushed_and_fences_it() {
    let Some(scratch) = scratch("fence") else { return };
    let other = HdfsVolume::open(scratch.volume.location(), &settings()).expect("another client");
    let mut file = other.create(&path("log")).expect("created");
    for n in 0..100_u32 {
        file.append(&n.to_be_bytes()).expect("appended");
        if n % 2 == 0 { file.flush() } else { file.sync() }.expect("flushed");
    }
    let error = scratch.volume.open(&path("log")).err().expect("it is being written");
    assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
    let start = Instant::now();
    assert_eq!(settled(&scratch.volume, &path("log")), 400);
    println!("the lease was recovered after {} ms", start.elapsed().as_millis());
    file.append(b"late").expect("it is only gathered");
    let error = file.flush().expect_err("somebody else has the file");
    println!("{error}");
    assert_eq!(scratch.volume.read(&path("log")).expect("read").len(), 400);
}

/// What the simulated cluster's model of HDFS claims.
#[test]
fn several_clients_see_what_the_model_says() {
    let Some(scratch) = scratch("several") else { return };
    let other = HdfsVolume::open(scratch.volume.location(), &settings()).expect("another client");
    several::play(&other, &scratch.volume, || std::thread::sleep(Duration::from_millis(250)));
}

/// A server whose log directory has another name can make no new log.
#[test]
fn a_file_is_not_created_in_a_directory_that_is_gone() {
    let Some(scratch) = scratch("parent") else { return };
    let volume = &scratch.volume;
    volume.create_dir_all(&path("WALs/one")).expect("made");
    let mut open = volume.create(&path("WALs/one/1")).expect("created");
    open.append(b"1").and_then(|()| open.flush()).expect("flushed");
    volume.rename_new(&path("WALs/one"), &path("WALs/one-splitting")).expect("renamed");
    let error = volume.create(&path("WALs/one/2")).err().expect("no directory");
    assert!(error.is_not_found(), "{error}");
    assert!(!volume.exists(&path("WALs/one")).expect("looked"), "nor was it made by the way");
    assert_eq!(settled(volume, &path("WALs/one-splitting/1")), 1);
}

/// The same directory with a client that goes on with the DataNodes that are left where there is no other.
fn best_effort(scratch: &Scratch) -> HdfsVolume {
    let key = "dfs.client.block.write.replace-datanode-on-failure.best-effort";
    let settings = Settings { overrides: vec![(key.to_owned(), "true".to_owned())], ..settings() };
    HdfsVolume::open(scratch.volume.location(), &settings).expect("an HDFS")
}

/// The pipeline goes on with those that are left. `BASALT_TEST_HDFS_KILL` is a command that kills one DataNode of several.
#[test]
fn a_dead_data_node_holds_up_a_flush_for_seconds_only() {
    let Ok(kill) = std::env::var("BASALT_TEST_HDFS_KILL") else {
        println!("skipped: BASALT_TEST_HDFS_KILL kills no DataNode");
        return;
    };
    let Some(scratch) = scratch("dead") else { return };
    let volume = best_effort(&scratch);
    let mut file = volume.create(&path("log")).expect("created");
    let mut flush = |n: u32| file.append(&n.to_be_bytes()).and_then(|()| file.flush());
    (0..100).for_each(|n| flush(n).expect("flushed"));
    let status = std::process::Command::new("sh").args(["-c", &kill]).status().expect("a shell");
    assert!(status.success(), "{kill}");
    let mut longest = Duration::ZERO;
    for n in 100..600 {
        let start = Instant::now();
        flush(n).expect("the others go on");
        longest = longest.max(start.elapsed());
    }
    println!("the longest flush took {} ms", longest.as_millis());
    let copies = file.copies().expect("HDFS counts them");
    println!("{} of {} DataNodes write the file now", copies.now, copies.wanted);
    assert!((1..=copies.wanted).contains(&copies.now), "{copies:?}");
    assert!(longest < Duration::from_secs(20), "{longest:?}");
    file.finish().expect("closed");
    let start = Instant::now();
    volume.publish(&path("next"), &[7; 1000]).expect("a new block leaves the dead one out");
    println!("the next file took {} ms", start.elapsed().as_millis());
    let expected: Vec<u8> = (0..600_u32).flat_map(u32::to_be_bytes).collect();
    assert!(volume.read(&path("log")).expect("read") == expected);
}

/// A DataNode that takes connections and answers nothing. It goes on when this goes.
struct Stopped {
    go_on: String,
}

impl Stopped {
    /// `None`, with a line, where there is none to stop. `BASALT_TEST_HDFS_STOP` is a command that stops one DataNode of several,
    /// `BASALT_TEST_HDFS_GO_ON` has it go on.
    fn now() -> Option<Stopped> {
        let (stop, go_on) = (std::env::var("BASALT_TEST_HDFS_STOP"), std::env::var("BASALT_TEST_HDFS_GO_ON"));
        let (Ok(stop), Ok(go_on)) = (stop, go_on) else {
            println!("skipped: BASALT_TEST_HDFS_STOP stops no DataNode");
            return None;
        };
        let stopped = Stopped { go_on };
        let status = std::process::Command::new("sh").args(["-c", &stop]).status().expect("a shell");
        assert!(status.success(), "{stop}");
        Some(stopped)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        _ = std::process::Command::new("sh").args(["-c", &self.go_on]).status();
    }
}

/// Of the first block of a new file.
fn copies_of_a_new_file(volume: &HdfsVolume, name: &str) -> (fs::Copies, Duration) {
    let start = Instant::now();
    let mut file = volume.create(&path(name)).expect("created");
    file.append(b"x").and_then(|()| file.flush()).expect("flushed");
    let copies = file.copies().expect("HDFS counts them");
    (copies, start.elapsed())
}

/// Makes files until one gets all its copies: a DataNode that is back is heard of, and asked, every few seconds.
fn all_data_nodes_write(volume: &HdfsVolume, name: &str) {
    let start = Instant::now();
    for n in 0.. {
        let (copies, _) = copies_of_a_new_file(volume, &format!("{name}-{n}"));
        if copies.now == copies.wanted {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "only {} DataNodes write a new file", copies.now);
        std::thread::sleep(Duration::from_millis(250));
    }
}

/// HBase's log, and every other writer of Java's client, waits for it as long as it stands still, or for its socket's timeout of a minute. Here
/// the pipeline goes on without it after a second or two, later files are begun without it, and with it when it is back.
#[test]
fn a_stopped_data_node_holds_up_no_more_than_one_flush() {
    let Some(scratch) = scratch("stopped") else { return };
    let volume = &best_effort(&scratch);
    all_data_nodes_write(volume, "before");
    let mut file = volume.create(&path("log")).expect("created");
    (0..100_u32).for_each(|n| file.append(&n.to_be_bytes()).and_then(|()| file.flush()).expect("flushed"));
    let Some(stopped) = Stopped::now() else { return };
    let mut longest = Duration::ZERO;
    for n in 100..200_u32 {
        let start = Instant::now();
        file.append(&n.to_be_bytes()).and_then(|()| file.flush()).expect("the others go on");
        longest = longest.max(start.elapsed());
    }
    println!("the longest flush took {} ms", longest.as_millis());
    assert!(longest >= Duration::from_secs(1), "nothing was stopped: {longest:?}");
    assert!(longest < Duration::from_secs(20), "{longest:?}");
    let copies = file.copies().expect("HDFS counts them");
    assert_eq!(copies.now, copies.wanted - 1, "{copies:?}");
    let (copies, took) = copies_of_a_new_file(volume, "next");
    println!("the next file took {} ms", took.as_millis());
    assert_eq!(copies.now, copies.wanted - 1, "the NameNode would give it out for ten minutes");
    assert!(took < Duration::from_secs(1), "nobody waits for it a second time: {took:?}");
    drop(stopped);
    all_data_nodes_write(volume, "after");
    file.finish().expect("closed");
    let expected: Vec<u8> = (0..200_u32).flat_map(u32::to_be_bytes).collect();
    assert!(volume.read(&path("log")).expect("read") == expected);
}

/// What HBase sets on directories is set on each file here. One that HDFS does not know costs no file.
#[test]
fn files_have_the_storage_policy_and_the_blocks_that_were_asked_for() {
    let Some(scratch) = scratch("placed") else { return };
    let volume = &scratch.volume;
    let placed = |policy: Option<&str>| {
        let placement =
            Placement { block_bytes: Some(1_500_000), ..Placement::of(FileKind::Flush).with_policy(policy) };
        let name = path(policy.unwrap_or("none"));
        let mut file = volume.create_placed(&name, &placement, false).expect("created");
        file.append(&[7; 3 << 20]).expect("appended");
        file.finish().expect("closed");
        assert!(volume.read(&name).expect("read") == [7; 3 << 20]);
        volume.storage_policy(&name).expect("there")
    };
    // By Hadoop's numbers: HdfsConstants. COLD alone finds no DataNode where none has archives.
    assert_eq!([placed(Some("ALL_SSD")), placed(Some("warm")), placed(Some("ONE_SSD"))], [12, 5, 10]);
    assert_eq!([placed(None), placed(Some("nobody-knows-it"))], [0, 0]);
}

/// As long as it lives no other gets the directory; who is known to be gone is not waited for.
#[test]
fn a_root_directory_has_one_owner() {
    let Some(scratch) = scratch("lock") else { return };
    let other = HdfsVolume::open(scratch.volume.location(), &settings()).expect("another client");
    let lock = lock_root(&other, "the process with pid 1", |_| false).expect("nobody has it");
    let start = Instant::now();
    let taken = lock_root(&scratch.volume, "the process with pid 2", |owner| owner.ends_with("pid 1"));
    assert!(start.elapsed() < Duration::from_secs(20), "it is known to be gone");
    let taken = taken.expect("taken from the dead");
    drop(lock);
    drop(taken);
    let start = Instant::now();
    lock_root(&other, "the process with pid 3", |_| false).expect("and given up");
    assert!(start.elapsed() < Duration::from_secs(20), "nobody waits for what was given up");
}

#[test]
fn an_unreachable_name_node_is_named_with_what_to_do() {
    // Nobody listens on port 1.
    let location = Location::parse("hdfs://127.0.0.1:1/x").expect("a location");
    let few = [("dfs.client.failover.max.attempts", "1"), ("dfs.client.failover.sleep.base.millis", "1")];
    let overrides = few.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let error = HdfsVolume::open(&location, &Settings { overrides, ..settings() }).err().expect("nobody is there");
    let text = error.to_string();
    assert!(text.contains("127.0.0.1:1") && text.contains("is the NameNode running"), "{text}");
}

/// Measures; asserts only that it works. Run with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn how_long_flush_and_sync_take() {
    let Some(scratch) = scratch("latency") else { return };
    for (what, sync) in [("hflush", false), ("hsync", true)] {
        let mut file = scratch.volume.create(&path(what)).expect("created");
        let mut times: Vec<u128> = (0..2000)
            .map(|_| {
                file.append(&[7; 1000]).expect("appended");
                let start = Instant::now();
                if sync { file.sync() } else { file.flush() }.expect("flushed");
                start.elapsed().as_micros()
            })
            .collect();
        times.sort_unstable();
        println!("{what} of 1000 bytes: p50 {} us, p99 {} us, p99.9 {} us", times[1000], times[1980], times[1998]);
    }
    let block = vec![7_u8; 1 << 20];
    let start = Instant::now();
    let mut file = scratch.volume.create(&path("large")).expect("created");
    (0..100).for_each(|_| file.append(&block).expect("appended"));
    file.finish().expect("closed");
    println!("100 MiB written in {} ms", start.elapsed().as_millis());
    let file = scratch.volume.open(&path("large")).expect("opened");
    for len in [65_536, 1 << 20] {
        let mut buffer = vec![0; len];
        let start = Instant::now();
        let count = (100 << 20) / len;
        (0..count).for_each(|n| file.read_exact_at(&mut buffer, (n * 7919 % count * len) as u64).expect("read"));
        println!("{len} bytes at random: {} us each", start.elapsed().as_micros() / count as u128);
    }
}
