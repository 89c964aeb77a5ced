//! The pages: HTML documents that need nothing but one style sheet, and no script.
//!
//! `mod.rs` is the status page, which answers "is it well, and what is it doing"; the others are beside it. What they show follows
//! `MasterStatusTmpl`, `RSStatusTmpl` and HBase's `.jsp` pages; how, does not.

pub mod admin;
mod cluster;
pub mod frame;
pub mod groups;
pub mod keys;
mod lists;
pub mod process;
pub mod snapshots;
pub mod table;
pub mod work;

pub use frame::Face;
pub use lists::{Order, RegionList};

use crate::details::{Running, SlowCall};
use crate::markup::{Bytes, Count, Markup, Moment, Rate, Span};
use crate::rates::RequestRates;
use crate::status::{Gateway, Status};

/// What the reader asked to see.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest<'a> {
    /// Which regions.
    pub regions: RegionList<'a>,
    /// What runs.
    pub running: &'a [Running],
    /// Slow calls, the newest first.
    pub slow_calls: &'a [SlowCall],
    /// The wall clock.
    pub now_ms: i64,
    /// Whose page it is.
    pub face: Face,
    /// Whether clients are being served.
    pub serving: bool,
}

/// Draws the page. Cost: proportional to the number of regions, for their sums; the lists in it are bounded.
pub fn draw(status: &Status, rates: &RequestRates, request: &PageRequest<'_>) -> String {
    if let Some(cluster) = &status.cluster {
        return cluster::draw(status, cluster, rates, request);
    }
    let mut page = Markup::with_capacity(64 * 1024);
    frame::begin(&mut page, &format!("Basalt {}", status.region_server.address()));
    let up_ms = u64::try_from(request.now_ms - status.started_ms).unwrap_or(0);
    page.raw("<header><div class=bar><h1>Basalt<small>").text(&status.version).raw("</small></h1>");
    page.raw(if request.serving {
        "<span class=\"badge good\">serving</span>"
    } else {
        "<span class=\"badge bad\">not serving</span>"
    });
    page.raw("<span class=soft>").text(&status.region_server).raw(" &middot; up ").text(Span(up_ms)).raw("</span>");
    page.raw("<nav>");
    frame::nav(&mut page, request.face);
    page.raw("</nav></div></header><main>");
    if status.log.stalled {
        page.raw("<p class=bad><strong>The log's disk takes no writes. Is it full?</strong></p>");
    }
    lists::problems(&mut page, status);
    cards(&mut page, status, rates);
    lists::in_transition(&mut page, status, request.now_ms);
    work::running(&mut page, request.running);
    work::slow_calls_short(&mut page, request.slow_calls);
    memory(&mut page, status);
    volumes(&mut page, status);
    facts(&mut page, status, request.face);
    lists::tables(&mut page, status);
    lists::regions(&mut page, status, &request.regions);
    page.raw("</main><footer>Drawn ").text(Moment(request.now_ms)).raw(". Rates are of the last few seconds.</footer>");
    page.raw("</body></html>\n");
    page.finish()
}

/// The status page of a gateway.
pub fn gateway(gateway: &Gateway, status: &Status, rates: &RequestRates, now_ms: i64) -> String {
    let title = format!("{} gateway", gateway.kind.name());
    frame::whole(Face::Gateway(gateway.kind), &title, now_ms, |page| {
        page.raw("<div class=cards><div class=card><h3>Requests per second</h3><b>").text(Rate(rates.total));
        page.raw("</b><p>").text(Count(status.requests.total)).raw(" requests since the start</p></div>");
        page.raw("<div class=card><h3>Connections</h3><b>").text(Count(status.rpc.connections)).raw("</b></div>");
        page.raw("<div class=card><h3>Memory</h3><b>").text(Bytes(status.memory.resident_bytes));
        page.raw("</b><p>resident</p></div></div>");
        memory(page, status);
        page.raw("<h2>Gateway</h2><div class=panel><dl><dt>Version</dt><dd>").text(&status.version);
        page.raw("</dd><dt>Started</dt><dd>").text(Moment(status.started_ms)).raw("</dd>");
        for (name, value) in &gateway.facts {
            page.raw("<dt>").text(name).raw("</dt><dd><code>").text(value).raw("</code></dd>");
        }
        page.raw("</dl></div>");
    })
}

/// The page for an address that leads nowhere; `face` says where the link to the status goes.
pub fn not_found(path: &str, face: Face) -> String {
    let mut page = Markup::with_capacity(8 * 1024);
    frame::begin(&mut page, "Not found");
    // An address may be long; a message need not be.
    let shown: String = path.chars().take(200).collect();
    page.raw("<main><h1>Not found</h1><p>There is no page <code>").text(shown).raw("</code> here.</p>");
    page.raw("<p><a href=\"").text(face.status_path()).raw("\">Status</a></p></main></body></html>\n");
    page.finish()
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (100.0 * part as f64 / whole as f64).min(100.0) }
}

/// Two shares of a whole, in percent, as a bar.
fn meter(page: &mut Markup, first: f64, second: f64) {
    page.raw("<svg class=meter width=\"100%\" height=8 aria-hidden=true><rect class=one width=\"");
    page.text(format_args!("{first:.1}")).raw("%\" height=8 /><rect class=two x=\"");
    page.text(format_args!("{first:.1}")).raw("%\" width=\"").text(format_args!("{:.1}", second.min(100.0 - first)));
    page.raw("%\" height=8 /></svg>");
}

/// Who holds how much of the memory budget.
fn memory(page: &mut Markup, status: &Status) {
    if status.holders.is_empty() {
        return;
    }
    page.raw("<h2>Memory account</h2>");
    frame::table(page, &["Holder", "n Holds", "n Most so far", "n May hold", ""]);
    for holder in &status.holders {
        page.raw("<tr>");
        frame::cell(page, holder.name);
        frame::number(page, Bytes(holder.held_bytes));
        frame::number(page, Bytes(holder.highest_bytes));
        match holder.cap_bytes {
            Some(cap_bytes) => {
                frame::number(page, Bytes(cap_bytes));
                page.raw("<td class=wide>");
                meter(page, share(holder.held_bytes, cap_bytes), 0.0);
                page.raw("</td></tr>");
            }
            None => drop(page.raw("<td class=n>&ndash;</td><td></td></tr>")),
        }
    }
    frame::table_end(page);
}

/// The disks beside the root directory's, where there are any.
fn volumes(page: &mut Markup, status: &Status) {
    if status.volumes.is_empty() {
        return;
    }
    page.raw("<h2>Volumes</h2>");
    frame::table(page, &["Directory", "Tier", "n Files", "n Free", "n Sync, 99th percentile", "Condition"]);
    for volume in &status.volumes {
        page.raw("<tr>");
        frame::cell(page, &volume.place);
        frame::cell(page, &volume.tier);
        frame::number(page, Bytes(volume.used_bytes));
        match volume.free_bytes {
            Some(bytes) => frame::number(page, Bytes(bytes)),
            None => drop(page.raw("<td class=n>&ndash;</td>")),
        }
        match volume.sync_p99_us {
            Some(us) => frame::number(page, format_args!("{:.1} ms", us as f64 / 1000.0)),
            None => drop(page.raw("<td class=n>&ndash;</td>")),
        }
        if volume.is_well {
            frame::cell(page, &volume.condition);
        } else {
            page.raw("<td><b>").text(&volume.condition).raw("</b></td>");
        }
        page.raw("</tr>");
    }
    frame::table_end(page);
}

fn cards(page: &mut Markup, status: &Status, rates: &RequestRates) {
    let (memory, cache, log) = (&status.memory, &status.block_cache, &status.log);
    page.raw("<div class=cards>");

    page.raw("<div class=card><h3>Requests per second</h3><b>").text(Rate(rates.total)).raw("</b><p>");
    page.text(Rate(rates.reads)).raw(" rows read, ").text(Rate(rates.writes)).raw(" written</p><p>");
    page.text(Count(status.requests.total)).raw(" requests since the start</p></div>");

    page.raw("<div class=card><h3>Regions</h3><b>").text(Count(status.regions.len() as u64)).raw("</b><p>in ");
    page.text(Count(status.tables.len() as u64)).raw(" tables; ");
    page.text(Count(status.in_transition.len() as u64)).raw(" in transition</p><p>");
    page.raw("connections ").text(Count(status.rpc.connections)).raw(", scanners ");
    page.text(Count(status.rpc.open_scanners)).raw("</p></div>");

    let used = memory.memstore_bytes.saturating_add(cache.used_bytes);
    page.raw("<div class=card><h3>Memory</h3><b>").text(Bytes(used)).raw("</b>");
    meter(page, share(memory.memstore_bytes, memory.budget_bytes), share(cache.used_bytes, memory.budget_bytes));
    page.raw("<p>of a budget of ").text(Bytes(memory.budget_bytes)).raw("</p><p><i class=dot></i>");
    page.text(Bytes(memory.memstore_bytes)).raw(" memstores</p><p><i class=\"dot two\"></i>");
    page.text(Bytes(cache.used_bytes)).raw(" cache</p>");
    if memory.resident_bytes > 0 {
        page.raw("<p>").text(Bytes(memory.resident_bytes)).raw(" resident</p>");
    }
    page.raw("</div>");

    page.raw("<div class=card><h3>Block cache hits</h3><b>");
    if cache.hits + cache.misses == 0 {
        page.raw("&ndash;");
    } else {
        page.text(format_args!("{:.1}", share(cache.hits, cache.hits + cache.misses))).raw(" %");
    }
    page.raw("</b><p>")
        .text(Count(cache.hits))
        .raw(" of ")
        .text(Count(cache.hits + cache.misses))
        .raw(" lookups</p><p>");
    page.text(Count(cache.blocks)).raw(" blocks, ").text(Bytes(cache.used_bytes)).raw(" of ");
    page.text(Bytes(cache.capacity_bytes)).raw("; ").text(Count(cache.evicted)).raw(" evicted</p></div>");

    page.raw("<div class=card><h3>Log sync</h3><b>");
    if log.syncs == 0 {
        page.raw("&ndash;");
    } else {
        page.text(format_args!("{:.2}", log.sync_us as f64 / log.syncs as f64 / 1000.0)).raw(" ms");
    }
    page.raw("</b><p>mean of ").text(Count(log.syncs)).raw(" syncs, longest ");
    page.text(format_args!("{:.1}", log.max_sync_us as f64 / 1000.0)).raw(" ms</p><p>");
    page.text(Count(log.entries)).raw(" entries, ").text(Bytes(log.bytes)).raw("; ").text(Count(log.files));
    page.raw(if log.files == 1 { " file" } else { " files" });
    if log.waiting_bytes > 0 {
        page.raw(", ").text(Bytes(log.waiting_bytes)).raw(" waiting");
    }
    page.raw("</p>");
    if log.rescues > 0 {
        page.raw("<p class=bad>files left after a failed write: ").text(Count(log.rescues)).raw("</p>");
    }
    page.raw("</div>");

    let queues = &status.queues;
    let waiting = queues.flushes + queues.small_compactions + queues.large_compactions + queues.splits;
    page.raw("<div class=card><h3>Work waiting</h3><b>").text(Count(waiting)).raw("</b><p>");
    page.raw("flushes ").text(Count(queues.flushes)).raw(", splits ").text(Count(queues.splits));
    page.raw("</p><p>compactions: small ").text(Count(queues.small_compactions)).raw(", large ");
    page.text(Count(queues.large_compactions)).raw("</p></div></div>");
}

fn facts(page: &mut Markup, status: &Status, face: Face) {
    page.raw("<h2>Server</h2><div class=panel><dl>");
    // A region server alone does not know who leads the cluster now.
    if face != Face::RegionServer {
        page.raw("<dt>Master</dt><dd>").text(&status.master).raw("</dd>");
    }
    page.raw("<dt>Region server</dt><dd>").text(&status.region_server).raw("</dd>");
    page.raw("<dt>Started</dt><dd>").text(Moment(status.started_ms));
    if status.initialized_ms > 0 {
        let took_ms = u64::try_from(status.initialized_ms - status.started_ms).unwrap_or(0);
        page.raw(", served after ").text(Count(took_ms)).raw(" ms");
    }
    page.raw("</dd><dt>Data</dt><dd><code>").text(&status.data_directory).raw("</code></dd><dt>Ports</dt><dd>");
    for (i, port) in status.ports.iter().enumerate() {
        page.raw(if i == 0 { "" } else { " &middot; " })
            .text(port.name)
            .raw(" <code>")
            .text(&port.address)
            .raw("</code>");
    }
    page.raw("</dd><dt>ZooKeeper quorum</dt><dd><code>").text(&status.zookeeper_quorum);
    page.raw("</code></dd><dt>Cluster id</dt><dd><code>").text(&status.cluster_id).raw("</code></dd>");
    if status.live_servers.len() + status.dead_servers.len() > 1 {
        page.raw("<dt>Region servers</dt><dd>").text(status.live_servers.len()).raw(" live, ");
        page.text(status.dead_servers.len()).raw(" dead");
        for server in status.dead_servers.iter().take(lists::FEW) {
            page.raw(" &middot; <span class=bad>").text(server).raw("</span>");
        }
        page.raw("</dd>");
    }
    page.raw("</dl></div>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Volume;

    #[test]
    fn a_volume_in_trouble_is_named_and_none_is_where_there_are_none() {
        let mut status = Status::unknown("1", 0);
        let drawn = |status: &Status| {
            let mut page = Markup::with_capacity(1024);
            volumes(&mut page, status);
            page.finish()
        };
        assert_eq!(drawn(&status), "");
        let volume = |condition: &str, is_well| Volume {
            place: "/data/1".into(),
            tier: "cold (hdd)".into(),
            used_bytes: 1,
            free_bytes: None,
            sync_p99_us: Some(1500),
            condition: condition.into(),
            is_well,
        };
        status.volumes = vec![volume("well", true), volume("failed: <gone>", false)];
        let page = drawn(&status);
        assert!(page.contains("1.5 ms") && page.contains("<td>well</td>"), "{page}");
        assert!(page.contains("<b>failed: &lt;gone&gt;</b>"), "{page}");
    }
}
