//! What plans come to when they are carried out, over many periods.

use crate::common::{counts, regions, servers, settings};
use basalt_balancer::stochastic::{self, Decision};
use basalt_balancer::{BalancerSettings, LoadHistory, LoadSample, RegionEntry, Snapshot, simple};
use base::{Clock, Rng, SystemClock};

/// One run; answers the number of moves, which are done.
fn period(snapshot: &mut Snapshot, settings: &BalancerSettings, rng: &Rng) -> Vec<usize> {
    match stochastic::balance(snapshot, settings, rng, &SystemClock::new()) {
        Decision::Moves(moves, walk) => {
            assert!(walk.final_cost < walk.initial_cost, "{walk:?}");
            for step in &moves {
                assert_eq!(snapshot.regions[step.region].server, step.from);
                snapshot.regions[step.region].server = step.to;
            }
            moves.iter().map(|step| step.region).collect()
        }
        _ => Vec::new(),
    }
}

/// Regions whose loads are told again in each period, with noise.
struct Loaded {
    snapshot: Snapshot,
    histories: Vec<LoadHistory>,
    totals: Vec<(u64, u64)>,
    rates: Vec<u64>,
    noise: Rng,
}

impl Loaded {
    fn new(snapshot: Snapshot, seed: u64) -> Loaded {
        let count = snapshot.regions.len();
        let noise = Rng::seeded(seed);
        let rates = (0..count).map(|n| if n % 7 == 0 { 5000 } else { 100 + noise.below(400) }).collect();
        Loaded { snapshot, histories: vec![LoadHistory::default(); count], totals: vec![(0, 0); count], rates, noise }
    }

    /// A report of every region. One that has moved counts from 0 again.
    fn report(&mut self, moved: &[usize], settings: &BalancerSettings) {
        for region in moved {
            self.totals[*region] = (0, 0);
        }
        for (region, entry) in self.snapshot.regions.iter_mut().enumerate() {
            let (reads, writes) = &mut self.totals[region];
            let rate = self.rates[region];
            // A fifth more or less.
            *reads += rate * (80 + self.noise.below(41)) / 100;
            *writes += rate / 4 * (80 + self.noise.below(41)) / 100;
            let sample = LoadSample {
                reads: *reads,
                writes: *writes,
                memstore_mb: self.noise.below(128) as u32,
                store_file_mb: 300 + (region % 5) as u32 * 100,
            };
            self.histories[region].push(sample, settings.loads_to_remember);
            entry.costs = self.histories[region].costs();
        }
    }
}

#[test]
fn a_skewed_load_evens_out_within_five_periods_and_stays() {
    let settings = settings(&[]);
    for seed in 1..=3 {
        let rng = Rng::seeded(seed);
        // All on three of ten servers.
        let snapshot = Snapshot { servers: servers(10), tables: 4, regions: regions(400, 4, |n| n % 3) };
        let mut loaded = Loaded::new(snapshot, seed);
        loaded.report(&[], &settings);
        loaded.report(&[], &settings);
        let mut moves = vec![0_u32; 400];
        for number in 0..5 {
            let moved = period(&mut loaded.snapshot, &settings, &rng);
            moved.iter().for_each(|region| moves[*region] += 1);
            loaded.report(&moved, &settings);
            assert!(number > 0 || !moved.is_empty());
        }
        let counts = counts(&loaded.snapshot);
        assert!(counts.iter().all(|count| (36..=44).contains(count)), "seed {seed}: {counts:?}");
        for table in 0..4 {
            let of_table = loaded.snapshot.regions.iter().filter(|region| region.table == table);
            let mut by_server = [0_u32; 10];
            of_table.for_each(|region| by_server[region.server] += 1);
            assert!(
                by_server.iter().all(|count| (5..=16).contains(count)),
                "seed {seed}, table {table}: {by_server:?}"
            );
        }
        // From here on the loads only waver.
        let mut later = vec![0_u32; 400];
        for _ in 0..100 {
            let moved = period(&mut loaded.snapshot, &settings, &rng);
            moved.iter().for_each(|region| later[*region] += 1);
            loaded.report(&moved, &settings);
        }
        assert!(later.iter().all(|count| *count < 2), "seed {seed}: a region moved twice in a hundred periods");
        assert!(later.iter().sum::<u32>() <= 20, "seed {seed}: {} moves without cause", later.iter().sum::<u32>());
    }
}

#[test]
fn a_server_that_joins_gets_its_share_and_no_region_moves_between_the_others_for_it() {
    let (settings, rng) = (settings(&[]), Rng::seeded(1));
    let mut snapshot = Snapshot { servers: servers(4), tables: 1, regions: regions(90, 1, |n| n % 3) };
    let before: Vec<usize> = snapshot.regions.iter().map(|region| region.server).collect();
    let moved = period(&mut snapshot, &settings, &rng);
    assert!((18..=24).contains(&counts(&snapshot)[3]), "{:?}", counts(&snapshot));
    let detours = moved.iter().filter(|region| snapshot.regions[**region].server != 3).count();
    assert!(detours <= 2, "{detours} of {} moves are between others", moved.len());
    assert!(moved.iter().all(|region| snapshot.regions[*region].server != before[*region]));
    assert!(period(&mut snapshot, &settings, &rng).is_empty());
}

#[test]
fn ten_thousand_regions_on_a_hundred_servers_are_planned_within_the_time_that_is_given() {
    let (settings, rng) = (settings(&[]), Rng::seeded(7));
    let mut snapshot = Snapshot { servers: servers(100), tables: 20, regions: regions(10_000, 20, |n| n * n % 89) };
    let clock = SystemClock::new();
    let began_us = clock.monotonic_us();
    let moved = period(&mut snapshot, &settings, &rng);
    let took_ms = clock.monotonic_us().saturating_sub(began_us) / 1000;
    println!("{} moves planned in {took_ms} ms", moved.len());
    assert!(took_ms < 31_000);
    let counts = counts(&snapshot);
    assert!(counts.iter().all(|count| (80..=120).contains(count)), "{counts:?}");
}

#[test]
fn a_walk_ends_when_its_time_is_over() {
    let settings = settings(&[
        ("hbase.master.balancer.stochastic.maxRunningTime", "50"),
        ("hbase.master.balancer.stochastic.runMaxSteps", "true"),
    ]);
    let snapshot = Snapshot { servers: servers(100), tables: 1, regions: regions(10_000, 1, |_| 0) };
    let Decision::Moves(_, walk) = stochastic::balance(&snapshot, &settings, &Rng::seeded(1), &SystemClock::new())
    else {
        panic!("everything is on one server");
    };
    assert!((50_000..5_000_000).contains(&walk.took_us) && walk.steps < 800_000_000, "{walk:?}");
}

#[test]
fn one_seed_gives_one_plan() {
    let settings = settings(&[]);
    let snapshot = Snapshot { servers: servers(5), tables: 2, regions: regions(50, 2, |n| n % 2) };
    let plan = |seed| match stochastic::balance(&snapshot, &settings, &Rng::seeded(seed), &SystemClock::new()) {
        Decision::Moves(moves, _) => moves,
        other => panic!("{other:?}"),
    };
    assert_eq!(plan(3), plan(3));
    assert_ne!(plan(3), plan(4));
}

#[test]
fn read_replicas_go_to_machines_of_their_own() {
    let replica = |server, primary, replica_id| RegionEntry {
        server,
        replica_id,
        primary: Some(primary),
        ..RegionEntry::default()
    };
    let mut all = Vec::new();
    for n in 0..9 {
        all.push(replica(n % 3, n * 2, 0));
        all.push(replica(n % 3, n * 2, 1));
    }
    let mut snapshot = Snapshot { servers: servers(3), tables: 1, regions: all };
    period(&mut snapshot, &settings(&[]), &Rng::seeded(1));
    for pair in snapshot.regions.chunks(2) {
        assert_ne!(pair[0].server, pair[1].server);
    }
    assert_eq!(counts(&snapshot), [6, 6, 6]);
}

#[test]
fn a_region_goes_where_its_files_are() {
    let mut snapshot = Snapshot { servers: servers(3), tables: 1, regions: regions(30, 1, |n| n % 3) };
    for (n, region) in snapshot.regions.iter_mut().enumerate() {
        region.costs.size_mb = 1000;
        region.localities = vec![((n + 1) % 3, 1.0)];
    }
    period(&mut snapshot, &settings(&[]), &Rng::seeded(1));
    let local = snapshot.regions.iter().enumerate().filter(|(n, region)| region.server == (n + 1) % 3).count();
    assert!(local >= 27, "{local} of 30 are with their files");
    assert!(counts(&snapshot).iter().all(|count| (9..=11).contains(count)));
}

#[test]
fn too_few_servers_and_an_even_load_are_said_in_hbases_words() {
    let settings = settings(&[]);
    let decide = |snapshot: &Snapshot| stochastic::balance(snapshot, &settings, &Rng::seeded(1), &SystemClock::new());
    let one = Snapshot { servers: servers(1), tables: 1, regions: regions(3, 1, |_| 0) };
    assert_eq!(decide(&one), Decision::TooFewServers(1));
    let even = Snapshot { servers: servers(3), tables: 1, regions: regions(9, 1, |n| n % 3) };
    let Decision::Even { reason, .. } = decide(&even) else { panic!("it is even") };
    assert_eq!(reason, "(cost1*multiplier1)+(cost2*multiplier2)+...+(costn*multipliern) = 0.0 <= 0");
    // Two more than the others have.
    let nearly = Snapshot { servers: servers(3), tables: 1, regions: regions(301, 1, |n| n % 3) };
    let Decision::Even { reason, .. } = decide(&nearly) else { panic!("it is even enough") };
    assert!(reason.ends_with("<= 0") || reason.ends_with("<= minCostNeedBalance(0.025)"), "{reason}");
}

#[test]
fn the_simple_balancer_leaves_no_server_two_more_than_another_and_moves_no_more_than_it_must() {
    let mut snapshot = Snapshot { servers: servers(4), tables: 1, regions: regions(10, 1, |n| usize::from(n >= 9)) };
    snapshot.regions.iter_mut().enumerate().for_each(|(n, region)| region.created_ms = n as u64);
    let mut all = counts(&snapshot);
    let moves = simple::balance(&snapshot, &mut all, 0.2, 0.2);
    assert!(moves.iter().all(|step| step.from == 0 && step.to != 0), "{moves:?}");
    assert_eq!((moves.len(), moves[0].region), (6, 8), "the newest goes first");
    assert!(all.iter().all(|count| [2, 3].contains(count)), "{all:?}");
    moves.iter().for_each(|step| snapshot.regions[step.region].server = step.to);
    assert_eq!(simple::balance(&snapshot, &mut all, 0.2, 0.2), []);
}

#[test]
fn the_simple_balancer_gives_what_is_left_over_to_those_that_have_fewest_in_all() {
    // Three tables of three regions on two servers: each would leave one over for the first.
    let mut all = vec![9, 0];
    let mut server_counts = [9, 0];
    for _table in 0..3 {
        let snapshot = Snapshot { servers: servers(2), tables: 1, regions: regions(3, 1, |_| 0) };
        for step in simple::balance(&snapshot, &mut all, 0.2, 0.2) {
            server_counts[step.from] -= 1;
            server_counts[step.to] += 1;
        }
    }
    assert_eq!(server_counts, all[..]);
    assert!(server_counts.iter().all(|count| (4..=5).contains(count)), "{server_counts:?}");
}

#[test]
fn a_plan_goes_by_what_the_configuration_says() {
    let clock = SystemClock::new();
    let moves = |snapshot: &Snapshot, pairs: &[(&str, &str)]| match stochastic::balance(
        snapshot,
        &settings(pairs),
        &Rng::seeded(1),
        &clock,
    ) {
        Decision::Moves(moves, _) => moves.len(),
        _ => 0,
    };
    // A third more than the others have, and costs that alone are none.
    let uneven =
        Snapshot { servers: servers(4), tables: 1, regions: regions(90, 1, |n| if n < 27 { 0 } else { 1 + n % 3 }) };
    let cheap = ("hbase.master.balancer.stochastic.minCostNeedBalance", "1");
    assert!(moves(&uneven, &[cheap, ("hbase.regions.slop", "0.1")]) > 0);
    assert_eq!(moves(&uneven, &[cheap, ("hbase.regions.slop", "-1")]), 0);
    assert!(
        moves(&uneven, &[("hbase.regions.slop", "-1"), ("hbase.master.balancer.stochastic.minCostNeedBalance", "0")])
            > 0
    );
    let simple = |overall: &str| {
        let settings = settings(&[("hbase.regions.slop", "-1"), ("hbase.regions.overallSlop", overall)]);
        simple::balance(&uneven, &mut counts(&uneven), settings.slop, settings.overall_slop).len()
    };
    assert_eq!([simple("-1") == 0, simple("0.1") == 0], [false, false], "an average is exceeded by any part of it");
    assert_eq!(simple("0.5"), 0);

    let mut elsewhere = Snapshot { servers: servers(3), tables: 1, regions: regions(30, 1, |n| n % 3) };
    for (n, region) in elsewhere.regions.iter_mut().enumerate() {
        region.costs.size_mb = 1000;
        region.localities = vec![((n + 1) % 3, 1.0)];
    }
    let racks = ("hbase.master.balancer.stochastic.rackLocalityCost", "0");
    assert!(moves(&elsewhere, &[racks]) > 0);
    assert_eq!(moves(&elsewhere, &[racks, ("hbase.master.balancer.stochastic.localityCost", "0")]), 0);

    let keep = settings(&[("hbase.master.balancer.stochastic.numRegionLoadsToRemember", "2")]).loads_to_remember;
    let mut history = LoadHistory::default();
    for reads in [0, 1000, 1010, 1020] {
        history.push(LoadSample { reads, ..LoadSample::default() }, keep);
    }
    assert_eq!(history.costs().reads, 10.0, "the rise before the last two reports is forgotten");
}
