//! Namespaces: rows of hbase:namespace and directories below `data`. Follows: `CreateNamespaceProcedure` and its
//! neighbours, `TableNamespaceManager`.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod modify;

use crate::cluster::NamespaceConfiguration;
use crate::{ErrorKind, MasterError, Result};

fn check_namespace_name(name: &str) -> Result<()> {
    model::name::check_namespace(name).map_err(|error| MasterError::new(ErrorKind::IllegalArgument, error))
}

/// Limits in a namespace's configuration must be positive numbers.
fn check_configuration(name: &str, configuration: &NamespaceConfiguration) -> Result<()> {
    for (key, what) in [("hbase.namespace.quota.maxregions", "region"), ("hbase.namespace.quota.maxtables", "tables")] {
        let Some(value) = configuration.get(key).filter(|value| !value.is_empty()) else { continue };
        match value.parse::<i64>() {
            Ok(limit) if limit > 0 => {}
            Ok(_) => {
                return Err(MasterError::new(
                    ErrorKind::Constraint,
                    format!("The max {what} quota for {name} is less than or equal to zero."),
                ));
            }
            Err(_) => {
                let plural = if what == "region" { "regions" } else { "tables" };
                return Err(MasterError::do_not_retry(format!("NumberFormatException while getting max {plural}.")));
            }
        }
    }
    Ok(())
}
