//! What reads the files of backups, for fuzzers.

use model::{FamilyDescriptor, TableDescriptor};

use super::manifest::{Boundaries, Boundary, Image, ImageFile, Kind, Manifest, Unfinished, decode, encode};
use super::sets::Sets;

/// A file's bytes as they are, and as the JSON behind a first line that is right. What is read is written and read again, and is the same.
pub fn file(bytes: &[u8]) {
    each(bytes);
    let sealed = super::manifest::seal(bytes);
    each(&sealed);
}

fn each(bytes: &[u8]) {
    if let Ok(manifest) = decode::<Manifest>(bytes) {
        again(&manifest);
        for image in &manifest.tables {
            let _ = (image.descriptor(), image.name());
        }
        let _ = manifest.bytes();
    }
    if let Ok(state) = decode::<Unfinished>(bytes) {
        again(&state);
    }
    if let Ok(sets) = decode::<Sets>(bytes) {
        again(&sets);
    }
}

fn again<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let bytes = encode(value).expect("it came from JSON");
    assert_eq!(&decode::<T>(&bytes).expect("it was just written"), value);
}

/// The JSON of files that there are.
pub fn seeds() -> Vec<Vec<u8>> {
    let table = model::TableName::parse("ns:t").expect("legal");
    let descriptor = TableDescriptor::new(table, [FamilyDescriptor::new("f").with("VERSIONS", "3")]);
    let logs = Boundaries::from([("host,16020,17".to_owned(), Boundary { first: 18, is_there: true })]);
    let image = Image {
        table: "ns:t".to_owned(),
        parent: Some("backup_1".to_owned()),
        schema: Image::schema_of(&descriptor),
        regions: vec!["0123456789abcdef0123456789abcdef".to_owned()],
        snapshot: Some("basalt_backup_2_0".to_owned()),
        cells: 3,
        times_ms: Some((1, 2)),
        sequence_ids: Some((3, 4)),
        loaded_files: 1,
        files: vec![ImageFile { path: "ns/t/f/x".to_owned(), bytes: 5, crc32: 6 }],
    };
    let manifest = Manifest {
        id: "backup_2".to_owned(),
        kind: Kind::Incremental,
        merged: vec!["backup_0".to_owned()],
        set: Some("daily".to_owned()),
        started_ms: 1,
        completed_ms: 2,
        tables: vec![image],
        logs: logs.clone(),
    };
    let state = Unfinished {
        id: "backup_3".to_owned(),
        kind: Kind::Full,
        started_ms: 1,
        tables: vec!["t".to_owned()],
        logs,
        archived: ["0123456789abcdef0123456789abcdef_SeqId_4_".to_owned()].into(),
    };
    let sets = Sets::from([("daily".to_owned(), ["t".to_owned(), "ns:u".to_owned()].into())]);
    let json = [serde_json::to_vec(&manifest), serde_json::to_vec(&state), serde_json::to_vec(&sets)];
    let mut seeds: Vec<Vec<u8>> = json.into_iter().map(|json| json.expect("JSON")).collect();
    seeds.push(encode(&manifest).expect("JSON"));
    seeds
}
