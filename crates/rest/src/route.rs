//! From a path to what it means. Follows: the `@Path`s of `RootResource`, `TableResource` and their like.

use crate::text::percent_decoded;

/// What a path means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `/`
    Root,
    /// `/version`, `/version/rest`
    Version,
    /// `/version/cluster`
    ClusterVersion,
    /// `/status/cluster`
    ClusterStatus,
    /// `/namespaces`
    Namespaces,
    /// `/namespaces/{ns}`
    Namespace(String),
    /// `/namespaces/{ns}/tables`
    NamespaceTables(String),
    /// `/{table}/...`
    Table(String, TableRoute),
}

/// What a path means within a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableRoute {
    /// `/{table}/exists`
    Exists,
    /// `/{table}/regions`
    Regions,
    /// `/{table}/schema`
    Schema,
    /// `/{table}/scanner`
    Scanner,
    /// `/{table}/scanner/{id}`
    ScannerInstance(String),
    /// `/{table}/multiget[/{columns}]`
    MultiGet(String),
    /// `/{table}/{row}...` or `/{table}/{prefix}*/{columns}...`: a row specification, still encoded
    Row(String),
    /// `/{table}/{prefix}*`
    Scan(String),
}

impl Route {
    /// `None`: there is nothing at this path. A row may have slashes only as `%2F`.
    ///
    /// # Errors
    /// An escape that is none.
    pub fn of(path: &str) -> Result<Option<Route>, String> {
        let path = path.trim_start_matches('/');
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let rest_is = |wanted: &str| rest.trim_end_matches('/') == wanted;
        let plain = |text: &str| percent_decoded(text, false);
        Ok(match first {
            "" => Some(Route::Root),
            "version" if rest_is("") || rest_is("rest") => Some(Route::Version),
            "version" if rest_is("cluster") => Some(Route::ClusterVersion),
            "version" => None,
            "status" if rest_is("cluster") => Some(Route::ClusterStatus),
            "namespaces" if rest_is("") => Some(Route::Namespaces),
            "namespaces" => match rest.trim_end_matches('/').split_once('/') {
                None => Some(Route::Namespace(plain(rest.trim_end_matches('/'))?)),
                Some((namespace, "tables")) => Some(Route::NamespaceTables(plain(namespace)?)),
                Some(_) => None,
            },
            table => {
                TableRoute::of(rest)?.map(|route| plain(table).map(|table| Route::Table(table, route))).transpose()?
            }
        })
    }
}

impl TableRoute {
    fn of(path: &str) -> Result<Option<TableRoute>, String> {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let alone = |route| Ok(rest.is_empty().then_some(route));
        match first {
            "" => return Ok(None),
            "exists" => return alone(TableRoute::Exists),
            "regions" => return alone(TableRoute::Regions),
            "schema" => return alone(TableRoute::Schema),
            "scanner" if rest.is_empty() => return Ok(Some(TableRoute::Scanner)),
            "scanner" => return Ok(Some(TableRoute::ScannerInstance(percent_decoded(rest, false)?))),
            _ => {}
        }
        if path.starts_with("multiget") {
            let columns = percent_decoded(path, false)?.replace("multiget", "").replace('/', "");
            return Ok(Some(TableRoute::MultiGet(columns)));
        }
        let starred = path.find("*/").is_some_and(|at| path.len() > at + 2);
        if !path.contains('*') || starred {
            return Ok(Some(TableRoute::Row(path.to_owned())));
        }
        let Some(prefix) = path.strip_suffix('*') else { return Ok(None) };
        let prefix = prefix.split('*').next().unwrap_or_default();
        Ok(Some(TableRoute::Scan(percent_decoded(prefix, false)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(path: &str) -> Option<TableRoute> {
        match Route::of(path).expect("legal") {
            Some(Route::Table(name, route)) => {
                assert_eq!(name, "t:x");
                Some(route)
            }
            None => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn fixed_paths_are_known() {
        let of = |path| Route::of(path).expect("legal");
        assert_eq!(of("/"), Some(Route::Root));
        assert_eq!((of("/version"), of("/version/rest")), (Some(Route::Version), Some(Route::Version)));
        assert_eq!((of("/version/cluster"), of("/version/x")), (Some(Route::ClusterVersion), None));
        assert_eq!(of("/status/cluster"), Some(Route::ClusterStatus));
        assert_eq!(of("/namespaces/"), Some(Route::Namespaces));
        assert_eq!(of("/namespaces/a"), Some(Route::Namespace("a".into())));
        assert_eq!(of("/namespaces/a/tables"), Some(Route::NamespaceTables("a".into())));
        assert_eq!(of("/namespaces/a/b"), None);
        assert_eq!(of("/t"), None);
        assert!(Route::of("/%zz/exists").is_err());
    }

    #[test]
    fn a_tables_paths_are_known() {
        assert_eq!(table("/t%3Ax/exists"), Some(TableRoute::Exists));
        assert_eq!(table("/t:x/regions"), Some(TableRoute::Regions));
        assert_eq!((table("/t:x/schema"), table("/t:x/schema/f")), (Some(TableRoute::Schema), None));
        assert_eq!(table("/t:x/scanner"), Some(TableRoute::Scanner));
        assert_eq!(table("/t:x/scanner/1"), Some(TableRoute::ScannerInstance("1".into())));
        assert_eq!(table("/t:x/multiget/f:a,g"), Some(TableRoute::MultiGet("f:a,g".into())));
        assert_eq!(table("/t:x/r%2F/f:q"), Some(TableRoute::Row("r%2F/f:q".into())));
        assert_eq!(table("/t:x/r*/f:q"), Some(TableRoute::Row("r*/f:q".into())));
        assert_eq!(table("/t:x/r%20*"), Some(TableRoute::Scan("r ".into())));
        assert_eq!(table("/t:x/*"), Some(TableRoute::Scan(String::new())));
        assert_eq!(table("/t:x/a*b"), None);
    }
}
