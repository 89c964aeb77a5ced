//! The process: its threads, settings, log.

use super::frame::{cell, none, number, table, table_end};
use crate::conf;
use crate::details::{PROFILE_EVENTS, ProfileRequest, Profiles, Thread};
use crate::markup::{Count, Markup, Moment};
use crate::status::{Property, Status};
use std::fmt::Write;

/// Rows of the list of settings.
const MOST: usize = 2000;

/// The threads, those that have worked most first.
pub fn threads(page: &mut Markup, status: &Status, mut threads: Vec<Thread>) {
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.cpu_ms));
    page.raw("<h2 class=first>Threads <span>").text(Count(threads.len() as u64)).raw("</span></h2><p class=soft>");
    page.text(crate::markup::Bytes(status.memory.resident_bytes))
        .raw(" resident. <a href=\"/stacks\">As text</a>, <a href=\"/prof\">profiles</a></p>");
    table(page, &["n Id", "Name", "State", "n Processor, ms", "Waits in"]);
    for thread in &threads {
        page.raw("<tr>");
        number(page, thread.id);
        cell(page, &thread.name);
        cell(page, &thread.state);
        number(page, Count(thread.cpu_ms));
        page.raw("<td><code>").text(&thread.waits_in).raw("</code></td></tr>");
    }
    table_end(page);
}

/// The threads as text.
pub fn stacks(threads: &[Thread]) -> String {
    let mut out = format!("Process thread dump: {} threads\n", threads.len());
    for thread in threads {
        let Thread { id, name, state, cpu_ms, waits_in } = thread;
        writeln!(out, "Thread {id} ({name}):\n  State: {state}\n  Processor time: {cpu_ms} ms\n  Waits in: {waits_in}")
            .expect("writing to a string");
    }
    out
}

/// Settings whose key or value has `wanted` in it.
pub fn configuration(page: &mut Markup, properties: &[Property], wanted: Option<&str>) {
    page.raw("<div class=pages><form action=\"/configuration\"><input name=q aria-label=Search placeholder=\"Search\" value=\"");
    page.text(wanted.unwrap_or("")).raw("\"><button>Search</button></form><a href=\"/conf\">As XML</a>");
    page.raw("<a href=\"/conf?format=json\">As JSON</a></div>");
    let lower = wanted.unwrap_or("").to_lowercase();
    let is_wanted =
        |one: &&Property| one.key.to_lowercase().contains(&lower) || conf::shown(one).to_lowercase().contains(&lower);
    let shown: Vec<&Property> = properties.iter().filter(is_wanted).take(MOST).collect();
    if shown.is_empty() {
        none(page, "No setting has that in it.");
        return;
    }
    table(page, &["Key", "Value", "From"]);
    for property in shown {
        page.raw("<tr><td><code>").text(&property.key).raw("</code></td><td><code>").text(conf::shown(property));
        page.raw("</code></td>");
        cell(page, property.source);
        page.raw("</tr>");
    }
    table_end(page);
}

/// The newest lines of the log.
pub fn log(page: &mut Markup, lines: &[String]) {
    page.raw(
        "<p class=soft>The newest lines; the whole log goes to standard error, or where the service manager keeps it. ",
    );
    page.raw("<a href=\"/logLevel\">Log levels</a> <a href=\"/logs/basalt.log\">As text</a></p>");
    if lines.is_empty() {
        none(page, "Nothing was logged yet.");
        return;
    }
    page.raw("<div class=panel><pre>");
    for line in lines {
        page.text(line).raw("\n");
    }
    page.raw("</pre></div>");
}

/// What logs from which level on, with a form that changes it.
pub fn log_level(page: &mut Markup, filter: &str, part: &str, token: &str, said: Option<&Result<String, String>>) {
    match said {
        Some(Ok(filter)) => drop(page.raw("<p class=good>Set: <code>").text(filter).raw("</code></p>")),
        Some(Err(error)) => drop(page.raw("<p class=bad>").text(error).raw("</p>")),
        None => {}
    }
    page.raw("<p>In force: <code>").text(filter).raw("</code></p><form method=post action=\"/logLevel\">");
    page.raw("<input type=hidden name=token value=\"").text(token).raw("\"><input name=log aria-label=Part ");
    page.raw("placeholder=\"basalt_wal\" value=\"").text(part).raw("\"><select name=level aria-label=Level>");
    for level in ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF"] {
        page.raw("<option>").raw(level).raw("</option>");
    }
    page.raw("</select><button>Set</button></form><p class=soft>It holds until the process ends.</p>");
}

/// Profiles that were recorded, and a form for the next.
pub fn profiles(
    page: &mut Markup,
    list: &Profiles,
    asked: &ProfileRequest,
    token: &str,
    said: Option<&Result<(), String>>,
) {
    if let Some(Err(error)) = said {
        page.raw("<p class=bad>").text(error).raw("</p>");
    }
    match &list.recording {
        Some(request) => {
            page.raw("<p class=good>Recording ").text(&request.event).raw(" for ").text(request.seconds);
            page.raw(" s. <a href=\"/prof\">Look again</a> after that; perf takes some seconds more to put names to addresses.</p>");
        }
        None => {
            page.raw("<form method=post action=\"/prof\"><input type=hidden name=token value=\"").text(token);
            page.raw("\"><label>Event <select name=event>");
            for event in PROFILE_EVENTS {
                page.raw(if event == asked.event { "<option selected>" } else { "<option>" })
                    .raw(event)
                    .raw("</option>");
            }
            page.raw("</select></label><label>Seconds <input name=duration type=number min=1 max=");
            page.text(ProfileRequest::MAX_SECONDS).raw(" value=").text(asked.seconds);
            page.raw("></label><button>Record</button></form>");
        }
    }
    page.raw("<h2>Flame graphs</h2>");
    if list.done.is_empty() {
        none(
            page,
            "None was recorded since the start. It takes the program perf on this machine, and costs little while it runs.",
        );
        return;
    }
    table(page, &["Begun", "Event", "n Seconds", "n Samples", "Profile"]);
    for profile in &list.done {
        page.raw("<tr><td class=id>").text(Moment(profile.begun_ms)).raw("</td>");
        cell(page, &profile.request.event);
        number(page, profile.request.seconds);
        number(page, Count(profile.samples));
        match &profile.error {
            Some(error) => page.raw("<td class=bad>").text(error).raw("</td></tr>"),
            None => {
                page.raw("<td><a href=\"/prof-output-hbase?id=").text(profile.id);
                page.raw("\">flame graph</a></td></tr>")
            }
        };
    }
    table_end(page);
}
