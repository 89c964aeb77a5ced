//! Settings of the status pages.

use base::{Setting, SettingRow, TextSetting};

/// Port of the pages; -1 turns them off.
pub const INFO_PORT: Setting<i32> = Setting {
    key: "hbase.master.info.port",
    default: 16_010,
    min: -1,
    max: 65_535,
    unit: "",
    doc: "Port of the status pages and metrics. -1 turns them off, 0 takes any free port. The region server of a \
          standalone process has no port of its own: hbase.regionserver.info.port is not looked at.",
};

/// Address of the pages.
pub const INFO_BIND_ADDRESS: TextSetting =
    TextSetting::any("hbase.master.info.bindAddress", "basalt.bind", "Address that the status pages listen on.");

/// Every row.
pub const ALL: &[&dyn SettingRow] = &[&INFO_PORT, &INFO_BIND_ADDRESS];
