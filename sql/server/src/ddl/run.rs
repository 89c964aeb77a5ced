//! Doing what a statement says: in HBase first, so that a mapping never names a table that is not there.

use bytes::Bytes;
use model::{Compression, FamilyDescriptor, TableDescriptor};
use types::{SqlType, Value};

use super::{Change, Create, Ddl, Literal, Name};
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::mapping::{Column, Kind, Mapping, Place, default_hbase_table};
use crate::phoenix;
use crate::sequence;

/// Runs a statement; gives back what the client is to be told besides.
///
/// # Errors
/// It cannot be done, or the cluster does not answer.
pub async fn run(catalog: &Catalog, ddl: Ddl) -> Result<Vec<String>, SqlError> {
    match ddl {
        Ddl::Create(create) => self::create(catalog, create).await,
        Ddl::Alter { name, if_exists, changes } => alter(catalog, &name, if_exists, changes).await,
        Ddl::Drop { kind, names, if_exists } => {
            let mut notices = Vec::new();
            for name in names {
                notices.extend(drop_one(catalog, kind, &name, if_exists).await?);
            }
            Ok(notices)
        }
        Ddl::CreateSequence { name, if_not_exists, definition } => {
            match sequence::create(catalog, &name, &definition).await {
                Err(e) if if_not_exists && e.state == SqlState::DUPLICATE_TABLE => {
                    Ok(vec![format!("relation \"{name}\" already exists, skipping")])
                }
                made => made.map(|()| Vec::new()),
            }
        }
        Ddl::RestartSequence { name, if_exists, with } => restart_sequence(catalog, &name, if_exists, with).await,
        Ddl::DropSequence { names, if_exists } => {
            let mut notices = Vec::new();
            for name in names {
                if !sequence::remove(catalog, &name).await? {
                    if !if_exists {
                        return Err(missing(&name, "sequence"));
                    }
                    notices.push(format!("sequence \"{name}\" does not exist, skipping"));
                }
            }
            Ok(notices)
        }
        Ddl::ImportPhoenix { from, selection, into } => phoenix::import(catalog, &from, &selection, &into).await,
        Ddl::Truncate(names) => {
            for name in names {
                truncate(catalog, &name).await?;
            }
            Ok(Vec::new())
        }
        Ddl::Comment { name, column, text } => comment(catalog, &name, column, text).await,
    }
}

async fn restart_sequence(
    catalog: &Catalog,
    name: &Name,
    if_exists: bool,
    with: Option<i64>,
) -> Result<Vec<String>, SqlError> {
    let Some(definition) = sequence::read(catalog, name).await? else {
        let skip = format!("relation \"{name}\" does not exist, skipping");
        return if if_exists { Ok(vec![skip]) } else { Err(missing(name, "relation")) };
    };
    let next = with.unwrap_or(definition.start);
    if !(definition.min..=definition.max).contains(&next) {
        let (which, bound) = if next < definition.min {
            ("less than MINVALUE", definition.min)
        } else {
            ("greater than MAXVALUE", definition.max)
        };
        let message = format!("RESTART value ({next}) cannot be {which} ({bound})");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    sequence::set_last(catalog, name, &definition, next.wrapping_sub(definition.increment)).await?;
    Ok(Vec::new())
}

/// What `WITH (...)` says.
#[derive(Default)]
struct Options {
    hbase_table: Option<String>,
    salt_buckets: u8,
    family: Vec<(&'static str, String)>,
}

fn options_of(create: &Create) -> Result<Options, SqlError> {
    let mut options = Options::default();
    for (name, value) in &create.options {
        let wrong = || {
            let message = format!("invalid value for option \"{name}\": {}", value.text());
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        };
        let number = |least: u64, most: u64| {
            value.text().parse::<u64>().ok().filter(|n| (least..=most).contains(n)).ok_or_else(wrong)
        };
        match name.as_str() {
            "hbase_table" => options.hbase_table = Some(value.text().to_owned()),
            "salt_buckets" => options.salt_buckets = number(1, 255)? as u8,
            "ttl" => options.family.push(("TTL", number(1, i32::MAX as u64)?.to_string())),
            "versions" => options.family.push(("VERSIONS", number(1, i32::MAX as u64)?.to_string())),
            "compression" => {
                let name = value.text().to_ascii_uppercase();
                Compression::parse(&name).ok_or_else(wrong)?;
                options.family.push(("COMPRESSION", name));
            }
            "data_block_encoding" => options.family.push(("DATA_BLOCK_ENCODING", value.text().to_ascii_uppercase())),
            "bloomfilter" => options.family.push(("BLOOMFILTER", value.text().to_ascii_uppercase())),
            "blocksize" => options.family.push(("BLOCKSIZE", number(1, 1 << 30)?.to_string())),
            other => {
                let message = format!("unrecognized parameter \"{other}\"");
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        }
    }
    let for_tables = create.kind == Kind::View && !(options.family.is_empty() && create.splits.is_empty());
    if for_tables {
        return Err(SqlError::unsupported(
            "a view takes hbase_table and salt_buckets only: its table is there already",
        ));
    }
    Ok(options)
}

async fn create(catalog: &Catalog, create: Create) -> Result<Vec<String>, SqlError> {
    let name = &create.name;
    let options = options_of(&create)?;
    let hbase_table = options.hbase_table.clone().unwrap_or_else(|| default_hbase_table(&name.schema, &name.name));
    let mapping = Mapping {
        schema: name.schema.clone(),
        name: name.name.clone(),
        hbase_table,
        kind: create.kind,
        columns: create.columns.clone(),
        salt_buckets: options.salt_buckets,
        phoenix: None,
        comment: None,
        version: 1,
    };
    let hbase_name = mapping.table_name()?;
    if let Some(known) = catalog.table(&name.schema, &name.name).await? {
        let is_described = known.mapping.kind != Kind::Raw;
        if is_described && create.if_not_exists {
            return Ok(vec![format!("relation \"{name}\" already exists, skipping")]);
        }
        // A view may describe what was bytes so far.
        if is_described || create.kind == Kind::Table {
            let message = format!("relation \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
        }
    }
    if sequence::read(catalog, name).await?.is_some() {
        let message = format!("relation \"{name}\" already exists");
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    if create.kind == Kind::View {
        if !catalog.hbase_has(&hbase_name).await? {
            let message = format!("HBase has no table {hbase_name:?} that the view \"{name}\" could show");
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
        }
        catalog.add(&mapping).await?;
        return Ok(Vec::new());
    }
    let families = mapping.families().into_iter().map(|family| {
        let plain = FamilyDescriptor::new(Bytes::from(family));
        options.family.iter().fold(plain, |family, (key, value)| family.with(key, value.clone()))
    });
    let descriptor = TableDescriptor::new(hbase_name.clone(), families);
    let splits = splits_of(&mapping, &create.splits)?;
    ensure_namespace(catalog, &mapping).await?;
    catalog.connection().admin().create_table(&descriptor, &splits).await.map_err(|e| {
        if e.short_class() == Some("TableExistsException") {
            let message = format!("HBase has a table {} already", mapping.hbase_table);
            return SqlError::new(SqlState::DUPLICATE_TABLE, message);
        }
        SqlError::from(e)
    })?;
    catalog.add(&mapping).await?;
    Ok(Vec::new())
}

async fn ensure_namespace(catalog: &Catalog, mapping: &Mapping) -> Result<(), SqlError> {
    let Some((namespace, _)) = mapping.hbase_table.split_once(':') else { return Ok(()) };
    let admin = catalog.connection().admin();
    if namespace != "default" && !admin.list_namespaces().await?.iter().any(|known| known == namespace) {
        admin.create_namespace(namespace, &std::collections::BTreeMap::new()).await?;
    }
    Ok(())
}

/// Row keys where regions begin.
fn splits_of(mapping: &Mapping, splits: &[Literal]) -> Result<Vec<Bytes>, SqlError> {
    if mapping.salt_buckets > 0 {
        if !splits.is_empty() {
            return Err(SqlError::unsupported("a salted table is split at its salt: leave SPLIT ON away"));
        }
        return Ok((1..mapping.salt_buckets).map(|salt| Bytes::from(vec![salt])).collect());
    }
    let layout = mapping.key_layout();
    let first = &mapping.columns[mapping.key_columns()[0]];
    let mut keys = Vec::new();
    for split in splits {
        let mut key = Vec::new();
        let wrong = || {
            let message = format!("{} is no value of column \"{}\" to split at", split.text(), first.name);
            SqlError::new(SqlState::INVALID_TEXT, message)
        };
        let number = split.text().parse::<i64>();
        let value = match first.sql_type {
            SqlType::Varchar | SqlType::Char(_) => Value::Text(split.text()),
            SqlType::Varbinary | SqlType::Binary(_) => Value::Bytes(split.text().as_bytes()),
            SqlType::Float | SqlType::UnsignedFloat => Value::Float(split.text().parse().map_err(|_| wrong())?),
            SqlType::Double | SqlType::UnsignedDouble => Value::Double(split.text().parse().map_err(|_| wrong())?),
            _ => Value::Int(number.map_err(|_| wrong())?),
        };
        let mut ascending = Vec::new();
        first.sql_type.encode(&value, &mut ascending)?;
        layout.append(0, &ascending, &mut key)?;
        keys.push(Bytes::from(key));
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

async fn mapping_of(
    catalog: &Catalog,
    name: &Name,
) -> Result<Option<std::sync::Arc<crate::table::HBaseTable>>, SqlError> {
    catalog.refresh(std::time::Duration::ZERO).await?;
    catalog.table(&name.schema, &name.name).await
}

fn missing(name: &Name, what: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_TABLE, format!("{what} \"{name}\" does not exist"))
}

async fn alter(catalog: &Catalog, name: &Name, if_exists: bool, changes: Vec<Change>) -> Result<Vec<String>, SqlError> {
    let Some(table) = mapping_of(catalog, name).await? else {
        let skip = format!("relation \"{name}\" does not exist, skipping");
        return if if_exists { Ok(vec![skip]) } else { Err(missing(name, "relation")) };
    };
    let before = &*table.mapping;
    if before.kind == Kind::Raw {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{name}\" has no mapping: CREATE VIEW makes one"),
        ));
    }
    if let Some(phoenix) = &before.phoenix {
        let message = format!("\"{name}\" is Phoenix's {}: change it there and import it again", phoenix.name);
        return Err(SqlError::unsupported(message));
    }
    let mut after = before.clone();
    let mut notices = Vec::new();
    for change in changes {
        notices.extend(apply(&mut after, change)?);
    }
    add_families(catalog, before, &after).await?;
    catalog.replace(before, &after).await?;
    Ok(notices)
}

fn apply(mapping: &mut Mapping, change: Change) -> Result<Option<String>, SqlError> {
    let table = mapping.name.clone();
    let undefined = |name: &str| {
        let message = format!("column \"{name}\" of relation \"{table}\" does not exist");
        SqlError::new(SqlState::UNDEFINED_COLUMN, message)
    };
    let duplicate = |name: &str| {
        let message = format!("column \"{name}\" of relation \"{table}\" already exists");
        SqlError::new(SqlState::DUPLICATE_COLUMN, message)
    };
    match change {
        Change::Add { column, if_not_exists } => {
            if mapping.column(&column.name).is_some() {
                let skip = format!("column \"{}\" of relation \"{table}\" already exists, skipping", column.name);
                return if if_not_exists { Ok(Some(skip)) } else { Err(duplicate(&column.name)) };
            }
            mapping.columns.push(*column);
        }
        Change::Drop { name, if_exists } => match mapping.column(&name) {
            None if if_exists => {
                return Ok(Some(format!("column \"{name}\" of relation \"{table}\" does not exist, skipping")));
            }
            None => return Err(undefined(&name)),
            Some((_, Column { place: Place::Key(_), .. })) => {
                return Err(SqlError::unsupported(format!("column \"{name}\" is in the primary key: it stays")));
            }
            Some((at, _)) => {
                mapping.columns.remove(at);
            }
        },
        Change::RenameColumn { from, to } => {
            if mapping.column(&to).is_some() {
                return Err(duplicate(&to));
            }
            let (at, _) = mapping.column(&from).ok_or_else(|| undefined(&from))?;
            mapping.columns[at].name = to;
        }
    }
    Ok(None)
}

/// Columns in families that the table does not have yet.
async fn add_families(catalog: &Catalog, before: &Mapping, after: &Mapping) -> Result<(), SqlError> {
    if before.kind != Kind::Table {
        return Ok(());
    }
    let admin = catalog.connection().admin();
    let name = before.table_name()?;
    let Some(mut descriptor) = admin.describe(&name).await? else {
        return Err(SqlError::new(
            SqlState::UNDEFINED_TABLE,
            format!("HBase has no table {} any more", before.hbase_table),
        ));
    };
    let like = descriptor.families.values().next().cloned();
    let mut changed = false;
    for family in after.families() {
        let family = Bytes::from(family);
        if !descriptor.families.contains_key(&family) {
            let new = like.clone().unwrap_or_else(|| FamilyDescriptor::new(family.clone()));
            descriptor.families.insert(family.clone(), FamilyDescriptor { name: family, ..new });
            changed = true;
        }
    }
    if changed {
        admin.modify_table(&descriptor).await?;
    }
    Ok(())
}

async fn drop_one(catalog: &Catalog, kind: Kind, name: &Name, if_exists: bool) -> Result<Option<String>, SqlError> {
    let what = if kind == Kind::View { "view" } else { "table" };
    let Some(table) = mapping_of(catalog, name).await? else {
        let skip = format!("{what} \"{name}\" does not exist, skipping");
        return if if_exists { Ok(Some(skip)) } else { Err(missing(name, what)) };
    };
    let mapping = &table.mapping;
    match mapping.kind {
        Kind::Raw => {
            let message = format!("\"{name}\" is an HBase table that SQL did not make: drop it with the HBase shell");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        found if found != kind => {
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a {what}")));
        }
        Kind::Table => {
            let admin = catalog.connection().admin();
            let hbase_name = mapping.table_name()?;
            if admin.table_exists(&hbase_name).await? {
                if admin.is_enabled(&hbase_name).await? {
                    admin.disable_table(&hbase_name).await?;
                }
                admin.delete_table(&hbase_name).await?;
            }
        }
        Kind::View => {}
    }
    catalog.remove(mapping).await?;
    Ok(None)
}

async fn truncate(catalog: &Catalog, name: &Name) -> Result<(), SqlError> {
    let table = mapping_of(catalog, name).await?.ok_or_else(|| missing(name, "relation"))?;
    if table.mapping.kind != Kind::Table {
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a table")));
    }
    let admin = catalog.connection().admin();
    let hbase_name = table.mapping.table_name()?;
    admin.disable_table(&hbase_name).await?;
    admin.truncate_table(&hbase_name, true).await?;
    Ok(())
}

async fn comment(
    catalog: &Catalog,
    name: &Name,
    column: Option<String>,
    text: Option<String>,
) -> Result<Vec<String>, SqlError> {
    let table = mapping_of(catalog, name).await?.ok_or_else(|| missing(name, "relation"))?;
    if table.mapping.kind == Kind::Raw {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{name}\" has no mapping: CREATE VIEW makes one"),
        ));
    }
    let mut after = (*table.mapping).clone();
    match column {
        None => after.comment = text,
        Some(column) => {
            let (at, _) = after.column(&column).ok_or_else(|| {
                let message = format!("column \"{column}\" of relation \"{name}\" does not exist");
                SqlError::new(SqlState::UNDEFINED_COLUMN, message)
            })?;
            after.columns[at].comment = text;
        }
    }
    catalog.replace(&table.mapping, &after).await?;
    Ok(Vec::new())
}
