//! Prints the entries of log files: `cargo run -p basalt-wal --example dump -- <file>...`

use basalt_wal::Reader;
use basalt_wal::marker::Marker;
use fs::{FilePath, LocalVolume};
use std::path::Path;

fn main() {
    for arg in std::env::args().skip(1) {
        let path = Path::new(&arg);
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let volume = LocalVolume::open(dir).expect("the directory");
        let name = path.file_name().and_then(|name| name.to_str()).expect("a file name");
        let mut reader = match Reader::open(&volume, &FilePath::new(name)) {
            Ok(reader) => reader,
            Err(error) => {
                println!("{error}");
                continue;
            }
        };
        println!("{arg}: trailer {}, checksums {}", reader.has_trailer(), reader.is_sealed());
        loop {
            match reader.next() {
                Ok(Some(entry)) => {
                    let key = &entry.key;
                    println!("{:>10} {} {} {} {}", entry.offset, key.region, key.table, key.seq_id, key.write_time);
                    for cell in &entry.cells {
                        match Marker::decode(cell) {
                            Ok(Some(marker)) => println!("           {marker:?}"),
                            Ok(None) => println!("           {}", describe(cell)),
                            Err(error) => println!("           {error}"),
                        }
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    println!("{error}");
                    break;
                }
            }
        }
        println!("end at {}", reader.position());
    }
}

fn describe(cell: cell::CellRef<'_>) -> String {
    let text = cell::print::to_string_binary;
    let (row, family, qualifier) = (text(cell.row()), text(cell.family()), text(cell.qualifier()));
    format!("{row}/{family}:{qualifier}/{}/{} {} bytes", cell.timestamp(), cell.type_code(), cell.value().len())
}
