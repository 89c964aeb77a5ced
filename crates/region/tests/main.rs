//! Tests of regions. `schedules` is a binary of its own, built with the feature `shuttle` alone
//! (`cargo xtask schedules`).

extern crate filter as basalt_filter;

mod arrival;
mod attributes;
mod bulk_load;
mod common;
mod compression;
mod crash;
mod differences;
mod doubts;
mod effort;
mod filters;
mod foreign;
mod foreign_layouts;
mod handover;
mod idle_scanners;
mod inherit;
mod key_histogram;
mod mob;
mod model;
mod moving;
mod online;
mod point;
mod regions;
mod replays;
mod replicas;
mod same_files;
mod scenarios;
mod semantics;
mod slow_volume;
mod snapshots;
mod splits;
mod stripes;
mod threads;
mod ticks;
mod trackers;
mod walk;
