//! Settings of tracing. The variables of OpenTelemetry's SDKs (`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_TIMEOUT`, `OTEL_BSP_*`,
//! `OTEL_RESOURCE_ATTRIBUTES`) are read beside them, as HBase's Java agent reads them.

use base::{Setting, SettingRow, TextSetting};

/// Where spans go.
pub const ENDPOINT: TextSetting = TextSetting::any(
    "basalt.trace.otlp.endpoint",
    "none",
    "Where spans of calls are sent, by OTLP over HTTP: the address of a collector (http://host:4318, to which /v1/traces is added) or a whole URL. \
     Without it nothing is traced, unless OTEL_TRACES_EXPORTER is otlp: then OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT, or \
     http://localhost:4318. No https: a collector beside the server forwards by it.",
);

/// How many calls are traced of themselves.
pub const SAMPLED_PART: Setting<f64> = Setting {
    key: "basalt.trace.sampler.ratio",
    default: 1.0,
    min: 0.0,
    max: 1.0,
    unit: "fraction",
    doc: "The part of the calls whose client says nothing about tracing that is traced. A client that traces decides by itself for its calls.",
};

/// What the server is called in a trace.
pub const SERVICE_NAME: TextSetting = TextSetting::any(
    "basalt.trace.service.name",
    "hbase",
    "What the server is called in traces (service.name). Without it OTEL_SERVICE_NAME holds.",
);

/// All of them, for documentation.
pub const ALL: &[&dyn SettingRow] = &[&ENDPOINT, &SAMPLED_PART, &SERVICE_NAME];
