//! A target under libFuzzer; `BASALT_FUZZ_TARGET` names it. Built and run by `cargo xtask fuzz`, with libFuzzer's own arguments. With
//! `BASALT_FUZZ_SEEDS` it only writes the seeds there and lists the targets.
#![no_main]
#![allow(unsafe_code, reason = "the allocator below only counts what it passes on")]

use basalt_fuzz::{Target, list, target, write_seeds};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;

/// More than any input may lead to in one piece: a length was believed.
const LARGEST_ALLOCATION_BYTES: usize = 64 << 20;

struct Limited;

fn check(len: usize) {
    if len > LARGEST_ALLOCATION_BYTES {
        eprintln!("an allocation of {len} bytes; the limit is {LARGEST_ALLOCATION_BYTES}");
        std::process::abort();
    }
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's duties are those of this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        check(new_size);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, new_size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;

static TARGET: OnceLock<&'static Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        if let Some(directory) = std::env::var_os("BASALT_FUZZ_SEEDS") {
            write_seeds(directory.as_ref()).expect("seeds");
            print!("{}", list());
            std::process::exit(0);
        }
        let name = std::env::var("BASALT_FUZZ_TARGET").expect("BASALT_FUZZ_TARGET names a target");
        let _ = TARGET.set(target(&name).expect("BASALT_FUZZ_TARGET names no target"));
    },
    |data: &[u8]| {
        if let Some(target) = TARGET.get() {
            (target.run)(data);
        }
    }
);
