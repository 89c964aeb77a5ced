//! What every page begins and ends with.

use crate::markup::{Markup, Moment};
use crate::status::GatewayKind;

/// The one style sheet.
pub const STYLE: &str = include_str!("style.css");
/// Where it is.
pub const STYLE_PATH: &str = "/static/style.css";

/// Places of the site, as its pages list them.
const PLACES: [(&str, &str); 12] = [
    ("/master-status", "Status"),
    ("/tablesDetailed.jsp", "Tables"),
    ("/keys", "Keys"),
    ("/procedures.jsp", "Procedures"),
    ("/userSnapshots.jsp", "Snapshots"),
    ("/quotas.jsp", "Quotas"),
    ("/operationDetails.jsp", "Slow calls"),
    ("/hbck.jsp", "Checks"),
    ("/configuration", "Configuration"),
    ("/logs/", "Log"),
    ("/processRS.jsp", "Process"),
    ("/prometheus", "Prometheus"),
];

/// Those of a region server whose master is another process.
const PLACES_OF_REGION_SERVER: [(&str, &str); 7] = [
    ("/rs-status", "Status"),
    ("/keys", "Keys"),
    ("/rsOperationDetails.jsp", "Slow calls"),
    ("/configuration", "Configuration"),
    ("/logs/", "Log"),
    ("/processRS.jsp", "Process"),
    ("/prometheus", "Prometheus"),
];

/// Those of a gateway, behind its status and its process.
const PLACES_OF_GATEWAY: [(&str, &str); 3] =
    [("/configuration", "Configuration"), ("/logs/", "Log"), ("/prometheus", "Prometheus")];

/// Whose pages these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// A server's, with its master in the same process.
    Server,
    /// A master's whose region servers are other processes: what only they have is not there.
    Master,
    /// A region server's whose master is another process: what is the master's is not there.
    RegionServer,
    /// A gateway's.
    Gateway(GatewayKind),
}

impl Face {
    /// The page that says how it is.
    pub fn status_path(self) -> &'static str {
        match self {
            Face::Server | Face::Master => "/master-status",
            Face::RegionServer => "/rs-status",
            Face::Gateway(kind) => kind.status_path(),
        }
    }
}

/// Up to the body.
pub fn begin(page: &mut Markup, title: &str) {
    page.raw("<!doctype html><html lang=en><head><meta charset=utf-8>");
    page.raw("<meta name=viewport content=\"width=device-width,initial-scale=1\"><title>").text(title);
    page.raw("</title><link rel=icon href=\"data:,\"><link rel=stylesheet href=\"").text(STYLE_PATH);
    page.raw("\"></head><body>");
}

/// The links to all places.
pub fn nav(page: &mut Markup, face: Face) {
    let mut link = |path: &'static str, name: &'static str| {
        page.raw("<a href=\"").text(path).raw("\">").text(name).raw("</a>");
    };
    match face {
        Face::Server => PLACES.iter().for_each(|(path, name)| link(path, name)),
        Face::Master => PLACES.iter().filter(|(path, _)| *path != "/keys").for_each(|(path, name)| link(path, name)),
        Face::RegionServer => PLACES_OF_REGION_SERVER.iter().for_each(|(path, name)| link(path, name)),
        Face::Gateway(kind) => {
            link(kind.status_path(), "Status");
            PLACES_OF_GATEWAY.iter().for_each(|(path, name)| link(path, name));
            link(kind.process_path(), "Process");
        }
    }
}

/// A page's beginning up to its content: a title, and links.
pub fn head(page: &mut Markup, title: &str, face: Face) {
    begin(page, title);
    page.raw("<header><div class=bar><h1>").text(title).raw("</h1><nav>");
    nav(page, face);
    page.raw("</nav></div></header><main>");
}

/// A whole page with a title, links, and what `content` writes.
pub fn whole(face: Face, title: &str, now_ms: i64, content: impl FnOnce(&mut Markup)) -> String {
    let mut page = Markup::with_capacity(32 * 1024);
    head(&mut page, title, face);
    content(&mut page);
    end(&mut page, now_ms);
    page.finish()
}

/// From the end of the content on.
pub fn end(page: &mut Markup, now_ms: i64) {
    page.raw("</main><footer>Drawn ").text(Moment(now_ms)).raw(".</footer></body></html>\n");
}

/// A table's beginning, with its headings; `n` before a heading: a column of numbers.
pub fn table(page: &mut Markup, headings: &[&'static str]) {
    page.raw("<div class=panel><table><thead><tr>");
    for heading in headings {
        match heading.strip_prefix("n ") {
            Some(heading) => page.raw("<th class=n>").raw(heading),
            None => page.raw("<th>").raw(heading),
        };
    }
    page.raw("</tr></thead><tbody>");
}

/// A table's end.
pub fn table_end(page: &mut Markup) {
    page.raw("</tbody></table></div>");
}

/// A panel that says that there is nothing.
pub fn none(page: &mut Markup, what: &'static str) {
    page.raw("<div class=panel><div class=none>").raw(what).raw("</div></div>");
}

/// One cell.
pub fn cell(page: &mut Markup, value: impl std::fmt::Display) {
    page.raw("<td>").text(value).raw("</td>");
}

/// One cell of a column of numbers.
pub fn number(page: &mut Markup, value: impl std::fmt::Display) {
    page.raw("<td class=n>").text(value).raw("</td>");
}
