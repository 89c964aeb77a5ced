//! Settings of the status pages.

use base::{Config, Setting, SettingRow, TextSetting};

/// Port of the pages; -1 turns them off.
pub const INFO_PORT: Setting<i32> = Setting {
    key: "hbase.master.info.port",
    default: 16_010,
    min: -1,
    max: 65_535,
    unit: "",
    doc: "Port of the status pages and metrics. -1 turns them off, 0 takes any free port. The region server of a \
          standalone process shows the same pages, at hbase.regionserver.info.port too if that is given.",
};

/// Port of the region server's pages.
pub const REGION_SERVER_INFO_PORT: Setting<i32> = Setting {
    key: "hbase.regionserver.info.port",
    default: -1,
    min: -1,
    max: 65_535,
    unit: "",
    doc: "Port at which a standalone process shows its status pages and metrics as well, for who looks for its region server's. -1 is none, \
          0 takes any free port. `basalt regionserver` has its pages there, and at HBase's 16030 where nothing is said and nobody else is.",
};

/// Address of the region server's pages.
pub const REGION_SERVER_INFO_BIND_ADDRESS: TextSetting = TextSetting::any(
    "hbase.regionserver.info.bindAddress",
    "basalt.bind",
    "Address that hbase.regionserver.info.port is opened at.",
);

/// Which forms of metrics are shown.
pub const METRICS_SERVLETS: TextSetting = TextSetting {
    key: "hbase.http.metrics.servlets",
    default: "jmx,metrics,prometheus",
    legal: Some("some of jmx, metrics and prometheus, separated by commas"),
    is_legal: |text| MetricsPages::parse(text).is_some(),
    doc: "Which of /jmx, /metrics and /prometheus are there. Nothing: none of them.",
};

/// The forms of metrics that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the page of its name")]
pub struct MetricsPages {
    pub jmx: bool,
    pub metrics: bool,
    pub prometheus: bool,
}

impl Default for MetricsPages {
    fn default() -> MetricsPages {
        MetricsPages { jmx: true, metrics: true, prometheus: true }
    }
}

impl MetricsPages {
    /// As a text of [`METRICS_SERVLETS`] says; `None`: it names something else.
    pub fn parse(text: &str) -> Option<MetricsPages> {
        let mut pages = MetricsPages { jmx: false, metrics: false, prometheus: false };
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "jmx" => pages.jmx = true,
                "metrics" => pages.metrics = true,
                "prometheus" => pages.prometheus = true,
                _ => return None,
            }
        }
        Some(pages)
    }

    /// As `config` says.
    pub fn from_config(config: &Config) -> MetricsPages {
        config.text(METRICS_SERVLETS.key).and_then(MetricsPages::parse).unwrap_or_default()
    }
}

/// Address of the pages.
pub const INFO_BIND_ADDRESS: TextSetting =
    TextSetting::any("hbase.master.info.bindAddress", "basalt.bind", "Address that the status pages listen on.");

/// Every row.
pub const ALL: &[&dyn SettingRow] =
    &[&INFO_PORT, &INFO_BIND_ADDRESS, &REGION_SERVER_INFO_PORT, &REGION_SERVER_INFO_BIND_ADDRESS, &METRICS_SERVLETS];
