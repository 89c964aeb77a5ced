//! RocksDB as the system has it (Debian: librocksdb-dev), or in the directory that ROCKSDB_LIB_DIR names.

fn main() {
    println!("cargo:rerun-if-env-changed=ROCKSDB_LIB_DIR");
    if let Ok(dir) = std::env::var("ROCKSDB_LIB_DIR") {
        println!("cargo:rustc-link-search=native={dir}");
    }
    println!("cargo:rustc-link-lib=dylib=rocksdb");
}
