//! Snapshots: which there are, one of them, and what they take. Follows: `userSnapshots.jsp`, `snapshot.jsp`, `snapshotsStats.jsp`.

use super::frame::{cell, none, number, table, table_end};
use crate::details::{MeasuredSnapshots, Snapshot, SnapshotSizes};
use crate::markup::{Bytes, Count, Markup, Moment, Span};
use crate::query;

/// Rows of each list.
const MOST: usize = 500;

/// Snapshots with what they take, as the source says it.
type Measured = Result<(Vec<Snapshot>, Option<MeasuredSnapshots>), String>;

/// All snapshots.
pub fn list(page: &mut Markup, found: &Result<Vec<Snapshot>, String>) {
    let all = match found {
        Ok(all) => all,
        Err(error) => return failed(page, error),
    };
    heading(page, all.len());
    if all.is_empty() {
        return none(page, "There is none.");
    }
    table(page, &["Name", "Table", "Kind", "Taken", "Lives for", "Owner"]);
    for one in all.iter().take(MOST) {
        page.raw("<tr>");
        name_and_table(page, one);
        cell(page, &one.kind);
        taken(page, one);
        page.raw("<td>");
        match u64::try_from(one.ttl_seconds) {
            Ok(seconds) if seconds > 0 => page.text(Span(seconds.saturating_mul(1000))),
            _ => page.raw("ever"),
        };
        page.raw("</td>");
        cell(page, &one.owner);
        page.raw("</tr>");
    }
    table_end(page);
    page.raw("<p class=soft><a href=\"/snapshotsStats.jsp\">What they take</a>. To restore or clone one: <code>restore_snapshot</code> and ");
    page.raw("<code>clone_snapshot</code> in the shell.</p>");
}

/// The snapshot of that name: its attributes, and what it takes.
pub fn one(page: &mut Markup, found: &Measured, name: &str) {
    let (all, measured) = match found {
        Ok(found) => found,
        Err(error) => return failed(page, error),
    };
    let Some(one) = all.iter().find(|one| one.name == name) else {
        return none(page, "There is no snapshot of that name.");
    };
    let sizes = measured.as_ref().and_then(|measured| measured.each.get(name));
    page.raw("<h2 class=first>Snapshot attributes</h2>");
    table(page, &["Table", "Taken", "Kind", "Format version", "State"]);
    page.raw("<tr>");
    table_link(page, &one.table);
    taken(page, one);
    cell(page, &one.kind);
    cell(page, one.version);
    match sizes {
        None => page.raw("<td>not looked at yet</td>"),
        Some(Ok(sizes)) if sizes.missing + sizes.corrupted == 0 => page.raw("<td>ok</td>"),
        Some(_) => page.raw("<td class=bad>CORRUPTED</td>"),
    };
    page.raw("</tr>");
    table_end(page);
    match (sizes, measured) {
        (Some(Ok(sizes)), _) => summary(page, sizes),
        (Some(Err(why)), _) => failed(page, why),
        (None, Some(_)) => not_measured(page),
        (None, None) => being_measured(page),
    }
    when(page, measured.as_ref());
}

/// What each snapshot takes, and all of them together.
pub fn sizes(page: &mut Markup, found: &Measured) {
    let (all, measured) = match found {
        Ok(found) => found,
        Err(error) => return failed(page, error),
    };
    heading(page, all.len());
    if all.is_empty() {
        return none(page, "There is none.");
    }
    let Some(measured) = measured else { return being_measured(page) };
    let total = &measured.all;
    page.raw("<p>Total store file size: ").text(Bytes(total.total_bytes())).raw(". Shared ");
    part(page, total.shared_bytes, total).raw(", large values ");
    part(page, total.mob_bytes, total).raw(", archived ");
    part(page, total.archived_bytes, total).raw(", of which ").text(Bytes(total.own_archived_bytes));
    page.raw(" are of one snapshot alone.</p>");
    table(
        page,
        &[
            "Name",
            "Table",
            "Taken",
            "n Size",
            "n Shared",
            "n Shared %",
            "n Large values",
            "n Archived",
            "n Archived %",
            "n Its own",
            "State",
        ],
    );
    for one in all.iter().take(MOST) {
        page.raw("<tr>");
        name_and_table(page, one);
        taken(page, one);
        match measured.each.get(&one.name) {
            Some(Ok(sizes)) => {
                number(page, Bytes(sizes.total_bytes()));
                number(page, Bytes(sizes.shared_bytes));
                number(page, Percent(sizes.shared_bytes, sizes.total_bytes()));
                number(page, Bytes(sizes.mob_bytes));
                number(page, Bytes(sizes.archived_bytes));
                number(page, Percent(sizes.archived_bytes, sizes.total_bytes()));
                number(page, Bytes(sizes.own_archived_bytes));
                cell(page, if sizes.missing + sizes.corrupted == 0 { "ok" } else { "CORRUPTED" });
            }
            other => {
                for _ in 0..7 {
                    number(page, "-");
                }
                cell(page, if other.is_some() { "cannot be read" } else { "not measured" });
            }
        }
        page.raw("</tr>");
    }
    table_end(page);
    page.raw("<p class=soft>Shared: files that a table still has. Large values: files of MOB families that are still where those are. Archived: files ");
    page.raw("that are kept for snapshots; its own: those that would go with the snapshot, for no other snapshot and no table made of one needs ");
    page.raw("them.</p>");
    if !measured.is_whole {
        not_measured(page);
    }
    when(page, Some(measured));
}

/// `3 HFiles (1 in archive), total size ...`
fn summary(page: &mut Markup, sizes: &SnapshotSizes) {
    let total_bytes = sizes.total_bytes();
    page.raw("<p>")
        .text(Count(sizes.files))
        .raw(" HFiles (")
        .text(Count(sizes.archived_files))
        .raw(" in archive), total size ");
    page.text(Bytes(total_bytes)).raw(" (").text(Percent(sizes.shared_bytes, total_bytes)).raw(" % ");
    page.text(Bytes(sizes.shared_bytes)).raw(" shared with the source table, ");
    page.text(Percent(sizes.archived_bytes, total_bytes))
        .raw(" % ")
        .text(Bytes(sizes.archived_bytes))
        .raw(" archived, of which ");
    page.text(Bytes(sizes.own_archived_bytes)).raw(" are kept for this snapshot alone)</p>");
    if sizes.mob_bytes > 0 {
        page.raw("<p>").text(Bytes(sizes.mob_bytes)).raw(" of it are files of large values.</p>");
    }
    if sizes.missing + sizes.corrupted > 0 {
        page.raw("<p class=bad>CORRUPTED: ").text(Count(sizes.missing)).raw(" HFiles are missing, ");
        page.text(Count(sizes.corrupted))
            .raw(" have another length than they had: <code>basalt snapshot info --files</code> names them.</p>");
    }
}

fn heading(page: &mut Markup, snapshots: usize) {
    page.raw("<h2 class=first>Snapshots <span>").text(Count(snapshots as u64)).raw("</span></h2>");
}

fn name_and_table(page: &mut Markup, one: &Snapshot) {
    page.raw("<td><a href=\"/snapshot.jsp?name=")
        .text(query::encode(&one.name))
        .raw("\">")
        .text(&one.name)
        .raw("</a></td>");
    table_link(page, &one.table);
}

fn table_link(page: &mut Markup, name: &str) {
    page.raw("<td><a href=\"/table.jsp?name=").text(query::encode(name)).raw("\">").text(name).raw("</a></td>");
}

fn taken(page: &mut Markup, one: &Snapshot) {
    page.raw("<td class=id>").text(Moment(one.created_ms)).raw("</td>");
}

/// `1.5 GiB (12.5 %)`
fn part<'a>(page: &'a mut Markup, bytes: u64, of: &SnapshotSizes) -> &'a mut Markup {
    page.text(Bytes(bytes)).raw(" (").text(Percent(bytes, of.total_bytes())).raw(" %)")
}

fn failed(page: &mut Markup, error: &str) {
    page.raw("<p class=bad>").text(error).raw("</p>");
}

fn being_measured(page: &mut Markup) {
    none(page, "It is being measured: load the page again.");
}

fn not_measured(page: &mut Markup) {
    page.raw("<p class=soft>There are more files than are looked at for this page: <code>basalt snapshot info --stats</code> measures one snapshot, ");
    page.raw("however many it has.</p>");
}

fn when(page: &mut Markup, measured: Option<&MeasuredSnapshots>) {
    if let Some(measured) = measured {
        page.raw("<p class=soft>Measured ").text(Moment(measured.at_ms)).raw(".</p>");
    }
}

/// Hundredths of a whole with two digits behind the point, as HBase has them; 0 where the whole is nothing.
struct Percent(u64, u64);

impl std::fmt::Display for Percent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Percent(part, whole) = *self;
        write!(f, "{:.2}", if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 })
    }
}
