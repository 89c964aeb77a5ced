use super::*;

fn decimal(unscaled: i128, scale: i32) -> Comparator {
    Comparator::BigDecimal(BigDecimal::new(unscaled, scale))
}

#[test]
fn decimals_compare_by_value_whatever_their_scale() {
    let cases = [
        ((5, 0), (500, 2), Ordering::Equal),
        ((-5, 0), (-501, 2), Ordering::Greater),
        ((1, -30), (i128::MAX, 9), Ordering::Greater),
        ((0, 7), (0, -3), Ordering::Equal),
        ((1, i32::MIN), (1, i32::MAX), Ordering::Greater),
        ((-1, i32::MIN), (1, i32::MAX), Ordering::Less),
        ((10, 1), (1, 0), Ordering::Equal),
        ((i128::MIN, 40), (-2, 0), Ordering::Greater),
        ((10i128.pow(38), 50), (1, 12), Ordering::Equal),
        ((10i128.pow(38) + 1, 50), (1, 12), Ordering::Greater),
    ];
    for ((a, a_scale), (b, b_scale), order) in cases {
        let (left, right) = (decimal(a, a_scale), decimal(b, b_scale));
        assert_eq!(left.compare(&right.value_bytes()), Ok(order), "{left:?} {right:?}");
        assert_eq!(right.compare(&left.value_bytes()), Ok(order.reverse()), "{right:?} {left:?}");
    }
    assert_eq!(decimal(1, 0).compare(b"\0\0\0\0").map_err(|e| e.kind), Err(ErrorKind::NullPointer));
}

#[test]
fn large_decimals_compare_and_monstrous_ones_are_refused() {
    let zeros = |count: usize| [&[0, 0, 0, 0, 1][..], &vec![0; count]].concat();
    let large = Comparator::big_decimal_from_bytes(&zeros(100)).expect("a number");
    assert_eq!(large.compare(&zeros(100)), Ok(Ordering::Equal));
    assert_eq!(large.compare(&zeros(101)), Ok(Ordering::Less));
    let mut padded = vec![0, 0, 0, 0, 0, 0];
    padded.extend_from_slice(&zeros(100)[4..]);
    assert_eq!(large.compare(&padded), Ok(Ordering::Equal), "leading sign bytes do not count");
    // A megabyte of number against its equal in digits under another scale.
    let mut monster = zeros(1 << 20);
    monster[..4].copy_from_slice(&2_525_222i32.to_be_bytes());
    assert_eq!(decimal(1, 0).compare(&monster).map_err(|e| e.kind), Err(ErrorKind::Arithmetic));
}

#[test]
fn parts_of_the_wrong_shape_are_errors_or_read_as_far_as_they_go() {
    let component = Comparator::BinaryComponent { value: Bytes::from_static(b"bc"), offset: 1 };
    assert_eq!(component.compare(b"abcd"), Ok(Ordering::Equal));
    assert_eq!(component.compare(b"ab").map_err(|e| e.kind), Err(ErrorKind::IndexOutOfBounds));
    assert_eq!(component.compare(b"").map_err(|e| e.kind), Err(ErrorKind::IndexOutOfBounds));
    let five = Comparator::Long { value: 5 };
    assert_eq!(five.compare(&5i64.to_be_bytes()), Ok(Ordering::Equal));
    assert_eq!(five.compare(b"\0\0"), Ok(Ordering::Greater));
    assert_eq!(Comparator::long_from_bytes(b"1234567").map_err(|e| e.kind), Err(ErrorKind::IllegalArgument));
}

#[test]
fn text_is_found_in_any_case() {
    let comparator = Comparator::substring("ÄB");
    assert_eq!(comparator.compare("xäbx".as_bytes()), Ok(Ordering::Equal));
    assert_eq!(comparator.compare(b"xabx"), Ok(Ordering::Greater));
    assert_eq!(Comparator::substring("Row").compare(b"my ROW"), Ok(Ordering::Equal));
    assert_eq!(Comparator::substring("").compare(b""), Ok(Ordering::Equal));
}
