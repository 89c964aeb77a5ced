//! Which tier a new file belongs to.

use super::{Class, TierSpec};
use crate::{FileKind, Placement};
use std::collections::BTreeMap;

/// Where files go for whose place nobody said anything else, and what may lie on memory.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The tier of each kind of file, by name; a kind that is not there stays with the names.
    pub kinds: BTreeMap<&'static str, String>,
    /// Whether a volume in memory may hold the only copy of acknowledged writes.
    pub memory_may_lose_acknowledged_writes: bool,
}

/// What [`Rules::tier`] comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Beside the names.
    Home,
    /// The tier of that number.
    Tier(usize),
    /// Beside the names, though something else was wished; why.
    Refused(String),
}

/// Where a storage policy of HDFS leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HdfsPolicy {
    /// Beside the names.
    Home,
    /// To the first tier of that class.
    Class(Class),
}

/// The storage policy of HDFS that has this name, in any case of letters. Follows: `CommonFSUtils#setStoragePolicy`, which makes capitals of them.
fn of_hdfs(name: &str) -> Option<HdfsPolicy> {
    Some(match name.to_ascii_uppercase().as_str() {
        // One copy: where the first of HDFS's replicas goes that is not on the root's own disk.
        "HOT" | "WARM" | "PROVIDED" => HdfsPolicy::Home,
        "ALL_SSD" | "ONE_SSD" => HdfsPolicy::Class(Class::Ssd),
        "COLD" => HdfsPolicy::Class(Class::Hdd),
        "LAZY_PERSIST" => HdfsPolicy::Class(Class::Ram),
        _ => return None,
    })
}

/// Why a tier could not be meant by its name where a storage policy is given, because HBase's users mean another place by it.
pub(super) fn shadowed(tiers: &[TierSpec]) -> Option<String> {
    tiers.iter().find_map(|tier| {
        let leads = match of_hdfs(&tier.name) {
            None if tier.name.eq_ignore_ascii_case("NONE") => "is no policy at all".to_owned(),
            None => return None,
            Some(HdfsPolicy::Home) => "leaves files on the root directory's disk".to_owned(),
            Some(HdfsPolicy::Class(class)) => match tiers.iter().find(|tier| tier.class == class) {
                Some(first) if first.name == tier.name => return None,
                Some(first) => format!("is the first tier of class {class}, which is {}", first.name),
                None => format!("is the first tier of class {class}, and there is none"),
            },
        };
        let (name, policy) = (&tier.name, tier.name.to_ascii_uppercase());
        Some(format!(
            "the tier {name} has the name of HDFS's storage policy {policy}, which {leads}: STORAGE_POLICY => '{name}' would not mean this tier. \
             Give it another name; files that are there stay, as volumes are known by their directories"
        ))
    })
}

impl Rules {
    /// What is wrong with the rules, for these tiers.
    pub(super) fn check(&self, tiers: &[TierSpec]) -> Result<(), String> {
        for (kind, name) in &self.kinds {
            let Some(tier) = tiers.iter().find(|tier| tier.name == *name) else {
                let known: Vec<&str> = tiers.iter().map(|tier| tier.name.as_str()).collect();
                let known = known.join(", ");
                return Err(format!(
                    "basalt.volumes.place.{kind} = {name} names no tier of basalt.volumes (it has: {known})"
                ));
            };
            if tier.class == Class::Ram && !self.memory_may_lose_acknowledged_writes {
                return Err(format!(
                    "basalt.volumes.place.{kind} = {name}: that tier is memory, and such files are the only copy of acknowledged \
                     writes; choose another tier, or set basalt.volumes.ram.may.lose.acknowledged.writes to true"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn tier(&self, tiers: &[TierSpec], placement: &Placement) -> Choice {
        if placement.kind == FileKind::Other {
            return Choice::Home;
        }
        let Some(policy) = placement.policy.as_deref() else {
            let name = self.kinds.get(placement.kind.name());
            let tier = name.and_then(|name| tiers.iter().position(|tier| tier.name == *name));
            return tier.map_or(Choice::Home, Choice::Tier);
        };
        let found = match of_hdfs(policy) {
            Some(HdfsPolicy::Home) => return Choice::Home,
            Some(HdfsPolicy::Class(class)) => tiers.iter().position(|tier| tier.class == class),
            None => tiers.iter().position(|tier| tier.name == policy),
        };
        match found {
            Some(tier) if tiers[tier].class == Class::Ram && !self.memory_may_lose_acknowledged_writes => {
                Choice::Refused(format!(
                    "the storage policy {policy} would put the only copy of acknowledged writes into memory; files go to the root \
                     directory's disk unless basalt.volumes.ram.may.lose.acknowledged.writes is true"
                ))
            }
            Some(tier) => Choice::Tier(tier),
            None => Choice::Refused(format!(
                "the storage policy {policy} names no tier of basalt.volumes; files go to the root directory's disk"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiers() -> Vec<TierSpec> {
        let tier = |(name, class): (&str, Class)| TierSpec { name: name.to_owned(), class };
        [("fast", Class::Ram), ("flash", Class::Ssd), ("cold", Class::Hdd)].map(tier).into()
    }

    #[test]
    fn a_policy_decides_before_the_kind_and_memory_holds_no_only_copy() {
        let mut rules = Rules { kinds: [("flush", "flash".to_owned())].into(), ..Rules::default() };
        let of =
            |rules: &Rules, kind, policy: &str| rules.tier(&tiers(), &Placement::of(kind).with_policy(Some(policy)));
        for (kind, policy, choice) in [
            (FileKind::Flush, "", Choice::Tier(1)),
            (FileKind::Flush, "NONE", Choice::Tier(1)),
            (FileKind::Major, "none", Choice::Home),
            (FileKind::Flush, "HOT", Choice::Home),
            (FileKind::Minor, "one_ssd", Choice::Tier(1)),
            (FileKind::Flush, "COLD", Choice::Tier(2)),
            (FileKind::Log, "flash", Choice::Tier(1)),
            (FileKind::Other, "ALL_SSD", Choice::Home),
        ] {
            assert_eq!(of(&rules, kind, policy), choice, "{kind:?} {policy}");
        }
        assert_eq!(shadowed(&tiers()), None, "cold is where COLD leads");
        assert!(matches!(of(&rules, FileKind::Log, "LAZY_PERSIST"), Choice::Refused(why) if why.contains("memory")));
        assert!(matches!(of(&rules, FileKind::Log, "fast"), Choice::Refused(_)));
        assert!(
            matches!(of(&rules, FileKind::Log, "tepid"), Choice::Refused(why) if why.contains("tepid names no tier"))
        );
        assert_eq!(rules.check(&tiers()), Ok(()));
        rules.kinds.insert("wal", "fast".to_owned());
        assert!(rules.check(&tiers()).expect_err("memory").contains("basalt.volumes.place.wal = fast"));
        rules.memory_may_lose_acknowledged_writes = true;
        assert_eq!((rules.check(&tiers()), of(&rules, FileKind::Log, "LAZY_PERSIST")), (Ok(()), Choice::Tier(0)));
        rules.kinds.insert("mob", "none".to_owned());
        assert!(rules.check(&tiers()).expect_err("unknown").contains("names no tier"));
    }
}
