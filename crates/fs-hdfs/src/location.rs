//! `hdfs://...` as HBase's `hbase.rootdir` has it.

use std::fmt;

/// A directory of an HDFS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Host and port of a NameNode, or the name of a nameservice; empty: that of `fs.defaultFS`.
    authority: String,
    /// From `/` on, without a `/` at the end; empty for the root.
    directory: String,
}

/// Why a text is no [`Location`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocationError(String);

impl fmt::Display for LocationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LocationError {}

impl Location {
    /// Reads `hdfs://host:port/path`, `hdfs://nameservice/path` or `hdfs:///path`.
    ///
    /// # Errors
    /// A sentence saying what is wrong with it.
    pub fn parse(text: &str) -> Result<Location, LocationError> {
        let wrong = |what: &str| LocationError(format!("{text} {what}; write hdfs://host:port/directory"));
        let rest = text.trim().strip_prefix("hdfs://").ok_or_else(|| wrong("does not begin with hdfs://"))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains(['@', '?', '#', ' ']) {
            return Err(wrong("has no usable host"));
        }
        if let Some((_, port)) = authority.rsplit_once(':')
            && port.parse::<u16>().is_err()
        {
            return Err(wrong("has no usable port"));
        }
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        if names.iter().any(|name| matches!(*name, "." | "..") || name.contains(':')) {
            return Err(wrong("has a name in its path that HDFS does not allow"));
        }
        let directory = names.iter().map(|name| format!("/{name}")).collect();
        Ok(Location { authority: authority.to_owned(), directory })
    }

    /// What the client connects to; without an authority it takes `fs.defaultFS`.
    pub fn url(&self) -> String {
        format!("hdfs://{}/", self.authority)
    }

    /// The absolute path within the HDFS.
    pub fn directory(&self) -> &str {
        if self.directory.is_empty() { "/" } else { &self.directory }
    }

    /// The root directory of the same HDFS.
    pub fn root(&self) -> Location {
        Location { authority: self.authority.clone(), directory: String::new() }
    }

    /// The absolute path of something within this directory.
    pub(crate) fn place(&self, path: &fs::FilePath) -> String {
        match path.as_str() {
            "" => self.directory().to_owned(),
            path => format!("{}/{path}", self.directory),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hdfs://{}{}", self.authority, self.directory())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::FilePath;

    #[test]
    fn locations_are_read() {
        let location = Location::parse("hdfs://nn.example:8020/hbase/").expect("one");
        assert_eq!((location.url().as_str(), location.directory()), ("hdfs://nn.example:8020/", "/hbase"));
        assert_eq!(location.place(&FilePath::new("data/default")), "/hbase/data/default");
        assert_eq!(location.to_string(), "hdfs://nn.example:8020/hbase");
        let root = Location::parse("hdfs://ns1").expect("one");
        assert_eq!((root.directory(), root.place(&FilePath::new("a")).as_str()), ("/", "/a"));
        assert_eq!(Location::parse("hdfs:///a//b").expect("one").directory(), "/a/b");
    }

    #[test]
    fn what_is_no_location_is_refused_with_a_sentence() {
        for text in ["/hbase", "file:/hbase", "hdfs://nn:port/x", "hdfs://u@nn/x", "hdfs://nn:1/a/../b"] {
            let error = Location::parse(text).expect_err(text).to_string();
            assert!(error.contains(text) && error.contains("hdfs://host:port"), "{error}");
        }
    }
}
