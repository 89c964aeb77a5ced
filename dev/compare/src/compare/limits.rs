//! Workloads in which little is to be gained: values of 10 KB, where copies cost more than calls, and reads that a disk answers.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use client::Connection;
use model::{Durability, TableName};

use super::drive::{Pace, play};
use super::pass::Pass;
use super::workers::{FullScan, Gets, Puts, Rows};
use crate::server::store_paths;

/// Bytes of a large value.
const LARGE_BYTES: usize = 10_000;
/// How often the operating system is made to forget the store files that are read from the disk.
const FORGET_EVERY: Duration = Duration::from_millis(20);

impl Pass<'_> {
    /// Gets, a scan and puts of values of 10,000 bytes; as many bytes of table as with small ones.
    pub(super) async fn large(&mut self, connection: &Connection) -> anyhow::Result<()> {
        if !["large-get", "large-scan", "large-put"].iter().any(|workload| self.wants(workload)) {
            return Ok(());
        }
        let rows = Rows::of_size((self.scale.rows / 10).max(1_000), LARGE_BYTES, &self.rng);
        let table = self.table(connection, "large", &rows.splits(self.scale.regions), &[]).await?;
        let name = TableName::parse("large")?;
        self.load(&table, &rows, rows.count).await;
        connection.admin().flush(&name).await?;
        self.settle(connection, &name).await?;
        let everything = FullScan::new(&table);
        play(vec![everything], Pace { warm_up: Duration::ZERO, ..self.pace() }, &[self.site.pid()]).await;
        let (pace, clients, rng) = (self.pace(), self.scale.clients, self.rng());
        let rng = || base::Rng::seeded(rng.next_u64());
        self.measure("large-get", pace, clients, || Gets(table.clone(), rows.clone(), rng())).await;
        self.measure("large-scan", pace, 1, || FullScan::new(&table)).await;
        let put = || Puts(table.clone(), rows.clone(), rng(), Durability::SyncWal);
        self.measure("large-put", pace, clients, put).await;
        self.settle(connection, &name).await?;
        self.drop_table(connection, "large").await
    }

    /// Random gets from a table whose data blocks no server keeps and whose pages the operating system is made to forget.
    pub(super) async fn cold(&mut self, connection: &Connection) -> anyhow::Result<()> {
        if !self.wants("disk-get") || !self.site.is_ours() {
            return Ok(());
        }
        let rows = Rows::new(self.scale.rows, &self.rng);
        let splits = rows.splits(self.scale.regions);
        let table = self.table(connection, "cold", &splits, &[("BLOCKCACHE", "false".to_owned())]).await?;
        let name = TableName::parse("cold")?;
        self.load(&table, &rows, rows.count).await;
        connection.admin().flush(&name).await?;
        self.settle(connection, &name).await?;
        connection.admin().major_compact(&name).await?;
        self.wait_for_compaction(connection, &name).await?;
        let Some(dir) = self.site.table_dir("cold") else { return Ok(()) };
        let forgetting = tokio::spawn(forget(dir));
        let (pace, clients, rng) = (self.pace(), self.scale.clients, self.rng());
        let new = || Gets(table.clone(), rows.clone(), base::Rng::seeded(rng.next_u64()));
        self.measure("disk-get", pace, clients, new).await;
        forgetting.abort();
        self.drop_table(connection, "cold").await
    }
}

/// Has the operating system drop its pages of the table's store files, again and again.
async fn forget(dir: PathBuf) {
    let files: Vec<File> = store_paths(&dir).iter().filter_map(|path| File::open(path).ok()).collect();
    // what is dirty cannot be dropped
    files.iter().for_each(|file| drop(file.sync_all()));
    loop {
        for file in &files {
            // a file system without it keeps its pages: the figures show it as too good
            rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).ok();
        }
        tokio::time::sleep(FORGET_EVERY).await;
    }
}
