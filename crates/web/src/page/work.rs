//! What the server is doing: flushes and compactions that run, calls that were slow.

use super::frame::{cell, none, number, table, table_end};
use crate::details::{Running, SlowCall};
use crate::markup::{Bytes, Count, Markup, Moment};

/// Slow calls on the status page.
const FEW: usize = 5;
/// Slow calls on their own page.
const MANY: usize = 200;
/// Characters of a request.
const SHOWN: usize = 300;

/// Flushes and compactions with their progress; nothing when none runs.
pub fn running(page: &mut Markup, running: &[Running]) {
    if running.is_empty() {
        return;
    }
    page.raw("<h2>Running <span>").text(Count(running.len() as u64)).raw("</span></h2>");
    table(page, &["What", "Table", "Region", "Progress"]);
    for one in running.iter().take(super::lists::FEW) {
        page.raw("<tr>");
        cell(page, one.what);
        cell(page, &one.table);
        page.raw("<td class=id><a href=\"/region.jsp?name=").text(crate::query::encode(&one.region)).raw("\"><code>");
        page.text(&one.region).raw("</code></a></td><td>");
        match one.cells {
            Some((done, all)) if all > 0 => {
                page.raw("<progress max=").text(all).raw(" value=").text(done.min(all)).raw("></progress> ");
                page.text(Count(done)).raw(" of ").text(Count(all)).raw(" cells");
            }
            _ => drop(page.raw("<span class=soft>&ndash;</span>")),
        }
        page.raw("</td></tr>");
    }
    table_end(page);
}

/// The newest slow calls, with a link to all; nothing when there were none.
pub fn slow_calls_short(page: &mut Markup, calls: &[SlowCall]) {
    if calls.is_empty() {
        return;
    }
    page.raw("<h2>Slow calls <span>the newest; <a href=\"/operationDetails.jsp\">all</a></span></h2>");
    list(page, &calls[..calls.len().min(FEW)]);
}

/// All that are kept; `silent` says which servers have not said what they keep.
pub fn slow_calls(page: &mut Markup, calls: &[SlowCall], silent: &[String]) {
    for why in silent {
        page.raw("<p class=bad>").text(why).raw("</p>");
    }
    let (slow, large): (Vec<&SlowCall>, Vec<&SlowCall>) =
        (calls.iter().filter(|call| call.is_slow).collect(), calls.iter().filter(|call| call.is_large).collect());
    for (title, calls) in [("Slow calls", slow), ("Calls with large answers", large)] {
        page.raw("<h2>").raw(title).raw(" <span>").text(Count(calls.len() as u64)).raw("</span></h2>");
        if calls.is_empty() {
            none(page, "There were none.");
        } else {
            let calls: Vec<SlowCall> = calls.into_iter().take(MANY).cloned().collect();
            list(page, &calls);
        }
    }
}

fn list(page: &mut Markup, calls: &[SlowCall]) {
    const HEADINGS: [&str; 9] =
        ["When", "Server", "n Milliseconds", "n Answer", "Method", "Client", "User", "Region", "What"];
    let has_servers = calls.iter().any(|call| !call.server.is_empty());
    let headings: Vec<&str> = HEADINGS.into_iter().filter(|heading| has_servers || *heading != "Server").collect();
    table(page, &headings);
    for call in calls {
        page.raw("<tr><td class=\"id soft\">").text(Moment(call.at_ms)).raw("</td>");
        if has_servers {
            cell(page, &call.server);
        }
        number(page, call.took_ms);
        number(page, Bytes(u64::try_from(call.response_bytes).unwrap_or(0)));
        cell(page, &call.method);
        cell(page, &call.client);
        cell(page, &call.user);
        let shown: String = call.details.chars().take(SHOWN).collect();
        page.raw("<td><code>").text(&call.region).raw("</code></td><td><code>").text(shown).raw("</code></td></tr>");
    }
    table_end(page);
}
