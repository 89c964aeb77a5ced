//! To which group of region servers a new table belongs, by a program of the operator. Follows: `RSGroupInfoManagerImpl.RSGroupMappingScript`.

use crate::script;
use base::Config;
use master::settings::{GROUP_SCRIPT, GROUP_SCRIPT_TIMEOUT_MS};
use master::{BoxFuture, GroupMapping, NoGroupMapping};
use model::TableName;
use std::sync::Arc;
use std::time::Duration;

/// The program, which is called with a table's namespace and name, and prints a group.
#[derive(Clone, Debug)]
pub(crate) struct GroupScript {
    file: String,
    at_most: Duration,
}

impl GroupScript {
    /// As the configuration says.
    pub fn from_config(config: &Config) -> Arc<dyn GroupMapping> {
        match config.text(GROUP_SCRIPT.key).map(str::trim).filter(|file| !file.is_empty()) {
            Some(file) => Arc::new(GroupScript {
                file: file.to_owned(),
                at_most: Duration::from_millis(config.get(&GROUP_SCRIPT_TIMEOUT_MS)),
            }),
            None => Arc::new(NoGroupMapping),
        }
    }
}

impl GroupMapping for GroupScript {
    fn group<'a>(&'a self, table: &'a TableName) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            match script::run(&self.file, &[table.namespace(), table.qualifier()], self.at_most).await {
                Ok(said) => Some(said.trim().to_owned()).filter(|group| !group.is_empty()),
                Err(what) => {
                    tracing::error!(
                        "Failed to get RSGroup from script for table {}:{}: {} ({}): {what}; it is made in the group of its namespace, or in default",
                        table.namespace(),
                        table.qualifier(),
                        self.file,
                        GROUP_SCRIPT.key
                    );
                    None
                }
            }
        })
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests write scripts to this machine's disk")]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    async fn ask(name: &str, text: &str, timeout_ms: &str) -> Option<String> {
        let path = std::env::temp_dir().join(format!("basalt-groups-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("made executable");
        let mut config = Config::default();
        config.set(GROUP_SCRIPT.key, path.to_str().expect("text"));
        config.set(GROUP_SCRIPT_TIMEOUT_MS.key, timeout_ms);
        let table = TableName::of("ns", "t").expect("legal");
        let group = GroupScript::from_config(&config).group(&table).await;
        std::fs::remove_file(&path).expect("removed");
        group
    }

    #[tokio::test]
    async fn a_script_hears_namespace_and_name_and_says_a_group() {
        assert_eq!(ask("good", "#!/bin/sh\necho \"  $1-$2-$# \"\n", "5000").await.as_deref(), Some("ns-t-2"));
    }

    #[tokio::test]
    async fn a_script_that_fails_says_nothing_or_takes_too_long_has_no_say() {
        assert_eq!(ask("fails", "#!/bin/sh\necho g\nexit 3\n", "5000").await, None);
        assert_eq!(ask("silent", "#!/bin/sh\n", "5000").await, None);
        assert_eq!(ask("slow", "#!/bin/sh\nsleep 60\necho g\n", "100").await, None);
        let mut config = Config::default();
        let table = TableName::of("ns", "t").expect("legal");
        assert_eq!(GroupScript::from_config(&config).group(&table).await, None);
        config.set(GROUP_SCRIPT.key, "/nowhere/script");
        assert_eq!(GroupScript::from_config(&config).group(&table).await, None);
    }
}
