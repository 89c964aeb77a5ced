//! Small files and rows that describe others: descriptors, region files, settings, procedures, hbase:meta.

use super::{put_part, shared, take_byte, take_part, volume_with};
use crate::{Target, golden};
use base::{SeqId, SettingRow};
use cell::{CellBuffer, CellSpec, CellType};
use convert::{from_proto, to_proto};
use coordination::{CreateMode, TreeHandle};
use fs::FilePath;
use model::{RegionInfo, TableName};
use proto::{Message, magic, pb};
use rootdir::FileName;
use rootdir::backup_hold::Hold;
use std::path::Path;
use std::sync::Arc;

/// The binary has no library; what reads its settings file is taken in by its source.
#[path = "../../../../crates/basalt/src/config.rs"]
#[allow(dead_code, reason = "only the reading of the file is used")]
mod config;

pub(super) const TABLE: Target = Target {
    name: "table",
    about: "table and family descriptors: the file, and the request's message",
    max_len: 2048,
    words: &[
        "PBUF",
        "COMPRESSION",
        "BLOOMFILTER",
        "DATA_BLOCK_ENCODING",
        "TTL",
        "VERSIONS",
        "FOREVER",
        "coprocessor$1",
        "IS_META",
    ],
    seeds: table_seeds,
    run: table,
};

pub(super) const REGION_INFO: Target = Target {
    name: "region-info",
    about: ".regioninfo, region names, encoded names",
    max_len: 512,
    words: &["PBUF", "default", "hbase", "meta", ",,1."],
    seeds: region_seeds,
    run: region_info,
};

pub(super) const ZNODES: Target = Target {
    name: "znodes",
    about: "the file of users' znodes, with the checksums made right where the input says so",
    max_len: 1024,
    words: &["BSLTZNOD", "/", "/app"],
    seeds: znodes_seeds,
    run: znodes,
};

pub(super) const BACKUPS: Target = Target {
    name: "backups",
    about: "manifests, sets and marks of backups, with the checksums made right",
    max_len: 4096,
    words: &["basalt-backup 1 crc32 ", "basalt-backup-hold 1", "place ", "covered ", "null", "\\x0acrc32 "],
    seeds: backup_seeds,
    run: backups,
};

pub(super) const SITE_XML: Target = Target {
    name: "site-xml",
    about: "hbase-site.xml, substitutions, the values of every setting",
    max_len: 2048,
    words: &[
        "<configuration>",
        "<property>",
        "<name>",
        "</name>",
        "<value>",
        "</value>",
        "${",
        "}",
        "&amp;",
        "<![CDATA[",
        "]]>",
        "<!DOCTYPE",
        "<!ENTITY",
        "hbase.rootdir",
    ],
    seeds: site_seeds,
    run: site,
};

pub(super) const MARKERS: Target = Target {
    name: "markers",
    about: "references, bulk load journals, MOB references, names of files, hbase.id, hbase.version",
    max_len: 512,
    words: &["PBUF", "_SeqId_1_", "t=", "-", ".seqid", "//", "\\x09"],
    seeds: marker_seeds,
    run: markers,
};

pub(super) const PROCEDURE: Target = Target {
    name: "procedure",
    about: "records of procedures",
    max_len: 2048,
    words: &[
        "PBUF",
        "type.googleapis.com/hbase.pb.",
        "CreateTableStateData",
        "SplitTableRegionStateData",
        "org.apache.hadoop.hbase.master.procedure.",
    ],
    seeds: procedure_seeds,
    run: procedure,
};

pub(super) const META_ROWS: Target = Target {
    name: "meta-rows",
    about: "rows of hbase:meta and hbase:namespace",
    max_len: 2048,
    words: &["regioninfo", "server", "state", "OPEN", "SPLIT", "merge0000", "splitA", "PBUF", "seqnumDuringOpen"],
    seeds: meta_seeds,
    run: meta_rows,
};

fn backups(data: &[u8]) {
    tools::backup::fuzzing::file(data);
    let mut sealed = data.to_vec();
    if !sealed.ends_with(b"\n") {
        sealed.push(b'\n');
    }
    sealed.extend_from_slice(format!("crc32 {:08x}\n", crc32fast::hash(&sealed)).as_bytes());
    for bytes in [data, &sealed] {
        if let Ok(hold) = Hold::decode(bytes) {
            assert_eq!(Hold::decode(&hold.encode()).as_ref(), Ok(&hold));
        }
    }
}

fn backup_seeds() -> Vec<Vec<u8>> {
    let mut seeds = tools::backup::fuzzing::seeds();
    let hold = Hold {
        place: "/b".to_owned(),
        tables: ["ns:t".to_owned()].into(),
        logs: [("a,1,7".to_owned(), 20)].into(),
        covered: ["0123456789abcdef0123456789abcdef_SeqId_4_".to_owned()].into(),
    };
    let bytes = hold.encode();
    seeds.push(bytes.iter().take(bytes.len() - "crc32 01234567\n".len()).copied().collect());
    seeds.push(bytes);
    seeds
}

fn table(data: &[u8]) {
    if let Ok(message) = pb::TableSchema::decode(data)
        && let Ok(table) = from_proto::table(&message)
    {
        let again = from_proto::table(&to_proto::table(&table)).expect("what we write we read");
        assert_eq!(again, table);
        look_at_table(&table);
    }
    if let Ok(message) = pb::ColumnFamilySchema::decode(data) {
        let _ = from_proto::family(&message);
    }
    if let Ok(message) = pb::NamespaceDescriptor::decode(data) {
        let _ = from_proto::namespace(&message);
    }
    let name = TableName::parse("plain").expect("legal");
    let path = FilePath::new("data/default/plain/.tabledesc/.tableinfo.0000000001.5");
    if let Ok(Some(table)) = rootdir::descriptor::read(&volume_with(&path, data), &name) {
        let again = from_proto::table(&to_proto::table(&table)).expect("what we write we read");
        assert_eq!(again, table);
        look_at_table(&table);
    }
}

fn look_at_table(table: &model::TableDescriptor) {
    let _ = table.coprocessors();
    for family in table.families.values() {
        let _ = (
            family.compression(),
            family.bloom_type(),
            family.data_block_encoding(),
            family.max_versions(),
            family.ttl_ms(),
        );
    }
}

fn table_seeds() -> Vec<Vec<u8>> {
    let mut seeds = golden::column("misc/table-descriptors.jsonl", "proto_TableSchema");
    seeds.extend(golden::column("misc/table-descriptors.jsonl", "file_bytes_PBUF"));
    seeds
}

fn region_info(data: &[u8]) {
    let dir = FilePath::new("data/default/t/r");
    let read = rootdir::read_region_info(&volume_with(&dir.join(".regioninfo"), data), &dir);
    if let Ok(Some(info)) = read {
        let bytes = rootdir::region_info_bytes(&info);
        let again = rootdir::read_region_info(&volume_with(&dir.join(".regioninfo"), &bytes), &dir);
        assert_eq!(again.expect("it is there"), Some(info));
    }
    if let Ok(message) = pb::RegionInfo::decode(data)
        && let Ok(info) = from_proto::region_info(&message)
    {
        let again = from_proto::region_info(&to_proto::region_info(&info));
        assert_eq!(again.expect("what we write we read"), info);
    }
    if let Ok(message) = pb::RegionSpecifier::decode(data) {
        let _ = from_proto::region_encoded_name(&message);
    }
    let _ = RegionInfo::encoded_from_name(data);
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = text.parse::<model::ServerName>();
        if let Ok(name) = TableName::parse(text) {
            assert_eq!(TableName::parse(name.as_str()), Ok(name));
        }
    }
}

fn region_seeds() -> Vec<Vec<u8>> {
    let mut seeds = golden::column("misc/region-names.jsonl", "proto");
    seeds.extend(golden::column("misc/region-names.jsonl", "delimited"));
    seeds.extend(golden::column("misc/region-names.jsonl", "name_bytes"));
    seeds.push(b"host.example.com,16020,1700000000000".to_vec());
    seeds
}

fn site(data: &[u8]) {
    let (path, overrides) = (Path::new("hbase-site.xml"), ["a=${b}".to_owned()]);
    let Ok(config) = config::read(Some((path, data)), &overrides) else { return };
    let rows: Vec<&dyn SettingRow> = [
        rpc::settings::ALL,
        wal::settings::ALL,
        region::settings::ALL,
        regionserver::settings::ALL,
        hfile::settings::ALL,
    ]
    .concat();
    if config.check(&rows).is_ok() {
        let _ = rpc::Limits::from_config(&config);
        let _ = wal::LogOptions::from_config(&config);
        let _ = region::RegionSettings::from_config(&config);
    }
}

fn site_seeds() -> Vec<Vec<u8>> {
    [
        "<configuration/>",
        "<?xml version=\"1.0\"?><?xml-stylesheet href=\"c.xsl\"?><!-- c --><configuration>\n<property><name>a.b</name><value> x &amp; y \
         </value><final>true</final><description>d</description></property></configuration>",
        "<configuration><property><name>b</name><value>${c}${user.name}</value></property><property><name>c</name>\
         <value>${env.HOME}/${d</value></property></configuration>",
        "<configuration><property><name>hbase.ipc.max.request.size</name><value>1000</value></property><property>\
         <name>hbase.hregion.memstore.flush.size</name><value><![CDATA[1048576]]></value></property></configuration>",
        "<!DOCTYPE c [<!ENTITY e 'x'>]><configuration><property><name>n</name><value>&e;&#65;</value></property></configuration>",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect()
}

fn markers(data: &[u8]) {
    if let Some(half) = region::fuzzing::reference(data) {
        cell::KeyRef::parse(&half.split_key).expect("a reference's key is one");
    }
    let _ = region::fuzzing::bulk_load_journal(data);
    if let Some(bytes) = region::fuzzing::mob_references(data) {
        assert_eq!(region::fuzzing::mob_references(&bytes), Some(bytes));
    }
    for file in ["hbase.id", "hbase.version"] {
        let volume = volume_with(&FilePath::new(file), data);
        let _ = rootdir::root::inspect(&volume);
        volume.put_file(
            &FilePath::new("hbase.version"),
            &magic::encode(&pb::HBaseVersionFileContent { version: "8".into() }),
        );
        let _ = rootdir::root::inspect(&volume);
    }
    if let Ok(text) = std::str::from_utf8(data) {
        if let Some(name) = FileName::parse(text) {
            let _ = (name.bulk_load_seq_id(), name.target_name());
            let _ = name.candidates(&RegionInfo::meta(), b"f");
        }
        let _ = rootdir::recovered_edits::max_seq_id_file(text.split('/'));
        let (name, contents) = text.split_once('/').unwrap_or((text, ""));
        if let Some(note) = rootdir::recovered_edits::DeletedFamily::read(name, contents.as_bytes()) {
            assert_eq!(note.file_name(), name);
        }
    }
}

fn marker_seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = [
        "0123456789abcdef0123456789abcdef",
        "0123456789abcdef0123456789abcdef_SeqId_7_",
        "0123456789abcdef0123456789abcdef.fedcba98765432100123456789abcdef",
        "t=0123456789abcdef0123456789abcdef-fedcba98765432100123456789abcdef",
        "ns=t=0123456789abcdef0123456789abcdef-fedcba98765432100123456789abcdef.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "t=..-0123456789abcdef",
        "t=-0123456789abcdef",
        "17.seqid/0000000000000000103",
        "a/b\tc/d\n../x\tc/d\n",
        "t/a,b//n:u/c",
        "6ee3b40a-1f2c-4e35-9b5d-0a8d1f9b4d11",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    for side in [hfile::HalfSide::Top, hfile::HalfSide::Bottom] {
        seeds.push(region::reference_bytes(b"row", side).to_vec());
    }
    seeds.push(magic::encode(&pb::ClusterId { cluster_id: "6ee3b40a".into() }).to_vec());
    seeds.push(magic::encode(&pb::HBaseVersionFileContent { version: "8".into() }).to_vec());
    seeds
}

fn procedure(data: &[u8]) {
    let Ok(again) = master::read_record(&shared(data)) else { return };
    let once_more = master::read_record(&again).expect("what we write we read");
    assert_eq!(once_more, again);
}

fn procedure_seeds() -> Vec<Vec<u8>> {
    let name = || Some(pb::TableName { namespace: "default".into(), qualifier: "t".into() });
    let table = || pb::TableSchema {
        table_name: name(),
        column_families: vec![pb::ColumnFamilySchema { name: "f".into(), ..Default::default() }],
        ..Default::default()
    };
    let region = || pb::RegionInfo {
        region_id: 7,
        table_name: name().unwrap_or_default(),
        start_key: Some("a".into()),
        end_key: Some("b".into()),
        ..Default::default()
    };
    let (table_name, user_info) = (name().unwrap_or_default(), pb::UserInformation::default());
    let namespace = || pb::NamespaceDescriptor { name: "n".into(), ..Default::default() };
    let states: Vec<(&str, &str, Vec<u8>)> = vec![
        (
            "procedure.CreateTableProcedure",
            "CreateTableStateData",
            pb::CreateTableStateData {
                user_info: user_info.clone(),
                table_schema: table(),
                region_info: vec![region()],
            }
            .encode_to_vec(),
        ),
        (
            "procedure.DeleteTableProcedure",
            "DeleteTableStateData",
            pb::DeleteTableStateData {
                user_info: user_info.clone(),
                table_name: table_name.clone(),
                ..Default::default()
            }
            .encode_to_vec(),
        ),
        (
            "procedure.EnableTableProcedure",
            "EnableTableStateData",
            pb::EnableTableStateData {
                user_info: user_info.clone(),
                table_name: table_name.clone(),
                ..Default::default()
            }
            .encode_to_vec(),
        ),
        (
            "procedure.DisableTableProcedure",
            "DisableTableStateData",
            pb::DisableTableStateData { user_info: user_info.clone(), table_name, ..Default::default() }
                .encode_to_vec(),
        ),
        (
            "procedure.TruncateTableProcedure",
            "TruncateTableStateData",
            pb::TruncateTableStateData {
                user_info: user_info.clone(),
                table_name: name(),
                table_schema: Some(table()),
                region_info: vec![region(), region()],
                preserve_splits: true,
                ..Default::default()
            }
            .encode_to_vec(),
        ),
        (
            "procedure.ModifyTableProcedure",
            "ModifyTableStateData",
            pb::ModifyTableStateData {
                user_info: user_info.clone(),
                unmodified_table_schema: Some(table()),
                modified_table_schema: table(),
                ..Default::default()
            }
            .encode_to_vec(),
        ),
        (
            "procedure.CreateNamespaceProcedure",
            "CreateNamespaceStateData",
            pb::CreateNamespaceStateData { namespace_descriptor: namespace() }.encode_to_vec(),
        ),
        (
            "assignment.SplitTableRegionProcedure",
            "SplitTableRegionStateData",
            pb::SplitTableRegionStateData {
                user_info: user_info.clone(),
                parent_region_info: region(),
                child_region_info: vec![region(), region()],
            }
            .encode_to_vec(),
        ),
        (
            "assignment.MergeTableRegionsProcedure",
            "MergeTableRegionsStateData",
            pb::MergeTableRegionsStateData {
                user_info,
                region_info: vec![region(), region()],
                merged_region_info: Some(region()),
                ..Default::default()
            }
            .encode_to_vec(),
        ),
    ];
    states
        .into_iter()
        .map(|(class, state, value)| {
            let any = proto::Any { type_url: format!("type.googleapis.com/hbase.pb.{state}"), value: shared(&value) };
            let record = pb::Procedure {
                class_name: format!("org.apache.hadoop.hbase.master.{class}"),
                proc_id: 5,
                state: pb::ProcedureState::Runnable as i32,
                nonce_group: Some(1),
                nonce: Some(2),
                state_message: vec![any],
                ..Default::default()
            };
            magic::encode(&record).to_vec()
        })
        .collect()
}

/// Cells: a row, a column and a value each. The column's number is one of those known, or the column is spelled out.
fn meta_rows(mut data: &[u8]) {
    let mut cells = CellBuffer::new();
    let mut row: &[u8] = b"t,,1.0123456789abcdef0123456789abcdef.";
    while !data.is_empty() && cells.len() < 100 {
        let kind = take_byte(&mut data);
        if kind & 0x80 != 0 {
            row = take_part(&mut data);
        }
        let (family, qualifier) = match COLUMNS.get(usize::from(kind & 0x7F)) {
            Some(column) => (column.0.as_bytes(), column.1.as_bytes()),
            None => (b"info".as_slice(), take_part(&mut data)),
        };
        let value = take_part(&mut data);
        let type_code = CellType::Put.code();
        if row.len() <= cell::MAX_ROW_LENGTH {
            let spec = CellSpec { row, family, qualifier, timestamp: 5, type_code, value, tags: &[] };
            cells.push_spec(&spec, SeqId(0));
        }
    }
    let content = master::meta::parse_meta(&cells);
    for region in &content.regions {
        assert!(region.info.name().len() < 1 << 20);
    }
    let _ = master::meta::servers(&cells);
    let _ = master::meta::parse_namespaces(&cells);
}

const COLUMNS: [(&str, &str); 12] = [
    ("info", "regioninfo"),
    ("info", "server"),
    ("info", "serverstartcode"),
    ("info", "seqnumDuringOpen"),
    ("info", "state"),
    ("info", "sn"),
    ("info", "splitA"),
    ("info", "splitB"),
    ("info", "merge0000"),
    ("info", "merge0001"),
    ("table", "state"),
    ("info", "d"),
];

fn meta_seeds() -> Vec<Vec<u8>> {
    let mut rows: Vec<(String, Vec<u8>)> = Vec::new();
    for line in golden::lines("cluster/meta-dump.jsonl") {
        let (row, column) = (line["row"].as_str().unwrap_or_default(), line["column"].as_str().unwrap_or_default());
        let Some(kind) = COLUMNS.iter().position(|(family, qualifier)| column == format!("{family}:{qualifier}"))
        else {
            continue;
        };
        let Some(value) = golden::bytes(&line, "value_hex") else { continue };
        if rows.last().is_none_or(|(last, _)| last != row) {
            rows.push((row.to_owned(), Vec::new()));
        }
        let Some((_, seed)) = rows.last_mut() else { continue };
        seed.push(kind as u8 | 0x80);
        put_part(seed, row.as_bytes());
        put_part(seed, &value);
    }
    rows.into_iter().map(|(_, seed)| seed).step_by(3).collect()
}

/// The header's count is behind magic, version and limit; its checksum behind that.
const ZNODES_HEADER: usize = 24;

fn znodes(mut data: &[u8]) {
    let mends = take_byte(&mut data).is_multiple_of(2);
    let mut bytes = data.to_vec();
    if mends {
        mend_znodes(&mut bytes);
    }
    let Ok(kept) = coordination::Kept::decode(&bytes.into()) else { return };
    let tree = TreeHandle::unserved(Arc::new(base::ManualClock::new(1)), Arc::new(base::Rng::seeded(1)));
    tree.restore(&kept).expect("what was decoded is a tree");
    assert!(tree.last_zxid() >= kept.zxid_limit);
    let again = coordination::Kept::decode(&kept.encode()).expect("what was written");
    assert_eq!(again, kept);
}

/// Makes every checksum right, as far as the lengths lead.
fn mend_znodes(bytes: &mut [u8]) {
    let Some((header, rest)) = bytes.split_at_mut_checked(ZNODES_HEADER) else { return };
    let Some((sum, mut records)) = rest.split_at_mut_checked(4) else { return };
    sum.copy_from_slice(&crc32c::crc32c(header).to_be_bytes());
    while let Some((head, rest)) = records.split_at_mut_checked(8) {
        let len = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let Some((body, rest)) = rest.split_at_mut_checked(len) else { return };
        head[4..].copy_from_slice(&crc32c::crc32c(body).to_be_bytes());
        records = rest;
    }
}

fn znodes_seeds() -> Vec<Vec<u8>> {
    let tree = TreeHandle::unserved(Arc::new(base::ManualClock::new(1)), Arc::new(base::Rng::seeded(1)));
    tree.restore(&coordination::Kept::default()).expect("nothing");
    let seed = |tree: &TreeHandle| {
        let to_keep = tree.to_keep_now().expect("changes");
        [&[0][..], &to_keep.kept.encode()].concat()
    };
    let mut seeds = vec![seed(&tree)];
    for path in ["/app", "/app/queue", "/app/queue/n-", "/b"] {
        let mode = CreateMode { ephemeral_owner: 0, sequential: path.ends_with('-') };
        tree.create_for_user(path, shared(path.as_bytes()), mode).expect("made");
        seeds.push(seed(&tree));
    }
    seeds
}
