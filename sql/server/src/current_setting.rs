//! `current_setting`: what clients ask of the server's settings before they begin. What `SET` changes in a session is not seen by it.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, StringArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use crate::error::{SqlError, SqlState};
use crate::server::VERSION;

/// Names in small letters, and what they are.
const SETTINGS: &[(&str, &str)] = &[
    ("server_version", VERSION),
    ("server_version_num", "150000"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("search_path", "\"$user\", public"),
    ("timezone", "UTC"),
    ("datestyle", "ISO, MDY"),
    ("intervalstyle", "postgres"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
    ("transaction_isolation", "read committed"),
    ("transaction_read_only", "off"),
    ("default_transaction_read_only", "off"),
    ("is_superuser", "off"),
    ("max_identifier_length", "63"),
    ("max_index_keys", "32"),
    ("block_size", "8192"),
];

/// The function: a name, and whether one that is not there is NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct CurrentSetting {
    signature: Signature,
}

impl CurrentSetting {
    /// It.
    pub fn new() -> CurrentSetting {
        let known = [vec![DataType::Utf8], vec![DataType::Utf8, DataType::Boolean]].map(TypeSignature::Exact);
        CurrentSetting { signature: Signature::one_of(known.to_vec(), Volatility::Stable) }
    }
}

fn setting(name: &str) -> Option<&'static str> {
    SETTINGS.iter().find_map(|(known, value)| known.eq_ignore_ascii_case(name).then_some(*value))
}

impl ScalarUDFImpl for CurrentSetting {
    fn name(&self) -> &str {
        "current_setting"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let names = arrays[0].as_string::<i32>();
        let may_be_missing = |row: usize| arrays.get(1).is_some_and(|flags| flags.as_boolean().value(row));
        let value = |row: usize| {
            if names.is_null(row) {
                return Ok(None);
            }
            let value = setting(names.value(row));
            if value.is_none() && !may_be_missing(row) {
                let message = format!("unrecognized configuration parameter \"{}\"", names.value(row));
                return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message).into());
            }
            Ok(value)
        };
        let values = (0..names.len()).map(value).collect::<Result<StringArray>>()?;
        Ok(ColumnarValue::Array(Arc::new(values)))
    }
}
