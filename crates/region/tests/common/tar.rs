//! Directories that HBase wrote, packed.

use fs::{FilePath, MemVolume, Volume};
use std::io::Read;

/// Unpacks a tar archive (ustar, with GNU's long names) into a volume.
pub fn unpack(archive: &[u8]) -> MemVolume {
    let mut tar = Vec::new();
    flate2::read::GzDecoder::new(archive).read_to_end(&mut tar).expect("gzip");
    let volume = MemVolume::new();
    let text =
        |bytes: &[u8]| String::from_utf8(bytes.split(|b| *b == 0).next().unwrap_or_default().to_vec()).expect("UTF-8");
    let (mut at, mut long_name) = (0, None);
    while tar.get(at).is_some_and(|byte| *byte != 0) {
        let header = &tar[at..at + 512];
        let size = usize::from_str_radix(text(&header[124..136]).trim(), 8).expect("octal");
        let content = &tar[at + 512..at + 512 + size];
        let prefix = text(&header[345..500]);
        let short = text(&header[..100]);
        let name = long_name.take().unwrap_or(if prefix.is_empty() { short } else { format!("{prefix}/{short}") });
        match header[156] {
            b'L' => long_name = Some(text(content)),
            b'5' => volume.create_dir_all(&path(&name)).expect("memory"),
            _ => {
                volume.create_dir_all(&path(&name).parent()).expect("memory");
                volume.put_file(&path(&name), content);
            }
        }
        at += 512 + size.div_ceil(512) * 512;
    }
    volume
}

fn path(name: &str) -> FilePath {
    let name = name.trim_start_matches("./").trim_matches('/');
    FilePath::new(if name == "." { "" } else { name })
}
