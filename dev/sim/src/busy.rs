//! A busy hour: many clients over connections of their own, with calls that wait in the lanes while the schedule holds them. Clients leave in
//! mid-call, open scanners and forget them, send batches near what the server takes, do not read their replies, count with nonces as fast as
//! they can, and set deadlines that pass.
//!
//! Always true afterwards:
//!  1. Once the clients are gone, nothing is held for them: the ledger's accounts of requests, replies and scanners are at zero.
//!  2. A client that asks the server to stop is answered while every lane is full and none moves, and the wish has arrived.
//!  3. A call whose deadline passed while it waited was not begun.
//!  4. A counter has counted every acknowledged increment once, and none that was not sent.

use crate::calls;
use crate::network::{Network, Peer};
use crate::work::Desk;
use crate::{Violation, ensure};
use base::{Holder, Rng};
use bytes::Bytes;
use cell::CellType;
use convert::to_proto;
use master::Caller;
use model::{FamilyDescriptor, Get, Mutation, MutationKind, Nonce, RegionInfo, Scan, TableDescriptor, TableName};
use parking_lot::Mutex;
use proto::methods::{Method, Service};
use proto::pb;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Larger requests are decoded and carried out on a lane.
const ON_A_LANE_BYTES: usize = 200 * 1024;
/// The most that one request may have of the simulator's budget, nearly.
const NEARLY_TOO_LARGE_BYTES: usize = 6 << 20;
/// When nobody waits any more for a call with a deadline that is to pass.
const SHORT_MS: u32 = 50;
const LONG_MS: u32 = 600_000;
/// Longer than a scanner's lease.
const LEASE_MS: u64 = 61_000;
/// Rounds in which calls, flushes and logs go on, until nothing moves any more.
const MOST_ROUNDS: u32 = 2_000;
const ROW: &str = "wide";
const LATEST: i64 = i64::MAX;

fn table() -> TableName {
    TableName::parse("busy").expect("legal")
}

/// What a client does.
#[derive(Clone, Copy, Debug)]
enum Habit {
    LeavesInMidCall,
    ForgetsScanners,
    SendsLargeBatches,
    ReadsSlowly,
    Counts,
}

const HABITS: [Habit; 5] =
    [Habit::LeavesInMidCall, Habit::ForgetsScanners, Habit::SendsLargeBatches, Habit::ReadsSlowly, Habit::Counts];

/// What counters were sent and what was acknowledged.
#[derive(Default)]
struct Counted {
    sent: BTreeSet<(u64, u64)>,
    acked: BTreeSet<(u64, u64)>,
}

/// What a client needs.
struct Habitue {
    rng: Rng,
    region: RegionInfo,
    counted: Arc<Mutex<Counted>>,
}

/// One busy hour on a server that nobody else uses and whose disk is well.
///
/// # Errors
/// What is not so afterwards.
pub async fn hour(desk: &Desk) -> Result<(), Violation> {
    let life = &desk.life;
    let region = prepare(desk).await?;
    let before = held(desk);
    let network = Network::new(life);
    let counted = Arc::<Mutex<Counted>>::default();
    let already = counter(desk).await?;
    life.server.hold_calls(true);
    let mut clients: Vec<JoinHandle<()>> = Vec::new();
    for _ in 0..3 + desk.rng.below(6) {
        let habit = HABITS[desk.rng.below(HABITS.len() as u64) as usize];
        let capacity_bytes = [200, 5_000, 100_000, 10 << 20][desk.rng.below(4) as usize];
        desk.trace.note(&format!("a client that {habit:?}, {capacity_bytes} bytes on its way"));
        let Some(peer) = network.connect(Service::Client, capacity_bytes).await else { continue };
        let rng = Rng::seeded(desk.rng.next_u64());
        let client = Habitue { rng, region: region.clone(), counted: counted.clone() };
        clients.push(tokio::spawn(client.run(habit, peer)));
    }
    for _ in 0..desk.rng.below(12) {
        life.settle().await;
        life.clock.advance_ms(desk.rng.below(20));
        match desk.rng.below(4) {
            0 => _ = (0..desk.rng.below(8)).all(|_| life.server.step_call()),
            1 => _ = life.logs[0].write_once(),
            2 => _ = life.server.step_flush(),
            _ => {}
        }
    }
    let stopped = ask_to_stop(desk, &network).await;
    let late = if stopped.is_ok() { pass_a_deadline(desk, &network, &region).await } else { Ok(()) };
    // The clients leave, wherever they are.
    clients.iter().for_each(JoinHandle::abort);
    drop(network);
    life.server.hold_calls(false);
    until_idle(desk).await?;
    life.clock.advance_ms(LEASE_MS);
    life.server.step_chores();
    until_idle(desk).await?;
    stopped.and(late)?;
    let after = held(desk);
    ensure(after == before, || {
        format!("requests, replies and scanners held {before:?} before, {after:?} when all had left")
    })?;
    let (value, counted) = (counter(desk).await? - already, counted.lock());
    ensure((counted.acked.len() as u64..=counted.sent.len() as u64).contains(&value), || {
        format!("{value} counted of {} acknowledged and {} sent", counted.acked.len(), counted.sent.len())
    })
}

/// What is held for clients.
fn held(desk: &Desk) -> [u64; 3] {
    [Holder::Requests, Holder::Replies, Holder::Scanners].map(|holder| desk.life.server.ledger().held_bytes(holder))
}

/// The table, with a row that is worth reading.
async fn prepare(desk: &Desk) -> Result<RegionInfo, Violation> {
    let life = &desk.life;
    let failed = |error: &dyn std::fmt::Debug| Violation(format!("the busy hour's table: {error:?}"));
    if life.master.cluster().descriptor(&table()).is_none() {
        let mut descriptor = TableDescriptor::new(table(), [FamilyDescriptor::new("f")]);
        // Its one region is never split.
        let never = "org.apache.hadoop.hbase.regionserver.DisabledRegionSplitPolicy";
        descriptor.attributes.insert(Bytes::from("SPLIT_POLICY"), Bytes::from(never));
        let made =
            life.master.create_table(descriptor, &[], &Caller::default()).await.map_err(|error| failed(&error))?;
        life.master.wait_for(made).await.map_err(|error| failed(&error))?;
    }
    until_idle(desk).await?;
    let value = vec![b'v'; 3_000];
    let cells: Vec<String> = (0..20).map(|n| format!("q{n:02}")).collect();
    let cells: Vec<_> = cells.iter().map(|q| ("f", q.as_str(), LATEST, CellType::Put, &value[..])).collect();
    let put = calls::mutation(MutationKind::Put, ROW, &cells);
    let at = life.clone();
    let written = tokio::spawn(async move { calls::mutate(&at, &table(), &put).await });
    until_idle(desk).await?;
    written.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
    calls::region_of(life, &table(), ROW.as_bytes()).map_err(|error| failed(&error))
}

/// Lets calls, logs and flushes go on until nothing moves.
async fn until_idle(desk: &Desk) -> Result<(), Violation> {
    let life = &desk.life;
    for _ in 0..MOST_ROUNDS {
        life.settle().await;
        let mut moved = life.server.step_call();
        moved |= life.logs.iter().any(|log| log.stats().owed_bytes > 0 && log.sync_once().is_ok());
        moved |= life.server.step_flush();
        life.settle().await;
        if !moved && life.master.unfinished_procedures() == 0 {
            return Ok(());
        }
    }
    Err(Violation("the server has something to do for ever".into()))
}

async fn counter(desk: &Desk) -> Result<u64, Violation> {
    let cells = calls::get(&desk.life, &table(), "counter").await;
    let cells = cells.map_err(|failure| Violation(format!("the counter cannot be read: {failure:?}")))?;
    let newest = cells.first().and_then(|(_, _, value)| value.first_chunk::<8>().copied());
    Ok(newest.map_or(0, u64::from_be_bytes))
}

/// A client wants the server to stop while no lane moves.
async fn ask_to_stop(desk: &Desk, network: &Network) -> Result<(), Violation> {
    let before = desk.life.stop_requests();
    let request = pb::StopServerRequest { reason: "the busy hour".to_owned() };
    let asking = async {
        let mut peer = network.connect(Service::Admin, 10_000).await?;
        peer.send(Method::AdminStopServer, &request, LONG_MS).await?;
        peer.reply().await
    };
    let patience = std::time::Duration::from_secs(1);
    let reply = tokio::time::timeout(patience, asking).await.ok().flatten();
    desk.trace.note("asked to stop");
    ensure(reply.is_some_and(|reply| reply.result.is_ok()), || "a wish to stop is not answered".to_owned())?;
    ensure(desk.life.stop_requests() > before, || "a wish to stop waits behind the calls of others".to_owned())
}

/// Two puts wait in a lane, one until its deadline has passed, the other with time left.
async fn pass_a_deadline(desk: &Desk, network: &Network, region: &RegionInfo) -> Result<(), Violation> {
    let life = &desk.life;
    // What went before leaves, and room in the memstore with it.
    life.server.hold_calls(false);
    until_idle(desk).await?;
    life.server.hold_calls(true);
    let (number, capacity_bytes) = (desk.rng.next_u64(), 10 << 20);
    let row = |what: &str| format!("{what}-{number:016x}");
    let (mut hurried, mut patient) = match (
        network.connect(Service::Client, capacity_bytes).await,
        network.connect(Service::Client, capacity_bytes).await,
    ) {
        (Some(hurried), Some(patient)) => (hurried, patient),
        _ => return Err(Violation("the server takes no connection".into())),
    };
    hurried.send(Method::ClientMutate, &put(region, &row("late"), ON_A_LANE_BYTES), SHORT_MS).await;
    patient.send(Method::ClientMutate, &put(region, &row("in-time"), ON_A_LANE_BYTES), LONG_MS).await;
    life.settle().await;
    life.clock.advance_ms(u64::from(SHORT_MS) + 1);
    life.server.hold_calls(false);
    until_idle(desk).await?;
    let late = hurried.reply().await.map(|reply| reply.result);
    let in_time = patient.reply().await.map(|reply| reply.result);
    // A flush that waits for a compaction leaves no room; a put that is refused for that is not carried out.
    let refused = matches!(&in_time, Some(Err(text)) if text.contains("RegionTooBusyException"));
    ensure(refused || matches!(in_time, Some(Ok(_))), || format!("a put with time left: {in_time:?}"))?;
    for (what, is_there) in [("late", false), ("in-time", !refused)] {
        let cells = calls::get(life, &table(), &row(what)).await;
        let cells = cells.map_err(|failure| Violation(format!("{what}: {failure:?}")))?;
        ensure(cells.is_empty() != is_there, || {
            format!("a put begun {what} was carried out: {}; told {late:?}", !is_there)
        })?;
    }
    ensure(matches!(late, Some(Err(_))), || format!("a put whose deadline has passed was answered {late:?}"))
}

fn put(region: &RegionInfo, row: &str, bytes: usize) -> pb::MutateRequest {
    let value = vec![b'p'; bytes];
    let put = calls::mutation(MutationKind::Put, row, &[("f", "q", LATEST, CellType::Put, &value)]);
    mutate(region, &put)
}

fn mutate(region: &RegionInfo, mutation: &Mutation) -> pb::MutateRequest {
    pb::MutateRequest {
        region: to_proto::region_specifier(region),
        mutation: to_proto::mutation(mutation),
        nonce_group: mutation.nonce.map(|nonce| nonce.group),
        ..pb::MutateRequest::default()
    }
}

impl Habitue {
    async fn run(self, habit: Habit, peer: Peer) {
        // Whoever the server tells to go away goes.
        let _ended = match habit {
            Habit::LeavesInMidCall => self.leave_in_mid_call(peer).await,
            Habit::ForgetsScanners => self.forget_scanners(peer).await,
            Habit::SendsLargeBatches => self.send_large_batches(peer).await,
            Habit::ReadsSlowly => self.read_slowly(peer).await,
            Habit::Counts => self.count(peer).await,
        };
    }

    fn get(&self) -> pb::GetRequest {
        pb::GetRequest { region: to_proto::region_specifier(&self.region), get: to_proto::get(&Get::new(ROW)) }
    }

    async fn leave_in_mid_call(&self, mut peer: Peer) -> Option<()> {
        for _ in 0..self.rng.below(4) {
            let bytes = [100, ON_A_LANE_BYTES][self.rng.below(2) as usize];
            let request = put(&self.region, &format!("left-{}", self.rng.below(5)), bytes);
            peer.send(Method::ClientMutate, &request, LONG_MS).await?;
            peer.send(Method::ClientGet, &self.get(), LONG_MS).await?;
        }
        if self.rng.one_in(2) {
            let request = put(&self.region, "never", ON_A_LANE_BYTES);
            peer.send_part(Method::ClientMutate, &request, self.rng.below(8) as usize).await;
        }
        Some(())
    }

    async fn forget_scanners(&self, mut peer: Peer) -> Option<()> {
        let scan = Scan { max_versions: 1, ..Scan::default() };
        for _ in 0..5 + self.rng.below(20) {
            let request = pb::ScanRequest {
                region: to_proto::region_specifier(&self.region).into(),
                scan: to_proto::scan(&scan).into(),
                number_of_rows: Some(self.rng.below(3) as u32),
                ..pb::ScanRequest::default()
            };
            peer.send(Method::ClientScan, &request, LONG_MS).await?;
            if self.rng.one_in(2) {
                peer.reply().await?;
            }
        }
        Some(())
    }

    async fn send_large_batches(&self, mut peer: Peer) -> Option<()> {
        let bytes = if self.rng.one_in(6) { NEARLY_TOO_LARGE_BYTES } else { 2 * ON_A_LANE_BYTES };
        let value = vec![b'b'; bytes / 32];
        let puts: Vec<Mutation> = (0..32)
            .map(|n| {
                let row = format!("batch-{n:02}");
                calls::mutation(MutationKind::Put, &row, &[("f", "q", LATEST, CellType::Put, &value)])
            })
            .collect();
        let request = pb::MultiRequest {
            region_action: vec![pb::RegionAction {
                region: to_proto::region_specifier(&self.region),
                action: calls::actions(&puts),
                ..pb::RegionAction::default()
            }],
            ..pb::MultiRequest::default()
        };
        for _ in 0..1 + self.rng.below(3) {
            peer.send(Method::ClientMulti, &request, LONG_MS).await?;
        }
        peer.reply().await.map(drop)
    }

    async fn read_slowly(&self, mut peer: Peer) -> Option<()> {
        for _ in 0..10 + self.rng.below(30) {
            peer.send(Method::ClientGet, &self.get(), LONG_MS).await?;
            if self.rng.one_in(5) {
                peer.sip(self.rng.below(2_000) as usize + 1).await;
            }
        }
        // Until it is sent away.
        std::future::pending().await
    }

    async fn count(&self, mut peer: Peer) -> Option<()> {
        let group = self.rng.next_u64() | 1;
        let mut of_call = Vec::new();
        for number in 1..=10 + self.rng.below(40) {
            for _ in 0..if self.rng.one_in(5) { 2 } else { 1 } {
                let one = 1u64.to_be_bytes();
                let increment = Mutation {
                    nonce: Some(Nonce { group, number }),
                    ..calls::mutation(MutationKind::Increment, "counter", &[("f", "q", LATEST, CellType::Put, &one)])
                };
                self.counted.lock().sent.insert((group, number));
                let id = peer.send(Method::ClientMutate, &mutate(&self.region, &increment), LONG_MS).await?;
                of_call.push((id, number));
            }
            if self.rng.one_in(3) {
                self.note(&mut peer, &of_call, group).await?;
            }
        }
        loop {
            self.note(&mut peer, &of_call, group).await?;
        }
    }

    async fn note(&self, peer: &mut Peer, of_call: &[(u32, u64)], group: u64) -> Option<()> {
        let reply = peer.reply().await?;
        let number = of_call.iter().find(|(id, _)| *id == reply.id).map(|(_, number)| *number);
        if let (Some(number), Ok(_)) = (number, reply.decode::<pb::MutateResponse>()) {
            self.counted.lock().acked.insert((group, number));
        }
        Some(())
    }
}
