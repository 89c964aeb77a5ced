use super::*;
use base::SeqId;
use cell::CellSpec;

fn add(list: &SkipList, splice: &mut Splice, row: &str, height: usize) -> *mut Header {
    let mut kv = Vec::new();
    let row = row.as_bytes();
    CellSpec { row, family: b"f", qualifier: b"q", timestamp: 5, type_code: 4, value: b"v", tags: b"" }.write(&mut kv);
    let (node, _) = Node::create(&list.arena, &list.shape, CellRef::from_checked(&kv, SeqId(1)), None, height);
    let needle = Needle::for_node(node);
    list.height.fetch_max(height, Relaxed);
    list.aim(splice, &needle, list.height());
    list.link(splice, &needle, node);
    node.as_ptr()
}

fn rows_on(list: &SkipList, level: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut at = list.next_of(None, level);
    while let Some(node) = at {
        rows.push(String::from_utf8(node.cell().row().to_vec()).expect("text"));
        at = list.next_of(Some(node), level);
    }
    rows
}

/// While "n" was being linked, another thread put "s" behind it: seen by the splice on the upper level, not below.
#[test]
fn a_splice_that_missed_a_node_below_is_not_believed_above() {
    let list = SkipList::new(Order::User, &[]);
    let (mut splice, mut other) = (Splice::new(), Splice::new());
    add(&list, &mut splice, "y", 2);
    add(&list, &mut splice, "n", 2);
    splice.next[1] = add(&list, &mut other, "s", 2);
    add(&list, &mut splice, "u", 2);
    for level in 0..2 {
        assert_eq!(rows_on(&list, level), ["n", "s", "u", "y"], "level {level}");
    }
}

#[test]
fn a_splice_left_behind_by_others_is_repaired() {
    let list = SkipList::new(Order::User, &[]);
    let (mut splice, mut other) = (Splice::new(), Splice::new());
    add(&list, &mut splice, "b", 3);
    for (row, height) in [("d", 1), ("c", 4), ("a", 2), ("f", 3)] {
        add(&list, &mut other, row, height);
    }
    add(&list, &mut splice, "e", 4);
    assert_eq!(rows_on(&list, 0), ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(rows_on(&list, 1), ["a", "b", "c", "e", "f"]);
    assert_eq!(rows_on(&list, 2), ["b", "c", "e", "f"]);
    assert_eq!(rows_on(&list, 3), ["c", "e"]);
}

/// What an insert by its row's first node leaves: below it is right, of what is above nothing is known. Searching there from the first node of
/// the list made every fourth insert as long as the list.
#[test]
fn a_splice_of_few_levels_is_no_place_to_start_from_above() {
    let list = SkipList::new(Order::User, &[]);
    let nodes: Vec<*mut Header> =
        ["a", "b", "c", "d"].map(|row| add(&list, &mut Splice::new(), row, 3)).into_iter().collect();
    let mut splice = Splice::new();
    (splice.height, splice.previous[0], splice.next[0]) = (1, nodes[2], nodes[3]);
    let mut key = Vec::new();
    cell::KeyRef::write(&mut key, b"cc", b"f", b"q", 5, 4);
    list.aim(&mut splice, &Needle::before_key(&list.shape, cell::KeyRef::from_checked(&key)), list.height());
    assert_eq!((splice.height, &splice.previous[..3], &splice.next[..3]), (3, &[nodes[2]; 3][..], &[nodes[3]; 3][..]));
}

#[test]
fn each_level_has_about_a_quarter_of_the_one_below() {
    let mut counts = [0usize; MAX_HEIGHT];
    for draw in 0..1 << 20 {
        counts[SkipList::height_for(draw) - 1] += 1;
    }
    let on_level = |level: usize| counts[level..].iter().sum::<usize>();
    assert_eq!(on_level(0), 1 << 20);
    for level in 1..6 {
        let expected = (1 << 20) >> (2 * level);
        assert!(
            on_level(level).abs_diff(expected) < expected / 4,
            "level {level}: {}, not {expected}",
            on_level(level)
        );
    }
}
