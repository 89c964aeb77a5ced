//! The bytes of Phoenix's own `PDataType` (`phoenix/Golden.java` made them once), and the order of random values.

use basalt_sql_types::{Decimal, KeyColumn, KeyLayout, Order, SqlType, TypeError, Value};

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).expect("hexadecimal")).collect()
}

fn decimal(text: &str) -> Decimal {
    let scale = text.split_once('.').map_or(0, |(_, behind)| behind.len()) as i32;
    // What is longer than an i128 has zeros at its end.
    let mut digits = text.replace('.', "");
    let mut scale = scale;
    while digits.len() > 30 && digits.ends_with('0') {
        digits.pop();
        scale -= 1;
    }
    Decimal { unscaled: digits.parse().expect("digits"), scale }
}

fn value<'a>(of: SqlType, text: &'a str, bytes: &'a mut Vec<u8>) -> Value<'a> {
    let int = || text.parse::<i64>().expect("an integer");
    let bits = || u64::from_str_radix(text, 16).expect("bits");
    match of {
        SqlType::Float | SqlType::UnsignedFloat => Value::Float(f32::from_bits(bits() as u32)),
        SqlType::Double | SqlType::UnsignedDouble => Value::Double(f64::from_bits(bits())),
        SqlType::Decimal => Value::Decimal(decimal(text)),
        SqlType::Varchar | SqlType::Char(_) => Value::Text(text),
        SqlType::Varbinary | SqlType::Binary(_) => {
            *bytes = unhex(text);
            Value::Bytes(bytes)
        }
        SqlType::Boolean => Value::Bool(text == "true"),
        SqlType::Date | SqlType::Time | SqlType::UnsignedDate | SqlType::UnsignedTime => Value::Millis(int()),
        SqlType::Timestamp | SqlType::UnsignedTimestamp => {
            let (ms, nanos) = text.split_once(' ').expect("two numbers");
            Value::Timestamp { ms: ms.parse().expect("ms"), nanos: nanos.parse().expect("ns") }
        }
        _ => Value::Int(int()),
    }
}

#[test]
fn every_type_writes_phoenixs_bytes_and_reads_them() {
    let mut types = std::collections::HashSet::new();
    let lines = include_str!("golden.tsv").lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let [name, text, ascending, descending] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("four fields in {line:?}")
        };
        let of: SqlType = name.parse().expect("a type");
        let (ascending, descending) = (unhex(ascending), unhex(descending));
        let mut turned = ascending.clone();
        of.invert(&mut turned);
        assert_eq!(turned, descending, "{line}");
        if text == "NULL" {
            assert_eq!(of.decode(&ascending), Ok(None), "{line}");
            continue;
        }
        types.insert(of);
        let mut scratch = Vec::new();
        let value = value(of, text, &mut scratch);
        let mut bytes = Vec::new();
        of.encode(&value, &mut bytes).expect(line);
        assert_eq!(bytes, ascending, "{line}");
        let read = of.decode(&ascending).expect(line).expect(line);
        match (value, read) {
            (Value::Decimal(a), Value::Decimal(b)) => assert_eq!(a.normalized(), b, "{line}"),
            (Value::Float(a), Value::Float(b)) => assert_eq!(a.to_bits(), b.to_bits(), "{line}"),
            (Value::Double(a), Value::Double(b)) => assert_eq!(a.to_bits(), b.to_bits(), "{line}"),
            (Value::Bytes(a), Value::Bytes(b)) => assert!(b.starts_with(a), "{line}"),
            (a, b) => assert_eq!(a, b, "{line}"),
        }
    }
    assert_eq!(types.len(), 24, "{types:?}");
}

/// xorshift64*: the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Small and large numbers alike.
    fn int(&mut self) -> i64 {
        let shift = self.next() % 64;
        self.next() as i64 >> shift
    }
}

fn bytes_of(of: SqlType, value: Value<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    of.encode(&value, &mut bytes).expect("in range");
    bytes
}

#[test]
fn bytes_sort_as_a_million_random_pairs_of_values_do() {
    let mut random = Random(24);
    for _ in 0..250_000 {
        let (a, b) = (random.int(), random.int());
        assert_eq!(bytes_of(SqlType::BigInt, Value::Int(a)).cmp(&bytes_of(SqlType::BigInt, Value::Int(b))), a.cmp(&b));
        let (a, b) = (f64::from_bits(random.next()), f64::from_bits(random.next()));
        if let Some(order) = a.partial_cmp(&b) {
            let bytes = |v| bytes_of(SqlType::Double, Value::Double(v));
            assert_eq!(bytes(a).cmp(&bytes(b)), order, "{a} {b}");
        }
        let (a, b) = (f32::from_bits(random.next() as u32), f32::from_bits(random.next() as u32));
        if let Some(order) = a.partial_cmp(&b) {
            let bytes = |v| bytes_of(SqlType::Float, Value::Float(v));
            assert_eq!(bytes(a).cmp(&bytes(b)), order, "{a} {b}");
        }
        let mut number = || Decimal { unscaled: random.int().into(), scale: (random.next() % 9) as i32 };
        let (a, b) = (number(), number());
        let (wide_a, wide_b) = (a.rescaled(9).expect("small"), b.rescaled(9).expect("small"));
        let bytes = |v| bytes_of(SqlType::Decimal, Value::Decimal(v));
        assert_eq!(bytes(a).cmp(&bytes(b)), wide_a.unscaled.cmp(&wide_b.unscaled), "{a:?} {b:?}");
    }
}

#[test]
fn random_bytes_are_a_value_or_an_error() {
    let mut random = Random(7);
    let types = ["tinyint", "unsigned_long", "float", "decimal", "char(3)", "varchar", "boolean", "date", "timestamp"];
    for _ in 0..100_000 {
        let bytes: Vec<u8> = (0..random.next() % 24).map(|_| random.next() as u8).collect();
        for name in types {
            let of: SqlType = name.parse().expect("a type");
            let _ = of.decode(&bytes);
        }
    }
}

#[test]
fn arrays_are_phoenixs() {
    let text = include_str!("golden-arrays.tsv");
    let mut count = 0;
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, elements, hex] = fields[..] else { panic!("{line}") };
        let of: SqlType = name.parse().expect("a type");
        // What is long is written `a*70000`.
        let long = |text: &str| match text.split_once('*') {
            Some((letter, times)) => letter.repeat(times.parse().expect("a number")),
            None => text.to_owned(),
        };
        let texts: Vec<String> = elements.split(',').map(long).collect();
        let mut scratches = vec![Vec::new(); texts.len()];
        let both = texts.iter().zip(&mut scratches);
        let values: Vec<Option<Value<'_>>> =
            both.map(|(text, scratch)| (text != "NULL").then(|| value(of, text, scratch))).collect();
        let mut bytes = Vec::new();
        basalt_sql_types::encode_array(of, &values, &mut bytes).expect("an array");
        match hex.split_once('.') {
            Some((length, end)) => {
                assert_eq!(bytes.len().to_string(), length, "{name} {:.40}", elements);
                assert_eq!(&bytes[bytes.len() - 40..], unhex(end), "{name} {:.40}", elements);
            }
            None => assert_eq!(bytes, unhex(hex), "{name} {:.40}", elements),
        }
        let mut read = Vec::new();
        basalt_sql_types::decode_array(of, &bytes, |value| {
            read.push(value);
            Ok::<_, basalt_sql_types::TypeError>(())
        })
        .expect("Phoenix's bytes");
        // Decimals of one value have many forms: the bytes say whether they are equal.
        let mut again = Vec::new();
        basalt_sql_types::encode_array(of, &read, &mut again).expect("an array");
        assert!(again == bytes && read.len() == values.len(), "{name} {:.40}", elements);
        count += 1;
    }
    assert_eq!(count, 16);
}

#[test]
fn keys_that_end_with_null_or_an_array_are_phoenixs() {
    let lines = include_str!("golden-keys.tsv").lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for line in lines {
        let [columns, salt_buckets, values, hex] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let column = |text: &str| {
            let order = if text.ends_with(" desc") { Order::Descending } else { Order::Ascending };
            let name = text.trim_end_matches(" desc");
            let is_array = name.ends_with("[]");
            KeyColumn { sql_type: name.trim_end_matches("[]").parse().expect("a type"), order, is_array }
        };
        let columns: Vec<KeyColumn> = columns.split(", ").map(column).collect();
        let layout = KeyLayout { salt_buckets: salt_buckets.parse().expect("a number"), columns };
        let encoded = |index: usize, text: &str, out: &mut Vec<u8>| {
            let KeyColumn { sql_type, is_array, .. } = layout.columns[index];
            if text == "null" {
                return Ok(());
            }
            let elements: Vec<&str> = text.split('|').collect();
            let mut scratches = vec![Vec::new(); elements.len()];
            let both = elements.iter().zip(&mut scratches);
            let elements: Vec<Option<Value<'_>>> =
                both.map(|(text, scratch)| (*text != "null").then(|| value(sql_type, text, scratch))).collect();
            match &elements[..] {
                [Some(one)] if !is_array => sql_type.encode(one, out),
                _ => basalt_sql_types::encode_array(sql_type, &elements, out),
            }
        };
        let texts: Vec<&str> = values.split(',').collect();
        let key = layout.encode_with(|index, out| encoded(index, texts[index], out)).expect(line);
        assert_eq!(key, unhex(hex), "{line}");
        // Read again, each column's bytes are what they were.
        let mut ranges = Vec::new();
        layout.split(&key, &mut ranges).expect(line);
        for (index, range) in ranges.into_iter().enumerate() {
            let mut scratch = Vec::new();
            let bytes = layout.ascending(index, &key, range, &mut scratch).expect(line);
            let mut expected = Vec::new();
            encoded(index, texts[index], &mut expected).expect(line);
            assert_eq!(bytes, expected, "column {index} of {line}");
        }
        count += 1;
    }
    assert_eq!(count, 38);
    let layout = KeyLayout {
        salt_buckets: 0,
        columns: vec![KeyColumn { sql_type: SqlType::Varchar, order: Order::Ascending, is_array: true }],
    };
    assert_eq!(
        layout.encode_with(|_, _| Ok::<_, TypeError>(())),
        Err(TypeError::NotInKey("all of it is empty".into()))
    );
}
