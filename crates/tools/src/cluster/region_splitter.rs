//! `basalt regionsplitter`. Follows: `RegionSplitter`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use bytes::Bytes;
use cell::print::{to_bytes_binary, to_string_binary};
use model::{FamilyDescriptor, TableDescriptor};

use crate::arguments::{self, Known, flag, valued};
use crate::jobs::{defines, helped, on_cluster, table_name};

const USAGE: &str = "\
Makes a table with regions of equal shares of the keys, or splits each region of one that is there in its middle.

Usage: basalt regionsplitter [OPTIONS] TABLE ALGORITHM

    ALGORITHM           HexStringSplit, DecimalStringSplit or UniformSplit: how keys are spread
    -c N                makes the table with N regions
    -f F1:F2:...        its families
    -r                  splits each region of a table that is there, -o at the same time; 2
    --firstrow ROW, --lastrow ROW   bounds of the keys (with -c)
    --dry-run           prints the split points, and changes nothing
    --help              this text

Examples:
  basalt regionsplitter -c 60 -f data:meta users HexStringSplit
  basalt regionsplitter -r -o 4 users UniformSplit
  basalt regionsplitter --dry-run -c 4 -f f t DecimalStringSplit
";

const KNOWN: &[Known] = &[
    valued("c", ""),
    valued("f", ""),
    valued("o", ""),
    valued("", "firstrow"),
    valued("", "lastrow"),
    flag("r", ""),
    flag("h", ""),
    flag("", "risky"),
    flag("", "dry-run"),
];

/// How keys are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Hex,
    Decimal,
    Uniform,
}

impl Algorithm {
    fn parse(name: &str) -> anyhow::Result<Algorithm> {
        Ok(match name.rsplit(['.', '$']).next().unwrap_or(name) {
            "HexStringSplit" => Algorithm::Hex,
            "DecimalStringSplit" => Algorithm::Decimal,
            "UniformSplit" => Algorithm::Uniform,
            _ => bail!("{name} is no algorithm: HexStringSplit, DecimalStringSplit and UniformSplit are"),
        })
    }

    /// Points that part the keys from `first` to `last` into so many shares.
    fn points(self, count: u32, first: Option<&str>, last: Option<&str>) -> anyhow::Result<Vec<Bytes>> {
        if count < 2 {
            bail!("{count} regions: at least 2 make split points");
        }
        match self {
            Algorithm::Hex => strings(count, first.unwrap_or("00000000"), last.unwrap_or("FFFFFFFF"), 16),
            Algorithm::Decimal => strings(count, first.unwrap_or("00000000"), last.unwrap_or("99999999"), 10),
            Algorithm::Uniform => {
                let bytes = |row: Option<&str>, otherwise: u8| row.map_or(vec![otherwise; 8], to_bytes_binary);
                uniform(count, &bytes(first, 0), &bytes(last, 0xFF))
            }
        }
    }
}

/// Points between two numbers that are written out.
fn strings(count: u32, first: &str, last: &str, radix: u32) -> anyhow::Result<Vec<Bytes>> {
    let number = |text: &str| {
        u128::from_str_radix(text, radix).ok().with_context(|| format!("{text} is no row of this algorithm's"))
    };
    let (from, to, width) = (number(first)?, number(last)?, last.len());
    let range = to.checked_sub(from).and_then(|range| range.checked_add(1));
    let range = range
        .filter(|range| *range >= u128::from(count))
        .context("the last row must be far enough behind the first")?;
    // As HBase computes them: the size of a share is rounded down first.
    let share = range / u128::from(count);
    let text = |i: u32| {
        let point = from + share * u128::from(i);
        Bytes::from(if radix == 16 { format!("{point:0width$x}") } else { format!("{point:0width$}") })
    };
    Ok((1..count).map(text).collect())
}

/// Points between two byte strings, which stand for fractions.
fn uniform(count: u32, first: &[u8], last: &[u8]) -> anyhow::Result<Vec<Bytes>> {
    let width = first.len().max(last.len()).max(8);
    if width > 15 {
        bail!("rows of {width} bytes: at most 15 can bound a uniform split");
    }
    let number = |bytes: &[u8]| (0..width).fold(0_u128, |n, i| n << 8 | u128::from(bytes.get(i).copied().unwrap_or(0)));
    let (from, to) = (number(first), number(last));
    let range = to.checked_sub(from).filter(|range| *range >= u128::from(count));
    let range = range.context("the last row must be far enough behind the first")?;
    let point = |i: u32| {
        let point = from + range * u128::from(i) / u128::from(count);
        Bytes::copy_from_slice(&point.to_be_bytes()[16 - width..])
    };
    Ok((1..count).map(point).collect())
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, or the master refuses.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let parsed = arguments::parse("regionsplitter", KNOWN, &rest)?;
    let [table, algorithm] = parsed.rest.as_slice() else {
        bail!("regionsplitter: a table and an algorithm are needed")
    };
    let (name, algorithm) = (table_name(table)?, Algorithm::parse(algorithm)?);
    if parsed.has("r") {
        let at_once: usize = parsed.number("o")?.unwrap_or(2);
        return split_all(&config, name, at_once.max(1), parsed.has("dry-run"));
    }
    let count: u32 = parsed.number("c")?.context("regionsplitter: -c, or -r, is needed")?;
    let families: Vec<&str> = parsed.value("f").context("regionsplitter: -f is needed with -c")?.split(':').collect();
    let points = algorithm.points(count, parsed.value("firstrow"), parsed.value("lastrow"))?;
    if parsed.has("dry-run") {
        points.iter().for_each(|point| println!("{}", to_string_binary(point)));
        return Ok(ExitCode::SUCCESS);
    }
    let families = families.iter().map(|family| FamilyDescriptor::new((*family).to_owned()));
    let descriptor = TableDescriptor::new(name, families);
    on_cluster(&config, |connection| async move {
        connection.admin().create_table(&descriptor, &points).await?;
        println!("Created {} with {count} regions", descriptor.name);
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Splits every region in its middle, so many at the same time.
fn split_all(config: &Config, name: model::TableName, at_once: usize, dry_run: bool) -> anyhow::Result<ExitCode> {
    on_cluster(config, |connection| async move {
        let admin = connection.admin();
        let regions = connection.table(&name).regions().await?;
        if dry_run {
            regions.iter().for_each(|location| println!("{}", location.region.name_string()));
            return Ok(());
        }
        let (mut split, mut kept) = (0, 0);
        for group in regions.chunks(at_once) {
            let mut under_way = tokio::task::JoinSet::new();
            for location in group {
                let (admin, region) = (admin.clone(), location.region.encoded_name().to_string());
                under_way.spawn(async move { admin.split_region(region.as_bytes(), None).await });
            }
            while let Some(done) = under_way.join_next().await {
                match done.context("a split ended by itself")? {
                    Ok(()) => split += 1,
                    // A region with too little in it has no middle.
                    Err(error) => {
                        kept += 1;
                        eprintln!("basalt: regionsplitter: {error}");
                    }
                }
            }
        }
        println!("Split {split} regions of {name}; {kept} stayed as they were");
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(algorithm: Algorithm, count: u32) -> Vec<String> {
        algorithm.points(count, None, None).expect("legal").iter().map(|point| to_string_binary(point)).collect()
    }

    #[test]
    fn split_points_are_hbases() {
        assert_eq!(shown(Algorithm::Hex, 4), ["40000000", "80000000", "c0000000"]);
        assert_eq!(shown(Algorithm::Decimal, 4), ["25000000", "50000000", "75000000"]);
        assert_eq!(shown(Algorithm::Uniform, 2), ["\\x7F\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF"]);
        assert!(Algorithm::Hex.points(1, None, None).is_err());
        assert!(Algorithm::Hex.points(4, Some("xyz"), None).is_err());
        assert!(Algorithm::Hex.points(4, Some("FF"), Some("00")).is_err());
        assert!(Algorithm::parse("Nonsense").is_err());
    }
}
