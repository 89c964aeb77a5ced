//! Latencies, throughput over time, and what a server process used.
