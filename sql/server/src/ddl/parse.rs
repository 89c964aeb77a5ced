//! From words to statements.

use datafusion::sql::sqlparser::tokenizer::Token;
use types::SqlType;

use super::words::Words;
use super::{Change, Create, Ddl, Name};
use crate::error::{SqlError, SqlState};
use crate::mapping::{Column, DEFAULT_FAMILY, Kind, Place};
use crate::phoenix::Selection;
use crate::sequence::{Definition, MAX_CACHE, new_id};

/// The statement, if it is one that defines tables; none where somebody else is to read it.
///
/// # Errors
/// It is one, and wrong.
pub fn parse(sql: &str) -> Result<Option<Ddl>, SqlError> {
    let Ok(mut words) = Words::new(sql) else { return Ok(None) };
    let ddl = if words.take("create table") {
        create(&mut words, Kind::Table)?
    } else if words.take("create view") {
        create(&mut words, Kind::View)?
    } else if words.take("alter table") || words.take("alter view") {
        alter(&mut words)?
    } else if words.take("drop table") {
        drop_tables(&mut words, Kind::Table)?
    } else if words.take("drop view") {
        drop_tables(&mut words, Kind::View)?
    } else if words.take("create sequence") {
        create_sequence(&mut words)?
    } else if words.take("alter sequence") {
        alter_sequence(&mut words)?
    } else if words.take("drop sequence") {
        let if_exists = words.take("if exists");
        let names = names(&mut words)?;
        if !words.take("cascade") {
            words.take("restrict");
        }
        Ddl::DropSequence { names, if_exists }
    } else if words.take("import foreign schema") {
        import(&mut words)?
    } else if words.take("truncate") {
        words.take("table");
        Ddl::Truncate(names(&mut words)?)
    } else if words.take("comment on") {
        comment(&mut words)?
    } else {
        return Ok(None);
    };
    if words.is_over() { Ok(Some(ddl)) } else { Err(words.error()) }
}

/// A table's or sequence's name as a text holds it: `name`, `schema.name`, each in double quotes where it must be.
///
/// # Errors
/// It is none.
pub fn name_of(text: &str) -> Result<Name, SqlError> {
    let mut words = Words::new(text)?;
    let name = table_name(&mut words)?;
    if words.is_over() { Ok(name) } else { Err(words.error()) }
}

/// `IMPORT FOREIGN SCHEMA` from the schema's name on.
fn import(words: &mut Words) -> Result<Ddl, SqlError> {
    let from = words.name()?;
    let selection = if words.take("limit to") {
        Selection::Only(words.list(Words::name)?)
    } else if words.take("except") {
        Selection::Except(words.list(Words::name)?)
    } else {
        Selection::All
    };
    words.expect("from server")?;
    let server = words.name()?;
    if server != "phoenix" {
        let message = format!("server \"{server}\" does not exist: tables are imported from phoenix");
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
    }
    words.expect("into")?;
    Ok(Ddl::ImportPhoenix { from, selection, into: words.name()? })
}

/// A number with its sign.
fn signed(words: &mut Words) -> Result<i64, SqlError> {
    let is_negative = words.take_token(&Token::Minus);
    let digits: String = match words.peek() {
        Some(Token::Number(digits, _)) => digits.clone(),
        _ => return Err(words.error()),
    };
    words.advance();
    let text = if is_negative { format!("-{digits}") } else { digits };
    text.parse().map_err(|_| {
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("value \"{text}\" is out of range for type bigint"))
    })
}

/// `CREATE SEQUENCE` from its name on. Follows: PostgreSQL's `init_params`.
fn create_sequence(words: &mut Words) -> Result<Ddl, SqlError> {
    let invalid = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let if_not_exists = words.take("if not exists");
    let name = table_name(words)?;
    let (mut increment, mut start, mut min, mut max, mut cache) = (1, None, None, None, 1);
    let (mut bits, mut least, mut most) = (64, i64::MIN, i64::MAX);
    while !words.is_over() {
        if words.take("as") {
            (bits, least, most) = match words.name()?.as_str() {
                "smallint" | "int2" => (16, i64::from(i16::MIN), i64::from(i16::MAX)),
                "integer" | "int" | "int4" => (32, i64::from(i32::MIN), i64::from(i32::MAX)),
                "bigint" | "int8" => (64, i64::MIN, i64::MAX),
                _ => return Err(invalid("sequence type must be smallint, integer, or bigint".to_owned())),
            };
        } else if words.take("increment") {
            words.take("by");
            increment = signed(words)?;
        } else if words.take("start") {
            words.take("with");
            start = Some(signed(words)?);
        } else if words.take("minvalue") {
            min = Some(signed(words)?);
        } else if words.take("maxvalue") {
            max = Some(signed(words)?);
        } else if words.take("cache") {
            cache = signed(words)?;
        } else if words.take("cycle") {
            return Err(SqlError::unsupported("a sequence that begins again at its end (CYCLE) is not supported"));
        } else if words.take("owned by none")
            || words.take("no minvalue")
            || words.take("no maxvalue")
            || words.take("no cycle")
        {
            // What is anyway.
        } else {
            return Err(words.error());
        }
    }
    if increment == 0 {
        return Err(invalid("INCREMENT must not be zero".to_owned()));
    }
    let (min, max) = match increment > 0 {
        true => (min.unwrap_or(1), max.unwrap_or(most)),
        false => (min.unwrap_or(least), max.unwrap_or(-1)),
    };
    if min < least || max > most {
        return Err(invalid(format!("MINVALUE ({min}) or MAXVALUE ({max}) is out of range for the sequence's type")));
    }
    if min >= max {
        return Err(invalid(format!("MINVALUE ({min}) must be less than MAXVALUE ({max})")));
    }
    let start = start.unwrap_or(if increment > 0 { min } else { max });
    if start < min {
        return Err(invalid(format!("START value ({start}) cannot be less than MINVALUE ({min})")));
    }
    if start > max {
        return Err(invalid(format!("START value ({start}) cannot be greater than MAXVALUE ({max})")));
    }
    if !(1..=MAX_CACHE).contains(&cache) {
        return Err(invalid(format!("CACHE ({cache}) must be between 1 and {MAX_CACHE}")));
    }
    let definition = Definition { id: new_id(), start, increment, min, max, cache, bits };
    Ok(Ddl::CreateSequence { name, if_not_exists, definition })
}

/// `ALTER SEQUENCE` from its name on.
fn alter_sequence(words: &mut Words) -> Result<Ddl, SqlError> {
    let if_exists = words.take("if exists");
    let name = table_name(words)?;
    if !words.take("restart") {
        return Err(SqlError::unsupported("of a sequence only RESTART can be altered: drop it and make it anew"));
    }
    let has_with = words.take("with");
    let with = (has_with || !words.is_over()).then(|| signed(words)).transpose()?;
    Ok(Ddl::RestartSequence { name, if_exists, with })
}

fn table_name(words: &mut Words) -> Result<Name, SqlError> {
    let first = words.name()?;
    if words.take_token(&Token::Period) {
        return Ok(Name { schema: first, name: words.name()? });
    }
    Ok(Name { schema: "public".to_owned(), name: first })
}

fn names(words: &mut Words) -> Result<Vec<Name>, SqlError> {
    let mut names = vec![table_name(words)?];
    while words.take_token(&Token::Comma) {
        names.push(table_name(words)?);
    }
    Ok(names)
}

/// What stands between the brackets of `CREATE`.
enum Item {
    Column { column: Box<Column>, is_key: bool },
    Key(Vec<(String, bool)>),
}

fn create(words: &mut Words, kind: Kind) -> Result<Ddl, SqlError> {
    let if_not_exists = words.take("if not exists");
    let name = table_name(words)?;
    if words.take("as") {
        let what = "CREATE ... AS SELECT is not supported: create the table with its columns, then INSERT ... SELECT";
        return Err(SqlError::unsupported(what));
    }
    let items = words.list(|words| item(words, kind))?;
    let mut columns: Vec<Column> = Vec::new();
    let mut key: Vec<(String, bool)> = Vec::new();
    for item in items {
        match item {
            Item::Column { column, is_key } => {
                if is_key {
                    key.push((column.name.clone(), column.descending));
                }
                if columns.iter().any(|other| other.name == column.name) {
                    let message = format!("column \"{}\" specified more than once", column.name);
                    return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
                }
                columns.push(*column);
            }
            Item::Key(named) if key.is_empty() => key = named,
            Item::Key(_) => {
                let message = format!("multiple primary keys for table \"{name}\" are not allowed");
                return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
            }
        }
    }
    put_into_key(&name, &mut columns, &key)?;
    let mut options = Vec::new();
    let mut splits = Vec::new();
    loop {
        if words.take("with") {
            options.extend(words.list(|words| {
                let name = words.name()?;
                words.expect_token(&Token::Eq)?;
                Ok((name, words.literal()?))
            })?);
        } else if words.take("split on") {
            splits.extend(words.list(Words::literal)?);
        } else {
            break;
        }
    }
    Ok(Ddl::Create(Create { kind, name, if_not_exists, columns, options, splits }))
}

fn put_into_key(name: &Name, columns: &mut [Column], key: &[(String, bool)]) -> Result<(), SqlError> {
    if key.is_empty() {
        let message = format!("table \"{name}\" needs a PRIMARY KEY: it is the row key");
        return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
    }
    for (at, (key_name, descending)) in key.iter().enumerate() {
        let Some(column) = columns.iter_mut().find(|column| column.name == *key_name) else {
            let message = format!("column \"{key_name}\" named in key does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        };
        if matches!(column.place, Place::Key(_)) {
            let message = format!("column \"{key_name}\" appears twice in primary key constraint");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        if column.sql_type == SqlType::Varbinary && (at + 1 < key.len() || *descending) {
            let message = format!("column \"{key_name}\" of type varbinary can only end a key, ascending");
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
        if column.is_array && at + 1 < key.len() {
            let message = format!("column \"{key_name}\" is an array, which can only end a key");
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
        column.place = Place::Key(at);
        column.descending = *descending;
        column.not_null = true;
    }
    Ok(())
}

fn item(words: &mut Words, kind: Kind) -> Result<Item, SqlError> {
    if words.take("constraint") {
        words.name()?;
        words.expect("primary key")?;
        return words.list(key_part).map(Item::Key);
    }
    if words.take("primary key") {
        return words.list(key_part).map(Item::Key);
    }
    for unsupported in ["foreign key", "unique", "check", "exclude", "like"] {
        if words.take(unsupported) {
            return Err(SqlError::unsupported(format!("{} constraints are not supported", unsupported.to_uppercase())));
        }
    }
    let (column, is_key) = column(words, kind)?;
    Ok(Item::Column { column: Box::new(column), is_key })
}

fn key_part(words: &mut Words) -> Result<(String, bool), SqlError> {
    let name = words.name()?;
    Ok((name, direction(words)))
}

/// Whether it is descending.
fn direction(words: &mut Words) -> bool {
    let descending = words.take("desc");
    if !descending {
        words.take("asc");
    }
    descending
}

/// `[family.]qualifier type [NOT NULL | NULL] [PRIMARY KEY [ASC | DESC]] [AS name]`.
fn column(words: &mut Words, kind: Kind) -> Result<(Column, bool), SqlError> {
    let first = words.name()?;
    let (family, qualifier) =
        if words.take_token(&Token::Period) { (first, words.name()?) } else { (DEFAULT_FAMILY.to_owned(), first) };
    let (sql_type, max_chars, decimal) = sql_type(words)?;
    let mut is_array = words.take("array");
    // PostgreSQL has one type for arrays of all dimensions and lengths; here they have one dimension.
    if words.take_token(&Token::LBracket) {
        if !words.take_token(&Token::RBracket) {
            words.number::<u32>()?;
            words.expect_token(&Token::RBracket)?;
        }
        is_array = true;
    }
    if is_array && words.peek() == Some(&Token::LBracket) {
        return Err(SqlError::unsupported("arrays of more than one dimension are not supported"));
    }
    let mut column = Column {
        name: qualifier.clone(),
        sql_type,
        max_chars,
        decimal,
        not_null: false,
        descending: false,
        is_array,
        with_time: false,
        place: Place::Cell { family, qualifier: qualifier.into_bytes() },
        comment: None,
    };
    let mut is_key = false;
    loop {
        if words.take("not null") {
            column.not_null = true;
        } else if words.take("null") {
            column.not_null = false;
        } else if words.take("primary key") {
            is_key = true;
            column.descending = direction(words);
        } else if words.take("as") {
            column.name = words.name()?;
        } else if words.take("default") || words.take("references") || words.take("generated") || words.take("unique") {
            return Err(SqlError::unsupported("columns have no DEFAULT, UNIQUE, REFERENCES or GENERATED here"));
        } else {
            break;
        }
    }
    // What others write is not under our control.
    if kind == Kind::View && !is_key {
        column.not_null = false;
    }
    Ok((column, is_key))
}

type TypeAndLimits = (SqlType, Option<u32>, Option<(u8, i8)>);

fn sql_type(words: &mut Words) -> Result<TypeAndLimits, SqlError> {
    let name = words.name()?;
    let width = |words: &mut Words| -> Result<Option<u32>, SqlError> {
        if words.peek() != Some(&Token::LParen) {
            return Ok(None);
        }
        let widths = words.list(Words::number::<u32>)?;
        match widths[..] {
            [width] if width > 0 => Ok(Some(width)),
            _ => Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "a length must be one number above 0")),
        }
    };
    let plain = |of| Ok((of, None, None));
    match name.as_str() {
        "tinyint" => plain(SqlType::TinyInt),
        "smallint" | "int2" => plain(SqlType::SmallInt),
        "integer" | "int" | "int4" => plain(SqlType::Integer),
        "bigint" | "int8" => plain(SqlType::BigInt),
        "unsigned_tinyint" => plain(SqlType::UnsignedTinyInt),
        "unsigned_smallint" => plain(SqlType::UnsignedSmallInt),
        "unsigned_int" => plain(SqlType::UnsignedInt),
        "unsigned_long" => plain(SqlType::UnsignedLong),
        "real" | "float4" => plain(SqlType::Float),
        "double" => {
            words.take("precision");
            plain(SqlType::Double)
        }
        "float8" | "float" => plain(SqlType::Double),
        "unsigned_float" => plain(SqlType::UnsignedFloat),
        "unsigned_double" => plain(SqlType::UnsignedDouble),
        "decimal" | "numeric" => Ok((SqlType::Decimal, None, decimal_digits(words)?)),
        "text" => plain(SqlType::Varchar),
        "varchar" => Ok((SqlType::Varchar, width(words)?, None)),
        "char" | "character" if words.take("varying") => Ok((SqlType::Varchar, width(words)?, None)),
        "char" | "character" | "bpchar" => Ok((SqlType::Char(width(words)?.unwrap_or(1)), None, None)),
        "bytea" | "varbinary" => {
            width(words)?;
            plain(SqlType::Varbinary)
        }
        "binary" => Ok((SqlType::Binary(width(words)?.unwrap_or(1)), None, None)),
        "boolean" | "bool" => plain(SqlType::Boolean),
        "date" => plain(SqlType::Date),
        "unsigned_date" => plain(SqlType::UnsignedDate),
        "time" => {
            words.take("without time zone");
            plain(SqlType::Time)
        }
        "unsigned_time" => plain(SqlType::UnsignedTime),
        "timestamp" => {
            if words.take("with time zone") {
                return Err(SqlError::unsupported("timestamps have no time zone here: use timestamp"));
            }
            words.take("without time zone");
            plain(SqlType::Timestamp)
        }
        "unsigned_timestamp" => plain(SqlType::UnsignedTimestamp),
        other => Err(SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{other}\" does not exist"))),
    }
}

fn decimal_digits(words: &mut Words) -> Result<Option<(u8, i8)>, SqlError> {
    if words.peek() != Some(&Token::LParen) {
        return Ok(None);
    }
    let digits = words.list(Words::number::<u8>)?;
    let (precision, scale) = match digits[..] {
        [precision] => (precision, 0),
        [precision, scale] => (precision, scale),
        _ => return Err(words.error()),
    };
    if precision == 0 || precision > 38 || scale > precision {
        let message =
            format!("NUMERIC precision {precision} must be between 1 and 38, and its scale {scale} not above");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(Some((precision, scale as i8)))
}

fn alter(words: &mut Words) -> Result<Ddl, SqlError> {
    let if_exists = words.take("if exists");
    words.take("only");
    let name = table_name(words)?;
    let mut changes = Vec::new();
    loop {
        if words.take("add") {
            words.take("column");
            let if_not_exists = words.take("if not exists");
            let (column, is_key) = column(words, Kind::Table)?;
            if is_key || column.not_null {
                return Err(SqlError::unsupported("a column that is added can be neither NOT NULL nor in the key"));
            }
            changes.push(Change::Add { column: Box::new(column), if_not_exists });
        } else if words.take("drop") {
            words.take("column");
            let if_exists = words.take("if exists");
            changes.push(Change::Drop { name: words.name()?, if_exists });
        } else if words.take("rename") {
            words.take("column");
            let from = words.name()?;
            words.expect("to")?;
            changes.push(Change::RenameColumn { from, to: words.name()? });
        } else {
            return Err(words.error());
        }
        if !words.take_token(&Token::Comma) {
            return Ok(Ddl::Alter { name, if_exists, changes });
        }
    }
}

fn drop_tables(words: &mut Words, kind: Kind) -> Result<Ddl, SqlError> {
    let if_exists = words.take("if exists");
    let names = names(words)?;
    if !words.take("cascade") {
        words.take("restrict");
    }
    Ok(Ddl::Drop { kind, names, if_exists })
}

fn comment(words: &mut Words) -> Result<Ddl, SqlError> {
    let (name, column) = if words.take("column") {
        let mut parts = vec![words.name()?];
        while words.take_token(&Token::Period) {
            parts.push(words.name()?);
        }
        let column = parts.pop();
        let table = parts.pop().ok_or_else(|| words.error())?;
        (Name { schema: parts.pop().unwrap_or_else(|| "public".to_owned()), name: table }, column)
    } else if words.take("table") || words.take("view") {
        (table_name(words)?, None)
    } else {
        return Err(words.error());
    };
    words.expect("is")?;
    let text = if words.take("null") { None } else { Some(words.literal()?.text().to_owned()) };
    Ok(Ddl::Comment { name, column, text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ddl::Literal;

    fn create_of(sql: &str) -> Create {
        match parse(sql).expect("legal") {
            Some(Ddl::Create(create)) => create,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_table_with_a_key_of_two_columns_families_and_options_is_read() {
        let create = create_of(
            "CREATE TABLE IF NOT EXISTS s.Stats (host char(2) NOT NULL, at timestamp NOT NULL, \"A\".core integer, name varchar(10), \
             PRIMARY KEY (host, at DESC)) WITH (salt_buckets = 8, ttl = 86400, compression = 'zstd') SPLIT ON ('EU', 'NA');",
        );
        assert_eq!((create.name.schema.as_str(), create.name.name.as_str()), ("s", "stats"));
        let places: Vec<_> = create.columns.iter().map(|c| (c.place.clone(), c.descending)).collect();
        let cell = |family: &str, qualifier: &str| Place::Cell { family: family.into(), qualifier: qualifier.into() };
        let expected =
            [(Place::Key(0), false), (Place::Key(1), true), (cell("A", "core"), false), (cell("0", "name"), false)];
        assert_eq!(places, expected);
        assert_eq!(create.columns[3].max_chars, Some(10));
        assert_eq!(create.options[0], ("salt_buckets".into(), Literal::Number("8".into())));
        assert_eq!(create.splits, [Literal::Text("EU".into()), Literal::Text("NA".into())]);
        assert!(create.if_not_exists);
    }

    #[test]
    fn a_view_names_families_and_gives_columns_other_names() {
        let create = create_of(
            "create view v (pk varbinary primary key, \"cf\".\"Q\" unsigned_long as n, cf.t text not null) with (hbase_table = 'a:b')",
        );
        assert_eq!((create.columns[1].name.as_str(), create.columns[1].sql_type), ("n", SqlType::UnsignedLong));
        assert!(!create.columns[2].not_null);
    }

    #[test]
    fn what_is_wrong_has_postgresqls_code() {
        let state = |sql: &str| parse(sql).expect_err(sql).state;
        assert_eq!(state("create table t (a int)"), SqlState::INVALID_TABLE_DEFINITION);
        assert_eq!(state("create table t (a int, primary key (b))"), SqlState::UNDEFINED_COLUMN);
        assert_eq!(state("create table t (a int, a int, primary key (a))"), SqlState::DUPLICATE_COLUMN);
        assert_eq!(state("create table t (a nosuch primary key)"), SqlState::UNDEFINED_OBJECT);
        assert_eq!(state("create table t (a int primary key) garbage"), SqlState::SYNTAX_ERROR);
        assert_eq!(state("create table t (a numeric(50) primary key)"), SqlState::INVALID_PARAMETER_VALUE);
        assert_eq!(state("create view v as select 1"), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(parse("select 1"), Ok(None));
        assert_eq!(parse("select 'create table"), Ok(None));
    }
}
