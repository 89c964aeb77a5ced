//! `/prometheus`: the same numbers in Prometheus' text format. Follows: `PrometheusHadoopServlet`.
//!
//! Unlike there, label values are escaped, and of two names that become one only the first is written: Prometheus
//! refuses a page with the same series twice.

use crate::beans::Bean;
use base::metrics::{Kind, Number};
use std::collections::HashSet;
use std::fmt::Write;

/// Media type of the format.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Every number whose name contains `wanted`.
pub fn write(beans: &[Bean], wanted: &str) -> String {
    let mut out = String::new();
    let mut written = HashSet::new();
    for bean in beans {
        let labels = labels(bean);
        for metric in &bean.metrics {
            let name = metric_name(bean.name.record, &metric.name);
            // The two `sub=Server` beans share a record name; their numbers have different names.
            if !name.contains(wanted) || !written.insert(name.clone()) {
                continue;
            }
            let kind = match metric.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            write!(out, "# TYPE {name} {kind}\n{name}{{{labels}}} ").expect("writing to a string");
            match metric.number {
                Number::Long(value) => writeln!(out, "{value}"),
                Number::Double(value) => writeln!(out, "{value:?}"),
            }
            .expect("writing to a string");
        }
    }
    out
}

fn labels(bean: &Bean) -> String {
    let mut labels = String::new();
    for (i, (tag, value)) in bean.tags.iter().enumerate() {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let comma = if i == 0 { "" } else { "," };
        write!(labels, "{comma}{}=\"{value}\"", tag.to_ascii_lowercase()).expect("writing to a string");
    }
    labels
}

/// `record` and `metric` in words: cut before a capital that follows a small letter, before the last capital of a run
/// of capitals that goes on in small letters, and at everything that is neither letter nor digit.
fn metric_name(record: &str, metric: &str) -> String {
    let mut whole: Vec<char> = record.chars().collect();
    let mut rest = metric.chars();
    whole.extend(rest.next().map(|c| c.to_ascii_uppercase()));
    whole.extend(rest);
    let mut name = String::with_capacity(whole.len() + 8);
    for (i, c) in whole.iter().enumerate() {
        let before = if i == 0 { None } else { whole.get(i - 1) };
        let after = whole.get(i + 1);
        if !c.is_ascii_alphanumeric() {
            // a run of underscores is one cut, of other characters as many as there are
            if *c != '_' || before != Some(&'_') {
                name.push('_');
            }
            continue;
        }
        let starts_word = c.is_ascii_uppercase()
            && before.is_some_and(|b| {
                b.is_ascii_lowercase() || b.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase)
            });
        if starts_word {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_hbase() {
        // read from a running HBase 2.6.4
        let cases = [
            ("Server", "regionCount", "server_region_count"),
            ("Server", "blockCacheCountHitPercent", "server_block_cache_count_hit_percent"),
            ("Server", "l1CacheHitRatio", "server_l1cache_hit_ratio"),
            ("Server", "Get_num_ops", "server_get_num_ops"),
            ("Server", "ServerCrashTime_99.9th_percentile", "server_server_crash_time_99_9th_percentile"),
            ("WAL", "appendCount", "wal_append_count"),
            ("AssignmentManager", "orphanRegionsOnRS", "assignment_manager_orphan_regions_on_rs"),
            ("RegionServer", "numOpenConnections", "region_server_num_open_connections"),
            (
                "Tables",
                "Namespace_hbase_table_meta_metric_readRequestCount",
                "tables_namespace_hbase_table_meta_metric_read_request_count",
            ),
        ];
        for (record, metric, name) in cases {
            assert_eq!(metric_name(record, metric), name);
        }
    }
}
