//! Random programs of a primary and a read replica that is told of its log.

use super::*;

/// Primary and replica side by side: whatever comes in order is shown as the primary had it, and nothing that is lost, late or told twice does harm
/// beyond the next flush or look.
#[test]
fn random_programs() {
    let (first, count) = programs(60);
    for seed in first..first + count {
        Program::new(seed).run();
    }
}

struct Program {
    seed: u64,
    rng: Rng,
    server: Server,
    table: Arc<TableDescriptor>,
    primary: Arc<Region>,
    replica: Arc<Region>,
    shipment: Shipment,
    /// What the primary showed after each of its ids.
    shown: BTreeMap<u64, Vec<String>>,
    /// Everything so far came once, in its order, and nothing was found otherwise.
    in_order: bool,
    /// Something was not told, or too late: files that it told of are found by a look alone.
    lossy: bool,
    told: u64,
    tick: i64,
}

impl Program {
    fn new(seed: u64) -> Program {
        let rng = Rng::seeded(seed);
        let server = Server::new(NOW);
        let mut table = TableDescriptor::new(table_name(), [family("f"), family("g")]);
        if rng.one_in(3) {
            table.attributes.insert("hbase.store.file-tracker.impl".into(), "FILE".into());
        }
        let table = Arc::new(table);
        let primary = server.open(&whole_table(), &table).expect("opened");
        let replica = replica_elsewhere(&server, &primary);
        let mut shipment = Shipment::new();
        shipment.look(&server);
        let shown = BTreeMap::from([(0, Vec::new())]);
        Program {
            seed,
            rng,
            server,
            table,
            primary,
            replica,
            shipment,
            shown,
            in_order: true,
            lossy: false,
            told: 0,
            tick: 0,
        }
    }

    fn run(&mut self) {
        for _ in 0..80 {
            match self.rng.below(16) {
                0..=5 => self.write(),
                6 => flush(&self.primary),
                7 => {
                    let families = vec![if self.rng.one_in(2) { "f".into() } else { "g".into() }];
                    self.primary.flush(&FlushRequest { families, ..FlushRequest::default() }).expect("flushed");
                }
                8 => self.compact(),
                9 => self.reopen_primary(),
                10 => self.reopen_replica(),
                11 => self.look(),
                12 => self.lose(),
                _ => self.ship(),
            }
            self.note();
        }
        // In the end everything is told, and flushed.
        self.deliver(usize::MAX);
        flush(&self.primary);
        self.deliver(usize::MAX);
        if !self.lossy {
            assert_eq!(rows(&self.replica), rows(&self.primary), "seed {}", self.seed);
        }
        self.replica.refresh_files().expect("looked");
        assert_eq!(rows(&self.replica), rows(&self.primary), "seed {}: as the directory has it", self.seed);
        assert_eq!(self.replica.memstore_bytes(), 0, "seed {}", self.seed);
        assert_eq!(self.replica.env().memory.memstore_bytes(), 0, "seed {}", self.seed);
    }

    fn write(&mut self) {
        self.tick += 1;
        let mutations: Vec<_> = (0..1 + self.rng.below(3))
            .map(|n| {
                let row = format!("r{}", self.rng.below(6));
                let family = if self.rng.one_in(2) { "f" } else { "g" };
                let timestamp = self.tick * 10 + n as i64;
                match self.rng.below(5) {
                    0 => delete(&row, family, "q", timestamp, CellType::DeleteColumn),
                    _ => put(&row, family, "q", timestamp, &format!("v{timestamp}")),
                }
            })
            .collect();
        write(&self.primary, &mutations);
    }

    fn compact(&mut self) {
        let kind = if self.rng.one_in(2) { CompactionKind::Major } else { CompactionKind::Minor };
        for family in [b"f", b"g"] {
            if let Some(job) = self.primary.select_compaction(Some(family), kind).expect("open") {
                self.primary.compact(job, &Unthrottled).expect("compacted");
            }
        }
        self.server.env.log.sync_once().expect("synced");
        if self.rng.one_in(2) {
            self.primary.archive_compacted_files().expect("asked");
        }
    }

    fn reopen_primary(&mut self) {
        self.primary.close(CloseMode::Flush).expect("closed");
        self.primary = self.server.open(&whole_table(), &self.table).expect("opened");
    }

    fn reopen_replica(&mut self) {
        self.replica.close(CloseMode::Flush).expect("closed");
        assert_eq!(self.replica.env().memory.memstore_bytes(), 0, "seed {}", self.seed);
        self.replica = replica_elsewhere(&self.server, &self.primary);
        self.in_order = false;
    }

    fn look(&mut self) {
        let before = self.server.volume.all_files();
        self.replica.refresh_files().expect("looked");
        assert_eq!(self.server.volume.all_files(), before, "seed {}", self.seed);
        self.in_order = false;
    }

    /// Something does not come, comes late, or comes twice.
    fn lose(&mut self) {
        self.shipment.look(&self.server);
        let len = self.shipment.waiting.len();
        if len == 0 {
            return;
        }
        self.in_order = false;
        let at = self.rng.below(len as u64) as usize;
        let kind = self.rng.below(3);
        self.lossy |= kind != 1;
        match kind {
            0 => drop(self.shipment.waiting.remove(at)),
            1 => {
                let entry = self.shipment.waiting[at].clone();
                self.shipment.waiting.push_back(entry);
            }
            _ => {
                let entry = self.shipment.waiting.remove(at).expect("there");
                self.shipment.waiting.push_back(entry);
            }
        }
    }

    fn ship(&mut self) {
        let most = 1 + self.rng.below(12) as usize;
        self.deliver(most);
    }

    fn deliver(&mut self, most: usize) {
        self.shipment.look(&self.server);
        for _ in 0..most.min(self.shipment.waiting.len()) {
            let entry = self.shipment.waiting.pop_front().expect("there");
            self.told = entry.seq_id.0;
            self.replica.replay(&entry).unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        }
        if self.in_order {
            let (_, expected) = self.shown.range(..=self.told).next_back().expect("from the beginning");
            assert_eq!(rows(&self.replica), *expected, "seed {}: up to {}", self.seed, self.told);
        }
    }

    fn note(&mut self) {
        self.shown.insert(self.primary.stats().max_seq_id.max(self.primary.read_point().0), rows(&self.primary));
    }
}
