//! Cells as HBase's tools print them. Follows: `KeyValue#toString`, `CellUtil#getCellKeyAsString`, `ArrayBackedTag#toString`.

use cell::print::to_string_binary;
use cell::{CellRef, CellType, KeyRef};

/// A type of cells by its number, as HBase names it.
pub fn type_name(code: u8) -> String {
    match (CellType::from_code(code), code) {
        (Some(kind), _) => format!("{kind:?}"),
        (None, 255) => "Maximum".to_owned(),
        (None, code) => format!("Unknown({code})"),
    }
}

/// A time; the two at the ends have names.
pub fn timestamp(at: i64) -> String {
    match at {
        i64::MAX => "LATEST_TIMESTAMP".to_owned(),
        i64::MIN => "OLDEST_TIMESTAMP".to_owned(),
        at => at.to_string(),
    }
}

/// `row/family:qualifier/timestamp/Type`.
pub fn key(key: KeyRef<'_>) -> String {
    let colon = if key.family().is_empty() { "" } else { ":" };
    format!(
        "{}/{}{colon}{}/{}/{}",
        to_string_binary(key.row()),
        to_string_binary(key.family()),
        to_string_binary(key.qualifier()),
        timestamp(key.timestamp()),
        type_name(key.type_code()),
    )
}

/// The same with the value's length and the sequence id.
pub fn cell(cell: CellRef<'_>) -> String {
    format!("{}/vlen={}/seqid={}", key(cell.key()), cell.value().len(), cell.seq_id().0)
}

/// ` T[0]: [Tag type : 8, value : ...]` for each tag.
pub fn tags(cell: CellRef<'_>) -> String {
    let tag = |(i, (kind, value)): (usize, (u8, &[u8]))| {
        format!(" T[{i}]: [Tag type : {kind}, value : {}]", to_string_binary(value))
    };
    cell::tag::iter(cell.tags()).enumerate().map(tag).collect()
}

/// A time as `java.util.Date.toString` writes it, in UTC: `Tue Nov 14 22:13:20 UTC 2023`.
pub fn java_date(ms: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let iso = crate::log::iso_time(ms);
    let days = ms.div_euclid(86_400_000);
    let day_of_week = DAYS[usize::try_from(days.rem_euclid(7)).unwrap_or(0)];
    let of_day = ms.rem_euclid(86_400_000) / 1000;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let mut parts = iso.split('T').next().unwrap_or_default().rsplitn(3, '-');
    let day = parts.next().unwrap_or_default();
    let month = parts.next().and_then(|month| month.parse::<usize>().ok()).unwrap_or(1);
    let year = parts.next().unwrap_or_default();
    let month = MONTHS[(month.max(1) - 1) % 12];
    format!("{day_of_week} {month} {day} {hour:02}:{minute:02}:{second:02} UTC {year}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_javas() {
        assert_eq!(java_date(1_700_000_000_103), "Tue Nov 14 22:13:20 UTC 2023");
        assert_eq!(java_date(0), "Thu Jan 01 00:00:00 UTC 1970");
        assert_eq!(java_date(951_782_400_000), "Tue Feb 29 00:00:00 UTC 2000");
    }
}
