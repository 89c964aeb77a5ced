//! The master's side: procedures, locks, quotas, regions in transition, checks.

use super::frame::{cell, none, number, table, table_end};
use crate::details::{Lock, Procedure, Quota, Reports};
use crate::markup::{Count, Markup, Moment, Span};
use crate::status::InTransition;

/// Rows of each list.
const MOST: usize = 500;

/// Procedures, those that run first, and what is locked.
pub fn procedures(page: &mut Markup, mut procedures: Vec<Procedure>, locks: &[Lock]) {
    let has_ended = |procedure: &Procedure| matches!(procedure.state.as_str(), "SUCCESS" | "ROLLEDBACK");
    procedures.sort_by_key(|procedure| (has_ended(procedure), std::cmp::Reverse(procedure.id)));
    page.raw("<h2 class=first>Procedures <span>").text(Count(procedures.len() as u64)).raw("</span></h2>");
    if procedures.is_empty() {
        none(page, "None runs, and none ended lately.");
    } else {
        table(page, &["n Id", "n Parent", "What", "State", "Owner", "Submitted", "Last change", "Error"]);
        for one in procedures.iter().take(MOST) {
            page.raw("<tr>");
            number(page, one.id);
            number(page, one.parent.map(|id| id.to_string()).unwrap_or_default());
            cell(page, &one.class);
            cell(page, &one.state);
            cell(page, &one.owner);
            page.raw("<td class=id>").text(Moment(one.submitted_ms)).raw("</td><td class=id>");
            page.text(Moment(one.updated_ms)).raw("</td>");
            cell(page, one.error.as_deref().unwrap_or(""));
            page.raw("</tr>");
        }
        table_end(page);
    }
    page.raw("<h2>Locks <span>").text(Count(locks.len() as u64)).raw("</span></h2>");
    if locks.is_empty() {
        none(page, "Nothing is locked.");
        return;
    }
    table(page, &["What", "Name", "How"]);
    for lock in locks.iter().take(MOST) {
        page.raw("<tr>");
        cell(page, lock.kind);
        cell(page, &lock.name);
        cell(page, if lock.is_exclusive { "exclusive" } else { "shared" });
        page.raw("</tr>");
    }
    table_end(page);
}

/// Quotas that were set.
pub fn quotas(page: &mut Markup, found: &Result<Vec<Quota>, String>) {
    match found {
        Err(error) => drop(page.raw("<p class=bad>").text(error).raw("</p>")),
        Ok(quotas) if quotas.is_empty() => none(page, "No quota is set."),
        Ok(quotas) => {
            table(page, &["Of", "Limits"]);
            for quota in quotas.iter().take(MOST) {
                page.raw("<tr>");
                cell(page, &quota.subject);
                cell(page, &quota.limits);
                page.raw("</tr>");
            }
            table_end(page);
        }
    }
}

/// Regions in transition that the reader wants: of a table, in a state.
pub fn wanted_transitions<'a>(
    all: &'a [InTransition],
    table: Option<&str>,
    state: Option<&str>,
) -> Vec<&'a InTransition> {
    let of_table = |one: &InTransition| table.is_none_or(|table| one.region.split(',').next() == Some(table));
    let in_state = |one: &InTransition| state.is_none_or(|state| one.state.eq_ignore_ascii_case(state));
    all.iter().filter(|one| of_table(one) && in_state(one)).collect()
}

/// Regions in transition, on a page of their own.
pub fn transitions(page: &mut Markup, shown: &[&InTransition], now_ms: i64) {
    page.raw("<h2 class=first>Regions in transition <span>").text(Count(shown.len() as u64)).raw("</span></h2>");
    if shown.is_empty() {
        none(page, "Every region is where it belongs.");
        return;
    }
    table(page, &["Region", "State", "For"]);
    for one in shown.iter().take(MOST) {
        page.raw("<tr><td><code>").text(&one.region).raw("</code></td>");
        cell(page, &one.state);
        cell(page, Span(u64::try_from(now_ms - one.since_ms).unwrap_or(0)));
        page.raw("</tr>");
    }
    table_end(page);
}

/// What the chores that check found.
pub fn reports(page: &mut Markup, reports: &Reports) {
    page.raw("<p class=soft>");
    if reports.hbck_ended_ms > 0 {
        page.raw("The hbck chore last ended ").text(Moment(reports.hbck_ended_ms)).raw(".");
    } else {
        page.raw("The hbck chore has not run yet; <code>hbck_chore_run</code> in the shell runs it.");
    }
    page.raw("</p>");
    if reports.findings.is_empty() {
        none(page, "Nothing was found.");
        return;
    }
    table(page, &["Finding", "Where"]);
    for (kind, what) in reports.findings.iter().take(MOST) {
        page.raw("<tr>");
        cell(page, kind);
        page.raw("<td><code>").text(what).raw("</code></td></tr>");
    }
    table_end(page);
}
