//! Where the files of a bulk load are: a client's paths against this server's disk, and the staging directories.
//!
//! A client names files by Hadoop paths (`file:/a/b`, `/a/b`). Those below the root directory are in the volume; the
//! rest is reached through the volume that the binary hands in. A bulk token is the path of a directory below
//! `<root>/staging`; nothing else is accepted as one. Follows: `SecureBulkLoadManager`.

use base::Rng;
use fs::{FilePath, Volume};
use model::TableName;
use region::Place;
use rootdir::paths::STAGING;
use std::sync::Arc;

/// Where the files of bulk loads are: inside the root directory, or outside.
#[derive(Clone)]
pub struct BulkLoadFiles {
    /// The whole file system.
    pub outside: Arc<dyn Volume>,
    /// Where the root directory is on it: an absolute path, on HDFS with what comes before it (`hdfs://host:port/hbase`).
    pub root: String,
    /// This cluster, for the log.
    pub cluster_id: String,
}

impl BulkLoadFiles {
    /// The bytes of the file that somebody calls `text`, in the volume `inside` of the root directory or elsewhere. Reads it as a whole: at most
    /// `max_bytes`.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    pub fn read(&self, inside: &dyn Volume, text: &str, max_bytes: u64) -> Result<Vec<u8>, String> {
        let place = self.place(text).ok_or("it names no file of the file system that hbase.rootdir is on")?;
        let volume = match &place {
            Place::Inside(_) => inside,
            Place::Outside { volume, .. } => &**volume,
        };
        let file = volume.open(place.path()).map_err(|error| error.to_string())?;
        let len = file.len().map_err(|error| error.to_string())?;
        if len > max_bytes {
            return Err(format!("it has {len} bytes, and {max_bytes} is the limit"));
        }
        let mut bytes = vec![0; len as usize];
        file.read_exact_at(&mut bytes, 0).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    /// Where the file that a client calls `text` is; `None` when the text names no file of this file system.
    pub(crate) fn place(&self, text: &str) -> Option<Place> {
        let path = self.path_of(text)?;
        let root = self.path_of(&self.root)?;
        Some(match below(&path, &root) {
            Some(inside) => Place::Inside(inside),
            None => Place::Outside { volume: self.outside.clone(), path, root },
        })
    }

    /// The staging directory that a token means, relative to the root; `None` when it is no token of this server.
    pub(crate) fn staging_dir(&self, token: &str) -> Option<FilePath> {
        let inside = below(&self.path_of(token)?, &self.path_of(&self.root)?)?;
        let name = inside.as_str().strip_prefix(STAGING)?.strip_prefix('/')?;
        (!name.is_empty() && !name.contains('/')).then_some(inside)
    }

    /// A new staging directory for `user` (not made yet) and the token that means it.
    pub(crate) fn new_staging_dir(&self, user: &str, table: &TableName, rng: &Rng) -> (FilePath, String) {
        let short = user.split(['/', '@']).next().unwrap_or_default();
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let user: String = short.chars().map(plain).collect();
        let user = if user.is_empty() { "basalt" } else { &user };
        let digits = b"0123456789abcdefghijklmnopqrstuv";
        let random: String = (0..64).map(|_| char::from(digits[rng.below(32) as usize])).collect();
        let table = table.as_str().replace(':', "_");
        let dir = FilePath::new(STAGING).join(format!("{user}__{table}__{random}"));
        let scheme = if self.origin().is_empty() { "file:" } else { "" };
        let token = format!("{scheme}{}/{}", self.root.trim_end_matches('/'), dir.as_str());
        (dir, token)
    }

    /// What comes before the root directory's path: `hdfs://host:port`; nothing on a disk.
    fn origin(&self) -> &str {
        let Some((scheme, rest)) = self.root.split_once("://") else { return "" };
        let authority = rest.find('/').unwrap_or(rest.len());
        &self.root[..scheme.len() + "://".len() + authority]
    }

    /// A path on the file system of the root directory; on HDFS with or without what names it.
    fn path_of(&self, text: &str) -> Option<FilePath> {
        let origin = self.origin();
        if origin.is_empty() {
            return local_path(text);
        }
        let path = text.strip_prefix(origin).unwrap_or(text);
        path.starts_with('/').then(|| local_path(path)).flatten()
    }
}

/// The directories of a list; `None`: nothing is set. What names no directory of this machine allows nothing.
pub(crate) fn dirs(list: &str) -> Option<Vec<FilePath>> {
    let names: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    (!names.is_empty() && names != ["any"]).then(|| names.into_iter().filter_map(local_path).collect())
}

/// Whether a file may be loaded from where it is; those inside the root directory always.
pub(crate) fn is_allowed(place: &Place, dirs: Option<&[FilePath]>) -> bool {
    match (place, dirs) {
        (Place::Inside(_), _) | (_, None) => true,
        (Place::Outside { path, .. }, Some(dirs)) => dirs.iter().any(|dir| below(path, dir).is_some()),
    }
}

/// A Hadoop path as one relative to the disk's root.
fn local_path(text: &str) -> Option<FilePath> {
    let path = match text.strip_prefix("file:") {
        None => text,
        // `file:/a`, `file:///a`.
        Some(rest) => rest.strip_prefix("//").unwrap_or(rest),
    };
    let path = path.strip_prefix('/')?;
    let mut names = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name if name.contains('\0') => return None,
            name => names.push(name),
        }
    }
    (!names.is_empty()).then(|| FilePath::new(names.join("/")))
}

fn below(path: &FilePath, root: &FilePath) -> Option<FilePath> {
    path.as_str().strip_prefix(root.as_str())?.strip_prefix('/').map(FilePath::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> BulkLoadFiles {
        BulkLoadFiles {
            outside: Arc::new(fs::MemVolume::new()),
            root: "/srv/basalt".to_owned(),
            cluster_id: "c".to_owned(),
        }
    }

    #[test]
    fn paths_are_inside_outside_or_nothing() {
        let place = |text: &str| files().place(text).map(|place| format!("{place:?}"));
        for inside in ["/srv/basalt/a/b", "file:/srv/basalt/a/b", "file:///srv//basalt/./x/../a/b"] {
            assert_eq!(place(inside).as_deref(), Some(r#"Inside("a/b")"#), "{inside}");
        }
        for outside in ["/srv/basalts/a", "file:/srv/basalt/../basalts/a"] {
            assert_eq!(place(outside).as_deref(), Some(r#"Outside("srv/basalts/a")"#), "{outside}");
        }
        for bad in ["", "a/b", "hdfs://host/a", "file:a", "/", "/..", "file://host/../..", "/a/\0"] {
            assert_eq!(place(bad), None, "{bad}");
        }
    }

    #[test]
    fn on_hdfs_files_are_those_of_the_root_directorys_file_system() {
        let files = BulkLoadFiles { root: "hdfs://n:8020/hbase".to_owned(), ..files() };
        let place = |text: &str| files.place(text).map(|place| format!("{place:?}"));
        for inside in ["hdfs://n:8020/hbase/a/b", "/hbase/a/b"] {
            assert_eq!(place(inside).as_deref(), Some(r#"Inside("a/b")"#), "{inside}");
        }
        assert_eq!(place("hdfs://n:8020/out/f/x").as_deref(), Some(r#"Outside("out/f/x")"#));
        for bad in ["hdfs://other:8020/out/f/x", "hdfs://n:80201/out", "file:/hbase/a", "s3a://b/x", "a"] {
            assert_eq!(place(bad), None, "{bad}");
        }
        let (dir, token) = files.new_staging_dir("u", &TableName::parse("t").expect("legal"), &Rng::seeded(1));
        assert!(token.starts_with("hdfs://n:8020/hbase/staging/"), "{token}");
        assert_eq!(files.staging_dir(&token), Some(dir));
    }

    #[test]
    fn a_list_of_directories_narrows_where_files_come_from() {
        let allowed = |list: &str, file: &str| is_allowed(&files().place(file).expect("local"), dirs(list).as_deref());
        for list in ["", " , ", "any", "/in, file:/other/"] {
            assert!(allowed(list, "/in/a") && allowed(list, "/srv/basalt/staging/a"), "{list}");
        }
        assert!(!allowed("/in", "/inn/a") && !allowed("/in", "/in/../etc/a") && !allowed("/in", "/in"));
        assert!(allowed("/in,/other", "file:///other/b/c"));
        assert!(!allowed("hdfs://host/in", "/in/a"), "what is not understood allows nothing");
    }

    /// As a dictionary is read (`hbase.io.compress.zstd.dictionary`).
    #[test]
    fn a_file_is_read_wherever_it_is_but_not_whatever_its_size() {
        let (inside, outside) = (fs::MemVolume::new(), fs::MemVolume::new());
        inside.put_file(&FilePath::new("dictionaries/a"), b"inside");
        outside.put_file(&FilePath::new("etc/b"), b"outside");
        let root = "/srv/basalt".to_owned();
        let files = BulkLoadFiles { outside: Arc::new(outside), root, cluster_id: String::new() };
        let read =
            |text: &str, max| files.read(&inside, text, max).map(|bytes| String::from_utf8(bytes).expect("text"));
        assert_eq!(read("file:///srv/basalt/dictionaries/a", 100).as_deref(), Ok("inside"));
        assert_eq!(read("/etc/b", 7).as_deref(), Ok("outside"));
        assert_eq!(read("/etc/b", 6), Err("it has 7 bytes, and 6 is the limit".to_owned()));
        assert!(read("/etc/c", 100).is_err_and(|what| what.contains("etc/c")));
        let nowhere = "it names no file of the file system that hbase.rootdir is on";
        assert_eq!(read("resource://a", 100), Err(nowhere.to_owned()));
    }

    #[test]
    fn only_staging_directories_are_tokens() {
        let (dir, token) =
            files().new_staging_dir("a/../b@X", &TableName::parse("n:t").expect("legal"), &Rng::seeded(1));
        assert!(dir.as_str().starts_with("staging/a__n_t__") && dir.name().len() == 7 + 64 + 1, "{dir:?}");
        assert_eq!(files().staging_dir(&token), Some(dir));
        for bad in
            ["/srv/basalt/staging", "/srv/basalt/data/x", "/srv/basalt/staging/a/b", "/etc", "/srv/basalt/staging/../x"]
        {
            assert_eq!(files().staging_dir(bad), None, "{bad}");
        }
    }
}
