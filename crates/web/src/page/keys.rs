//! The Key Visualizer: the load of a table's keys as a picture, time to the right and keys downwards, and the hottest of them by name.

use super::frame::{none, number, table as table_begin, table_end};
use crate::markup::{Bytes, Count, Markup, Moment, Span};
use crate::query::{self, Query};
use base64::Engine;
use cell::print::Binary;
use key_statistics::{Grid, KeyRange, Load, Measure};
use model::TableName;

/// What may be shown: the word in the address, and its name.
const MEASURES: [(&str, &str, Measure); 5] = [
    ("operations", "Rows read and written", Measure::Operations),
    ("reads", "Rows read", Measure::Reads),
    ("writes", "Rows written", Measure::Writes),
    ("read-bytes", "Bytes read", Measure::ReadBytes),
    ("written-bytes", "Bytes written", Measure::WrittenBytes),
];

const HOUR_MS: i64 = 3_600_000;
/// How far back: the word in the address, its name, milliseconds.
const SPANS: [(&str, &str, i64); 5] = [
    ("1h", "1 hour", HOUR_MS),
    ("3h", "3 hours", 3 * HOUR_MS),
    ("2d", "2 days", 48 * HOUR_MS),
    ("7d", "7 days", 168 * HOUR_MS),
    ("35d", "5 weeks", 840 * HOUR_MS),
];

/// Keys along the picture.
const LABELS: usize = 9;
/// Bytes of a key that are shown.
const SHOWN_KEY_BYTES: usize = 40;

/// What the reader asked for.
pub struct Asked<'a> {
    name: Option<&'a str>,
    measure: usize,
    span: usize,
}

impl<'a> Asked<'a> {
    /// What cannot be understood is what is shown first.
    pub fn of(query: &'a Query) -> Asked<'a> {
        let word = |key| query.get(key).unwrap_or("");
        let measure = MEASURES.iter().position(|(name, ..)| *name == word("measure")).unwrap_or(0);
        let span = SPANS.iter().position(|(name, ..)| *name == word("span")).unwrap_or(0);
        Asked { name: query.get("name").filter(|name| !name.is_empty()), measure, span }
    }

    /// The table: the one that was named, or the first of the users' own.
    pub fn table<'t>(&self, tables: &'t [TableName]) -> Option<&'t TableName> {
        match self.name {
            Some(name) => tables.iter().find(|table| table.as_str() == name),
            None => tables.iter().find(|table| !table.is_system()).or(tables.first()),
        }
    }

    /// What is shown.
    pub fn measure(&self) -> Measure {
        MEASURES[self.measure].2
    }

    /// How far back.
    pub fn span_ms(&self) -> i64 {
        SPANS[self.span].2
    }
}

/// The page.
pub fn draw(
    page: &mut Markup,
    asked: &Asked<'_>,
    tables: &[TableName],
    table: Option<&TableName>,
    grid: Option<&Grid>,
) {
    choices(page, asked, tables, table);
    match (table, grid) {
        (None, _) if tables.is_empty() => {
            none(page, "Nothing was read or written yet, or basalt.key.statistics.enabled is false.");
        }
        (None, _) => none(page, "Nothing is known of the keys of that table: nothing of it was read or written here."),
        (_, None) => none(page, "No keys are gathered here: basalt.key.statistics.enabled is false."),
        (_, Some(grid)) if grid.rows.is_empty() => none(page, "In this time there was nothing."),
        (Some(table), Some(grid)) => {
            picture(page, grid);
            hottest(page, asked.measure(), grid, table);
        }
    }
}

/// A form without a button would need a script; links need none.
fn choices(page: &mut Markup, asked: &Asked<'_>, tables: &[TableName], table: Option<&TableName>) {
    page.raw("<form method=get action=\"/keys\" class=choices><label>Table <select name=name>");
    for one in tables {
        option(page, one.as_str(), one.as_str(), Some(one) == table);
    }
    page.raw("</select></label> <label>Show <select name=measure>");
    for (at, (word, name, _)) in MEASURES.iter().enumerate() {
        option(page, word, name, at == asked.measure);
    }
    page.raw("</select></label> <label>Of the last <select name=span>");
    for (at, (word, name, _)) in SPANS.iter().enumerate() {
        option(page, word, name, at == asked.span);
    }
    page.raw("</select></label> <button>Show</button></form>");
}

fn option(page: &mut Markup, value: &str, name: &str, is_chosen: bool) {
    page.raw("<option value=\"")
        .text(value)
        .raw(if is_chosen { "\" selected>" } else { "\">" })
        .text(name)
        .raw("</option>");
}

fn picture(page: &mut Markup, grid: &Grid) {
    let Some(image) = image(grid) else {
        none(page, "The picture could not be drawn.");
        return;
    };
    page.raw("<div class=panel><div class=heat><ol class=keys>");
    let last = grid.rows.len() - 1;
    let labels = LABELS.min(grid.rows.len());
    for label in 0..labels {
        let row = (last * label).checked_div(labels - 1).unwrap_or(0);
        page.raw("<li><code>").text(shown(&grid.rows[row])).raw("</code></li>");
    }
    page.raw("</ol><img alt=\"Load by key, downwards, and time, to the right: the brighter the more\" src=\"data:image/png;base64,");
    page.text(base64::engine::general_purpose::STANDARD.encode(image));
    let end_ms = grid.start_ms + grid.column_ms * grid.columns as i64;
    page.raw("\"></div><p class=times><span>").text(Moment(grid.start_ms)).raw("</span><span>");
    page.text(Span(u64::try_from(grid.column_ms).unwrap_or(0))).raw(" a column</span><span>");
    page.text(Moment(end_ms)).raw("</span></p></div>");
}

/// Black, violet, red, yellow, white: what is brighter is more in print and to the colour-blind, too.
const COLOURS: [(f64, [f64; 3]); 5] = [
    (0.0, [8.0, 6.0, 20.0]),
    (0.3, [84.0, 20.0, 110.0]),
    (0.6, [205.0, 55.0, 70.0]),
    (0.85, [250.0, 170.0, 30.0]),
    (1.0, [252.0, 255.0, 210.0]),
];

fn colour(share: f64) -> [u8; 3] {
    let upper = COLOURS.iter().position(|(at, _)| share <= *at).unwrap_or(COLOURS.len() - 1).max(1);
    let ((from, low), (to, high)) = (COLOURS[upper - 1], COLOURS[upper]);
    let part = ((share - from) / (to - from)).clamp(0.0, 1.0);
    std::array::from_fn(|i| (low[i] + (high[i] - low[i]) * part).round() as u8)
}

/// A pixel for each value; the browser makes them larger.
fn image(grid: &Grid) -> Option<Vec<u8>> {
    let (width, height) = (grid.columns, grid.rows.len());
    let most = *grid.values.iter().max()?;
    // By logarithm: a range with a hundredth of the load is to be seen beside the hottest.
    let scale = |value: u64| if value == 0 { 0.0 } else { (value as f64 + 1.0).ln() / (most as f64 + 1.0).ln() };
    let pixels = (0..height).flat_map(|row| (0..width).map(move |column| (row, column)));
    let pixels: Vec<u8> = pixels.flat_map(|(row, column)| colour(scale(grid.values[column * height + row]))).collect();
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, u32::try_from(width).ok()?, u32::try_from(height).ok()?);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels)).ok()?;
    Some(out)
}

fn hottest(page: &mut Markup, measure: Measure, grid: &Grid, table: &TableName) {
    page.raw("<h2>Hottest keys <span>of the last three minutes</span></h2>");
    let all = measure.of(&grid.recent);
    if grid.hottest.is_empty() || all == 0 {
        none(page, "Nothing was going on.");
        return;
    }
    table_begin(page, &["Keys", "n Share", "n Rows read", "n Rows written", "n Bytes read", "n Bytes written"]);
    for KeyRange { first, last, load } in &grid.hottest {
        page.raw("<tr><td><code>").text(shown(first)).raw("</code>");
        if first != last {
            page.raw(" to <code>").text(shown(last)).raw("</code>");
        }
        page.raw("</td>");
        number(page, format_args!("{:.1} %", 100.0 * measure.of(load) as f64 / all as f64));
        let Load { reads, writes, read_bytes, written_bytes } = *load;
        number(page, Count(reads));
        number(page, Count(writes));
        number(page, Bytes(read_bytes));
        number(page, Bytes(written_bytes));
        page.raw("</tr>");
    }
    table_end(page);
    page.raw("<p class=soft>Counts are of samples: each stands for as many operations as were passed over. ");
    page.raw("A key that stands alone here is hot by itself. <a href=\"/table.jsp?name=");
    page.text(query::encode(table.as_str())).raw("\">The table's regions</a></p>");
}

/// A key as HBase's shell writes it, cut off where it is long.
fn shown(key: &[u8]) -> String {
    let cut = &key[..key.len().min(SHOWN_KEY_BYTES)];
    format!("{}{}", Binary(cut), if cut.len() < key.len() { "..." } else { "" })
}

/// The address of a table's picture.
pub fn address(table: &str) -> String {
    format!("/keys?name={}", query::encode(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_brighter() {
        let brightness = |share: f64| colour(share).iter().map(|&part| u32::from(part)).sum::<u32>();
        let steps: Vec<u32> = (0..=20).map(|step| brightness(f64::from(step) / 20.0)).collect();
        assert!(steps.is_sorted(), "{steps:?}");
        assert!(steps[0] < 60 && steps[20] > 650, "{steps:?}");
    }

    #[test]
    fn the_picture_has_a_pixel_for_each_value() {
        let grid = Grid {
            columns: 3,
            rows: vec![b"a".as_slice().into(), b"b".as_slice().into()],
            values: vec![0, 1, 5, 0, 0, 100],
            ..Grid::default()
        };
        let png = image(&grid).expect("a picture");
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().expect("a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
        reader.next_frame(&mut pixels).expect("its pixels");
        assert_eq!((reader.info().width, reader.info().height), (3, 2));
        // The second row's last is the brightest, the first row's first the darkest.
        assert_eq!(pixels[15..], colour(1.0));
        assert_eq!(pixels[..3], colour(0.0));
    }
}
