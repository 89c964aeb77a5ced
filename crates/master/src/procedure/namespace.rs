//! Namespaces: rows of hbase:namespace and directories below `data`. Follows: `CreateNamespaceProcedure` and its
//! neighbours, `TableNamespaceManager`.

use super::ddl::Caller;
use super::{Work, namespace_locks};
use crate::cluster::NamespaceConfiguration;
use crate::master::Master;
use crate::{ErrorKind, MasterError, Result, meta};
use model::name::{DEFAULT_NAMESPACE, SYSTEM_NAMESPACE};
use model::{Mutation, TableName};
use std::sync::Arc;

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

impl Master {
    /// # Errors
    /// `NamespaceNotFoundException`.
    pub(crate) fn namespace_exists(&self, name: &str) -> Result<NamespaceConfiguration> {
        let found = self.cluster.read().namespace(name).cloned();
        found.ok_or_else(|| MasterError::new(ErrorKind::NamespaceNotFound, name))
    }

    /// Makes a namespace; answers the procedure's id.
    ///
    /// # Errors
    /// An illegal name or configuration, a namespace of that name.
    pub async fn create_namespace(
        self: &Arc<Self>,
        name: String,
        configuration: NamespaceConfiguration,
        caller: &Caller,
    ) -> Result<u64> {
        check_namespace_name(&name)?;
        self.submit(caller.submission(namespace_locks(&name)), async {
            if self.namespace_exists(&name).is_ok() {
                let message = format!("Namespace {name} already exists");
                return Err(MasterError::new(ErrorKind::NamespaceExists, message));
            }
            check_configuration(&name, &configuration)?;
            Ok(Work::CreateNamespace { name: name.clone(), configuration })
        })
        .await
    }

    /// Replaces a namespace's configuration.
    ///
    /// # Errors
    /// No such namespace, an illegal configuration.
    pub async fn modify_namespace(
        self: &Arc<Self>,
        name: String,
        configuration: NamespaceConfiguration,
        caller: &Caller,
    ) -> Result<u64> {
        check_namespace_name(&name)?;
        self.submit(caller.submission(namespace_locks(&name)), async {
            self.namespace_exists(&name)?;
            check_configuration(&name, &configuration)?;
            Ok(Work::ModifyNamespace { name: name.clone(), configuration })
        })
        .await
    }

    /// Deletes a namespace without tables.
    ///
    /// # Errors
    /// No such namespace, a reserved one, one with tables.
    pub async fn delete_namespace(self: &Arc<Self>, name: &str, caller: &Caller) -> Result<u64> {
        self.namespace_exists(name)?;
        self.submit(caller.submission(namespace_locks(name)), async {
            self.namespace_exists(name)?;
            let refused = |message: String| Err(MasterError::new(ErrorKind::Constraint, message));
            if matches!(name, DEFAULT_NAMESPACE | SYSTEM_NAMESPACE) {
                return refused(format!("Reserved namespace {name} cannot be removed."));
            }
            let tables = self.cluster.read().tables().filter(|(table, _)| table.name.namespace() == name).count();
            if tables > 0 {
                return refused(format!("Only empty namespaces can be removed. Namespace {name} has {tables} tables"));
            }
            Ok(Work::DeleteNamespace { name: name.to_owned() })
        })
        .await
    }

    fn namespace_region(&self) -> Result<Arc<str>> {
        let region = self.live_regions(&TableName::namespace_table()).into_iter().next();
        region
            .map(|info| Arc::clone(info.encoded_name()))
            .ok_or_else(|| MasterError::new(ErrorKind::Io, "hbase:namespace has no region"))
    }

    /// Writes a row of hbase:namespace.
    async fn write_namespace(&self, row: Mutation) -> Result<()> {
        let region = self.namespace_region()?;
        Ok(self.host_of(&region)?.mutate(&region, vec![row]).await?)
    }

    pub(crate) async fn put_namespace_steps(&self, name: String, configuration: NamespaceConfiguration) -> Result<()> {
        let dir = rootdir::namespace_dir(&name);
        self.blocking(move |volume| Ok(volume.create_dir_all_durable(&dir)?)).await?;
        let row = meta::put_namespace(&name, &configuration, self.stamp());
        self.write_namespace(row).await?;
        self.cluster.write().put_namespace(name.clone(), configuration.clone());
        self.observer.namespace(&name, Some(&configuration));
        Ok(())
    }

    pub(super) async fn delete_namespace_steps(&self, name: &str) -> Result<()> {
        let row = meta::delete_namespace(name, self.delete_stamp());
        self.write_namespace(row).await?;
        let dir = rootdir::namespace_dir(name);
        self.blocking(move |volume| {
            let entries = rootdir::list_if_exists(volume, &dir)?;
            // A table's directory here would be one that hbase:meta does not know: it is kept.
            if entries.iter().all(|entry| entry.name.starts_with('.')) {
                rootdir::paths::remove_dir_durably(volume, &dir)?;
            }
            Ok(())
        })
        .await?;
        self.cluster.write().remove_namespace(name);
        self.observer.namespace(name, None);
        Ok(())
    }

    /// Reads hbase:namespace; makes the two that must be there.
    pub(crate) async fn load_namespaces(&self) -> Result<()> {
        let region = self.namespace_region()?;
        // Its rows are stamped apart from those of hbase:meta, and may be later.
        self.stamp_after(self.newest_hidden_stamp(&region).await? + 1);
        let cells = self.host_of(&region)?.scan(&region, meta::whole_scan()).await?;
        let found = meta::parse_namespaces(&cells);
        {
            let mut cluster = self.cluster.write();
            for (name, configuration) in found {
                cluster.put_namespace(name, configuration);
            }
        }
        for name in [DEFAULT_NAMESPACE, SYSTEM_NAMESPACE] {
            if self.namespace_exists(name).is_err() {
                self.put_namespace_steps(name.to_owned(), NamespaceConfiguration::new()).await?;
            }
        }
        Ok(())
    }
}
