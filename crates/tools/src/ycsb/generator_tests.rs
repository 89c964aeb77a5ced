//! The distributions against what is published of them.

use super::*;

const DRAWS: usize = 400_000;

fn count(mut generator: Generator, items: usize, newest: i64) -> Vec<f64> {
    let rng = Rng::seeded(4);
    let mut counts = vec![0_u32; items];
    for _ in 0..DRAWS {
        counts[generator.next(&rng, newest) as usize] += 1;
    }
    counts.into_iter().map(|n| f64::from(n) / DRAWS as f64).collect()
}

/// The sum of `1 / k^theta` for `k` up to `n`, by Euler and Maclaurin's formula: ten thousand million terms in no time.
fn zeta_by_formula(n: f64, theta: f64) -> f64 {
    let start = 1000_f64;
    let head: f64 = (1..1000).map(|k| f64::from(k).powf(-theta)).sum();
    let integral = (n.powf(1.0 - theta) - start.powf(1.0 - theta)) / (1.0 - theta);
    let ends = (start.powf(-theta) + n.powf(-theta)) / 2.0;
    let slope = theta / 12.0 * (start.powf(-theta - 1.0) - n.powf(-theta - 1.0));
    head + integral + ends + slope
}

#[test]
fn the_published_zeta_is_that_of_ten_thousand_million_items() {
    let zetan = zeta_by_formula(SCRAMBLED_ITEM_COUNT as f64, ZIPFIAN_CONSTANT);
    assert!((zetan - SCRAMBLED_ZETAN).abs() < 1e-6, "{zetan}");
    assert!((zeta(0, 50_000, ZIPFIAN_CONSTANT, 0.0) - zeta_by_formula(50_000.0, ZIPFIAN_CONSTANT)).abs() < 1e-9);
}

#[test]
fn zipfian_frequencies_follow_the_law() {
    // The first two ranks are drawn exactly, the rest by the quick formula: near the law in sum.
    let items = 1000;
    let shares = count(Generator::Zipfian(Zipfian::new(0, items as i64 - 1)), items, 0);
    let zetan = zeta(0, items as i64, ZIPFIAN_CONSTANT, 0.0);
    for (rank, share) in shares.iter().enumerate().take(2) {
        let want = 1.0 / ((rank + 1) as f64).powf(ZIPFIAN_CONSTANT) / zetan;
        assert!((share / want - 1.0).abs() < 0.03, "rank {rank}: {share} for {want}");
    }
    for top in [10, 100, 500] {
        let want = zeta(0, top, ZIPFIAN_CONSTANT, 0.0) / zetan;
        let share: f64 = shares[..top as usize].iter().sum();
        assert!((share / want - 1.0).abs() < 0.05, "top {top}: {share} for {want}");
    }
}

#[test]
fn scrambled_zipfian_gives_its_hottest_key_its_share_and_reaches_most() {
    let items = 1000;
    let mut shares = count(Generator::scrambled(0, items as i64 - 1), items, 0);
    // The hottest of 10^10 items, and by chance some of the rest of them.
    let hottest = fnv_hash(0) as usize % items;
    assert!(shares[hottest] > 1.0 / SCRAMBLED_ZETAN, "{}", shares[hottest]);
    assert!(shares[hottest] < 1.1 / SCRAMBLED_ZETAN, "{}", shares[hottest]);
    shares.sort_by(f64::total_cmp);
    assert_eq!(shares.last(), shares.iter().max_by(|a, b| a.total_cmp(b)));
    assert!(shares.iter().filter(|s| **s > 0.0).count() > items * 99 / 100);
}

#[test]
fn latest_prefers_the_newest_and_follows_it() {
    let shares = count(Generator::latest(999), 1000, 999);
    assert!(shares[999] > shares[998] && shares[998] > shares[900]);
    assert!(shares[990..].iter().sum::<f64>() > 0.3);
    let (rng, mut generator) = (Rng::seeded(1), Generator::latest(1000));
    let newest = |generator: &mut Generator, n| (0..2000).map(|_| generator.next(&rng, n)).max();
    assert_eq!(newest(&mut generator, 1500), Some(1500));
    assert_eq!(newest(&mut generator, 2500), Some(2500));
}

#[test]
fn hotspot_exponential_uniform_and_sequential_keep_their_shares() {
    let shares = count(Generator::hotspot(0, 999, 0.2, 0.8), 1000, 0);
    let hot: f64 = shares[..200].iter().sum();
    assert!((hot - 0.8).abs() < 0.01, "{hot}");
    // 95 percent of the draws lie within the range
    let (rng, mut generator) = (Rng::seeded(2), Generator::exponential(95.0, 1000.0));
    let near = (0..DRAWS).filter(|_| generator.next(&rng, 10_000) > 9_000).count();
    assert!((near as f64 / DRAWS as f64 - 0.95).abs() < 0.01, "{near}");
    let shares = count(Generator::Uniform(0, 9), 10, 0);
    assert!(shares.iter().all(|s| (s - 0.1).abs() < 0.005), "{shares:?}");
    let (rng, mut generator) = (Rng::seeded(3), Generator::sequential(5, 7));
    let mut other = generator.clone();
    assert_eq!([5, 6, 7, 5], [0; 4].map(|_| generator.next(&rng, 0)));
    assert_eq!(other.next(&rng, 0), 6, "clients share the sequence");
}

#[test]
fn histograms_are_read() {
    let mut generator = Generator::histogram("BlockSize\t10\n0\t0\n1\t5\n2\t5\n").expect("well formed");
    let rng = Rng::seeded(1);
    assert!((0..100).all(|_| [10, 20].contains(&generator.next(&rng, 0))));
    for bad in ["", "Size\t1\n", "BlockSize\tx\n", "BlockSize\t1\n0\n", "BlockSize\t1\n0\t0\n"] {
        assert!(Generator::histogram(bad).is_none(), "{bad:?}");
    }
}

#[test]
fn inserts_count_when_all_before_them_are_there() {
    let counter = AcknowledgedCounter::new(100);
    let numbers: Vec<i64> = (0..4).map(|_| counter.next()).collect();
    assert_eq!((numbers, counter.last()), (vec![100, 101, 102, 103], 99));
    counter.acknowledge(101);
    assert_eq!(counter.last(), 99);
    counter.acknowledge(100);
    assert_eq!(counter.last(), 101);
    counter.acknowledge(103);
    counter.acknowledge(102);
    assert_eq!(counter.last(), 103);
}
