//! What one client writes in a loop is what it reads, however fast the server: no write is hidden by a delete of the
//! same millisecond.
#![allow(clippy::disallowed_methods, reason = "measures a real server")]

use crate::common::{Scratch, Server, Tester, specifier};
use bytes::Bytes;
use cell::{CellBlock, CellSpec, CellType};
use client::{Action, Append, Connection, Delete, Increment, Options, Put};
use model::{Get, Mutation};
use proto::methods::Method;
use proto::pb;
use proto::pb::mutation_proto::MutationType;
use std::cell::Cell;

/// Rounds of each loop in the ordinary suite.
const ROUNDS: u64 = 5_000;
/// Rounds with `--ignored`.
const LONG_ROUNDS: u64 = 100_000;
/// Then another row: every delete leaves a marker, and a read passes all those of its row until a compaction has
/// dropped them.
const ROUNDS_OF_A_ROW: u64 = 512;

struct Loop {
    tester: Tester,
    region: Bytes,
    row: Cell<u64>,
}

impl Loop {
    /// The rounds' numbers, of which some begin with a new row.
    fn rounds(&self, rounds: u64) -> impl Iterator<Item = u64> {
        (0..rounds).inspect(|round| {
            if round % ROUNDS_OF_A_ROW == 0 {
                self.row.set(self.row.get() + 1);
            }
        })
    }

    fn row(&self) -> String {
        format!("r{:06}", self.row.get())
    }

    fn mutation(&self, kind: MutationType, value: &[u8]) -> (pb::MutationProto, Option<CellBlock>) {
        let row = self.row();
        let delete = kind == MutationType::Delete;
        let mutation = pb::MutationProto {
            row: Some(Bytes::from(row.clone())),
            mutate_type: Some(kind as i32),
            associated_cell_count: Some(i32::from(!delete)),
            ..pb::MutationProto::default()
        };
        let spec = CellSpec {
            row: row.as_bytes(),
            family: b"f",
            qualifier: b"q",
            timestamp: i64::MAX,
            type_code: CellType::Put.code(),
            value,
            tags: b"",
        };
        (mutation, (!delete).then(|| CellBlock::from_specs([spec])))
    }

    /// Does it, perhaps under the condition that the column has this value (absent if empty); whether it was done.
    async fn mutate(&self, kind: MutationType, value: &[u8], if_equal: Option<&'static [u8]>) -> bool {
        let (mutation, cells) = self.mutation(kind, value);
        let condition = if_equal.map(|value| pb::Condition {
            row: Bytes::from(self.row()),
            family: Some(Bytes::from("f")),
            qualifier: Some(Bytes::from("q")),
            compare_type: Some(pb::CompareType::Equal as i32),
            comparator: Some(pb::Comparator {
                name: "org.apache.hadoop.hbase.filter.BinaryComparator".to_owned(),
                serialized_comparator: Some(Bytes::from(prost::Message::encode_to_vec(&pb::BinaryComparator {
                    comparable: pb::ByteArrayComparable { value: Some(Bytes::from_static(value)) },
                }))),
            }),
            ..pb::Condition::default()
        });
        let region = specifier(&self.region);
        let request = pb::MutateRequest { region, mutation, condition, ..pb::MutateRequest::default() };
        let reply = self.tester.region_call(Method::ClientMutate, &request, cells.as_ref()).await.expect("written");
        let response: pb::MutateResponse = reply.decode().expect("an answer");
        response.processed.unwrap_or(true)
    }

    async fn value(&self) -> Option<Vec<u8>> {
        self.tester.get(&self.region, &self.row()).await.expect("read")
    }

    async fn delete_put_get(&self, rounds: u64) {
        for round in self.rounds(rounds) {
            self.mutate(MutationType::Delete, b"", None).await;
            assert_eq!(self.value().await, None, "round {round}: deleted");
            self.mutate(MutationType::Put, &round.to_be_bytes(), None).await;
            assert_eq!(self.value().await, Some(round.to_be_bytes().to_vec()), "round {round}: put");
        }
    }

    async fn delete_increment_get(&self, rounds: u64) {
        for round in self.rounds(rounds) {
            self.mutate(MutationType::Delete, b"", None).await;
            self.mutate(MutationType::Increment, &1i64.to_be_bytes(), None).await;
            self.mutate(MutationType::Increment, &1i64.to_be_bytes(), None).await;
            assert_eq!(self.value().await, Some(2i64.to_be_bytes().to_vec()), "round {round}");
        }
    }

    async fn check_and_delete_put_check_and_delete(&self, rounds: u64) {
        for round in self.rounds(rounds) {
            if round % ROUNDS_OF_A_ROW == 0 {
                self.mutate(MutationType::Put, b"v", None).await;
            }
            assert!(self.mutate(MutationType::Delete, b"", Some(b"v")).await, "round {round}: it was there");
            assert!(!self.mutate(MutationType::Delete, b"", Some(b"v")).await, "round {round}: it is gone");
            assert!(self.mutate(MutationType::Put, b"v", Some(b"")).await, "round {round}: put where nothing is");
        }
    }

    async fn appends_after_appends(&self, rounds: u64) {
        let mut expected = Vec::new();
        for round in self.rounds(rounds) {
            // Begun anew now and then, right behind appends; a new row, too.
            if round % 16 == 0 {
                self.mutate(MutationType::Delete, b"", None).await;
                expected.clear();
            }
            self.mutate(MutationType::Append, &[b'a' + (round % 26) as u8], None).await;
            expected.push(b'a' + (round % 26) as u8);
            assert_eq!(self.value().await.as_deref(), Some(&expected[..]), "round {round}");
        }
    }
}

async fn loops(name: &str, rounds: u64) {
    let scratch = Scratch::new(name);
    // Without a sync for each write the server is at its fastest.
    let server = Server::start(&scratch.join("root"), &["hbase.wal.hsync=false"]);
    let tester = Tester::connect(&server).await;
    tester.create_table("t", &[]).await;
    let region = tester.regions("t").await.remove(0);
    let client = Loop { tester, region, row: Cell::new(0) };
    let mut started = std::time::Instant::now();
    let mut done = |what: &str| {
        eprintln!("{what}: {rounds} rounds without a miss in {:.1} s", started.elapsed().as_secs_f64());
        started = std::time::Instant::now();
    };
    client.delete_put_get(rounds).await;
    done("delete-put-get");
    client.delete_increment_get(rounds).await;
    done("delete-increment-get");
    client.check_and_delete_put_check_and_delete(rounds).await;
    done("checkAndDelete-put-checkAndDelete");
    client.appends_after_appends(rounds).await;
    done("appends after appends");
}

#[tokio::test]
async fn what_a_client_writes_behind_a_delete_it_reads() {
    loops("ticks", ROUNDS).await;
}

#[tokio::test]
#[ignore = "minutes: for `cargo test -- --ignored`"]
async fn what_a_client_writes_behind_a_delete_it_reads_for_long() {
    loops("ticks-long", LONG_ROUNDS).await;
}

/// The row's writes in turns, ten of them, and what they come to.
fn turns(row: &str, value: &str) -> Vec<Mutation> {
    let turn = |i: usize| [Delete::new(row).build(), Put::new(row).add("f", "q", format!("{value}{i}")).build()];
    (0..5).flat_map(turn).collect()
}

/// Each action of a batch is a commit of its own, whichever way the batch takes through the server: plain writes, among
/// reads and counters, in a request so large that a lane decodes it. Inside an atomic call HBase's result stays.
#[tokio::test]
async fn the_actions_of_a_batch_count_in_their_order() {
    let scratch = Scratch::new("ticks-batch");
    let server = Server::start(&scratch.join("root"), &["hbase.wal.hsync=false"]);
    Tester::connect(&server).await.create_table("t", &["m"]).await;
    let connection = Connection::open(Options::zookeeper(&format!("127.0.0.1:{}", server.zk_port)));
    let table = connection.table(&model::TableName::parse("t").expect("legal"));
    let value = async |row: &str| {
        let found = table.get(&Get::new(row.to_owned())).await.expect("read");
        found.value(b"f", b"q").map(<[u8]>::to_vec)
    };
    for round in 0..100 {
        // Two regions' rows, one beside the other.
        let plain: Vec<Mutation> = turns("a", "p").into_iter().zip(turns("z", "p")).flat_map(|(a, z)| [a, z]).collect();
        table.mutate_all(&plain).await.expect("written");
        assert_eq!((value("a").await, value("z").await), (Some(b"p4".to_vec()), Some(b"p4".to_vec())), "round {round}");

        let mut mixed: Vec<Action> = turns("a", "m").into_iter().map(Action::Mutate).collect();
        mixed.push(Action::Mutate(Delete::new("n").build()));
        mixed.push(Action::Mutate(Increment::new("n").add("f", "q", 3).build()));
        mixed.push(Action::Mutate(Delete::new("o").build()));
        mixed.push(Action::Mutate(Append::new("o").add("f", "q", "x").build()));
        mixed.push(Action::Get(Get::new("a")));
        let outcomes = table.batch(&mixed).await.expect("a batch");
        assert!(outcomes.iter().all(Result::is_ok), "round {round}: {outcomes:?}");
        assert_eq!(value("a").await, Some(b"m4".to_vec()), "round {round}");
        assert_eq!(value("n").await, Some(3i64.to_be_bytes().to_vec()), "round {round}");
        assert_eq!(value("o").await, Some(b"x".to_vec()), "round {round}");
    }
    for round in 0..10 {
        let long = "x".repeat(40 * 1024);
        table.mutate_all(&turns("large", &long)).await.expect("written");
        assert_eq!(value("large").await, Some(format!("{long}4").into_bytes()), "round {round}");
    }
    table.mutate_row(&turns("atomic", "v")).await.expect("written");
    assert_eq!(value("atomic").await, None, "one moment: the marker hides the puts beside it");
    table.mutate(&Put::new("atomic").add("f", "q", "after").build()).await.expect("written");
    assert_eq!(value("atomic").await, Some(b"after".to_vec()));
}
