//! What the core workload asks for and in which shares.

use super::*;
use crate::ycsb::presets::preset;

fn core(more: &[(&str, &str)], base: &str) -> Arc<Core> {
    let mut properties = Properties::default();
    properties.read(preset(base).expect("built in"));
    for (name, value) in more {
        properties.set(name, value);
    }
    Arc::new(Core::new(&properties).expect("a good workload"))
}

fn play(core: &Arc<Core>, draws: usize) -> Vec<Operation> {
    let mut player = Player::new(core.clone(), Rng::seeded(11));
    (0..draws).map(|_| player.transaction().expect("there are operations")).collect()
}

#[test]
fn keys_are_ycsbs() {
    let hashed = core(&[], "workloadc");
    let want = ["user6284781860667377211", "user8517097267634966620", "user1820151046732198393"];
    assert_eq!([0, 1, 2].map(|n| hashed.key(n)), want);
    let ordered = core(&[("insertorder", "ordered"), ("zeropadding", "8")], "workloadc");
    assert_eq!([ordered.key(7), ordered.key(123_456_789)], ["user00000007", "user123456789"]);
}

#[test]
fn proportions_are_kept_and_keys_are_those_loaded() {
    for (name, shares) in [
        ("workloada", [0.5, 0.5, 0.0, 0.0, 0.0]),
        ("workloadb", [0.95, 0.05, 0.0, 0.0, 0.0]),
        ("workloadc", [1.0, 0.0, 0.0, 0.0, 0.0]),
        ("workloadd", [0.95, 0.0, 0.05, 0.0, 0.0]),
        ("workloade", [0.0, 0.0, 0.05, 0.95, 0.0]),
        ("workloadf", [0.5, 0.0, 0.0, 0.0, 0.5]),
    ] {
        let core = core(&[("operationcount", "5000")], name);
        let loaded: std::collections::HashSet<String> = (0..1000).map(|n| core.key(n)).collect();
        let mut counts = [0_u32; 5];
        for operation in play(&core, 5000) {
            let (slot, key) = match &operation {
                Operation::Read { key, fields: None } => (0, Some(key)),
                Operation::Update { key, values } if values.len() == 1 => (1, Some(key)),
                Operation::Insert { values, .. } if values.len() == 10 => (2, None),
                Operation::Scan { key, records: 1..=100, fields: None } => (3, Some(key)),
                Operation::ReadModifyWrite { key, values, .. } if values.len() == 1 => (4, Some(key)),
                other => panic!("{name}: {other:?}"),
            };
            counts[slot] += 1;
            assert!(key.is_none_or(|key| loaded.contains(key)), "{name}: {key:?} was never loaded");
        }
        for (count, share) in counts.into_iter().zip(shares) {
            assert!((f64::from(count) / 5000.0 - share).abs() < 0.03, "{name}: {counts:?}");
        }
    }
}

#[test]
fn values_are_printable_and_of_their_length() {
    let core = core(&[("fieldcount", "3"), ("fieldlength", "40")], "workloada");
    let mut player = Player::new(core, Rng::seeded(1));
    let Operation::Insert { number: 0, key, values } = player.load() else { panic!("an insert") };
    assert_eq!((key.as_str(), values.len()), ("user6284781860667377211", 3));
    for (_, value) in &values {
        assert!(value.len() == 40 && value.iter().all(|b| (b' '..127 + b' ').contains(b)));
    }
}

#[test]
fn deterministic_values_are_those_of_ycsb() {
    // ":" and the hash of all before, again and again; the hash of "user1:field0:" is Java's
    let value = deterministic_value("user1", "field0", 40);
    let hash = "user1:field0:".bytes().fold(0_i32, |h, b| h.wrapping_mul(31).wrapping_add(i32::from(b)));
    assert!(value.starts_with(&format!("user1:field0:{hash}:")), "{value}");
    assert_eq!(value.len(), 40);
    let core = core(&[("dataintegrity", "true")], "workloada");
    let mut player = Player::new(core.clone(), Rng::seeded(1));
    let Operation::Insert { key, values, .. } = player.load() else { panic!("an insert") };
    assert!(values.iter().all(|(field, value)| core.verify(&key, field, value)));
    assert!(!core.verify(&key, b"field0", &values[1].1));
    let Some(Operation::Read { fields: Some(fields), .. }) =
        std::iter::repeat_with(|| player.transaction()).find(|o| matches!(o, Some(Operation::Read { .. }))).flatten()
    else {
        panic!("a read by names")
    };
    assert_eq!(fields.len(), 10);
}

#[test]
fn wrong_properties_are_named() {
    for (name, value) in [
        ("recordcount", "many"),
        ("requestdistribution", "normal"),
        ("scanlengthdistribution", "latest"),
        ("fieldlengthdistribution", "normal"),
        ("insertcount", "2000"),
    ] {
        let mut properties = Properties::default();
        properties.read("recordcount=1000");
        properties.set(name, value);
        assert!(Core::new(&properties).is_err(), "{name}={value}");
    }
}
