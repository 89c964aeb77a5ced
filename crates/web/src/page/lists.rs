//! The lists of the page: problems, regions in transition, tables, regions. Each is bounded.

use super::frame::number;
use crate::markup::{Bytes, Count, Markup, Moment, Part, Span};
use crate::query;
use crate::status::{Region, Status};
use cell::print::Binary;
use model::status::LoadTotals;

/// Rows of a list that goes on elsewhere.
pub const PER_PAGE: usize = 200;
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
        page.raw("<tr><td><a href=\"/table.jsp?name=").text(query::encode(name)).raw("\">").text(name);
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

/// What regions are listed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As they lie in their tables.
    #[default]
    Key,
    /// The largest first.
    Size,
    /// Those with the fullest memstores first.
    Memstore,
    /// Those with the most files first.
    Files,
    /// The most read first.
    Reads,
    /// The most written first.
    Writes,
}

/// The orders by their names in addresses.
const ORDERS: [(&str, Order); 6] = [
    ("key", Order::Key),
    ("size", Order::Size),
    ("memstore", Order::Memstore),
    ("files", Order::Files),
    ("reads", Order::Reads),
    ("writes", Order::Writes),
];

impl Order {
    /// The order of that name; of another, that of keys.
    pub fn named(name: &str) -> Order {
        ORDERS.iter().find(|(known, _)| *known == name).map_or(Order::Key, |(_, order)| *order)
    }

    fn name(self) -> &'static str {
        ORDERS[self as usize].0
    }

    fn of(self, region: &Region) -> u64 {
        let load = &region.load;
        match self {
            Order::Key => 0,
            Order::Size => load.store_file_size_bytes,
            Order::Memstore => load.memstore_size_bytes,
            Order::Files => u64::from(load.store_files),
            Order::Reads => load.read_requests,
            Order::Writes => load.write_requests,
        }
    }
}

/// Which regions are listed, and how.
#[derive(Clone, Copy, Debug)]
pub struct RegionList<'a> {
    /// The page that the list is on.
    pub path: &'static str,
    /// Only this table's.
    pub table: Option<&'a str>,
    /// Only those whose name has this in it.
    pub search: Option<&'a str>,
    /// By what.
    pub order: Order,
    /// Regions to leave out at the beginning.
    pub from: usize,
}

impl RegionList<'_> {
    fn wants(&self, region: &Region) -> bool {
        self.table.is_none_or(|table| region.info.table.as_str() == table)
            && self.search.is_none_or(|text| region.info.name_string().contains(text))
    }

    /// An address of the same list from another place, or in another order.
    fn link(&self, page: &mut Markup, order: Order, from: usize) {
        page.raw("<a href=\"").text(self.path).raw("?");
        if let Some(table) = self.table {
            let key = if self.path == "/table.jsp" { "name" } else { "table" };
            page.text(key).raw("=").text(query::encode(table)).raw("&amp;");
        }
        if let Some(text) = self.search {
            page.raw("q=").text(query::encode(text)).raw("&amp;");
        }
        if order != Order::Key {
            page.raw("sort=").text(order.name()).raw("&amp;");
        }
        page.raw("from=").text(from).raw("#regions\">");
    }

    /// A heading that leads to the list in its order.
    fn heading(&self, page: &mut Markup, class: &'static str, name: &'static str, order: Order) {
        page.raw(class);
        if order == self.order {
            page.raw(name).raw(" &darr;");
        } else {
            self.link(page, order, 0);
            page.raw(name).raw("</a>");
        }
    }

    /// What to search for, and where the list goes on.
    fn controls(&self, page: &mut Markup, from: usize, to: usize, total: usize) {
        page.raw("<div class=pages><form action=\"").text(self.path).raw("#regions\">");
        let key = if self.path == "/table.jsp" { "name" } else { "table" };
        page.raw("<input name=").text(key).raw(" aria-label=Table placeholder=Table value=\"");
        page.text(self.table.unwrap_or(""))
            .raw("\"><input name=q aria-label=\"Part of a name\" placeholder=\"Part of a name\" value=\"");
        page.text(self.search.unwrap_or("")).raw("\"><button>Show</button></form>");
        if self.table.is_some() || self.search.is_some() {
            page.raw("<a href=\"/rs-status#regions\">All regions</a>");
        }
        if from > 0 {
            self.link(page, self.order, from.saturating_sub(PER_PAGE));
            page.raw("&larr; Before</a>");
        }
        if to < total {
            self.link(page, self.order, to);
            page.raw("Next &rarr;</a>");
        }
        page.raw("</div>");
    }
}

/// The regions that the list wants, [`PER_PAGE`] at a time. Cost: a look at every region, and their sorting.
pub fn regions(page: &mut Markup, status: &Status, list: &RegionList<'_>) {
    let mut wanted: Vec<&Region> = status.regions.iter().filter(|region| list.wants(region)).collect();
    if list.order != Order::Key {
        wanted.sort_by_key(|region| std::cmp::Reverse(list.order.of(region)));
    }
    let total = wanted.len();
    // a list that shrank since the link was drawn is shown from its beginning
    let from = if list.from < total { list.from } else { 0 };
    let to = total.min(from + PER_PAGE);

    page.raw("<h2 id=regions>Regions <span>");
    if total > PER_PAGE {
        page.text(Count(from as u64 + 1)).raw(" to ").text(Count(to as u64)).raw(" of ");
    }
    page.text(Count(total as u64));
    if let Some(table) = list.table {
        page.raw(" of table ").text(table);
    }
    page.raw("</span></h2>");
    list.controls(page, from, to, total);
    page.raw("<div class=panel>");
    if total == 0 {
        page.raw("<div class=none>No region is open here.</div></div>");
        return;
    }
    page.raw("<table><thead><tr>");
    list.heading(page, "<th>", "Region", Order::Key);
    page.raw("<th>Table<th>Start key<th>End key<th class=n>Stores");
    list.heading(page, "<th class=n>", "Store files", Order::Files);
    list.heading(page, "<th class=n>", "Size", Order::Size);
    page.raw("<th class=n>Locality<th class=n>On SSD");
    list.heading(page, "<th class=n>", "Memstore", Order::Memstore);
    list.heading(page, "<th class=n>", "Reads", Order::Reads);
    list.heading(page, "<th class=n>", "Writes", Order::Writes);
    page.raw("</tr></thead><tbody>");
    wanted[from..to].iter().for_each(|region| row(page, region));
    page.raw("</tbody></table></div>");
}

fn row(page: &mut Markup, Region { info, load }: &Region) {
    page.raw("<tr title=\"").text(info.name_string()).raw("\"><td class=id><a href=\"/region.jsp?name=");
    page.text(info.encoded_name()).raw("\"><code>").text(info.encoded_name()).raw("</code></a>");
    if info.replica_id > 0 {
        page.raw(" <span class=soft>replica ").text(info.replica_id).raw("</span>");
    }
    page.raw("</td><td>").text(info.table.as_str()).raw("</td>");
    key(page, &info.start_key);
    key(page, &info.end_key);
    number(page, Count(u64::from(load.stores)));
    number(page, Count(u64::from(load.store_files)));
    number(page, Bytes(load.store_file_size_bytes));
    number(page, Part(load.locality.local_bytes, load.locality.total_bytes));
    number(page, Part(load.locality.local_ssd_bytes, load.locality.total_bytes));
    number(page, Bytes(load.memstore_size_bytes));
    number(page, Count(load.read_requests));
    number(page, Count(load.write_requests));
    page.raw("</tr>");
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
