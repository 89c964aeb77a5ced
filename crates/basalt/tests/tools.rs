//! `basalt pe` and `basalt ltt` against a server process: small runs of each command, and what they leave behind.
#![allow(clippy::disallowed_methods, reason = "tests of tools work on real files and processes")]

use crate::common::tools::text;
use crate::common::{Scratch, Server};
use client::{Connection, Options, Put, ScanOptions};
use model::{Get, Scan, TableName};
use std::process::{Command, Output, Stdio};

/// Runs the binary with `arguments`, split at spaces, against `server`.
fn basalt(server: &Server, tool: &str, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_basalt"))
        .env_remove("HBASE_CONF_DIR")
        .arg("-D")
        .arg(format!("hbase.zookeeper.property.clientPort={}", server.zk_port))
        .arg(tool)
        .args(arguments.split_whitespace())
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs")
}

fn pe(server: &Server, arguments: &str) -> String {
    let output = basalt(server, "pe", arguments);
    assert!(output.status.success(), "pe {arguments}:\n{}", text(&output));
    text(&output)
}

fn connect(server: &Server) -> Connection {
    Connection::open(Options::zookeeper(&format!("127.0.0.1:{}", server.zk_port)))
}

async fn count(connection: &Connection, table: &str) -> usize {
    let table = connection.table(&TableName::parse(table).expect("legal"));
    let mut scanner = table.scan(Scan::default(), ScanOptions::default());
    let mut rows = 0;
    while scanner.next().await.expect("a row").is_some() {
        rows += 1;
    }
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_of_pe_runs() {
    let scratch = Scratch::new("pe");
    let server = Server::start(&scratch.0, &[]);
    let connection = connect(&server);
    let refused = basalt(&server, "pe", "--rows=10 randomRead 1");
    assert!(
        !refused.status.success() && text(&refused).contains("Must specify an existing table"),
        "{}",
        text(&refused)
    );

    let said = pe(&server, "--nomapred --rows=300 --presplit=4 --valueSize=100 sequentialWrite 2");
    assert!(said.contains("[SequentialWriteTest] Summary of timings (ms): ["), "{said}");
    assert!(said.contains("hbase.PerformanceEvaluation: [ Avg TPS/QPS]\t"), "{said}");
    assert!(said.contains("99.99th   = "), "{said}");
    let name = TableName::parse("TestTable").expect("legal");
    assert_eq!(connection.admin().regions(&name).await.expect("regions").len(), 4);
    assert_eq!(count(&connection, "TestTable").await, 600);
    let row = connection.table(&name).get(&Get::new("00000000000000000000000599")).await.expect("get");
    let value = row.value(b"info0", b"0").expect("a value");
    assert!(value.len() == 100 && value.chunks(8).all(|run| run.iter().all(|b| *b == run[0])), "{value:?}");

    for command in [
        "--rows=50 --autoFlush=true randomWrite 2",
        "--rows=50 --autoFlush=true --multiPut=7 randomWrite 2",
        "--rows=50 --valueRandom randomWrite 1",
        "--rows=50 --valueZipf randomWrite 1",
        "--rows=50 --writeToWAL=false --oneCon=true randomWrite 3",
        "--rows=50 --usetags --numoftags=2 randomWrite 1",
        "--rows=50 --startRow=7 --period=10 --latency --latencyThreshold=1 --measureAfter=5 --bufferSize=1000 randomWrite 1",
        "--rows=50 asyncSequentialWrite 1",
        "--rows=50 asyncRandomWrite 1",
        "--rows=50 randomRead 2",
        "--rows=50 --multiGet=8 --connCount=2 --randomSleep=2 randomRead 3",
        "--rows=50 --filterAll --addColumns=false randomRead 1",
        "--rows=50 asyncRandomRead 1",
        "--rows=50 --sampleRate=0.5 sequentialRead 2",
        "--rows=50 asyncSequentialRead 1",
        "--rows=300 --caching=10 --cacheBlocks=false scan 2",
        "--rows=50 --filterAll scan 1",
        "--rows=50 --asyncPrefetch --scanReadType=pread asyncScan 1",
        "--rows=50 reverseScan 1",
        "--rows=5 --caching=20 randomSeekScan 1",
        "--rows=5 scanRange10 1",
        "--rows=5 scanRange100 1",
        "--rows=2 scanRange1000 1",
        "--rows=2 scanRange10000 1",
        "--rows=2 filterScan 1",
        "--rows=20 --cycles=2 increment 2",
        "--rows=20 append 2",
        "--rows=20 checkAndPut 2",
        "--rows=20 checkAndMutate 2",
        "--rows=20 checkAndDelete 2",
        "--rows=20 --autoFlush=true randomDelete 1",
        "--rows=300 sequentialDelete 2",
    ] {
        pe(&server, command);
    }
    // The increments and appends of rows that were deleted went with them; rows of counters begin anew.
    assert_eq!(count(&connection, "TestTable").await, 0);
    pe(&server, "--rows=30 --cycles=2 increment 3");
    let row = connection.table(&name).get(&Get::new("00000000000000000000000007")).await.expect("get");
    assert_eq!(row.value(b"info0", b"IncrementTest"), Some(&6i64.to_be_bytes()[..]));

    pe(
        &server,
        "--table=wide --rows=20 --families=2 --columns=3 --compress=SNAPPY --bloomFilter=ROWCOL --blockEncoding=FAST_DIFF --blockSize=8192 --inmemoryCompaction=NONE --splitPolicy=org.apache.hadoop.hbase.regionserver.ConstantSizeRegionSplitPolicy --inmemory --flushCommits sequentialWrite 1",
    );
    let wide = TableName::parse("wide").expect("legal");
    assert_eq!(connection.table(&wide).get(&Get::new("00000000000000000000000003")).await.expect("get").len(), 6);
    let again = pe(
        &server,
        "--table=wide --rows=20 --families=1 --splitPolicy=org.apache.hadoop.hbase.regionserver.ConstantSizeRegionSplitPolicy sequentialWrite 1",
    );
    assert!(again.contains("Table will be recreated: [--families=1, but found 2 column families]"), "{again}");

    // Read replicas answer gets that the primary takes long for; what HBase gives to classes of tests goes unread, but must be there.
    let written = pe(&server, "--table=twice --rows=50 --replicas=2 --traceRate=10 sequentialWrite 1");
    assert!(
        written.contains("\"traceRate\":10.0") && written.contains("[results from replica regions] 0"),
        "{written}"
    );
    let twice = TableName::parse("twice").expect("legal");
    let described = connection.admin().describe(&twice).await.expect("asked").expect("there");
    assert_eq!(described.region_replication(), 2);
    let properties = scratch.join("test.properties");
    std::fs::write(&properties, "a = b\n").expect("written");
    let properties = format!("--commandPropertiesFile={}", properties.display());
    let read = format!(
        "--table=twice --rows=50 --replicas=2 {properties} -Dhbase.client.primaryCallTimeout.get=1 randomRead 1"
    );
    let read = pe(&server, &read);
    assert!(read.contains("Latency (us) from Replica Regions: mean="), "{read}");
    let results =
        read.lines().filter_map(|line| line.split("[results from replica regions] ").nth(1)?.parse::<u64>().ok());
    assert!(results.clone().count() == 1 && results.sum::<u64>() <= 50, "{read}");
    let warned = pe(&server, "--table=twice --rows=50 randomRead 1");
    assert!(warned.contains("[--replicas=1, but found 2 replicas]"), "{warned}");
    let missing = basalt(&server, "pe", "--commandPropertiesFile=/no/such/file randomRead 1");
    assert!(
        !missing.status.success() && text(&missing).contains("Resource file not found: /no/such/file"),
        "{missing:?}"
    );

    let usage = basalt(&server, "pe", "--nonsense scan 1");
    assert!(!usage.status.success() && text(&usage).contains("Unrecognized option/command"), "{}", text(&usage));
    assert!(basalt(&server, "pe", "--help").status.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pe_fills_and_cleans_hbase_meta() {
    let scratch = Scratch::new("pe-meta");
    let server = Server::start(&scratch.0, &[]);
    let connection = connect(&server);
    pe(&server, "--rows=1 sequentialWrite 1");
    let before = count(&connection, "hbase:meta").await;
    pe(&server, "--rows=20 metaWrite 1");
    assert_eq!(count(&connection, "hbase:meta").await, before + 20);
    pe(&server, "--rows=20 metaRandomRead 1");
    pe(&server, "--rows=20 cleanMeta 1");
    assert_eq!(count(&connection, "hbase:meta").await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ltt_verifies_what_it_wrote_and_finds_what_is_wrong() {
    let scratch = Scratch::new("ltt");
    let server = Server::start(&scratch.0, &[]);
    let connection = connect(&server);
    let ltt = |arguments: &str| {
        let output = basalt(&server, "ltt", arguments);
        (output.status.success(), text(&output))
    };
    let zk = format!("-zk 127.0.0.1:{}", server.zk_port);
    for (table, write, update) in [("single", "", ""), ("multi", "-multiput", "-batchupdate")] {
        let (ok, said) = ltt(&format!("{zk} -tn {table} -families a,b -write 3:60:4 -num_keys 100 {write}"));
        assert!(ok && said.contains("Failed to write keys: 0"), "{said}");
        let read = format!("-tn {table} -families a,b -read 100:4 -num_keys 100 -skip_init");
        let (ok, said) = ltt(&read);
        assert!(ok && said.contains("Keys read: 100, verified: 100, read errors: 0"), "{said}");
        let (ok, said) = ltt(&format!("-tn {table} -families a,b -update 60:4 -num_keys 100 -skip_init {update}"));
        assert!(ok && said.contains("Failed to update keys: 0"), "{said}");
        let (ok, said) = ltt(&format!("{read} -multiget_batchsize 7"));
        assert!(ok && said.contains("verified:"), "{said}");
        let (ok, said) = ltt(&read);
        assert!(ok, "{said}");
    }
    let name = TableName::parse("single").expect("legal");
    assert_eq!(connection.admin().regions(&name).await.expect("regions").len(), 5);
    let damaged = Put::new(tools::ltt::key(17)).add("a", "0", b"not what it was").build();
    connection.table(&name).put(&damaged).await.expect("put");
    let (ok, said) = ltt("-tn single -families a,b -read 100:4 -num_keys 100 -skip_init");
    assert!(!ok && said.contains("Error checking data for key [70efdf2ec9b086079795c442636b55fb-17]"), "{said}");
    let (ok, said) = ltt("-tn single -families a,b -read 100:4 -num_keys 150 -skip_init -max_read_errors 3");
    assert!(!ok && said.contains("no data returned") && said.contains("Aborting readers"), "{said}");

    let (ok, said) = ltt(
        "-tn all -write 2:30:4 -update 50:4 -read 100:4 -key_window 5 -num_keys 200 -start_key 50 -verbose -writer org.apache.hadoop.hbase.util.MultiThreadedWriter -updater MultiThreadedUpdater -reader MultiThreadedReader -zk_root /hbase -generator MultiThreadedAction$DefaultDataGenerator -bloom ROWPREFIX_FIXED_LENGTH -bloom_param 4 -compression GZ -data_block_encoding DIFF -in_memory",
    );
    assert!(ok, "{said}");
    let (ok, said) = ltt("-tn two -write 2:30:2 -num_keys 20 -num_tables 2 -num_regions_per_server 1");
    assert!(ok, "{said}");
    assert_eq!((count(&connection, "two_1").await, count(&connection, "two_2").await), (20, 20));
    assert!(ltt("-tn made -init_only -deferredlogflush").0);
    let (ok, said) = ltt("-write 1:1 -num_keys 1 -encryption AES");
    assert!(!ok && said.contains("-encryption is not served"), "{said}");
}
