//! What the gateway counts, under HBase's names. Follows: `MetricsREST`, `MetricsRESTSourceImpl`, and where the resources call it.

use crate::resources::Action;
use crate::route::{Route, TableRoute};
use base::Adder;
use base::metrics::{REST, Registry};
use std::sync::Arc;

/// Kinds of requests as HBase counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What reads, scanners' cells included.
    Get,
    /// What writes, makes or changes.
    Put,
    /// What deletes.
    Delete,
    /// A scan whose query says what of.
    Scan,
    /// `?check=append`.
    Append,
    /// `?check=increment`.
    Increment,
}

impl Kind {
    const COUNT: usize = Kind::Increment as usize + 1;

    /// Of a request to a route; `check` is the query's.
    pub fn of(route: &Route, action: Action, check: Option<&str>) -> Kind {
        match (route, action) {
            (Route::Table(_, TableRoute::Scan(_)), Action::Get) => Kind::Scan,
            (_, Action::Get) => Kind::Get,
            (_, Action::Delete) => Kind::Delete,
            (Route::Table(_, TableRoute::Row(_)), _) => match check {
                Some("append") => Kind::Append,
                Some("increment") => Kind::Increment,
                Some("delete") => Kind::Delete,
                _ => Kind::Put,
            },
            _ => Kind::Put,
        }
    }
}

/// The numbers.
#[derive(Debug, Default)]
pub struct Metrics {
    requests: Adder,
    successful: [Adder; Kind::COUNT],
    failed: [Adder; Kind::COUNT],
}

impl Metrics {
    /// A request came.
    pub fn requested(&self) {
        self.requests.add(1);
    }

    /// A request was answered.
    pub fn answered(&self, kind: Kind, well: bool) {
        let counts = if well { &self.successful } else { &self.failed };
        counts[kind as usize].add(1);
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.requests.sum()
    }

    /// Shows them in `registry`.
    pub fn register(self: &Arc<Self>, registry: &Registry) {
        let metrics = Arc::downgrade(self);
        registry.collect(move |sink, _| {
            let Some(metrics) = metrics.upgrade() else { return };
            let good = |kind: Kind| metrics.successful[kind as usize].sum();
            let bad = |kind: Kind| metrics.failed[kind as usize].sum();
            sink.bean(REST)
                .counter("requests", metrics.requests())
                .counter("successfulGet", good(Kind::Get))
                .counter("successfulPut", good(Kind::Put))
                .counter("successfulDelete", good(Kind::Delete))
                .counter("successfulScanCount", good(Kind::Scan))
                .counter("successfulAppendCount", good(Kind::Append))
                .counter("successfulIncrementCount", good(Kind::Increment))
                .counter("failedGet", bad(Kind::Get))
                .counter("failedPut", bad(Kind::Put))
                .counter("failedDelete", bad(Kind::Delete))
                .counter("failedScanCount", bad(Kind::Scan))
                .counter("failedAppendCount", bad(Kind::Append))
                .counter("failedIncrementCount", bad(Kind::Increment));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_as_hbase_sorts_them() {
        let of =
            |path: &str, action, check| Kind::of(&Route::of(path).expect("legal").expect("a route"), action, check);
        for (path, action, check, kind) in [
            ("/t/r", Action::Get, None, Kind::Get),
            ("/t/scanner/1", Action::Get, None, Kind::Get),
            ("/t/*", Action::Get, None, Kind::Scan),
            ("/t/scanner", Action::Put, None, Kind::Put),
            ("/t/schema", Action::Post, None, Kind::Put),
            ("/t/schema", Action::Delete, None, Kind::Delete),
            ("/t/r", Action::Put, Some("put"), Kind::Put),
            ("/t/r", Action::Put, Some("append"), Kind::Append),
            ("/t/r", Action::Post, Some("increment"), Kind::Increment),
            ("/t/r", Action::Put, Some("delete"), Kind::Delete),
            ("/namespaces/n", Action::Delete, None, Kind::Delete),
        ] {
            assert_eq!(of(path, action, check), kind, "{path} {check:?}");
        }
        let metrics = Arc::new(Metrics::default());
        let registry = Registry::new();
        metrics.register(&registry);
        metrics.requested();
        metrics.answered(Kind::Append, false);
        let samples = registry.read(0);
        let value = |name: &str| samples.iter().find(|sample| sample.name == name).map(|sample| sample.number);
        assert_eq!(value("requests"), Some(base::metrics::Number::Long(1)));
        assert_eq!(value("failedAppendCount"), Some(base::metrics::Number::Long(1)));
        assert_eq!(value("successfulAppendCount"), Some(base::metrics::Number::Long(0)));
    }
}
