//! `information_schema` as PostgreSQL has it, where what DataFusion says there is of its own types: columns, primary keys. Tools that build queries for
//! people (Grafana, Metabase) read it. What `pg_catalog` knows is shown in other words.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::information_schema::{INFORMATION_SCHEMA, InformationSchemaProvider};
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;

use crate::catalog::{Catalog, Provider};

/// Follows: PostgreSQL's view of that name, as far as it says something here.
const COLUMNS: &str = "\
SELECT CAST('basalt' AS TEXT) AS table_catalog, n.nspname AS table_schema, c.relname AS table_name, a.attname AS column_name,
  CAST(a.attnum AS INTEGER) AS ordinal_position, CAST(NULL AS TEXT) AS column_default,
  CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END AS is_nullable,
  CASE a.atttypid WHEN 16 THEN 'boolean' WHEN 17 THEN 'bytea' WHEN 20 THEN 'bigint' WHEN 21 THEN 'smallint' WHEN 23 THEN 'integer'
    WHEN 25 THEN 'text' WHEN 700 THEN 'real' WHEN 701 THEN 'double precision' WHEN 1042 THEN 'character' WHEN 1043 THEN 'character varying'
    WHEN 1082 THEN 'date' WHEN 1083 THEN 'time without time zone' WHEN 1114 THEN 'timestamp without time zone'
    WHEN 1184 THEN 'timestamp with time zone' WHEN 1700 THEN 'numeric'
    ELSE CASE WHEN t.typname LIKE '\\_%' THEN 'ARRAY' ELSE t.typname END END AS data_type,
  CASE WHEN a.atttypid IN (1042, 1043) AND a.atttypmod > 4 THEN CAST(a.atttypmod - 4 AS INTEGER) END AS character_maximum_length,
  CASE a.atttypid WHEN 21 THEN CAST(16 AS INTEGER) WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 THEN 53
    WHEN 1700 THEN CASE WHEN a.atttypmod > 4 THEN CAST((a.atttypmod - 4) / 65536 AS INTEGER) END END AS numeric_precision,
  CASE WHEN a.atttypid IN (20, 21, 23, 700, 701) THEN CAST(2 AS INTEGER) WHEN a.atttypid = 1700 THEN 10 END AS numeric_precision_radix,
  CASE WHEN a.atttypid IN (20, 21, 23) THEN CAST(0 AS INTEGER)
    WHEN a.atttypid = 1700 AND a.atttypmod > 4 THEN CAST((a.atttypmod - 4) % 65536 AS INTEGER) END AS numeric_scale,
  CASE WHEN a.atttypid = 1082 THEN CAST(0 AS INTEGER) WHEN a.atttypid IN (1083, 1114, 1184) THEN 6 END AS datetime_precision,
  CAST('basalt' AS TEXT) AS udt_catalog, CAST('pg_catalog' AS TEXT) AS udt_schema, t.typname AS udt_name,
  CAST('NO' AS TEXT) AS is_identity, CAST('NEVER' AS TEXT) AS is_generated, CAST('YES' AS TEXT) AS is_updatable
FROM pg_catalog.pg_attribute a
  JOIN pg_catalog.pg_class c ON a.attrelid = c.oid
  JOIN pg_catalog.pg_namespace n ON c.relnamespace = n.oid
  JOIN pg_catalog.pg_type t ON a.atttypid = t.oid
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'f', 'p')";

const TABLE_CONSTRAINTS: &str = "\
SELECT CAST('basalt' AS TEXT) AS constraint_catalog, n.nspname AS constraint_schema, k.conname AS constraint_name,
  CAST('basalt' AS TEXT) AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
  CAST('PRIMARY KEY' AS TEXT) AS constraint_type, CAST('NO' AS TEXT) AS is_deferrable, CAST('NO' AS TEXT) AS initially_deferred,
  CAST('YES' AS TEXT) AS enforced
FROM pg_catalog.pg_constraint k
  JOIN pg_catalog.pg_class c ON k.conrelid = c.oid
  JOIN pg_catalog.pg_namespace n ON c.relnamespace = n.oid
WHERE k.contype = 'p'";

const KEY_COLUMN_USAGE: &str = "\
SELECT CAST('basalt' AS TEXT) AS constraint_catalog, n.nspname AS constraint_schema, k.conname AS constraint_name,
  CAST('basalt' AS TEXT) AS table_catalog, n.nspname AS table_schema, c.relname AS table_name, a.attname AS column_name,
  CAST(array_position(string_to_array(translate(k.conkey, '[,]', ''), ' '), CAST(a.attnum AS TEXT)) AS INTEGER) AS ordinal_position, CAST(NULL AS INTEGER) AS position_in_unique_constraint
FROM pg_catalog.pg_constraint k
  JOIN pg_catalog.pg_class c ON k.conrelid = c.oid
  JOIN pg_catalog.pg_namespace n ON c.relnamespace = n.oid
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
WHERE k.contype = 'p' AND a.attnum > 0 AND array_position(string_to_array(translate(k.conkey, '[,]', ''), ' '), CAST(a.attnum AS TEXT)) IS NOT NULL";

const VIEWS: [(&str, &str); 3] =
    [("columns", COLUMNS), ("table_constraints", TABLE_CONSTRAINTS), ("key_column_usage", KEY_COLUMN_USAGE)];

/// Lays it over DataFusion's, which the context is not to make itself. `pg_catalog` is there.
///
/// # Errors
/// `pg_catalog` has not what is shown.
pub async fn lay_over(context: &SessionContext, catalog: &Arc<Catalog>) -> Result<()> {
    let inner = InformationSchemaProvider::new(Arc::clone(context.state().catalog_list()));
    let mut views = Vec::with_capacity(VIEWS.len());
    for (name, definition) in VIEWS {
        views.push((name, context.sql(definition).await?.into_view()));
    }
    let schema = Arc::new(Overlay { inner, views });
    Provider(Arc::clone(catalog)).register_schema(INFORMATION_SCHEMA, schema).map(drop)
}

#[derive(Debug)]
struct Overlay {
    inner: InformationSchemaProvider,
    views: Vec<(&'static str, Arc<dyn TableProvider>)>,
}

impl Overlay {
    fn view(&self, name: &str) -> Option<&Arc<dyn TableProvider>> {
        self.views.iter().find_map(|(known, view)| (*known == name).then_some(view))
    }
}

#[async_trait]
impl SchemaProvider for Overlay {
    fn table_names(&self) -> Vec<String> {
        let mut names = self.inner.table_names();
        names.extend(self.views.iter().map(|(name, _)| (*name).to_owned()));
        names.sort_unstable();
        names.dedup();
        names
    }

    async fn table(&self, name: &str) -> std::result::Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        match self.view(name) {
            Some(view) => Ok(Some(Arc::clone(view))),
            None => self.inner.table(name).await,
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.view(name).is_some() || self.inner.table_exist(name)
    }
}
