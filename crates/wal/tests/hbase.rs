//! Apache HBase reads and splits the logs that Basalt writes, and Basalt reads what comes out. Runs only when
//! `BASALT_HBASE_JARS` names a directory with the jars of HBase 2.6 (`tests/interop/real-hbase/setup.sh` fetches them).

use basalt_wal::{EntryKey, Log, LogOptions, Reader, ReplicationScope, recovered_edits};
use base::{ManualClock, SeqId, TimestampMs};
use cell::{CellBuffer, CellSpec, CellType};
use fs::{FilePath, LocalVolume, Volume};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const REGION: &str = "2c5163325f6dc67706b743aff0a3a2b5";

fn hbase(jars: &str, root: &Path, class: &str, args: &[&str]) -> String {
    let output = Command::new(std::env::var("JAVA").unwrap_or_else(|_| "java".to_owned()))
        .args(["--add-opens", "java.base/java.lang=ALL-UNNAMED", "--add-opens", "java.base/java.nio=ALL-UNNAMED"])
        .arg("-cp")
        .arg(format!("{}:{jars}/*", root.join("conf").display()))
        .arg(class)
        .args(args)
        .output()
        .expect("java");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{class}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// A log of ten entries, five in a closed file and five in an open one.
fn write_log(volume: &Arc<LocalVolume>, dir: &FilePath) -> Vec<FilePath> {
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    let log = Log::create(Arc::clone(volume) as Arc<dyn Volume>, dir.clone(), "h,1,2", LogOptions::default(), clock)
        .expect("create");
    let region: Arc<str> = Arc::from(REGION);
    for seq in 1..=10u64 {
        let mut cells = CellBuffer::new();
        for (qualifier, tags) in
            [(&b"plain"[..], &b""[..]), (b"tagged", b"\x00\x09\x08\x00\x00\x00\x00\x00\x00\x00\x05")]
        {
            let value = format!("value {seq}").into_bytes();
            let (row, type_code) = (&b"row"[..], CellType::Put.code());
            let spec = CellSpec { row, family: b"cf", qualifier, timestamp: 77, type_code, value: &value, tags };
            cells.push_spec(&spec, SeqId(0));
        }
        let scopes = [ReplicationScope { family: &b"cf"[..], scope: 1 }];
        let mut key = EntryKey::new(&region, "t1", SeqId(seq), TimestampMs(1_700_000_000_500), &[b"cf"]);
        (key.scopes, key.nonce) = (&scopes, Some((3, seq)));
        log.append(&key, cells.bytes(), cells.len()).expect("append").wait().expect("sync");
        if seq == 5 {
            log.roll().expect("roll");
        }
    }
    log.files().into_iter().map(|file| file.path).collect()
}

#[test]
fn hbase_reads_and_splits_what_basalt_wrote() {
    let Ok(jars) = std::env::var("BASALT_HBASE_JARS") else {
        println!("skipped: BASALT_HBASE_JARS is not set");
        return;
    };
    let name = format!("hbase-{}", std::process::id());
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&name);
    let volume = Arc::new(LocalVolume::open(&root).expect("open"));
    volume.create_dir_all(&FilePath::new("conf")).expect("dirs");
    let site = format!(
        "<configuration><property><name>hbase.rootdir</name><value>file://{0}</value></property>\
         <property><name>hbase.unsafe.stream.capability.enforce</name><value>false</value></property>\
         <property><name>fs.defaultFS</name><value>file:///</value></property></configuration>",
        root.display()
    );
    volume.publish(&FilePath::new("conf/hbase-site.xml"), site.as_bytes()).expect("publish");
    let wal_dir = FilePath::new("WALs/h,1,2");
    let files = write_log(&volume, &wal_dir);

    // The printer ends with an exception at the end of a file without trailer, so only the closed one.
    for (file, seqs) in files.iter().zip([1..=5u64]) {
        let place = root.join(file.as_str());
        let text =
            hbase(&jars, &root, "org.apache.hadoop.hbase.wal.WALPrettyPrinter", &["-j", &place.to_string_lossy()]);
        // It is not quite JSON: other words stand between the entries.
        let found: Vec<u64> = text
            .split("\"sequence\":\"")
            .skip(1)
            .map(|rest| rest.split('"').next().and_then(|n| n.parse().ok()).expect("a number"))
            .collect();
        assert_eq!(found, seqs.collect::<Vec<_>>(), "{text}");
        assert_eq!(text.matches("\"qualifier\":\"tagged\"").count(), 5, "{text}");
    }

    let region_dir = FilePath::new("data/default/t1").join(REGION);
    volume.create_dir_all(&region_dir).expect("dirs");
    let place = root.join(wal_dir.as_str());
    hbase(
        &jars,
        &root,
        "org.apache.hadoop.hbase.regionserver.wal.FSHLog",
        &["--split", &format!("file://{}", place.display())],
    );
    let mut seqs = Vec::new();
    for (_, path) in recovered_edits(&*volume, &region_dir.join("recovered.edits")).expect("list") {
        let mut reader = Reader::open(&*volume, &path).expect("open");
        while let Some(entry) = reader.next().expect("HBase copies our attribute, and we know it") {
            assert!(entry.key.attributes.is_empty());
            assert_eq!(entry.key.nonce, Some((3, entry.key.seq_id.0)));
            seqs.push(entry.key.seq_id.0);
        }
    }
    assert_eq!(seqs, (1..=10).collect::<Vec<_>>());
    LocalVolume::open(root.parent().expect("a parent"))
        .expect("open")
        .remove_dir_all(&FilePath::new(name))
        .expect("remove");
}
