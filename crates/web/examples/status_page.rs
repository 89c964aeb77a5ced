//! Serves the pages with made-up numbers, to look at them: `cargo run -p basalt-web --example status_page -- PORT REGIONS`.

use basalt_web::status::*;
use base::{Clock, SystemClock};
use bytes::Bytes;
use model::status::RegionLoad;
use model::{RegionInfo, ServerName, TableName};
use std::sync::Arc;

struct Invented {
    clock: Arc<dyn Clock>,
    started_ms: i64,
    regions: usize,
}

const TABLES: &[(&str, &[&str])] = &[
    ("hbase:meta", &["info", "rep_barrier", "table"]),
    ("orders", &["d"]),
    ("shop:customers", &["profile", "history"]),
    ("events", &["e", "meta"]),
];

impl StatusSource for Invented {
    fn metrics(&self, _now_ms: i64) -> Vec<base::metrics::Sample> {
        Vec::new()
    }

    fn status(&self) -> Status {
        let up_ms = (self.clock.now_ms().0 - self.started_ms).max(0) as u64;
        let server = |port| ServerName::new("basalt.example.org", port, self.started_ms as u64);
        let names: Vec<TableName> =
            TABLES.iter().map(|(name, _)| TableName::parse(name).unwrap_or(TableName::meta())).collect();
        let mut regions = vec![Region {
            info: RegionInfo::meta(),
            load: RegionLoad { stores: 3, store_files: 2, store_file_size_bytes: 48_113, ..Default::default() },
        }];
        for i in 0..self.regions as u64 {
            let key = |n: u64| Bytes::from([&b"user\x00"[..], format!("{n:05}").as_bytes()].concat());
            let info = RegionInfo::new(names[1 + (i % 3) as usize].clone(), key(i), key(i + 1), 1_790_000_000_000 + i);
            let load = RegionLoad {
                stores: 1 + (i % 3) as u32,
                store_files: (i * 7 % 9) as u32,
                store_file_size_bytes: i * 7_919 * 1_237 % 9_000_000_000,
                memstore_size_bytes: i * 104_729 % 128_000_000,
                read_requests: up_ms * (i % 11) / 10,
                write_requests: up_ms * (i % 5) / 10,
                ..Default::default()
            };
            regions.push(Region { info, load });
        }
        Status {
            version: "0.1.0, speaks HBase 2.6.4".to_owned(),
            master: server(16_000),
            region_server: server(16_020),
            live_servers: vec![server(16_020)],
            draining_servers: Vec::new(),
            dead_servers: Vec::new(),
            cluster_id: "e2764cfc-42cf-4282-8529-ca39adaaf6fa".to_owned(),
            zookeeper_quorum: "127.0.0.1:2181".to_owned(),
            host_name: "basalt.example.org".to_owned(),
            started_ms: self.started_ms,
            initialized_ms: self.started_ms + 62,
            data_directory: "/var/lib/basalt".to_owned(),
            ports: [("ZooKeeper", 2181), ("master", 16_000), ("region server", 16_020), ("pages", 16_010)]
                .map(|(name, port)| Port { name, address: format!("0.0.0.0:{port}") })
                .to_vec(),
            requests: self.requests(),
            memory: Memory {
                budget_bytes: 8 << 30,
                memstore_bytes: 1_914_000_000,
                memstore_limit_bytes: 3 << 30,
                resident_bytes: 5_300_000_000,
            },
            volumes: Vec::new(),
            block_cache: BlockCache {
                capacity_bytes: 3 << 30,
                used_bytes: 2_950_000_000,
                blocks: 44_812,
                hits: up_ms * 30,
                misses: up_ms * 2,
                evicted: up_ms / 7,
            },
            log: Log {
                files: 6,
                files_bytes: 700_000_000,
                entries: up_ms * 12,
                bytes: up_ms * 9_000,
                syncs: up_ms / 2,
                sync_us: up_ms * 410,
                max_sync_us: 18_400,
                rolls: 9,
                rescues: 1,
                waiting_bytes: 18_200,
                stalled: false,
            },
            holders: vec![Holder {
                name: "requests",
                held_bytes: 9000,
                highest_bytes: 2_000_000,
                cap_bytes: Some(64 << 20),
            }],
            queues: Queues { flushes: 1, small_compactions: 4, large_compactions: 1, splits: 0 },
            rpc: Rpc { connections: 24, queued_calls: 3, queued_bytes: 9000, active_calls: 2, open_scanners: 5 },
            tables: names
                .into_iter()
                .zip(TABLES)
                .map(|(name, (_, families))| Table {
                    name,
                    state: "ENABLED",
                    families: families.iter().map(ToString::to_string).collect(),
                })
                .collect(),
            regions,
            in_transition: vec![InTransition {
                region: "orders,user\\x0000042,1790000000042.5d41402abc4b2a76b9719d911017c592.".to_owned(),
                state: "SPLITTING".to_owned(),
                since_ms: self.started_ms,
            }],
            cluster: None,
            problems: vec![Problem {
                at_ms: self.started_ms,
                text:
                    "WALs/basalt.1790000000000: a sync failed (input/output error); its entries were moved to a fresh \
                       file. Look at the disk."
                        .to_owned(),
            }],
        }
    }

    fn requests(&self) -> Requests {
        let up_ms = (self.clock.now_ms().0 - self.started_ms).max(0) as u64;
        Requests { total: up_ms * 34, reads: up_ms * 31, filtered_reads: up_ms, writes: up_ms * 12 }
    }

    fn configuration(&self) -> Vec<Property> {
        let property =
            |key: &str, value: &str, source| Property { key: key.to_owned(), value: value.to_owned(), source };
        vec![
            property("hbase.master.info.port", "16010", "hbase-default.xml"),
            property("hbase.rootdir", "/var/lib/basalt", "hbase-site.xml"),
        ]
    }
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().and_then(|port| port.parse().ok()).unwrap_or(16_010);
    let regions = arguments.next().and_then(|regions| regions.parse().ok()).unwrap_or(10_000);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let source = Invented { clock: clock.clone(), started_ms: clock.now_ms().0 - 4 * 86_400_000, regions };
    let server = basalt_web::Server::bind(([127, 0, 0, 1], port).into(), Arc::new(source), clock)?;
    println!("http://{}/", server.local_addr());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(server.run(async {
        let _ = tokio::signal::ctrl_c().await;
    }))
}
