//! The tests that PerformanceEvaluation knows, by name.

macro_rules! commands {
    ($($name:literal = $variant:ident, $class:literal, $words:literal;)*) => {
        /// A named test.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the words beside the names explain them")]
        pub enum Command { $($variant),* }

        impl Command {
            /// Every test, in the order of names.
            pub const ALL: &'static [Command] = &[$(Command::$variant),*];

            /// The test of that name.
            pub fn from_name(name: &str) -> Option<Command> {
                match name { $($name => Some(Command::$variant),)* _ => None }
            }

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Command::$variant => $name),* }
            }

            /// The simple name of its class in Java: reports and qualifiers use it.
            pub fn class(self) -> &'static str {
                match self { $(Command::$variant => $class),* }
            }

            /// What it does.
            pub fn description(self) -> &'static str {
                match self { $(Command::$variant => $words),* }
            }
        }
    };
}

commands! {
    "append" = Append, "AppendTest", "Append on each row; clients overlap on keyspace so some concurrent operations";
    "asyncRandomRead" = AsyncRandomRead, "AsyncRandomReadTest", "Run async random read test";
    "asyncRandomWrite" = AsyncRandomWrite, "AsyncRandomWriteTest", "Run async random write test";
    "asyncScan" = AsyncScan, "AsyncScanTest", "Run async scan test (read every row)";
    "asyncSequentialRead" = AsyncSequentialRead, "AsyncSequentialReadTest", "Run async sequential read test";
    "asyncSequentialWrite" = AsyncSequentialWrite, "AsyncSequentialWriteTest", "Run async sequential write test";
    "checkAndDelete" = CheckAndDelete, "CheckAndDeleteTest", "CheckAndDelete on each row; clients overlap on keyspace so some concurrent operations";
    "checkAndMutate" = CheckAndMutate, "CheckAndMutateTest", "CheckAndMutate on each row; clients overlap on keyspace so some concurrent operations";
    "checkAndPut" = CheckAndPut, "CheckAndPutTest", "CheckAndPut on each row; clients overlap on keyspace so some concurrent operations";
    "cleanMeta" = CleanMeta, "CleanMetaTest", "Remove fake region entries on meta table inserted by metaWrite; used with 1 thread";
    "filterScan" = FilterScan, "FilteredScanTest", "Run scan test using a filter to find a specific row based on it's value (make sure to use --rows=20)";
    "increment" = Increment, "IncrementTest", "Increment on each row; clients overlap on keyspace so some concurrent operations";
    "metaRandomRead" = MetaRandomRead, "MetaRandomReadTest", "Run getRegionLocation test";
    "metaWrite" = MetaWrite, "MetaWriteTest", "Populate meta table;used with 1 thread; to be cleaned up by cleanMeta";
    "randomDelete" = RandomDelete, "RandomDeleteTest", "Run random delete test";
    "randomRead" = RandomRead, "RandomReadTest", "Run random read test";
    "randomSeekScan" = RandomSeekScan, "RandomSeekScanTest", "Run random seek and scan 100 test";
    "randomWrite" = RandomWrite, "RandomWriteTest", "Run random write test";
    "reverseScan" = ReverseScan, "ReverseScanTest", "Run reverse scan test (read every row)";
    "scan" = Scan, "ScanTest", "Run scan test (read every row)";
    "scanRange10" = ScanRange10, "RandomScanWithRange10Test", "Run random seek scan with both start and stop row (max 10 rows)";
    "scanRange100" = ScanRange100, "RandomScanWithRange100Test", "Run random seek scan with both start and stop row (max 100 rows)";
    "scanRange1000" = ScanRange1000, "RandomScanWithRange1000Test", "Run random seek scan with both start and stop row (max 1000 rows)";
    "scanRange10000" = ScanRange10000, "RandomScanWithRange10000Test", "Run random seek scan with both start and stop row (max 10000 rows)";
    "sequentialDelete" = SequentialDelete, "SequentialDeleteTest", "Run sequential delete test";
    "sequentialRead" = SequentialRead, "SequentialReadTest", "Run sequential read test";
    "sequentialWrite" = SequentialWrite, "SequentialWriteTest", "Run sequential write test";
}

impl Command {
    /// Whether the table must have been written before (by the name, as the tool decides it).
    pub fn needs_data(self) -> bool {
        let name = self.name().to_lowercase();
        ["read", "scan", "delete"].iter().any(|word| name.contains(word))
    }

    /// Whether all clients go over the same rows.
    pub fn overlaps(self) -> bool {
        use Command::{Append, CheckAndDelete, CheckAndMutate, CheckAndPut, Increment};
        matches!(self, Append | Increment | CheckAndDelete | CheckAndMutate | CheckAndPut)
    }
}
