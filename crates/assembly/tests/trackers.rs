//! Store file trackers as an administrator changes them: master, descriptor, regions and their lists.

use crate::common::Place;
use bytes::Bytes;
use client::{Error, Put};
use fs::MemVolume;
use model::{FamilyDescriptor, Get, RegionInfo, TableDescriptor, TableName};
use rootdir::tracker::list::{self, Entries};
use rootdir::tracker::{IMPL_KEY, SOURCE_KEY, TARGET_KEY};
use std::sync::Arc;

fn name(text: &str) -> TableName {
    TableName::parse(text).expect("legal")
}

struct Lives {
    place: Place,
    volume: Arc<MemVolume>,
}

impl Lives {
    async fn start(settings: &[(&str, &str)]) -> Lives {
        let volume = Arc::new(MemVolume::new());
        let kept = volume.clone();
        let place = Place::start_with(|parts| {
            (parts.volume, parts.outside) = (kept.clone(), kept);
            settings.iter().for_each(|(key, value)| parts.config.set(*key, *value));
        });
        Lives { place: place.await, volume }
    }

    fn region(&self, table: &str) -> RegionInfo {
        let regions = self.place.node.server().regions();
        regions.iter().find(|region| region.info().table == name(table)).expect("online").info().clone()
    }

    fn list(&self, table: &str, family: &str) -> Option<Entries> {
        let dir = rootdir::family_dir(&self.region(table), family.as_bytes());
        list::read(&*self.volume, &dir).expect("a list, or none")
    }

    async fn put(&self, table: &str, row: &str) {
        let put = Put::new(row).add("f", "q", "v").add("g", "q", "v").build();
        self.place.connection.table(&name(table)).put(&put).await.expect("written");
        self.place.connection.admin().flush(&name(table)).await.expect("flushed");
    }

    async fn has(&self, table: &str, row: &str) -> bool {
        let got = self.place.connection.table(&name(table)).get(&Get::new(row.to_owned())).await.expect("read");
        got.value(b"f", b"q").is_some() && got.value(b"g", b"q").is_some()
    }

    async fn words(&self, table: &str) -> [Option<Bytes>; 3] {
        let described = self.place.connection.admin().describe(&name(table)).await.expect("asked").expect("there");
        [IMPL_KEY, SOURCE_KEY, TARGET_KEY].map(|key| described.attributes.get(key.as_bytes()).cloned())
    }
}

fn table(text: &str) -> TableDescriptor {
    TableDescriptor::new(name(text), [FamilyDescriptor::new("f"), FamilyDescriptor::new("g")])
}

fn refused<T: std::fmt::Debug>(result: Result<T, Error>, class: &str, part: &str) {
    let error = result.expect_err(part);
    assert_eq!(error.short_class(), Some(class), "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_and_a_family_change_their_trackers_while_they_serve() {
    let lives = Lives::start(&[]).await;
    let admin = lives.place.connection.admin();
    admin.create_table(&table("t"), &[]).await.expect("made");
    lives.put("t", "a").await;
    assert_eq!((lives.words("t").await, lives.list("t", "f")), ([Some("DEFAULT".into()), None, None], None));
    let t = name("t");
    admin.modify_table_store_file_tracker(&t, "file").await.expect("changed");
    assert_eq!(lives.words("t").await, [Some("file".into()), None, None]);
    assert_eq!(lives.list("t", "f").map(|list| list.len()), Some(1));
    lives.put("t", "b").await;
    assert_eq!(lives.list("t", "g").map(|list| list.len()), Some(2));
    admin.modify_table_store_file_tracker(&t, "FILE").await.expect("nothing to do");
    admin.modify_family_store_file_tracker(&t, "g", "DEFAULT").await.expect("changed");
    lives.put("t", "c").await;
    // Perhaps compacted by now.
    assert!(lives.list("t", "g").is_none() && lives.list("t", "f").is_some_and(|list| !list.is_empty()));
    let described = admin.describe(&t).await.expect("asked").expect("there");
    let of_family = &described.families[&b"g"[..]].configuration;
    assert_eq!(of_family.get(IMPL_KEY).map(String::as_str), Some("DEFAULT"));
    assert!(!of_family.contains_key(SOURCE_KEY) && !of_family.contains_key(TARGET_KEY));

    refused(
        admin.modify_table_store_file_tracker(&t, "MIGRATION").await,
        "DoNotRetryIOException",
        "Do not need to transfer to MIGRATION",
    );
    refused(
        admin.modify_family_store_file_tracker(&t, "no", "FILE").await,
        "NoSuchColumnFamilyException",
        "no does not exist for table t",
    );
    let nowhere = admin.modify_table_store_file_tracker(&name("nowhere"), "FILE").await;
    refused(nowhere, "TableNotFoundException", "nowhere");
    let mut direct = described.clone();
    direct.attributes.insert(IMPL_KEY.into(), "DEFAULT".into());
    refused(
        admin.modify_table(&direct).await,
        "DoNotRetryIOException",
        "Should change to MIGRATION first when migrating from FILE",
    );
    let mut unfinished = table("u");
    unfinished.attributes.insert(IMPL_KEY.into(), "MIGRATION".into());
    refused(
        admin.create_table(&unfinished, &[]).await,
        "DoNotRetryIOException",
        "Should not use MIGRATION as store file tracker for new family f of table u",
    );
    admin.disable_table(&t).await.expect("disabled");
    refused(admin.modify_table_store_file_tracker(&t, "DEFAULT").await, "TableNotEnabledException", "t");
    admin.enable_table(&t).await.expect("enabled");
    for row in ["a", "b", "c"] {
        assert!(lives.has("t", row).await, "{row}");
    }
    lives.place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_made_of_snapshots_have_lists_and_a_restore_keeps_its_tracker() {
    let lives = Lives::start(&[(IMPL_KEY, "FILE")]).await;
    let admin = lives.place.connection.admin();
    admin.create_table(&table("t"), &[]).await.expect("made");
    assert_eq!(lives.words("t").await[0], Some("FILE".into()), "the site's");
    lives.put("t", "a").await;
    admin.snapshot("s", &name("t")).await.expect("taken");
    lives.put("t", "b").await;
    admin.clone_snapshot("s", &name("c")).await.expect("cloned");
    let listed = lives.list("c", "f").expect("a list");
    assert!(listed.iter().all(|(name, size)| name.starts_with("t=") && *size == 0) && listed.len() == 1, "{listed:?}");
    assert!(lives.has("c", "a").await && !lives.has("c", "b").await);
    admin.clone_snapshot_with("s", &name("d"), false, Some("DEFAULT")).await.expect("cloned");
    assert!(lives.list("d", "f").is_none() && lives.has("d", "a").await);
    admin.disable_table(&name("t")).await.expect("disabled");
    admin.restore_snapshot("s", Default::default()).await.expect("restored");
    admin.enable_table(&name("t")).await.expect("enabled");
    assert!(lives.has("t", "a").await && !lives.has("t", "b").await);
    assert_eq!(lives.list("t", "f").map(|list| list.len()), Some(1));
    admin.modify_table_store_file_tracker(&name("t"), "DEFAULT").await.expect("changed");
    admin.disable_table(&name("t")).await.expect("disabled");
    let restored = admin.restore_snapshot("s", Default::default()).await;
    refused(restored, "RestoreSnapshotException", "the config for column family f has incompatible configuration");
    admin.enable_table(&name("t")).await.expect("enabled");
    assert!(lives.has("t", "a").await);
    lives.place.stop().await;
}

/// A family that had no file when the snapshot was taken has none when the table is restored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_empties_a_family_that_the_snapshot_has_no_file_of() {
    let lives = Lives::start(&[]).await;
    let admin = lives.place.connection.admin();
    admin.create_table(&table("t"), &[]).await.expect("made");
    let t = lives.place.connection.table(&name("t"));
    t.put(&Put::new("a").add("f", "q", "v").build()).await.expect("written");
    admin.disable_table(&name("t")).await.expect("disabled");
    admin.snapshot("s", &name("t")).await.expect("taken");
    admin.enable_table(&name("t")).await.expect("enabled");
    t.put(&Put::new("a").add("g", "q", "later").build()).await.expect("written");
    admin.disable_table(&name("t")).await.expect("disabled");
    admin.restore_snapshot("s", Default::default()).await.expect("restored");
    admin.enable_table(&name("t")).await.expect("enabled");
    let got = t.get(&Get::new("a")).await.expect("read");
    assert_eq!((got.value(b"f", b"q"), got.value(b"g", b"q")), (Some(&b"v"[..]), None));
    t.put(&Put::new("b").add("g", "q", "again").build()).await.expect("written");
    admin.flush(&name("t")).await.expect("flushed");
    assert!(t.exists(&Get::new("b")).await.expect("read"));
    lives.place.stop().await;
}
