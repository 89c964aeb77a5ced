//! Statements that define tables: read here rather than by DataFusion's parser, for their columns name families and HBase's options.

mod parse;
mod run;
pub mod words;

pub use parse::{name_of, parse};
pub use run::run;

use crate::mapping::{Column, Kind};
use crate::phoenix::Selection;
use crate::sequence::Definition;

/// A table's name as it is written: the schema may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    /// Schema; `public` where none is written.
    pub schema: String,
    /// Name.
    pub name: String,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

/// A literal of `WITH` or `SPLIT ON`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// A text, or a word.
    Text(String),
    /// A number.
    Number(String),
}

impl Literal {
    /// Its text, whatever it is.
    pub fn text(&self) -> &str {
        match self {
            Literal::Text(text) | Literal::Number(text) => text,
        }
    }
}

/// `CREATE TABLE` and `CREATE VIEW`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// Table or view.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// Whether it may be there already.
    pub if_not_exists: bool,
    /// Its columns; those of the key are marked as such.
    pub columns: Vec<Column>,
    /// `WITH (...)`.
    pub options: Vec<(String, Literal)>,
    /// `SPLIT ON (...)`: first values of the key where regions begin.
    pub splits: Vec<Literal>,
}

/// A change of `ALTER TABLE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// `ADD COLUMN`.
    Add {
        /// The column.
        column: Box<Column>,
        /// Whether it may be there already.
        if_not_exists: bool,
    },
    /// `DROP COLUMN`.
    Drop {
        /// Its name.
        name: String,
        /// Whether it may be missing.
        if_exists: bool,
    },
    /// `RENAME COLUMN`: in SQL alone, the cells keep their qualifier.
    RenameColumn {
        /// From.
        from: String,
        /// To.
        to: String,
    },
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ddl {
    /// `CREATE TABLE`, `CREATE VIEW`.
    Create(Create),
    /// `ALTER TABLE`.
    Alter {
        /// Its name.
        name: Name,
        /// Whether it may be missing.
        if_exists: bool,
        /// What changes.
        changes: Vec<Change>,
    },
    /// `DROP TABLE`, `DROP VIEW`.
    Drop {
        /// What it is expected to be.
        kind: Kind,
        /// Names.
        names: Vec<Name>,
        /// Whether they may be missing.
        if_exists: bool,
    },
    /// `CREATE SEQUENCE`.
    CreateSequence {
        /// Its name.
        name: Name,
        /// Whether it may be there already.
        if_not_exists: bool,
        /// What it says.
        definition: Definition,
    },
    /// `ALTER SEQUENCE ... RESTART [WITH n]`.
    RestartSequence {
        /// Its name.
        name: Name,
        /// Whether it may be missing.
        if_exists: bool,
        /// The next number; the first one of its definition where none is said.
        with: Option<i64>,
    },
    /// `DROP SEQUENCE`.
    DropSequence {
        /// Names.
        names: Vec<Name>,
        /// Whether they may be missing.
        if_exists: bool,
    },
    /// `IMPORT FOREIGN SCHEMA ... FROM SERVER phoenix INTO ...`.
    ImportPhoenix {
        /// Phoenix's schema.
        from: String,
        /// Which of its tables.
        selection: Selection,
        /// The schema here.
        into: String,
    },
    /// `TRUNCATE`.
    Truncate(Vec<Name>),
    /// `COMMENT ON TABLE`, `COMMENT ON COLUMN`.
    Comment {
        /// The table.
        name: Name,
        /// The column, unless it is about the table.
        column: Option<String>,
        /// The comment; none takes it away.
        text: Option<String>,
    },
}

impl Ddl {
    /// The tag that the client is told.
    pub fn tag(&self) -> &'static str {
        match self {
            Ddl::Create(Create { kind: Kind::View, .. }) => "CREATE VIEW",
            Ddl::Create(_) => "CREATE TABLE",
            Ddl::Alter { .. } => "ALTER TABLE",
            Ddl::Drop { kind: Kind::View, .. } => "DROP VIEW",
            Ddl::Drop { .. } => "DROP TABLE",
            Ddl::CreateSequence { .. } => "CREATE SEQUENCE",
            Ddl::RestartSequence { .. } => "ALTER SEQUENCE",
            Ddl::DropSequence { .. } => "DROP SEQUENCE",
            Ddl::ImportPhoenix { .. } => "IMPORT FOREIGN SCHEMA",
            Ddl::Truncate(_) => "TRUNCATE TABLE",
            Ddl::Comment { .. } => "COMMENT",
        }
    }
}
