//! Tables by themselves, and the store files of a region.

use super::RegionList;
use super::frame::{cell, none, number, table, table_end};
use super::{keys, lists};
use crate::details::StoreFile;
use crate::markup::{Bytes, Count, Markup, Moment};
use crate::query;
use crate::status::Status;

/// Tables on the page of all descriptors.
const MOST: usize = 500;

/// A table: its descriptor, and its regions.
pub fn one(page: &mut Markup, status: &Status, lines: Option<&[String]>, list: &RegionList<'_>) {
    match lines {
        None => none(page, "There is no such table."),
        Some(lines) => {
            descriptor(page, lines);
            if let Some(name) = list.table {
                page.raw("<p><a href=\"").text(keys::address(name)).raw("\">Which of its keys have the load</a></p>");
            }
        }
    }
    lists::regions(page, status, list);
}

fn descriptor(page: &mut Markup, lines: &[String]) {
    page.raw("<div class=panel><pre>");
    for line in lines {
        page.text(line).raw("\n");
    }
    page.raw("</pre></div>");
}

/// Every table's descriptor.
pub fn all(page: &mut Markup, status: &Status, lines_of: impl Fn(&str) -> Option<Vec<String>>) {
    if status.tables.is_empty() {
        none(page, "There are no tables yet.");
    }
    for table in status.tables.iter().take(MOST) {
        let name = table.name.as_str();
        page.raw("<h2><a href=\"/table.jsp?name=").text(query::encode(name)).raw("\">").text(name);
        page.raw("</a> <span>").text(table.state).raw("</span></h2>");
        if let Some(lines) = lines_of(name) {
            descriptor(page, &lines);
        }
    }
}

/// The store files of a region.
pub fn region(page: &mut Markup, files: Option<&[StoreFile]>) {
    let Some(files) = files else {
        none(page, "No region of that name is open here.");
        return;
    };
    let bytes = files.iter().map(|file| file.bytes).sum();
    page.raw("<h2 class=first>Store files <span>").text(Count(files.len() as u64)).raw(", ").text(Bytes(bytes));
    page.raw("</span></h2>");
    if files.is_empty() {
        none(page, "It has none: all its cells are in memory.");
        return;
    }
    table(page, &["Family", "File", "n Size", "n Cells", "n Index", "n Bloom filter", "Made", "Kind"]);
    for file in files {
        page.raw("<tr>");
        cell(page, &file.family);
        page.raw("<td><code>").text(&file.name).raw("</code></td>");
        number(page, Bytes(file.bytes));
        number(page, Count(file.cells));
        number(page, Bytes(file.index_bytes));
        number(page, Bytes(file.bloom_bytes));
        match file.created_ms {
            Some(created_ms) => drop(page.raw("<td class=id>").text(Moment(created_ms)).raw("</td>")),
            None => cell(page, ""),
        }
        cell(page, if file.is_reference { "reference" } else { "whole" });
        page.raw("</tr>");
    }
    table_end(page);
}
