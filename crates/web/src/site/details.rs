//! The pages that are drawn from [`Details`].

use super::{Answer, Detail, HTML, JSON, Site, TEXT, plain, region_list, respond};
use crate::details::Details;
use crate::jmx;
use crate::page::{admin, frame, process, table, work};
use crate::query::Query;
use crate::status::Status;
use hyper::StatusCode;
use std::fmt::Write;

impl Site {
    /// Draws the page; `changes`: the query is a form that somebody has sent.
    pub(super) fn detail_answer(&self, detail: Detail, query: &Query, changes: bool) -> Answer {
        let Some(details) = self.source.details() else {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "the server is starting: nothing is known yet\n");
        };
        let text = |text: String| respond(StatusCode::OK, TEXT, text);
        match detail {
            Detail::Stacks => text(process::stacks(&details.threads())),
            Detail::LogText => text(details.log_lines().join("\n") + "\n"),
            Detail::Dump => text(self.dump(details)),
            Detail::LogLevel => self.log_level(details, query, changes),
            Detail::InTransition => self.in_transition(query),
            detail => respond(StatusCode::OK, HTML, self.page(detail, details, query)),
        }
    }

    fn page(&self, detail: Detail, details: &dyn Details, query: &Query) -> String {
        let now_ms = self.clock.now_ms().0;
        let name = query.get("name").filter(|name| !name.is_empty());
        match detail {
            Detail::Table => {
                let (status, list) = (self.source.status(), region_list("/table.jsp", name, query));
                let lines = name.and_then(|name| details.table(name));
                let title = format!("Table {}", name.unwrap_or(""));
                frame::whole(&title, now_ms, |page| table::one(page, &status, lines.as_deref(), &list))
            }
            Detail::Tables => {
                let status = self.source.status();
                frame::whole("Tables", now_ms, |page| table::all(page, &status, |name| details.table(name)))
            }
            Detail::Region => {
                let files = name.and_then(|name| details.store_files(name));
                let title = format!("Region {}", name.unwrap_or(""));
                frame::whole(&title, now_ms, |page| table::region(page, files.as_deref()))
            }
            Detail::Snapshots => {
                let found = details.snapshots();
                frame::whole("Snapshots", now_ms, |page| admin::snapshots(page, &found, name))
            }
            Detail::Quotas => {
                let found = details.quotas();
                frame::whole("Quotas", now_ms, |page| admin::quotas(page, &found))
            }
            Detail::SlowCalls => {
                let calls = details.slow_calls();
                frame::whole("Slow calls", now_ms, |page| work::slow_calls(page, &calls))
            }
            Detail::Checks => {
                let reports = details.reports();
                frame::whole("Checks", now_ms, |page| admin::reports(page, &reports))
            }
            Detail::Nodes => {
                let nodes = details.znodes();
                frame::whole("Coordination nodes", now_ms, |page| {
                    page.raw("<div class=panel><pre>").text(nodes).raw("</pre></div>");
                })
            }
            Detail::Process => {
                let status = self.source.status();
                frame::whole("Process", now_ms, |page| process::threads(page, &status, details.threads()))
            }
            Detail::Configuration => {
                let mut properties = self.source.configuration();
                properties.sort_by(|a, b| a.key.cmp(&b.key));
                frame::whole("Configuration", now_ms, |page| process::configuration(page, &properties, query.get("q")))
            }
            Detail::Log => frame::whole("Log", now_ms, |page| process::log(page, &details.log_lines())),
            // The others are no pages of this kind.
            _ => {
                let (procedures, locks) = (details.procedures(), details.locks());
                frame::whole("Procedures", now_ms, |page| admin::procedures(page, procedures, &locks))
            }
        }
    }

    /// Regions in transition as a page, JSON or text. Follows: `rits.jsp`.
    fn in_transition(&self, query: &Query) -> Answer {
        let (status, now_ms) = (self.source.status(), self.clock.now_ms().0);
        let asked = |key| query.get(key).filter(|text: &&str| !text.is_empty());
        let shown = admin::wanted_transitions(&status.in_transition, asked("table"), asked("state"));
        let mut out = String::new();
        match query.get("format") {
            Some("json") => {
                out.push('[');
                for (at, one) in shown.iter().enumerate() {
                    out.push_str(if at == 0 { "{\"region\":" } else { ",{\"region\":" });
                    jmx::string(&mut out, &one.region);
                    out.push_str(",\"state\":");
                    jmx::string(&mut out, &one.state);
                    write!(out, ",\"since\":{}}}", one.since_ms).expect("writing to a string");
                }
                out.push(']');
                respond(StatusCode::OK, JSON, out)
            }
            Some("txt") => {
                for one in &shown {
                    writeln!(out, "{} {}", one.region, one.state).expect("writing to a string");
                }
                respond(StatusCode::OK, TEXT, out)
            }
            _ => {
                let page =
                    frame::whole("Regions in transition", now_ms, |page| admin::transitions(page, &shown, now_ms));
                respond(StatusCode::OK, HTML, page)
            }
        }
    }

    /// Shows what logs from which level on; a form with the token changes it. Follows: `LogLevel`, which changes it on a GET.
    fn log_level(&self, details: &dyn Details, query: &Query, changes: bool) -> Answer {
        let part = query.get("log").unwrap_or("");
        let said = match (changes, query.get("level")) {
            (false, Some(_)) => {
                return plain(
                    StatusCode::FORBIDDEN,
                    "a level is set by the form on /logLevel, which sends its token along\n",
                );
            }
            (true, _) if query.get("token") != Some(details.token()) => {
                return plain(StatusCode::FORBIDDEN, "the token is not that of this process: load /logLevel again\n");
            }
            (true, level) => Some(details.set_log_level(part, level.unwrap_or(""))),
            (false, None) => None,
        };
        let (filter, token) = (details.log_filter(), details.token());
        let page = frame::whole("Log levels", self.clock.now_ms().0, |page| {
            process::log_level(page, &filter, part, token, said.as_ref());
        });
        respond(StatusCode::OK, HTML, page)
    }

    /// All that somebody wants to see who was not there, as text. Follows: `MasterDumpServlet`, `RSDumpServlet`.
    fn dump(&self, details: &dyn Details) -> String {
        let status: Status = self.source.status();
        let mut out = format!("Status of {} and {}\n", status.master, status.region_server);
        let mut part = |title: &str, lines: Vec<String>| {
            write!(out, "\n{title}:\n{}\n{}\n", "=".repeat(59), lines.join("\n")).expect("writing to a string");
        };
        let running = details.running();
        part("Tasks", running.iter().map(|one| format!("{} of {} ({})", one.what, one.region, one.table)).collect());
        part("Servers", status.live_servers.iter().map(ToString::to_string).collect());
        let transitions = status.in_transition.iter().map(|one| format!("{} {}", one.region, one.state));
        part("Regions-in-transition", transitions.collect());
        let procedures = details.procedures();
        part("Procedures", procedures.iter().map(|one| format!("{} {} {}", one.id, one.class, one.state)).collect());
        let holders =
            status.holders.iter().map(|one| format!("{}: {} of {:?}", one.name, one.held_bytes, one.cap_bytes));
        part("Memory", holders.collect());
        let calls = details.slow_calls();
        part(
            "Slow calls",
            calls.iter().map(|one| format!("{} {} ms {}", one.method, one.took_ms, one.region)).collect(),
        );
        let mut properties = self.source.configuration();
        properties.sort_by(|a, b| a.key.cmp(&b.key));
        let shown = properties.iter().map(|one| format!("{} = {}", one.key, crate::conf::shown(one)));
        part("Configuration", shown.collect());
        part("Stacks", vec![process::stacks(&details.threads())]);
        part("Logs", details.log_lines());
        out
    }
}
