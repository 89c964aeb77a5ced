//! The pages that are drawn from [`Details`].

use super::{Answer, Detail, HTML, JSON, Site, TEXT, plain, region_list, respond};
use crate::details::{Details, PROFILE_EVENTS, ProcessDetails, ProfileRequest};
use crate::jmx;
use crate::page::{admin, frame, groups, keys, process, snapshots, table, work};
use crate::query::Query;
use crate::status::Status;
use hyper::StatusCode;
use std::fmt::Write;

impl Site {
    /// Draws the page; `changes`: the query is a form that somebody has sent.
    pub(super) fn detail_answer(&self, detail: Detail, query: &Query, changes: bool) -> Answer {
        let text = |text: String| respond(StatusCode::OK, TEXT, text);
        if let Some(process) = self.source.process() {
            match detail {
                Detail::Stacks => return text(process::stacks(&process.threads())),
                Detail::LogText => return text(process.log_lines().join("\n") + "\n"),
                Detail::Dump => return text(self.dump(process)),
                Detail::LogLevel => return self.log_level(process, query, changes),
                Detail::Profiles => return self.profiles(process, query, changes),
                Detail::Profile => {
                    let id = query.get("id").and_then(|id| id.parse().ok());
                    return match id.and_then(|id| process.profile(id)) {
                        Some(svg) => respond(StatusCode::OK, "image/svg+xml", svg),
                        None => plain(
                            StatusCode::NOT_FOUND,
                            "no such profile, or it is not kept any more: /prof lists them\n",
                        ),
                    };
                }
                Detail::Process | Detail::Configuration | Detail::Log => {
                    return respond(StatusCode::OK, HTML, self.process_page(detail, process, query));
                }
                _ => {}
            }
        }
        match self.source.details() {
            None => plain(StatusCode::SERVICE_UNAVAILABLE, "the server is starting: nothing is known yet\n"),
            Some(_) if detail == Detail::InTransition => self.in_transition(query),
            Some(details) => respond(StatusCode::OK, HTML, self.page(detail, details, query)),
        }
    }

    /// The pages of the process.
    fn process_page(&self, detail: Detail, process: &dyn ProcessDetails, query: &Query) -> String {
        let now_ms = self.clock.now_ms().0;
        match detail {
            Detail::Process => {
                let status = self.source.status();
                frame::whole(self.face, "Process", now_ms, |page| process::threads(page, &status, process.threads()))
            }
            Detail::Configuration => {
                let mut properties = self.source.configuration();
                properties.sort_by(|a, b| a.key.cmp(&b.key));
                frame::whole(self.face, "Configuration", now_ms, |page| {
                    process::configuration(page, &properties, query.get("q"));
                })
            }
            _ => frame::whole(self.face, "Log", now_ms, |page| process::log(page, &process.log_lines())),
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
                frame::whole(self.face, &title, now_ms, |page| table::one(page, &status, lines.as_deref(), &list))
            }
            Detail::Tables => {
                let status = self.source.status();
                frame::whole(self.face, "Tables", now_ms, |page| table::all(page, &status, |name| details.table(name)))
            }
            Detail::Region => {
                let files = name.and_then(|name| details.store_files(name));
                let title = format!("Region {}", name.unwrap_or(""));
                frame::whole(self.face, &title, now_ms, |page| table::region(page, files.as_deref()))
            }
            Detail::Snapshots => {
                let found = details.snapshots();
                frame::whole(self.face, "Snapshots", now_ms, |page| snapshots::list(page, &found))
            }
            Detail::Snapshot => {
                let found = details.snapshot_sizes();
                let title = format!("Snapshot {}", name.unwrap_or(""));
                frame::whole(self.face, &title, now_ms, |page| snapshots::one(page, &found, name.unwrap_or("")))
            }
            Detail::SnapshotSizes => {
                let found = details.snapshot_sizes();
                frame::whole(self.face, "Snapshot sizes", now_ms, |page| snapshots::sizes(page, &found))
            }
            Detail::Quotas => {
                let found = details.quotas();
                frame::whole(self.face, "Quotas", now_ms, |page| admin::quotas(page, &found))
            }
            Detail::SlowCalls => {
                let (calls, silent) = details.slow_calls_everywhere();
                frame::whole(self.face, "Slow calls", now_ms, |page| work::slow_calls(page, &calls, &silent))
            }
            Detail::Checks => {
                let reports = details.reports();
                frame::whole(self.face, "Checks", now_ms, |page| admin::reports(page, &reports))
            }
            Detail::Group => {
                let status = self.source.status();
                let title = name.map_or_else(|| "RSGroups".to_owned(), |name| format!("RSGroup: {name}"));
                frame::whole(self.face, &title, now_ms, |page| groups::one(page, &status, name))
            }
            Detail::Keys => {
                let asked = keys::Asked::of(query);
                let tables = details.tables_with_keys();
                let table = asked.table(&tables);
                let grid = table.and_then(|table| details.key_grid(table, asked.measure(), asked.span_ms()));
                let title = table.map_or_else(|| "Keys".to_owned(), |table| format!("Keys of {table}"));
                frame::whole(self.face, &title, now_ms, |page| keys::draw(page, &asked, &tables, table, grid.as_ref()))
            }
            Detail::Nodes => {
                let nodes = details.znodes();
                frame::whole(self.face, "Coordination nodes", now_ms, |page| {
                    page.raw("<div class=panel><pre>").text(nodes).raw("</pre></div>");
                })
            }
            // The others are no pages of this kind.
            _ => {
                let (procedures, locks) = (details.procedures(), details.locks());
                frame::whole(self.face, "Procedures", now_ms, |page| admin::procedures(page, procedures, &locks))
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
                let page = frame::whole(self.face, "Regions in transition", now_ms, |page| {
                    admin::transitions(page, &shown, now_ms)
                });
                respond(StatusCode::OK, HTML, page)
            }
        }
    }

    /// Shows what logs from which level on; a form with the token changes it. Follows: `LogLevel`, which changes it on a GET.
    fn log_level(&self, details: &dyn ProcessDetails, query: &Query, changes: bool) -> Answer {
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
        let page = frame::whole(self.face, "Log levels", self.clock.now_ms().0, |page| {
            process::log_level(page, &filter, part, token, said.as_ref());
        });
        respond(StatusCode::OK, HTML, page)
    }

    /// Profiles that were recorded, and a form for another; a form with the token begins one. Follows: `ProfileServlet`, which begins on a GET.
    fn profiles(&self, details: &dyn ProcessDetails, query: &Query, changes: bool) -> Answer {
        if changes && query.get("token") != Some(details.token()) {
            return plain(StatusCode::FORBIDDEN, "the token is not that of this process: load /prof again\n");
        }
        let asked = ProfileRequest {
            event: query.get("event").unwrap_or(PROFILE_EVENTS[0]).to_owned(),
            seconds: query.get("duration").and_then(|seconds| seconds.parse().ok()).unwrap_or(10),
        };
        let said = changes.then(|| details.start_profile(asked.clone()));
        let (list, token) = (details.profiles(), details.token());
        let page = frame::whole(self.face, "Profiles", self.clock.now_ms().0, |page| {
            process::profiles(page, &list, &asked, token, said.as_ref());
        });
        respond(StatusCode::OK, HTML, page)
    }

    /// All that somebody wants to see who was not there, as text. Follows: `MasterDumpServlet`, `RSDumpServlet`.
    fn dump(&self, process: &dyn ProcessDetails) -> String {
        let status: Status = self.source.status();
        let gateway = self.source.gateway();
        let mut out = match &gateway {
            Some(gateway) => format!("Status of the {} gateway\n", gateway.kind.name()),
            None => format!("Status of {} and {}\n", status.master, status.region_server),
        };
        let mut part = |title: &str, lines: Vec<String>| {
            write!(out, "\n{title}:\n{}\n{}\n", "=".repeat(59), lines.join("\n")).expect("writing to a string");
        };
        if let Some(gateway) = gateway {
            part("Gateway", gateway.facts.iter().map(|(name, value)| format!("{name}: {value}")).collect());
        }
        if let Some(details) = self.source.details() {
            let running = details.running();
            part(
                "Tasks",
                running.iter().map(|one| format!("{} of {} ({})", one.what, one.region, one.table)).collect(),
            );
            part("Servers", status.live_servers.iter().map(ToString::to_string).collect());
            let transitions = status.in_transition.iter().map(|one| format!("{} {}", one.region, one.state));
            part("Regions-in-transition", transitions.collect());
            let procedures = details.procedures();
            let lines = procedures.iter().map(|one| format!("{} {} {}", one.id, one.class, one.state));
            part("Procedures", lines.collect());
        }
        let holders =
            status.holders.iter().map(|one| format!("{}: {} of {:?}", one.name, one.held_bytes, one.cap_bytes));
        part("Memory", holders.collect());
        if let Some(details) = self.source.details() {
            let calls = details.slow_calls();
            let lines = calls.iter().map(|one| format!("{} {} ms {}", one.method, one.took_ms, one.region));
            part("Slow calls", lines.collect());
        }
        let mut properties = self.source.configuration();
        properties.sort_by(|a, b| a.key.cmp(&b.key));
        let shown = properties.iter().map(|one| format!("{} = {}", one.key, crate::conf::shown(one)));
        part("Configuration", shown.collect());
        part("Stacks", vec![process::stacks(&process.threads())]);
        part("Logs", process.log_lines());
        out
    }
}
