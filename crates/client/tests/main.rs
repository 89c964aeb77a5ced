//! The client against servers that do as they are told: what it asks, whom, when again, and when no more.

mod fake;
mod retries;
