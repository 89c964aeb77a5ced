//! Queries that are made rather than written: every operator on every type, in the key and in cells, alone and in pairs. The same in every
//! run.

/// Rows of the table.
const ROWS: u64 = 300;
/// Pairs of predicates.
const PAIRS: usize = 760;
/// Queries of other forms.
const FORMS: usize = 500;

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.next(from.len() as u64) as usize]
    }
}

/// Name, type and literals of each column; the first three are the key.
const COLUMNS: &[(&str, &str, &[&str])] = &[
    ("k1", "char(2)", &["'AA'", "'AB'", "'BB'", "'ZZ'"]),
    ("k2", "integer", &["-7", "0", "3", "11", "2147483647"]),
    ("k3", "text", &["'a'", "'ab'", "'abc'", "'b'", "'zebra'"]),
    ("a", "smallint", &["-5", "0", "1", "9", "300"]),
    ("b", "bigint", &["-9000000000", "-1", "0", "5", "9000000000"]),
    ("c", "double precision", &["-2.5", "0.0", "0.25", "1e10"]),
    ("d", "numeric(10,2)", &["-99.99", "0", "0.01", "12.5", "1000"]),
    ("e", "text", &["'apple'", "'banana'", "'c'", "'häuser'", "'x y'"]),
    ("f", "date", &["'1969-12-31'", "'2000-02-29'", "'2024-06-01'"]),
    ("g", "timestamp", &["'1999-12-31 23:59:59'", "'2024-01-01 00:00:00'", "'2024-01-01 12:30:00.5'"]),
    ("h", "boolean", &["true", "false"]),
];

const OPERATORS: &[&str] = &["=", "<>", "<", "<=", ">", ">="];

/// A file of records, as those that are written.
pub fn records() -> String {
    let mut text = table();
    let mut numbers = Numbers(24);
    let single = predicates();
    for predicate in &single {
        text.push_str(&format!("query sorted\nselect k1, k2, k3 from made where {predicate}\n\n"));
    }
    for _ in 0..PAIRS {
        let mut one = || single[numbers.next(single.len() as u64) as usize].clone();
        let (left, right) = (one(), one());
        let with = numbers.pick(&["and", "or", "and not"]);
        let query = match numbers.next(4) {
            0 => format!("select count(*), count(a), sum(a), min(b), max(e) from made where ({left}) {with} ({right})"),
            1 => format!("select k1, count(*), sum(b), max(f) from made where ({left}) {with} ({right}) group by k1"),
            2 => format!("select e, count(*), min(g), sum(a) from made where ({left}) {with} ({right}) group by e"),
            _ => format!("select k1, k2, k3, a, e from made where ({left}) {with} ({right})"),
        };
        text.push_str(&format!("query sorted\n{query}\n\n"));
    }
    for _ in 0..FORMS {
        let (query, in_order) = form(&mut numbers, &single);
        let kind = if in_order { "query" } else { "query sorted" };
        text.push_str(&format!("{kind}\n{query}\n\n"));
    }
    text.push_str("statement\ndrop table made\n");
    text
}

/// A query of another form than a list of columns or groups, and whether its rows come in an order.
fn form(numbers: &mut Numbers, predicates: &[String]) -> (String, bool) {
    let mut predicate = || predicates[numbers.next(predicates.len() as u64) as usize].clone();
    let (one, other) = (predicate(), predicate());
    let group = numbers.pick(&["k1", "k3", "e", "h", "f"]);
    let sum = numbers.pick(&["sum(a)", "sum(b)", "count(c)", "min(d)", "max(g)", "count(distinct e)", "count(*)"]);
    let direction = numbers.pick(&["", " desc"]);
    // The key's second column is another one in each row.
    match numbers.next(10) {
        0 => (format!("select k2, {group} from made where {one} order by k1{direction}, k2 limit 7"), true),
        1 => (format!("select k2 from made where {one} order by k2{direction} limit 5 offset 3"), true),
        2 => {
            let least = numbers.next(9);
            (format!("select {group}, {sum} from made where {one} group by {group} having count(*) > {least}"), false)
        }
        3 => {
            let on = numbers.pick(&["x.k2 = y.k2", "x.k2 = y.k2 + 1", "x.k2 = y.k2 and x.k1 = y.k1"]);
            let kind = numbers.pick(&["join", "left join"]);
            let (x, y) = (format!("select * from made where {one}"), format!("select * from made where {other}"));
            (format!("select x.k2, y.k2, x.a, y.e from ({x}) x {kind} ({y}) y on {on}"), false)
        }
        4 => {
            let within = numbers.pick(&["", "not "]);
            (format!("select k2, a from made where {one} and k2 {within}in (select k2 from made where {other})"), false)
        }
        5 => {
            let function = numbers.pick(&["row_number()", "count(*)", "sum(k2)", "min(k2)", "lag(k2)"]);
            let over = format!("{function} over (partition by {group} order by k2{direction})");
            (format!("select k2, {over} from made where {one}"), false)
        }
        6 => {
            let with = numbers.pick(&["union", "union all", "except", "intersect"]);
            (format!("select {group} from made where {one} {with} select {group} from made where {other}"), false)
        }
        7 => {
            let case = format!("case when {other} then 'yes' when a > 5 then 'more' else 'no' end");
            (format!("select k2, {case} from made where {one}"), false)
        }
        8 => (format!("select distinct {group}, a from made where {one} or {other}"), false),
        _ => {
            let inner = format!("select {group} as g, {sum} as s from made where {one} group by {group}");
            (format!("with t as ({inner}) select count(*), count(g), count(s) from t"), false)
        }
    }
}

fn table() -> String {
    let columns: Vec<String> = COLUMNS.iter().map(|(name, of, _)| format!("{name} {of}")).collect();
    let columns = columns.join(", ");
    let mut text = format!(
        "statement basalt\ncreate table made ({columns}, primary key (k1, k2 desc, k3)) split on ('AB', 'BB')\n\n\
         statement postgres\ncreate table made ({columns}, primary key (k1, k2, k3))\n\n"
    );
    let mut numbers = Numbers(7);
    let row = |number: u64| {
        let value = |(at, (_, _, literals)): (usize, &(&str, &str, &[&str]))| {
            // The key's second column makes each row another one.
            match at {
                1 => (number as i64 - 20).to_string(),
                at if at > 2 && numbers.next(5) == 0 => "null".to_owned(),
                _ => numbers.pick(literals).to_owned(),
            }
        };
        format!("({})", COLUMNS.iter().enumerate().map(value).collect::<Vec<_>>().join(", "))
    };
    let rows: Vec<String> = (0..ROWS).map(row).collect();
    text.push_str(&format!("statement\ninsert into made values {}\n\n", rows.join(", ")));
    text
}

/// Every operator with every literal of every column; and the other forms.
fn predicates() -> Vec<String> {
    let mut predicates = Vec::new();
    for (name, of, literals) in COLUMNS {
        for literal in *literals {
            predicates.extend(OPERATORS.iter().map(|operator| format!("{name} {operator} {literal}")));
            predicates.push(format!("{literal} < {name}"));
        }
        let (first, last) = (literals[0], literals[literals.len() - 1]);
        predicates.push(format!("{name} in ({})", literals.join(", ")));
        predicates.push(format!("{name} in ({first}, {last})"));
        predicates.push(format!("{name} not in ({first}, {last})"));
        predicates.push(format!("{name} is null"));
        predicates.push(format!("{name} is not null"));
        if *of != "boolean" {
            predicates.push(format!("{name} between {first} and {last}"));
            predicates.push(format!("{name} not between {first} and {last}"));
        }
        if *of == "text" {
            let patterns = ["'a%'", "'b%'", "'%a'", "'_b%'", "'zebra'", "'hä%'"];
            predicates.extend(patterns.iter().map(|pattern| format!("{name} like {pattern}")));
            predicates.push(format!("{name} not like 'a%'"));
        }
    }
    predicates
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_are_many_queries_and_the_same_each_time() {
        let text = super::records();
        assert!(text.matches("query sorted").count() > 1500, "{}", text.matches("query sorted").count());
        assert_eq!(text, super::records());
    }
}
