//! Values of configuration keys that a table or family says itself, and what goes together. Follows: `ConfigKey#validate` and
//! `TableDescriptorChecker#checkCompactionPolicy`, in their words.

use base::Config;
use model::store_engine::ENGINE_KEY;
use model::{StoreEngine, TableDescriptor};

// Rows of the region's.
const POLICY_KEY: &str = "hbase.hstore.defaultengine.compactionpolicy.class";
const BLOCKING_FILES_KEY: &str = "hbase.hstore.blockingStoreFiles";
const TIERING_KEY: &str = "hbase.hstore.datatiering.type";
const TIERING_QUALIFIER_KEY: &str = "TIERING_CELL_QUALIFIER";
const TIERING_PROVIDER_KEY: &str = "hbase.hstore.custom-tiering-value.provider.class";
const TIERING_PROVIDER: &str = "CustomCellTieringValueProvider";

/// Compaction policies of the default engine.
const POLICIES: [&str; 3] = ["ExploringCompactionPolicy", "RatioBasedCompactionPolicy", FIFO];
const FIFO: &str = "FIFOCompactionPolicy";
const PACKAGE: &str = "org.apache.hadoop.hbase.regionserver.compactions.";
/// HBase's default.
const DEFAULT_BLOCKING_FILES: i64 = 16;

/// The policy of HBase's class, with or without its package.
fn policy(class: &str) -> Option<&'static str> {
    let class = class.trim();
    let name = class.strip_prefix(PACKAGE).unwrap_or(class);
    POLICIES.into_iter().find(|policy| *policy == name)
}

/// What a key must be, as HBase's sentence has it.
#[derive(Clone, Copy, PartialEq)]
enum Expected {
    Int,
    PositiveInt,
    Long,
    PositiveLong,
    Float,
    Double,
}
use Expected::{Double, Float, Int, Long, PositiveInt, PositiveLong};

/// Every key that HBase 2.6.4 registers with a type, but for classes.
const KEYS: &[(&str, Expected)] = &[
    ("hbase.reopen.table.regions.progressive.batch.backoff.ms", Long),
    ("hbase.reopen.table.regions.progressive.batch.size.max", Int),
    ("hbase.hregion.majorcompaction", Long),
    ("hbase.hregion.majorcompaction.jitter", Float),
    ("hbase.hstore.compaction.kv.max", Int),
    ("hbase.hstore.compaction.scanner.size.limit", Long),
    ("hbase.hregion.max.filesize", Long),
    ("hbase.hstore.open.and.close.threads.max", Int),
    ("hbase.hregion.memstore.block.multiplier", PositiveInt),
    ("hbase.hregion.memstore.flush.size", PositiveLong),
    ("hbase.hstore.compaction.keep.seqId.period", Int),
    ("hbase.server.compactchecker.interval.multiplier", Int),
    ("hbase.hstore.blockingStoreFiles", Int),
    ("hbase.server.keyvalue.maxsize", Long),
    ("hbase.regionserver.minibatch.size", Int),
    ("hbase.regionserver.optionalcacheflushinterval", Int),
    ("hbase.hregion.max.filesize.jitter", Double),
    ("hbase.hstore.compaction.ratio", Float),
    ("hbase.hstore.compaction.ratio.offpeak", Float),
    ("hbase.hstore.compaction.min", Int),
    ("hbase.hstore.compaction.min.size", Long),
    ("hbase.hstore.compaction.max", Int),
    ("hbase.hstore.compaction.max.size", Long),
    ("hbase.hstore.compaction.max.size.offpeak", Long),
    ("hbase.offpeak.start.hour", Int),
    ("hbase.offpeak.end.hour", Int),
    ("hbase.hstore.min.locality.to.skip.major.compact", Float),
    ("hbase.hfile.compaction.discharger.thread.count", Int),
    ("hbase.hstore.compaction.date.tiered.max.storefile.age.millis", Long),
    ("hbase.hstore.compaction.date.tiered.incoming.window.min", Int),
    ("hbase.hstore.compaction.date.tiered.hot.window.age.millis", Long),
    ("hbase.hstore.compaction.date.tiered.warm.window.age.millis", Long),
    ("hbase.cells.scanned.per.heartbeat.check", Long),
    ("hbase.storescanner.pread.max.bytes", Long),
];

/// With fewer files than this at which writes wait, the FIFO policy would stop them for good: it merges none.
const FIFO_LEAST_BLOCKING_FILES: i64 = 1000;

/// A whole number as Hadoop's `Configuration` reads it, in base 16 too.
fn whole(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(hex, 16).ok().map(|number| sign * number),
        None => text.parse().ok(),
    }
}

impl Expected {
    /// What is wrong with `text`, if something is.
    fn wrong(self, key: &str, text: &str) -> Option<String> {
        let must_be = |what: &str| Some(format!("'{key}' must be {what}."));
        let positive = |number: i64, wanted: bool| {
            (wanted && number <= 0).then(|| format!("Invalid value for '{key}': {number}."))
        };
        match self {
            Int | PositiveInt => match whole(text).filter(|number| i32::try_from(*number).is_ok()) {
                Some(number) => positive(number, self == PositiveInt),
                None => must_be("an integer"),
            },
            Long | PositiveLong => match whole(text) {
                Some(number) => positive(number, self == PositiveLong),
                None => must_be("a long"),
            },
            Float if text.trim().parse::<f32>().is_err() => must_be("a float"),
            Double if text.trim().parse::<f64>().is_err() => must_be("a double"),
            Float | Double => None,
        }
    }
}

/// The value that counts of a key that may be named several times.
fn last<'a>(overrides: impl Iterator<Item = (&'a str, &'a str)>, key: &str) -> Option<&'a str> {
    overrides.filter(|(name, _)| *name == key).last().map(|(_, value)| value)
}

/// What is wrong with the keys that table and families say; HBase has one sentence for each.
pub(super) fn wrong_values(table: &TableDescriptor) -> Option<String> {
    let of_table = wrong_value(|| table.overrides());
    of_table.or_else(|| table.families.values().find_map(|family| wrong_value(|| family.overrides())))
}

fn wrong_value<'a, I: Iterator<Item = (&'a str, &'a str)>>(overrides: impl Fn() -> I) -> Option<String> {
    let number = KEYS.iter().find_map(|(key, expected)| expected.wrong(key, last(overrides(), key)?));
    number.or_else(|| {
        let class = last(overrides(), POLICY_KEY)?;
        policy(class).is_none().then(|| format!("'{POLICY_KEY}' must be a class."))
    })
}

/// Values of a site that the checks need beside what tables say.
#[derive(Clone, Debug)]
pub(super) struct Site {
    policy: Option<&'static str>,
    blocking_files: i64,
}

impl Site {
    pub(super) fn from_config(config: &Config) -> Site {
        Site {
            policy: config.text(POLICY_KEY).and_then(policy),
            blocking_files: config.text(BLOCKING_FILES_KEY).and_then(whole).unwrap_or(DEFAULT_BLOCKING_FILES),
        }
    }
}

/// What the FIFO policy cannot do with. HBase holds to it whatever is to be bypassed.
pub(super) fn wrong_with_fifo(site: &Site, table: &TableDescriptor) -> Option<String> {
    let of_table = last(table.overrides(), POLICY_KEY).and_then(policy).or(site.policy);
    let mut most = last(table.overrides(), BLOCKING_FILES_KEY).and_then(whole).unwrap_or(site.blocking_files);
    table.families.values().find_map(|family| {
        // As in HBase only what the family's configuration says: not its attributes.
        let own = |key| last(family.configuration.iter().map(|(key, value)| (&**key, &**value)), key);
        if own(POLICY_KEY).and_then(policy).or(of_table) != Some(FIFO) {
            return None;
        }
        if family.ttl_ms().is_none() {
            return Some("Default TTL is not supported for FIFO compaction".into());
        }
        if family.min_versions() > 0 {
            return Some("MIN_VERSION > 0 is not supported for FIFO compaction".into());
        }
        // As in HBase, what one family says holds for those after it.
        most = own(BLOCKING_FILES_KEY).and_then(whole).unwrap_or(most);
        (most < FIFO_LEAST_BLOCKING_FILES).then(|| {
            format!(
                "Blocking file count '{BLOCKING_FILES_KEY}' {most} is below recommended minimum of {FIFO_LEAST_BLOCKING_FILES} for column family {}",
                String::from_utf8_lossy(&family.name)
            )
        })
    })
}

/// Files are cold by their time only where compactions keep times apart. HBase holds to it whatever is to be bypassed.
pub(super) fn wrong_with_tiering(table: &TableDescriptor) -> Option<String> {
    let of_table = |key| last(table.overrides(), key);
    let is_wrong = |kind: Option<&str>, engine: Option<&str>| {
        let is_tiered = engine.is_some_and(|class| class.trim().rsplit('.').next() == Some("DateTieredStoreEngine"));
        kind == Some("TIME_RANGE") && !is_tiered
    };
    let (kind, engine) = (of_table(TIERING_KEY), of_table(ENGINE_KEY));
    let of_families = table.families.values().any(|family| {
        let own = |key| last(family.configuration.iter().map(|(key, value)| (&**key, &**value)), key);
        is_wrong(own(TIERING_KEY).or(kind), own(ENGINE_KEY).or(engine))
    });
    (is_wrong(kind, engine) || of_families)
        .then(|| "Time Range Data Tiering should be enabled with Date Tiered Compaction.".into())
        .or_else(|| wrong_with_values(table))
}

/// Rows cannot be told apart by a column that nobody named, nor by a Java class of the user's. HBase means to refuse the first and asks for an engine that is not there, so that regions do
/// not open.
fn wrong_with_values(table: &TableDescriptor) -> Option<String> {
    let of_table = |key| last(table.overrides(), key);
    table.families.values().find_map(|family| {
        let of = |key| last(family.overrides(), key).or_else(|| of_table(key));
        let engine = of(ENGINE_KEY)?;
        let is_custom = StoreEngine::parse(engine) == Some(StoreEngine::CustomTiered);
        if is_custom && of(TIERING_QUALIFIER_KEY).is_none() {
            return Some(format!("StoreEngine {engine} is missing required {TIERING_QUALIFIER_KEY} parameter."));
        }
        let provider =
            of(TIERING_PROVIDER_KEY).filter(|class| class.trim().rsplit('.').next() != Some(TIERING_PROVIDER));
        provider
            .filter(|_| is_custom)
            .map(|class| format!("Unable to load configured tiering value provider '{class}'"))
    })
}
