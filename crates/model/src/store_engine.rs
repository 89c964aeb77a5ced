//! How a store keeps its files.

use std::fmt;

const PACKAGE: &str = "org.apache.hadoop.hbase.regionserver.";

/// Key under which site, table and family say it.
pub const ENGINE_KEY: &str = "hbase.hstore.engine.class";

/// Which engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum StoreEngine {
    /// By sequence id, as few files as the compaction policy wants.
    Default,
    /// Compactions keep the cells of different times in different files.
    DateTiered,
    /// Compactions keep rows with old and with new values of one column in different files.
    CustomTiered,
    /// Flushes and compactions keep the cells of different ranges of rows in different files.
    Stripe,
}

const ENGINES: [(StoreEngine, &str); 4] = [
    (StoreEngine::Default, "DefaultStoreEngine"),
    (StoreEngine::DateTiered, "DateTieredStoreEngine"),
    (StoreEngine::CustomTiered, "CustomTieredStoreEngine"),
    (StoreEngine::Stripe, "StripeStoreEngine"),
];

impl StoreEngine {
    /// The engine of HBase's class, with or without its package.
    pub fn parse(class: &str) -> Option<StoreEngine> {
        let class = class.trim();
        let name = class.strip_prefix(PACKAGE).unwrap_or(class);
        ENGINES.iter().find(|(_, known)| *known == name).map(|(engine, _)| *engine)
    }
}

impl fmt::Display for StoreEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StoreEngine::Default => "DefaultStoreEngine",
            StoreEngine::DateTiered => "DateTieredStoreEngine",
            StoreEngine::CustomTiered => "CustomTieredStoreEngine",
            StoreEngine::Stripe => "StripeStoreEngine",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_said_by_the_name_of_its_class() {
        for (engine, name) in ENGINES {
            assert_eq!(StoreEngine::parse(&format!(" {PACKAGE}{name}")), Some(engine));
            assert_eq!(StoreEngine::parse(&engine.to_string()), Some(engine));
        }
        assert_eq!(StoreEngine::parse("org.example.DefaultStoreEngine"), None);
    }
}
