//! Namespaces: rows of hbase:namespace and directories below `data`. Follows: `TableNamespaceManager`.

use crate::assignment::Assignment;
use crate::catalog::{Catalog, newest_hidden_stamp};
use crate::cluster::{Cluster, NamespaceConfiguration};
use crate::files::Files;
use crate::host::Observer;
use crate::tables::Tables;
use crate::{ErrorKind, MasterError, Result, meta};
use model::name::{DEFAULT_NAMESPACE, SYSTEM_NAMESPACE};
use model::{Mutation, TableName};
use parking_lot::RwLock;
use std::sync::Arc;

/// The namespaces.
pub(crate) struct Namespaces {
    pub cluster: Arc<RwLock<Cluster>>,
    pub catalog: Arc<Catalog>,
    pub tables: Arc<Tables>,
    pub assignment: Arc<Assignment>,
    pub files: Files,
    pub observer: Arc<dyn Observer>,
}

impl Namespaces {
    /// # Errors
    /// `NamespaceNotFoundException`.
    pub fn existing(&self, name: &str) -> Result<NamespaceConfiguration> {
        let found = self.cluster.read().namespace(name).cloned();
        found.ok_or_else(|| MasterError::new(ErrorKind::NamespaceNotFound, name))
    }

    fn region(&self) -> Result<Arc<str>> {
        let region = self.tables.live_regions(&TableName::namespace_table()).into_iter().next();
        region
            .map(|info| Arc::clone(info.encoded_name()))
            .ok_or_else(|| MasterError::new(ErrorKind::Io, "hbase:namespace has no region"))
    }

    /// Writes a row of hbase:namespace.
    async fn write(&self, row: Mutation) -> Result<()> {
        let region = self.region()?;
        Ok(self.assignment.host_of(&region)?.mutate(&region, vec![row]).await?)
    }

    /// Adds or changes a namespace. The caller holds its lock.
    ///
    /// # Errors
    /// The volume's, or hbase:namespace cannot be written.
    pub async fn put(&self, name: String, configuration: NamespaceConfiguration) -> Result<()> {
        let dir = rootdir::namespace_dir(&name);
        self.files.run(move |volume| Ok(volume.create_dir_all_durable(&dir)?)).await?;
        self.write(meta::put_namespace(&name, &configuration, self.catalog.stamp())).await?;
        self.cluster.write().put_namespace(name.clone(), configuration.clone());
        self.observer.namespace(&name, Some(&configuration));
        Ok(())
    }

    /// Takes a namespace without tables away. The caller holds its lock.
    ///
    /// # Errors
    /// The volume's, or hbase:namespace cannot be written.
    pub async fn remove(&self, name: &str) -> Result<()> {
        self.write(meta::delete_namespace(name, self.catalog.delete_stamp())).await?;
        let dir = rootdir::namespace_dir(name);
        let remove = move |volume: &dyn fs::Volume| {
            let entries = rootdir::list_if_exists(volume, &dir)?;
            // A table's directory here would be one that hbase:meta does not know: it is kept.
            if entries.iter().all(|entry| entry.name.starts_with('.')) {
                rootdir::paths::remove_dir_durably(volume, &dir)?;
            }
            Ok(())
        };
        self.files.run(remove).await?;
        self.cluster.write().remove_namespace(name);
        self.observer.namespace(name, None);
        Ok(())
    }

    /// Reads hbase:namespace; makes the two that must be there.
    ///
    /// # Errors
    /// The volume's, or hbase:namespace cannot be read or written.
    pub async fn load(&self) -> Result<()> {
        let region = self.region()?;
        let host = self.assignment.host_of(&region)?;
        // Its rows are stamped apart from those of hbase:meta, and may be later.
        self.catalog.stamp_after(newest_hidden_stamp(&*host, &region).await? + 1);
        let cells = host.scan(&region, meta::whole_scan()).await?;
        let found = meta::parse_namespaces(&cells);
        {
            let mut cluster = self.cluster.write();
            for (name, configuration) in found {
                cluster.put_namespace(name, configuration);
            }
        }
        for name in [DEFAULT_NAMESPACE, SYSTEM_NAMESPACE] {
            if self.existing(name).is_err() {
                self.put(name.to_owned(), NamespaceConfiguration::new()).await?;
            }
        }
        Ok(())
    }
}
