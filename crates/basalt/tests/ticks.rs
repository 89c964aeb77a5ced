//! What one client writes in a loop is what it reads, however fast the server: no write is hidden by a delete of the
//! same millisecond.
#![allow(clippy::disallowed_methods, reason = "measures a real server")]

mod common;

use bytes::Bytes;
use cell::{CellBlock, CellSpec, CellType};
use common::{Scratch, Server, Tester, specifier};
use proto::methods::Method;
use proto::pb;
use proto::pb::mutation_proto::MutationType;

/// Rounds of each loop in the ordinary suite.
const ROUNDS: u64 = 5_000;
/// Rounds with `--ignored`.
const LONG_ROUNDS: u64 = 100_000;

struct Loop {
    tester: Tester,
    region: Bytes,
}

impl Loop {
    fn mutation(kind: MutationType, value: &[u8]) -> (pb::MutationProto, Option<CellBlock>) {
        let delete = kind == MutationType::Delete;
        let mutation = pb::MutationProto {
            row: Some(Bytes::from("r")),
            mutate_type: Some(kind as i32),
            associated_cell_count: Some(i32::from(!delete)),
            ..pb::MutationProto::default()
        };
        let spec = CellSpec {
            row: b"r",
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
        let (mutation, cells) = Loop::mutation(kind, value);
        let condition = if_equal.map(|value| pb::Condition {
            row: Bytes::from("r"),
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
        self.tester.get(&self.region, "r").await.expect("read")
    }

    async fn delete_put_get(&self, rounds: u64) {
        for round in 0..rounds {
            self.mutate(MutationType::Delete, b"", None).await;
            assert_eq!(self.value().await, None, "round {round}: deleted");
            self.mutate(MutationType::Put, &round.to_be_bytes(), None).await;
            assert_eq!(self.value().await, Some(round.to_be_bytes().to_vec()), "round {round}: put");
        }
    }

    async fn delete_increment_get(&self, rounds: u64) {
        for round in 0..rounds {
            self.mutate(MutationType::Delete, b"", None).await;
            self.mutate(MutationType::Increment, &1i64.to_be_bytes(), None).await;
            self.mutate(MutationType::Increment, &1i64.to_be_bytes(), None).await;
            assert_eq!(self.value().await, Some(2i64.to_be_bytes().to_vec()), "round {round}");
        }
    }

    async fn check_and_delete_put_check_and_delete(&self, rounds: u64) {
        self.mutate(MutationType::Delete, b"", None).await;
        self.mutate(MutationType::Put, b"v", None).await;
        for round in 0..rounds {
            assert!(self.mutate(MutationType::Delete, b"", Some(b"v")).await, "round {round}: it was there");
            assert!(!self.mutate(MutationType::Delete, b"", Some(b"v")).await, "round {round}: it is gone");
            assert!(self.mutate(MutationType::Put, b"v", Some(b"")).await, "round {round}: put where nothing is");
        }
    }

    async fn appends_after_appends(&self, rounds: u64) {
        self.mutate(MutationType::Delete, b"", None).await;
        let mut expected = Vec::new();
        for round in 0..rounds {
            // Begun anew now and then, right behind appends.
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
    let client = Loop { tester, region };
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
