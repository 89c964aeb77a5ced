//! The lists of the page: problems, regions in transition, tables, regions. Each is bounded.

use super::PageRequest;
use crate::markup::{Bytes, Count, Markup, Moment, Span};
use crate::query;
use crate::status::{Region, Status};
use cell::print::Binary;
use model::status::LoadTotals;

/// Rows of a list that goes on elsewhere.
pub const PER_PAGE: usize = 500;
/// Rows of a list that does not.
pub const FEW: usize = 50;

/// What went wrong lately; nothing when nothing did.
pub fn problems(page: &mut Markup, status: &Status) {
    if status.problems.is_empty() {
        return;
    }
    page.raw("<h2 class=\"bad first\">Recent problems <span>")
        .text(Count(status.problems.len() as u64))
        .raw("</span></h2>");
    page.raw("<div class=panel><table><tbody>");
    for problem in status.problems.iter().take(FEW) {
        page.raw("<tr><td class=\"id soft\">").text(Moment(problem.at_ms)).raw("</td><td>").text(&problem.text);
        page.raw("</td></tr>");
    }
    page.raw("</tbody></table></div>");
}

/// Regions on their way; nothing when all have arrived.
pub fn in_transition(page: &mut Markup, status: &Status, now_ms: i64) {
    if status.in_transition.is_empty() {
        return;
    }
    page.raw("<h2>Regions in transition <span>").text(Count(status.in_transition.len() as u64)).raw("</span></h2>");
    page.raw("<div class=panel><table><thead><tr><th>Region<th>State<th>For</tr></thead><tbody>");
    for transition in status.in_transition.iter().take(FEW) {
        let age_ms = u64::try_from(now_ms - transition.since_ms).unwrap_or(0);
        page.raw("<tr><td><code>").text(&transition.region).raw("</code></td><td>").text(&transition.state);
        page.raw("</td><td>").text(Span(age_ms)).raw("</td></tr>");
    }
    page.raw("</tbody></table></div>");
}

/// Tables with the sums over their regions here.
pub fn tables(page: &mut Markup, status: &Status) {
    let sums = LoadTotals::by_table(status.regions.iter().map(|region| (&region.info.table, &region.load)));
    let none = LoadTotals::default();
    page.raw("<h2>Tables <span>");
    if status.tables.len() > PER_PAGE {
        page.raw("first ").text(PER_PAGE).raw(" of ");
    }
    page.text(Count(status.tables.len() as u64)).raw("</span></h2><div class=panel>");
    if status.tables.is_empty() {
        page.raw("<div class=none>There are no tables yet.</div></div>");
        return;
    }
    page.raw(
        "<table><thead><tr><th>Name<th>State<th>Families<th class=n>Regions<th class=n>Store files<th class=n>Size\
         <th class=n>Memstores<th class=n>Reads<th class=n>Writes</tr></thead><tbody>",
    );
    for table in status.tables.iter().take(PER_PAGE) {
        let name = table.name.as_str();
        let sums = sums.get(&table.name).unwrap_or(&none);
        page.raw("<tr><td><a href=\"/master-status?table=").text(query::encode(name)).raw("#regions\">").text(name);
        page.raw("</a></td><td>");
        page.raw(if table.state == "ENABLED" { "<span class=good>" } else { "<span class=soft>" });
        page.text(table.state).raw("</span></td><td>");
        for (i, family) in table.families.iter().take(FEW).enumerate() {
            page.raw(if i == 0 { "" } else { ", " }).text(family);
        }
        page.raw(if table.families.len() > FEW { " &hellip;</td>" } else { "</td>" });
        number(page, Count(sums.regions));
        number(page, Count(sums.store_files));
        number(page, Bytes(sums.store_file_bytes));
        number(page, Bytes(sums.memstore_bytes));
        number(page, Count(sums.reads));
        number(page, Count(sums.writes));
        page.raw("</tr>");
    }
    page.raw("</tbody></table></div>");
}

/// Regions: those of one table if the reader asked for one, [`PER_PAGE`] at a time.
pub fn regions(page: &mut Markup, status: &Status, request: &PageRequest<'_>) {
    let wanted = |region: &&Region| request.table.is_none_or(|table| region.info.table.as_str() == table);
    let total = status.regions.iter().filter(wanted).count();
    // a list that shrank since the link was drawn is shown from its beginning
    let from = if request.from < total { request.from } else { 0 };
    let to = total.min(from + PER_PAGE);

    page.raw("<h2 id=regions>Regions <span>");
    if total > PER_PAGE {
        page.text(Count(from as u64 + 1)).raw(" to ").text(Count(to as u64)).raw(" of ");
    }
    page.text(Count(total as u64));
    if let Some(table) = request.table {
        page.raw(" of table ").text(table);
    }
    page.raw(
        "</span></h2><div class=pages><form action=\"/master-status#regions\"><input name=table aria-label=Table ",
    );
    page.raw("placeholder=\"Table\" value=\"").text(request.table.unwrap_or("")).raw("\"><button>Show</button></form>");
    if request.table.is_some() {
        page.raw("<a href=\"/master-status#regions\">All tables</a>");
    }
    if from > 0 {
        link(page, request.table, from.saturating_sub(PER_PAGE));
        page.raw("&larr; Before</a>");
    }
    if to < total {
        link(page, request.table, to);
        page.raw("Next &rarr;</a>");
    }
    page.raw("</div><div class=panel>");
    if total == 0 {
        page.raw("<div class=none>No region is open here.</div></div>");
        return;
    }
    page.raw(
        "<table><thead><tr><th>Region<th>Table<th>Start key<th>End key<th class=n>Stores<th class=n>Store files\
         <th class=n>Size<th class=n>Memstore<th class=n>Reads<th class=n>Writes</tr></thead><tbody>",
    );
    for Region { info, load } in status.regions.iter().filter(wanted).skip(from).take(PER_PAGE) {
        page.raw("<tr title=\"").text(info.name_string()).raw("\"><td class=id><code>").text(info.encoded_name());
        page.raw("</code>");
        if info.replica_id > 0 {
            page.raw(" <span class=soft>replica ").text(info.replica_id).raw("</span>");
        }
        page.raw("</td><td>").text(info.table.as_str()).raw("</td>");
        key(page, &info.start_key);
        key(page, &info.end_key);
        number(page, Count(u64::from(load.stores)));
        number(page, Count(u64::from(load.store_files)));
        number(page, Bytes(load.store_file_size_bytes));
        number(page, Bytes(load.memstore_size_bytes));
        number(page, Count(load.read_requests));
        number(page, Count(load.write_requests));
        page.raw("</tr>");
    }
    page.raw("</tbody></table></div>");
}

fn link(page: &mut Markup, table: Option<&str>, from: usize) {
    page.raw("<a href=\"/master-status?");
    if let Some(table) = table {
        page.raw("table=").text(query::encode(table)).raw("&amp;");
    }
    page.raw("from=").text(from).raw("#regions\">");
}

fn number(page: &mut Markup, value: impl std::fmt::Display) {
    page.raw("<td class=n>").text(value).raw("</td>");
}

fn key(page: &mut Markup, key: &[u8]) {
    /// Keys may have 32 KiB; their beginnings tell them apart well enough on a page.
    const SHOWN: usize = 100;
    page.raw("<td class=key><code>");
    match key.split_at_checked(SHOWN) {
        Some((head, rest)) if !rest.is_empty() => page.text(Binary(head)).raw("&hellip;"),
        _ => page.text(Binary(key)),
    };
    page.raw("</code></td>");
}
