//! A segment against a sorted model, in one thread: random cells, random seeks, both orders.
//!
//! Replay one seed with `BASALT_SEED=<n> cargo test -p basalt-memstore --test main model::`; run more with
//! `BASALT_MEMSTORE_RUNS=<n>`.

use crate::common::{Model, make_cell, random_cell, random_key, random_row, seeds};
use basalt_memstore::{Segment, SegmentId, SegmentIter};
use base::{Rng, SeqId};
use cell::{CellRef, KeyRef, Order};

fn bytes_of(cell: Option<CellRef<'_>>) -> Option<(Vec<u8>, SeqId)> {
    cell.map(|c| (c.bytes().to_vec(), c.seq_id()))
}

/// Every way of getting to a place near `key`, on a fresh and on a used iterator.
fn check_seeks(iter: &mut SegmentIter, model: &Model, key: KeyRef<'_>, seed: u64) {
    let at = model.first_not_before(key);
    assert_eq!(iter.seek(key), at < model.len(), "seed {seed}");
    assert_eq!(bytes_of(iter.current()), model.get(at), "seek, seed {seed}");
    let before = at.checked_sub(1);
    assert_eq!(iter.seek_before(key), before.is_some(), "seed {seed}");
    assert_eq!(bytes_of(iter.current()), before.and_then(|b| model.get(b)), "seek_before, seed {seed}");
    if before.is_some() {
        assert_eq!(iter.next(), at < model.len());
        assert_eq!(bytes_of(iter.current()), model.get(at), "next after seek_before, seed {seed}");
    }
}

/// A look at `key`, and on from there past one column's versions after the other's.
fn check_look(segment: &Segment, model: &Model, key: KeyRef<'_>, seed: u64) {
    let mut at = model.first_not_before(key);
    let Some(mut look) = segment.look(key) else {
        assert_eq!(at, model.len(), "look, seed {seed}");
        return;
    };
    let column = |cell: CellRef<'_>| [cell.row(), b",", cell.family(), b",", cell.qualifier()].concat();
    loop {
        assert_eq!(bytes_of(Some(look.cell())), model.get(at), "look, seed {seed}");
        let passed = column(look.cell());
        let goes_on = look.pass_versions();
        at += 1;
        while at < model.len() && (!goes_on || model.get(at) != bytes_of(Some(look.cell()))) {
            let (bytes, seq_id) = model.get(at).expect("there");
            assert_eq!(column(CellRef::from_checked(&bytes, seq_id)), passed, "passed over, seed {seed}");
            at += 1;
        }
        assert_eq!(goes_on, at < model.len(), "seed {seed}");
        if !goes_on {
            return;
        }
    }
}

fn run(order: Order, seed: u64) {
    let rng = Rng::seeded(seed);
    // What rows are expected to begin with may be right, right for some, or wrong.
    let expected = if rng.one_in(2) { random_row(&rng, order) } else { Vec::new() };
    let segment = Segment::expecting(order, SegmentId(1), &expected);
    let mut model = Model::new(order);
    let rounds = 20 + rng.below(40);
    let (mut seq, mut inserted) = (1, 0);
    for _ in 0..rounds {
        // Batches as a region makes them: one sequence id, sometimes sorted, sometimes with repeats.
        seq += rng.below(2);
        let mut batch: Vec<Vec<u8>> = (0..1 + rng.below(30)).map(|_| random_cell(&rng, order)).collect();
        if rng.one_in(2) {
            batch.sort_by(|a, b| order.cells(CellRef::from_checked(a, SeqId(0)), CellRef::from_checked(b, SeqId(0))));
        }
        if rng.one_in(3) {
            let again = batch[rng.below(batch.len() as u64) as usize].clone();
            batch.push(again);
        }
        let mut inserter = segment.inserter();
        for kv in &batch {
            let cell = CellRef::from_checked(kv, SeqId(seq));
            inserter.insert(cell);
            model.insert(kv.clone(), SeqId(seq));
        }
        let data_bytes: usize = batch.iter().map(Vec::len).sum();
        inserted += batch.len();
        let growth = inserter.finish();
        assert_eq!((growth.cells, growth.data_bytes), (batch.len(), data_bytes), "seed {seed}");

        let mut iter = segment.iter();
        for _ in 0..10 {
            let key = random_key(&rng, order, &model);
            check_seeks(&mut iter, &model, KeyRef::from_checked(&key), seed);
        }
        let key = random_key(&rng, order, &model);
        check_look(&segment, &model, KeyRef::from_checked(&key), seed);
    }
    assert_eq!(segment.len(), inserted, "seed {seed}");
    assert_eq!(segment.max_seq(), SeqId(seq), "seed {seed}");

    // A whole walk, and forward seeks of growing keys along it.
    let mut iter = segment.iter();
    let mut on = iter.seek_to_first();
    for i in 0..model.len() {
        assert!(on, "seed {seed}");
        assert_eq!(bytes_of(iter.current()), model.get(i), "cell {i}, seed {seed}");
        on = iter.next();
    }
    assert!(!on && iter.current().is_none() && !iter.next(), "seed {seed}");
    assert!(iter.seek_to_last());
    assert_eq!(bytes_of(iter.current()), model.get(model.len() - 1), "seed {seed}");

    for _ in 0..20 {
        let mut keys: Vec<Vec<u8>> = (0..1 + rng.below(12)).map(|_| random_key(&rng, order, &model)).collect();
        keys.sort_by(|a, b| order.keys(KeyRef::from_checked(a), KeyRef::from_checked(b)));
        let mut iter = segment.iter();
        assert!(!iter.reseek(KeyRef::from_checked(&keys[0])), "a reseek from nowhere stays nowhere");
        iter.seek_to_first();
        for key in &keys {
            let key = KeyRef::from_checked(key);
            let at = model.first_not_before(key);
            assert_eq!(iter.reseek(key), at < model.len(), "seed {seed}");
            assert_eq!(bytes_of(iter.current()), model.get(at), "reseek, seed {seed}");
        }
    }
}

#[test]
fn a_segment_does_what_a_sorted_vector_does() {
    for seed in seeds(40) {
        run(Order::User, seed);
        run(Order::Meta, seed);
    }
}

/// Inserters that take turns leave each other's remembered places stale.
#[test]
fn inserters_taking_turns_do_what_a_sorted_vector_does() {
    for seed in seeds(20) {
        let rng = Rng::seeded(seed);
        let segment = Segment::new(Order::User, SegmentId(1));
        let mut model = Model::new(Order::User);
        let mut inserters: Vec<_> = (0..3).map(|_| segment.inserter()).collect();
        for _ in 0..600 {
            let seq = SeqId(rng.below(3));
            let inserter = &mut inserters[rng.below(3) as usize];
            if rng.one_in(4) {
                let some: Vec<_> = (0..rng.below(20)).map(|_| random_cell(&rng, Order::User)).collect();
                inserter.insert_all(&some.iter().map(|kv| CellRef::from_checked(kv, seq)).collect::<Vec<_>>());
                some.into_iter().for_each(|kv| model.insert(kv, seq));
                continue;
            }
            let kv = random_cell(&rng, Order::User);
            inserter.insert(CellRef::from_checked(&kv, seq));
            model.insert(kv, seq);
        }
        drop(inserters);
        let mut iter = segment.iter();
        for i in 0..model.len() {
            assert!(if i == 0 { iter.seek_to_first() } else { iter.next() }, "cell {i}, seed {seed}");
            assert_eq!(bytes_of(iter.current()), model.get(i), "cell {i}, seed {seed}");
        }
        for _ in 0..200 {
            let key = random_key(&rng, Order::User, &model);
            check_seeks(&mut iter, &model, KeyRef::from_checked(&key), seed);
        }
    }
}

#[test]
fn of_equal_cells_the_newest_insert_is_met() {
    let segment = Segment::new(Order::User, SegmentId(1));
    let mut inserter = segment.inserter();
    for value in ["one", "two", "three"] {
        let kv = make_cell(b"r", b"q", 5, 4, value.as_bytes(), b"");
        inserter.insert(CellRef::from_checked(&kv, SeqId(9)));
    }
    // A newer sequence id stands before all of them, an older one after, whenever it comes.
    for (seq, value) in [(10, "newer"), (8, "older"), (10, "newer again")] {
        let kv = make_cell(b"r", b"q", 5, 4, value.as_bytes(), b"");
        inserter.insert(CellRef::from_checked(&kv, SeqId(seq)));
    }
    drop(inserter);
    let mut iter = segment.iter();
    let mut values = Vec::new();
    let mut on = iter.seek_to_first();
    while on {
        values.push(String::from_utf8(iter.current().expect("on a cell").value().to_vec()).expect("text"));
        on = iter.next();
    }
    assert_eq!(values, ["newer again", "three", "older"]);
}

#[test]
fn rows_that_share_their_first_eight_bytes_or_are_shorter_sort_right() {
    let rows: [&[u8]; 12] = [
        b"",
        b"\0",
        b"\0\0",
        b"a",
        b"a\0",
        b"a\0\0\0\0\0\0\0",
        b"a\0\0\0\0\0\0\0\0",
        b"aaaaaaaa",
        b"aaaaaaaa\0",
        b"aaaaaaaab",
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    ];
    let segment = Segment::new(Order::User, SegmentId(1));
    for i in [5, 0, 11, 3, 8, 1, 9, 2, 10, 4, 7, 6] {
        let kv = make_cell(rows[i], b"q", 5, 4, b"v", b"");
        segment.insert(CellRef::from_checked(&kv, SeqId(1)));
    }
    let mut iter = segment.iter();
    let mut on = iter.seek_to_first();
    for row in rows {
        assert!(on);
        assert_eq!(iter.current().expect("on a cell").row(), row);
        on = iter.next();
    }
}

/// Enough rows for every table of their beginnings but the largest; cells that become the first of their row come early and late.
#[test]
fn rows_of_a_large_segment_are_found_where_they_begin() {
    for seed in seeds(3) {
        let rng = Rng::seeded(seed);
        let expected = [b"".as_slice(), b"user00000000", b"user000000004", b"usurer"][rng.below(4) as usize];
        let new_segment = || Segment::expecting(Order::User, SegmentId(1), expected);
        let segment = new_segment();
        let mut model = std::collections::BTreeMap::new();
        let (mut heap_bytes, mut numbers) = (0, (0..9000_u32).collect::<Vec<_>>());
        (1..numbers.len()).for_each(|i| numbers.swap(i, rng.below(i as u64 + 1) as usize));
        for (step, number) in numbers.iter().enumerate() {
            // Sometimes a row that is there already.
            let number = if rng.one_in(3) { numbers[rng.below(step as u64 + 1) as usize] } else { *number };
            let row = format!("user{number:012}");
            let mut inserter = segment.inserter();
            for _ in 0..1 + rng.below(3) {
                let qualifier = format!("q{}", rng.below(6));
                let seq = SeqId(step as u64 + 1);
                inserter.insert(CellRef::from_checked(
                    &make_cell(row.as_bytes(), qualifier.as_bytes(), 5, 4, b"v", b""),
                    seq,
                ));
                model.insert((row.clone(), qualifier, u64::MAX - seq.0), ());
            }
            heap_bytes += inserter.finish().heap_bytes;
            if step % 3 > 0 {
                continue;
            }
            let wanted = numbers[rng.below(if rng.one_in(10) { 9000 } else { step as u64 + 1 }) as usize];
            let wanted = format!("user{wanted:012}");
            let qualifier = if rng.one_in(2) { String::new() } else { format!("q{}", rng.below(7)) };
            let mut key = Vec::new();
            KeyRef::write(&mut key, wanted.as_bytes(), b"f", qualifier.as_bytes(), i64::MAX, 255);
            let expected = model.range((wanted, qualifier, 0)..).next();
            let mut iter = segment.iter();
            assert_eq!(iter.seek(KeyRef::from_checked(&key)), expected.is_some(), "seed {seed}, step {step}");
            let found = iter.current().map(|cell| (cell.row().to_vec(), cell.qualifier().to_vec(), cell.seq_id().0));
            let expected = expected.map(|((row, qualifier, seq), ())| {
                (row.clone().into_bytes(), qualifier.clone().into_bytes(), u64::MAX - seq)
            });
            assert_eq!(found, expected, "seed {seed}, step {step}");
        }
        // Updates were linked in from their row's beginning: nothing may be out of its order.
        let mut iter = segment.iter();
        let mut on = iter.seek_to_first();
        for (row, qualifier, seq) in model.keys() {
            assert!(on, "seed {seed}: the segment ends before {row}");
            let found = iter.current().map(|cell| (cell.row().to_vec(), cell.qualifier().to_vec(), cell.seq_id().0));
            let expected = (row.clone().into_bytes(), qualifier.clone().into_bytes(), u64::MAX - seq);
            assert_eq!(found, Some(expected), "seed {seed}");
            on = iter.next();
        }
        assert!(!on, "seed {seed}: the segment has more than it should");
        let overhead = new_segment().heap_bytes();
        assert_eq!(segment.heap_bytes(), heap_bytes + overhead, "seed {seed}");
    }
}

#[test]
fn versions_that_came_one_after_the_other_are_passed_at_once() {
    let segment = Segment::new(Order::User, SegmentId(1));
    for time in 1..=1000 {
        for qualifier in [b"a", b"b"] {
            segment
                .insert(CellRef::from_checked(&make_cell(b"row", qualifier, time, 4, b"v", b""), SeqId(time as u64)));
        }
    }
    let mut key = Vec::new();
    KeyRef::write(&mut key, b"row", b"", b"", i64::MAX, 255);
    let mut look = segment.look(KeyRef::from_checked(&key)).expect("a cell");
    assert_eq!((look.cell().qualifier(), look.cell().timestamp()), (&b"a"[..], 1000));
    assert!(look.pass_versions());
    assert_eq!((look.cell().qualifier(), look.cell().timestamp()), (&b"b"[..], 1000));
    assert!(!look.pass_versions());
}
