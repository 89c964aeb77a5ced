//! The normalizer: regions of tables that ask for it are split and merged, at a client's request and by itself.

use crate::common::Place;
use base::Config;
use client::{Admin, Put};
use model::{FamilyDescriptor, TableDescriptor, TableName};

/// A table with regions from these keys on, that the normalizer looks at.
async fn make(admin: &Admin, name: &str, splits: &[&'static str], said: &[(&'static str, &'static str)]) -> TableName {
    let name = TableName::parse(name).expect("legal");
    let mut table = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
    let always = [("NORMALIZATION_ENABLED", "true"), ("hbase.normalizer.merge.min_region_age.days", "0")];
    for (key, value) in always.iter().chain(said) {
        table.attributes.insert((*key).into(), (*value).into());
    }
    let splits: Vec<_> = splits.iter().map(|key| (*key).into()).collect();
    admin.create_table(&table, &splits).await.expect("made");
    name
}

/// Regions of the table that serve, or will in a moment.
fn count(place: &Place, table: &TableName) -> usize {
    place.node.master().cluster().regions_of(table).filter(|node| node.is_live()).count()
}

/// Asks for it until the table has so many regions.
async fn normalize_until(place: &Place, table: &TableName, regions: usize) {
    let admin = place.connection.admin();
    while count(place, table) != regions {
        admin.normalize(std::slice::from_ref(table), None, None).await.expect("an answer");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_neighbours_are_merged_and_large_regions_split() {
    let place = Place::start().await;
    let admin = place.connection.admin();
    let empty = [("hbase.normalizer.merge.min_region_size.mb", "0")];
    let small = make(&admin, "small", &["b", "c", "d"], &empty).await;
    let other = make(&admin, "other", &["b", "c", "d"], &empty).await;
    let unasked = make(&admin, "unasked", &["b", "c", "d"], &[("NORMALIZATION_ENABLED", "false")]).await;
    normalize_until(&place, &small, 1).await;
    assert_eq!(count(&place, &other), 4, "the request names another");

    let large = make(&admin, "large", &[], &[("NORMALIZER_TARGET_REGION_SIZE_MB", "1")]).await;
    let (t, rng) = (place.connection.table(&large), base::Rng::seeded(3));
    for row in 0..40 {
        let value: Vec<u8> = (0..100_000).map(|_| rng.below(256) as u8).collect();
        t.put(&Put::new(format!("{row:02}")).add("f", "q", value).build()).await.expect("written");
    }
    admin.flush(&large).await.expect("flushed");
    normalize_until(&place, &large, 2).await;

    // While the daughters of the split are opened it answers that it did not run.
    while !admin.normalize(&[], None, Some("un.*|other")).await.expect("an answer") {
        tokio::task::yield_now().await;
    }
    while count(&place, &other) != 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(count(&place, &unasked), 4, "it says that it is to stay as it is");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_runs_by_itself_unless_it_is_switched_off() {
    let every_few_ms = |config: &mut Config| {
        config.set("hbase.normalizer.period", "5");
        config.set("hbase.normalizer.merge.min_region_size.mb", "0");
    };
    let place = Place::start_with(|parts| every_few_ms(&mut parts.config)).await;
    let admin = place.connection.admin();
    assert!(admin.set_normalizer(false).await.expect("switched"));
    let t = make(&admin, "t", &["b", "c", "d"], &[]).await;
    assert!(!admin.normalize(&[], None, None).await.expect("an answer"), "it is off");
    assert_eq!(count(&place, &t), 4);
    assert!(!admin.set_normalizer(true).await.expect("switched"));
    while count(&place, &t) != 1 {
        tokio::task::yield_now().await;
    }
    place.stop().await;
}
