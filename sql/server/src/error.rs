//! What went wrong, as PostgreSQL's clients are told: a SQLSTATE and a sentence.

use datafusion::common::{DataFusionError, SchemaError};
use pgwire::error::{ErrorInfo, PgWireError};

/// PostgreSQL's codes of errors that are made here.
pub struct SqlState;

#[allow(missing_docs, reason = "the names are PostgreSQL's")]
impl SqlState {
    pub const SYNTAX_ERROR: &str = "42601";
    pub const UNDEFINED_TABLE: &str = "42P01";
    pub const UNDEFINED_COLUMN: &str = "42703";
    pub const AMBIGUOUS_COLUMN: &str = "42702";
    pub const UNDEFINED_FUNCTION: &str = "42883";
    pub const UNDEFINED_OBJECT: &str = "42704";
    pub const DUPLICATE_TABLE: &str = "42P07";
    pub const DUPLICATE_COLUMN: &str = "42701";
    pub const INVALID_NAME: &str = "42602";
    pub const INVALID_TABLE_DEFINITION: &str = "42P16";
    pub const WRONG_OBJECT_TYPE: &str = "42809";
    pub const FEATURE_NOT_SUPPORTED: &str = "0A000";
    pub const INVALID_PARAMETER_VALUE: &str = "22023";
    pub const NUMERIC_OUT_OF_RANGE: &str = "22003";
    pub const INVALID_TEXT: &str = "22P02";
    pub const DATATYPE_MISMATCH: &str = "42804";
    pub const INVALID_DATETIME: &str = "22007";
    pub const DIVISION_BY_ZERO: &str = "22012";
    pub const STRING_TRUNCATION: &str = "22001";
    pub const NOT_NULL_VIOLATION: &str = "23502";
    pub const DATA_CORRUPTED: &str = "XX001";
    pub const CONNECTION_FAILURE: &str = "08006";
    pub const OUT_OF_MEMORY: &str = "53200";
    pub const QUERY_CANCELED: &str = "57014";
    pub const BAD_COPY_FORMAT: &str = "22P04";
    pub const CARDINALITY_VIOLATION: &str = "21000";
    pub const INTERNAL_ERROR: &str = "XX000";
}

/// An error of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError {
    /// PostgreSQL's code.
    pub state: &'static str,
    /// What happened, where, and what to do.
    pub message: String,
}

impl SqlError {
    /// An error with a code.
    pub fn new(state: &'static str, message: impl Into<String>) -> SqlError {
        SqlError { state, message: message.into() }
    }

    /// Something that SQL has and this server does not.
    pub fn unsupported(what: impl Into<String>) -> SqlError {
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what)
    }
}

impl std::fmt::Display for SqlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SqlError {}

impl From<SqlError> for DataFusionError {
    fn from(e: SqlError) -> DataFusionError {
        DataFusionError::External(Box::new(e))
    }
}

impl From<SqlError> for PgWireError {
    fn from(e: SqlError) -> PgWireError {
        PgWireError::UserError(Box::new(ErrorInfo::new("ERROR".into(), e.state.into(), e.message)))
    }
}

impl From<client::Error> for SqlError {
    fn from(e: client::Error) -> SqlError {
        let state = match &e {
            client::Error::TableNotFound(_) | client::Error::TableDisabled(_) => SqlState::UNDEFINED_TABLE,
            client::Error::Remote(_) | client::Error::Request(_) | client::Error::Malformed(_) => {
                SqlState::INTERNAL_ERROR
            }
            _ => SqlState::CONNECTION_FAILURE,
        };
        SqlError::new(state, format!("HBase: {e}"))
    }
}

impl From<types::TypeError> for SqlError {
    fn from(e: types::TypeError) -> SqlError {
        let state = match &e {
            types::TypeError::Kind { .. } => SqlState::DATATYPE_MISMATCH,
            types::TypeError::OutOfRange { .. } => SqlState::NUMERIC_OUT_OF_RANGE,
            types::TypeError::TooLong { .. } => SqlState::STRING_TRUNCATION,
            types::TypeError::Malformed { .. } => SqlState::DATA_CORRUPTED,
            types::TypeError::NotInKey(why) if why.starts_with("NULL") => SqlState::NOT_NULL_VIOLATION,
            types::TypeError::NotInKey(_) => SqlState::INVALID_TEXT,
        };
        SqlError::new(state, e.to_string())
    }
}

/// What DataFusion says, in PostgreSQL's codes.
pub fn of_datafusion(e: &DataFusionError) -> SqlError {
    let root = e.find_root();
    if let DataFusionError::External(inner) = root
        && let Some(own) = inner.downcast_ref::<SqlError>()
    {
        return own.clone();
    }
    let text = root.strip_backtrace();
    // Its kinds are in front of its messages.
    let message = [
        "Invalid argument error: ",
        "Cast error: ",
        "Error during planning: ",
        "SQL error: ",
        "Execution error: ",
        "Arrow error: ",
        "Schema error: ",
    ]
    .iter()
    .fold(text.as_str(), |text, kind| text.strip_prefix(kind).unwrap_or(text));
    SqlError::new(state_of(root, message), message)
}

fn state_of(root: &DataFusionError, message: &str) -> &'static str {
    match root {
        DataFusionError::SQL(..) => return SqlState::SYNTAX_ERROR,
        DataFusionError::SchemaError(schema, _) => {
            return match **schema {
                SchemaError::FieldNotFound { .. } => SqlState::UNDEFINED_COLUMN,
                SchemaError::AmbiguousReference { .. } => SqlState::AMBIGUOUS_COLUMN,
                _ => SqlState::DUPLICATE_COLUMN,
            };
        }
        DataFusionError::NotImplemented(_) => return SqlState::FEATURE_NOT_SUPPORTED,
        DataFusionError::ResourcesExhausted(_) => return SqlState::OUT_OF_MEMORY,
        _ => {}
    }
    // For the rest there are only words.
    let lower = message.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&["divide by zero", "division by zero"]) {
        SqlState::DIVISION_BY_ZERO
    } else if has(&["table '"]) && has(&["not found"]) {
        SqlState::UNDEFINED_TABLE
    } else if has(&["invalid function"]) {
        SqlState::UNDEFINED_FUNCTION
    } else if has(&["non-nullable but contains null"]) {
        SqlState::NOT_NULL_VIOLATION
    } else if has(&["to value of date32", "to value of timestamp", "to value of time64"]) {
        SqlState::INVALID_DATETIME
    } else if has(&["overflow", "out of range", "can't cast value"]) {
        SqlState::NUMERIC_OUT_OF_RANGE
    } else if has(&["parsing timestamp", "error parsing"]) {
        SqlState::INVALID_DATETIME
    } else if has(&["cannot cast", "can't cast", "cannot coerce", "failed to coerce", "unsupported cast"]) {
        if has(&["string '", "cast string"]) { SqlState::INVALID_TEXT } else { SqlState::DATATYPE_MISMATCH }
    } else if has(&["column", "field"]) && has(&["not found", "no field"]) {
        SqlState::UNDEFINED_COLUMN
    } else if matches!(root, DataFusionError::Plan(_)) {
        SqlState::DATATYPE_MISMATCH
    } else {
        SqlState::INTERNAL_ERROR
    }
}

/// The same for what pgwire hands out: everything gets its code.
pub fn with_state(e: PgWireError) -> PgWireError {
    match e {
        PgWireError::ApiError(inner) => match inner.downcast_ref::<DataFusionError>() {
            Some(datafusion) => of_datafusion(datafusion).into(),
            None => match inner.downcast_ref::<SqlError>() {
                Some(own) => own.clone().into(),
                None if inner.to_string().starts_with("sql parser error") => {
                    SqlError::new(SqlState::SYNTAX_ERROR, inner.to_string()).into()
                }
                None => SqlError::new(SqlState::INTERNAL_ERROR, inner.to_string()).into(),
            },
        },
        other => other,
    }
}
