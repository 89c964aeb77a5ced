//! What each test does for a row. Follows: the inner classes of `PerformanceEvaluation`, by name.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::Rng;
use bytes::Bytes;
use client::{Append, BufferedMutator, Connection, Delete, Increment, Put, ScanOptions, Scanner, Table};
use filter::{Comparator, CompareOp, Filter, ListOperator, SingleColumnValue};
use model::mutation::ConditionTest;
use model::read::Columns;
use model::{Condition, Durability, Get, Mutation, RegionInfo, Scan, TableName, TimeRange};

use super::command::Command;
use super::data::{TAG_LENGTH, Zipf, format_row, generate_data};
use super::histogram::Histogram;
use super::options::TestOptions;
use super::table::FAMILY_NAME_BASE;
use crate::log::Log;

/// One client of a test.
pub struct Work {
    command: Command,
    options: Arc<TestOptions>,
    connection: Connection,
    table: Table,
    rng: Rng,
    zipf: Option<Zipf>,
    columns: Columns,
    families: Vec<Bytes>,
    qualifiers: Vec<Bytes>,
    gets: Vec<Get>,
    puts: Vec<Mutation>,
    mutator: BufferedMutator,
    scanner: Option<Scanner>,
    value: Vec<u8>,
    /// Sizes of values written, when they vary.
    pub value_sizes: Histogram,
    /// Microseconds that reads took which replicas answered; each row of a batch counts.
    pub replica_latencies: Histogram,
}

impl Work {
    /// A client over `connection`.
    pub fn new(connection: Connection, name: &TableName, options: Arc<TestOptions>, log: &Log, thread: &str) -> Work {
        let table = connection.table(name);
        let families: Vec<Bytes> =
            (0..options.families).map(|n| Bytes::from(format!("{FAMILY_NAME_BASE}{n}"))).collect();
        let qualifiers: Vec<Bytes> = (0..options.columns).map(|n| Bytes::from(n.to_string())).collect();
        // A filtered scan looks at the first family only.
        let wanted = if options.command == Command::FilterScan { &families[..1] } else { &families[..] };
        let of_family = if options.add_columns { qualifiers.clone() } else { Vec::new() };
        let columns = wanted.iter().map(|family| (family.clone(), sorted(&of_family))).collect();
        if options.multi_get > 0 {
            log.info(thread, format!("MultiGet enabled. Sending GETs in batches of {}.", options.multi_get));
        }
        if options.multi_put > 0 {
            log.info(thread, format!("MultiPut enabled. Sending PUTs in batches of {}.", options.multi_put));
        }
        Work {
            command: options.command,
            mutator: table.buffered(usize::try_from(options.buffer_size).unwrap_or(usize::MAX)),
            zipf: options.value_zipf.then(|| Zipf::new(options.value_size)),
            options,
            connection,
            table,
            rng: Rng::from_system(),
            columns,
            families,
            qualifiers,
            gets: Vec::new(),
            puts: Vec::new(),
            scanner: None,
            value: Vec::new(),
            value_sizes: Histogram::new(),
            replica_latencies: Histogram::new(),
        }
    }

    /// The first row of this client, and the one behind its last.
    pub fn rows(&self) -> (u64, u64) {
        let start = if self.command.overlaps() { 0 } else { self.options.start_row };
        (start, start + self.options.per_client_run_rows)
    }

    /// How often to report.
    pub fn reporting_period(&self) -> u64 {
        use Command::{AsyncRandomRead, MetaRandomRead, RandomRead, RandomSeekScan};
        let part = |of: u64| (self.options.per_client_run_rows / of).max(1);
        match self.command {
            AsyncRandomRead | RandomRead | MetaRandomRead => part(10),
            RandomSeekScan => part(100),
            _ if self.range().is_some() => part(100),
            _ => self.options.period.max(1),
        }
    }

    fn range(&self) -> Option<u64> {
        match self.command {
            Command::ScanRange10 => Some(10),
            Command::ScanRange100 => Some(100),
            Command::ScanRange1000 => Some(1000),
            Command::ScanRange10000 => Some(10_000),
            _ => None,
        }
    }

    fn random_row(&self) -> u64 {
        (self.rng.next_u64() >> 1) % self.options.total_rows.max(1)
    }

    fn value_length(&mut self) -> usize {
        if self.options.value_random {
            self.rng.below(u64::from(self.options.value_size)) as usize
        } else if let Some(zipf) = &self.zipf {
            zipf.draw(&self.rng) as usize
        } else {
            self.options.value_size as usize
        }
    }

    /// Does the test's work for row `i`; false when nothing was sent yet.
    ///
    /// # Errors
    /// The request failed for good.
    pub async fn row(&mut self, i: u64, log: &Log, thread: &str) -> client::Result<bool> {
        use Command as C;
        match self.command {
            C::RandomRead | C::AsyncRandomRead => {
                self.sleep().await;
                let get = self.get(self.random_row());
                return self.read(get).await;
            }
            C::SequentialRead | C::AsyncSequentialRead => {
                self.table.get(&self.get(i)).await?;
            }
            C::SequentialWrite | C::AsyncSequentialWrite => return self.write(i).await,
            C::RandomWrite | C::AsyncRandomWrite => return self.write(self.random_row()).await,
            C::SequentialDelete => self.delete(i).await?,
            C::RandomDelete => self.delete(self.random_row()).await?,
            C::Scan | C::AsyncScan | C::ReverseScan => self.scan_on().await?,
            C::ScanRange10 | C::ScanRange100 | C::ScanRange1000 | C::ScanRange10000 => {
                self.scan_range(i, log, thread).await?;
            }
            C::RandomSeekScan => self.seek_scan().await?,
            C::FilterScan => self.filter_scan().await?,
            C::Increment => {
                let qualifier = self.command.class();
                let increment = Increment::new(format_row(i));
                let increment = self.families.iter().fold(increment, |inc, family| inc.add(family, qualifier, 1));
                self.table.increment(&increment.build()).await?;
            }
            C::Append => {
                let (row, qualifier) = (format_row(i), self.command.class());
                let append = self.families.iter().fold(Append::new(row), |app, family| app.add(family, qualifier, row));
                self.table.append(&append.build()).await?;
            }
            C::CheckAndPut | C::CheckAndDelete | C::CheckAndMutate => self.check_and(i).await?,
            C::MetaWrite => self.meta_write(i).await?,
            C::MetaRandomRead => {
                self.sleep().await;
                let key = self.split_key(self.rng.below(self.options.per_client_run_rows));
                self.table.region_of(&key, true).await?;
            }
            C::CleanMeta => self.clean_meta(i, log, thread).await?,
        }
        Ok(true)
    }

    /// Sends what is still gathered.
    ///
    /// # Errors
    /// A request failed for good.
    pub async fn finish(&mut self) -> client::Result<()> {
        if !self.gets.is_empty() {
            self.table.get_all(&std::mem::take(&mut self.gets)).await?;
        }
        if !self.puts.is_empty() {
            self.table.mutate_all(&std::mem::take(&mut self.puts)).await?;
        }
        if let Some(mut scanner) = self.scanner.take() {
            scanner.close();
        }
        self.mutator.flush().await
    }

    async fn sleep(&self) {
        if self.options.random_sleep > 0 {
            tokio::time::sleep(Duration::from_millis(self.rng.below(self.options.random_sleep))).await;
        }
    }

    fn get(&self, row: u64) -> Get {
        Get {
            columns: self.columns.clone(),
            filter: self.options.filter_all.then(|| Arc::new(Filter::All)),
            timeline: self.reads_replicas(),
            ..Get::new(Bytes::copy_from_slice(&format_row(row)))
        }
    }

    /// Whether replicas may answer a get: in the tests of random reads, when there are some.
    fn reads_replicas(&self) -> bool {
        self.options.replicas > 1 && matches!(self.command, Command::RandomRead | Command::AsyncRandomRead)
    }

    fn note(&mut self, row: &client::Row, began: Instant) {
        if row.is_stale() {
            self.replica_latencies.update(began.elapsed().as_micros() as u64);
        }
    }

    async fn read(&mut self, get: Get) -> client::Result<bool> {
        let began = Instant::now();
        if self.options.multi_get == 0 {
            let row = self.table.get(&get).await?;
            self.note(&row, began);
            return Ok(true);
        }
        self.gets.push(get);
        if self.gets.len() < self.options.multi_get as usize {
            return Ok(false);
        }
        let rows = self.table.get_all(&self.gets).await?;
        rows.iter().for_each(|row| self.note(row, began));
        self.gets.clear();
        Ok(true)
    }

    fn durability(&self) -> Durability {
        if self.options.write_to_wal { Durability::SyncWal } else { Durability::SkipWal }
    }

    fn put(&mut self, number: u64) -> Mutation {
        let row = format_row(number);
        let mut put = Put::new(row).durability(self.durability());
        for family in 0..self.families.len() {
            for column in 0..self.qualifiers.len() {
                let length = self.value_length();
                generate_data(&self.rng, length, &mut self.value);
                if self.options.value_random {
                    self.value_sizes.update(length as u64);
                }
                let tags = if self.options.use_tags { self.tags() } else { Vec::new() };
                let (family, qualifier) = (&self.families[family], &self.qualifiers[column]);
                put = put.add_tagged(family, qualifier, i64::MAX, &self.value, &tags);
            }
        }
        put.build()
    }

    fn tags(&self) -> Vec<u8> {
        let (mut value, mut tags) = (Vec::new(), Vec::new());
        generate_data(&self.rng, TAG_LENGTH, &mut value);
        (0..self.options.no_of_tags).for_each(|n| cell::tag::write(&mut tags, n as u8, &value));
        tags
    }

    async fn write(&mut self, number: u64) -> client::Result<bool> {
        let put = self.put(number);
        let waits = self.options.auto_flush
            || matches!(self.command, Command::AsyncRandomWrite | Command::AsyncSequentialWrite);
        if !waits {
            self.mutator.mutate(put).await?;
        } else if self.options.multi_put == 0 {
            self.table.put(&put).await?;
        } else {
            self.puts.push(put);
            if self.puts.len() < self.options.multi_put as usize {
                return Ok(false);
            }
            self.table.mutate_all(&self.puts).await?;
            self.puts.clear();
        }
        Ok(true)
    }

    async fn delete(&mut self, number: u64) -> client::Result<()> {
        let delete = Delete::new(format_row(number)).durability(self.durability());
        let delete = self.families.iter().fold(delete, |delete, family| delete.family(family)).build();
        if self.options.auto_flush { self.table.delete(&delete).await } else { self.mutator.mutate(delete).await }
    }

    fn scan(&self) -> (Scan, ScanOptions) {
        let scan = Scan {
            columns: self.columns.clone(),
            cache_blocks: self.options.cache_blocks,
            pread: self.options.scan_read_type == "PREAD",
            filter: self.options.filter_all.then(|| Arc::new(Filter::All)),
            ..Scan::default()
        };
        let options = ScanOptions {
            caching: self.options.caching,
            prefetch: self.options.async_prefetch,
            ..ScanOptions::default()
        };
        (scan, options)
    }

    /// The next row of one scan over everything from the client's first row on.
    async fn scan_on(&mut self) -> client::Result<()> {
        if self.scanner.is_none() {
            let (mut scan, options) = self.scan();
            if self.command == Command::ReverseScan {
                scan.reversed = true;
            } else {
                scan.start_row = Bytes::copy_from_slice(&format_row(self.options.start_row));
            }
            self.scanner = Some(self.table.scan(scan, options));
        }
        match &mut self.scanner {
            Some(scanner) => scanner.next().await.map(|_| ()),
            None => Ok(()),
        }
    }

    async fn consume(&self, scan: Scan, options: ScanOptions) -> client::Result<u64> {
        let mut scanner = self.table.scan(scan, options);
        let mut rows = 0;
        while scanner.next().await?.is_some() {
            rows += 1;
        }
        Ok(rows)
    }

    async fn scan_range(&mut self, i: u64, log: &Log, thread: &str) -> client::Result<()> {
        let start = self.random_row();
        let (start, stop) = (format_row(start), format_row(start + self.range().unwrap_or(0)));
        let (mut scan, options) = self.scan();
        scan.start_row = Bytes::copy_from_slice(&start);
        scan.stop_row = Bytes::copy_from_slice(&stop);
        let rows = self.consume(scan, options).await?;
        if i.is_multiple_of(100) {
            let (start, stop) = (String::from_utf8_lossy(&start), String::from_utf8_lossy(&stop));
            log.info(thread, format!("Scan for key range {start} - {stop} returned {rows} rows"));
        }
        Ok(())
    }

    async fn seek_scan(&mut self) -> client::Result<()> {
        let (mut scan, options) = self.scan();
        scan.start_row = Bytes::copy_from_slice(&format_row(self.random_row()));
        let mut filters = Vec::new();
        if self.options.filter_all {
            filters.push(Filter::All);
        }
        filters.push(Filter::WhileMatch { filter: Box::new(Filter::Page { page_size: 120 }) });
        scan.filter = Some(Arc::new(Filter::List { operator: ListOperator::MustPassAll, filters }));
        self.consume(scan, options).await.map(|_| ())
    }

    async fn filter_scan(&mut self) -> client::Result<()> {
        let length = self.value_length();
        generate_data(&self.rng, length, &mut self.value);
        let mut filters = vec![Filter::SingleColumnValue(SingleColumnValue {
            family: Some(self.families[0].clone()),
            qualifier: Some(self.qualifiers[0].clone()),
            op: CompareOp::Equal,
            comparator: Comparator::Binary { value: Bytes::copy_from_slice(&self.value) },
            filter_if_missing: false,
            latest_version_only: true,
        })];
        if self.options.filter_all {
            filters.push(Filter::All);
        }
        let (mut scan, options) = self.scan();
        scan.filter = Some(Arc::new(Filter::List { operator: ListOperator::MustPassAll, filters }));
        self.consume(scan, options).await.map(|_| ())
    }

    /// Puts the row's own key, then changes it if that is what is there.
    async fn check_and(&mut self, i: u64) -> client::Result<()> {
        let (row, family, qualifier) = (format_row(i), self.families[0].clone(), self.command.class());
        let put = Put::new(row).add(&family, qualifier, row).build();
        self.table.put(&put).await?;
        let change = match self.command {
            Command::CheckAndDelete => Delete::new(row).column(&family, qualifier).build(),
            _ => put,
        };
        let row = Bytes::copy_from_slice(&row);
        let condition = Condition {
            row: row.clone(),
            test: ConditionTest::Value {
                family,
                qualifier: Bytes::from_static(qualifier.as_bytes()),
                op: CompareOp::Equal,
                comparator: Arc::new(Comparator::Binary { value: row }),
            },
            time_range: TimeRange::ALL,
        };
        self.table.check_and_mutate(&condition, &[change]).await.map(|_| ())
    }

    fn split_key(&self, number: u64) -> Vec<u8> {
        let digits = self.options.per_client_run_rows.to_string().len();
        format!("{number:0digits$}").into_bytes()
    }

    fn meta(&self) -> Table {
        self.connection.table(&TableName::meta())
    }

    /// Adds a region that nobody serves to hbase:meta, then a server for it.
    async fn meta_write(&mut self, i: u64) -> client::Result<()> {
        let table = TableName::of("default", "TestTable").expect("a legal name");
        let (start, end) = (Bytes::from(self.split_key(i)), Bytes::from(self.split_key(i + 1)));
        let region = RegionInfo::new(table, start, end, self.now_ms());
        let info = region_info_bytes(&region);
        let added = Put::new(region.name()).add("info", "regioninfo", &info).add("info", "state", "CLOSED").build();
        self.meta().put(&added).await?;
        let located = Put::new(region.name())
            .add("info", "regioninfo", &info)
            .add("info", "server", "localhost:60010")
            .add("info", "serverstartcode", (self.rng.next_u64() >> 1).to_be_bytes())
            .add("info", "seqnumDuringOpen", i.to_be_bytes())
            .build();
        self.meta().put(&located).await
    }

    #[allow(clippy::unused_self, reason = "beside the other sources of what is written")]
    fn now_ms(&self) -> u64 {
        use base::Clock;
        base::SystemClock::new().now_ms().0.unsigned_abs()
    }

    async fn clean_meta(&mut self, i: u64, log: &Log, thread: &str) -> client::Result<()> {
        match self.table.region_of(&self.split_key(i), false).await {
            Ok(location) => {
                let delete = Delete::new(location.region.name()).family("info").build();
                self.meta().delete(&delete).await?;
                self.connection.forget_locations();
            }
            Err(_) => log.error(thread, format!("cannot find region with start key: {i}")),
        }
        Ok(())
    }
}

fn sorted(qualifiers: &[Bytes]) -> Vec<Bytes> {
    let mut sorted = qualifiers.to_vec();
    sorted.sort();
    sorted
}

/// A region as hbase:meta holds it.
fn region_info_bytes(region: &RegionInfo) -> Bytes {
    proto::magic::encode(&convert::to_proto::region_info(region))
}
