//! Paths within a volume.

use std::fmt;
use std::sync::Arc;

/// A path relative to a volume's root: `data/default/t/abc/f`. The root itself is the empty path. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath(Arc<str>);

impl FilePath {
    /// The volume's root.
    pub fn root() -> FilePath {
        FilePath(Arc::from(""))
    }

    /// The path with these `/`-separated names.
    ///
    /// # Panics
    /// On an absolute path, an empty name, `.` or `..`: names that come from outside are checked before.
    pub fn new(path: impl AsRef<str>) -> FilePath {
        let path = path.as_ref();
        assert!(
            path.is_empty() || path.split('/').all(|name| !matches!(name, "" | "." | "..")),
            "not a path inside a volume: {path:?}"
        );
        FilePath(Arc::from(path))
    }

    /// The entry `name` (or the relative path `name`) below this directory.
    pub fn join(&self, name: impl AsRef<str>) -> FilePath {
        if self.0.is_empty() { FilePath::new(name) } else { FilePath::new(format!("{}/{}", self.0, name.as_ref())) }
    }

    /// The directory that holds this entry; the root's parent is the root.
    pub fn parent(&self) -> FilePath {
        FilePath(Arc::from(self.0.rsplit_once('/').map_or("", |(dir, _)| dir)))
    }

    /// The last name; empty for the root.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// The whole relative path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is `dir` or lies below it.
    pub fn starts_with(&self, dir: &FilePath) -> bool {
        dir.0.is_empty() || self.0.strip_prefix(&*dir.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "the root directory" } else { &self.0 })
    }
}

impl fmt::Debug for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}
