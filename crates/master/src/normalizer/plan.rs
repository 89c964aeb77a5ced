//! Which regions of a table to split and which to merge, so that they are about as large as each other. Follows: `SimpleRegionNormalizer`.

use model::TableDescriptor;
use std::sync::Arc;

const DAY_MS: i64 = 86_400_000;

/// A region of a table, in the order of their keys.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// Its encoded name.
    pub region: Arc<str>,
    /// Whole mebibytes of its store files; -1 where nobody knows.
    pub size_mb: i64,
    /// Whether it is open.
    pub is_open: bool,
    /// When it was made.
    pub created_ms: i64,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// The region is to become two.
    Split {
        /// Its encoded name.
        region: Arc<str>,
        /// Its size.
        size_mb: i64,
    },
    /// The regions, which follow each other, are to become one.
    Merge {
        /// Their encoded names.
        regions: Vec<Arc<str>>,
        /// Their size together.
        size_mb: i64,
    },
}

impl Plan {
    /// The size of the regions in it.
    pub fn size_mb(&self) -> i64 {
        match self {
            Plan::Split { size_mb, .. } | Plan::Merge { size_mb, .. } => *size_mb,
        }
    }
}

/// What holds for tables that do not say otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Defaults {
    /// Whether tables are looked at at all.
    pub enabled: bool,
    /// Whether large regions are split.
    pub split: bool,
    /// Whether small ones are merged.
    pub merge: bool,
    /// Regions that a table must have before any are merged.
    pub merge_min_regions: i64,
    /// Days that a region must be old before it is merged.
    pub merge_min_age_days: i64,
    /// Mebibytes that it must have.
    pub merge_min_size_mb: i64,
    /// Regions that are merged at once.
    pub merge_most_regions: u64,
}

/// What holds for one table.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    split: bool,
    merge: bool,
    target_regions: i64,
    target_size_mb: i64,
    merge_min_regions: i64,
    merge_min_age_days: i64,
    merge_min_size_mb: i64,
    merge_most_regions: u64,
}

impl Rules {
    /// Of `table`; `None` where it is not to be looked at. The switches are those of splits and merges as a whole.
    pub fn of(
        table: &TableDescriptor,
        defaults: &Defaults,
        (split_switch, merge_switch): (bool, bool),
    ) -> Option<Rules> {
        let truth =
            |key: &str, default: bool| table.value(key).map_or(default, |text| text.eq_ignore_ascii_case("true"));
        // A number that is none was refused when the table was made, or came with its directory: then the default counts.
        let number = |key: &str| table.value(key).and_then(|text| text.parse::<i64>().ok());
        let split = split_switch && truth("hbase.normalizer.split.enabled", defaults.split);
        let merge = merge_switch && truth("hbase.normalizer.merge.enabled", defaults.merge);
        if table.name.is_system() || !truth("NORMALIZATION_ENABLED", defaults.enabled) || !(split || merge) {
            return None;
        }
        let or_default = |said: Option<i64>, least: i64, default: i64| said.filter(|n| *n >= least).unwrap_or(default);
        let min_regions =
            number("hbase.normalizer.merge.min.region.count").or_else(|| number("hbase.normalizer.min.region.count"));
        let size_mb = number("NORMALIZER_TARGET_REGION_SIZE_MB").filter(|size| *size != -1);
        Some(Rules {
            split,
            merge,
            target_regions: number("NORMALIZER_TARGET_REGION_COUNT").unwrap_or(-1),
            target_size_mb: size_mb.or_else(|| number("NORMALIZER_TARGET_REGION_SIZE")).unwrap_or(-1),
            merge_min_regions: or_default(min_regions, 1, defaults.merge_min_regions),
            merge_min_age_days: or_default(
                number("hbase.normalizer.merge.min_region_age.days"),
                0,
                defaults.merge_min_age_days,
            ),
            merge_min_size_mb: or_default(
                number("hbase.normalizer.merge.min_region_size.mb"),
                0,
                defaults.merge_min_size_mb,
            ),
            merge_most_regions: defaults.merge_most_regions,
        })
    }

    /// What is to be done with the regions of the table: splits, then merges.
    pub fn plans(&self, regions: &[Candidate], now_ms: i64) -> Vec<Plan> {
        if regions.is_empty() {
            return Vec::new();
        }
        let average_mb = self.average_mb(regions);
        let mut plans = Vec::new();
        if self.split {
            let is_large = |region: &&Candidate| region.is_open && region.size_mb as f64 > 2.0 * average_mb;
            let split = |region: &Candidate| Plan::Split { region: region.region.clone(), size_mb: region.size_mb };
            plans.extend(regions.iter().filter(is_large).map(split));
        }
        if self.merge {
            self.merges(regions, average_mb as i64, now_ms, &mut plans);
        }
        plans
    }

    /// What a region should have: as the table says, or what each has on average.
    fn average_mb(&self, regions: &[Candidate]) -> f64 {
        if self.target_size_mb > 0 {
            return self.target_size_mb as f64;
        }
        let total: i64 = regions.iter().map(|region| region.size_mb).sum();
        let count = if self.target_regions > 0 { self.target_regions } else { regions.len() as i64 };
        total as f64 / count as f64
    }

    /// Walks the regions once, looking for sequences that fit together into one.
    fn merges(&self, regions: &[Candidate], average_mb: i64, now_ms: i64, plans: &mut Vec<Plan>) {
        if (regions.len() as i64) < self.merge_min_regions || average_mb < self.merge_min_size_mb {
            return;
        }
        let (mut start, mut current) = (0, 0);
        while start + 1 < regions.len() && current < regions.len() {
            let (mut members, mut sum_mb): (Vec<Arc<str>>, i64) = (Vec::new(), 0);
            current = start;
            while let Some(region) = regions.get(current) {
                let has_room = (members.len() as u64) < self.merge_most_regions;
                let joins = members.is_empty()
                    || (members.len() == 1 && sum_mb == 0)
                    || has_room && (region.size_mb == 0 || region.size_mb + sum_mb <= average_mb);
                if !self.may_merge(region, now_ms) || !joins {
                    start = current.max(start + 1);
                    break;
                }
                members.push(region.region.clone());
                sum_mb += region.size_mb;
                current += 1;
            }
            if members.len() > 1 {
                plans.push(Plan::Merge { regions: members, size_mb: sum_mb });
            }
        }
    }

    fn may_merge(&self, region: &Candidate, now_ms: i64) -> bool {
        let old_enough_ms = region.created_ms.saturating_add(self.merge_min_age_days.saturating_mul(DAY_MS));
        region.is_open && now_ms > old_enough_ms && region.size_mb >= self.merge_min_size_mb
    }
}

/// As many of `plans` as are about `most_mb` together. A split and a merge in turns, so that neither waits for all of the others.
pub(super) fn truncate(plans: Vec<Plan>, most_mb: i64) -> Vec<Plan> {
    let (splits, merges): (Vec<Plan>, Vec<Plan>) =
        plans.into_iter().partition(|plan| matches!(plan, Plan::Split { .. }));
    let (mut splits, mut merges) = (splits.into_iter(), merges.into_iter());
    let mut sum_mb = 0i64;
    let mut taken = Vec::new();
    loop {
        let round = [splits.next(), merges.next()];
        if round.iter().all(Option::is_none) {
            return taken;
        }
        for plan in round.into_iter().flatten() {
            sum_mb = sum_mb.saturating_add(plan.size_mb());
            if sum_mb <= most_mb {
                taken.push(plan);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{FamilyDescriptor, TableName};

    const NOW_MS: i64 = 100 * DAY_MS;

    fn defaults() -> Defaults {
        Defaults {
            enabled: true,
            split: true,
            merge: true,
            merge_min_regions: 3,
            merge_min_age_days: 3,
            merge_min_size_mb: 0,
            merge_most_regions: 100,
        }
    }

    fn rules(said: &[(&'static str, &str)]) -> Rules {
        Rules::of(&table(said), &defaults(), (true, true)).expect("it is looked at")
    }

    fn table(said: &[(&'static str, &str)]) -> TableDescriptor {
        let mut table = TableDescriptor::new(TableName::parse("t").expect("legal"), [FamilyDescriptor::new("f")]);
        for (key, value) in said {
            table.attributes.insert((*key).into(), (*value).to_owned().into());
        }
        table
    }

    /// Regions a, b, c, ... of these sizes, old enough.
    fn regions(sizes: &[i64]) -> Vec<Candidate> {
        let names = 'a'..='z';
        let region = |(name, size_mb): (char, &i64)| Candidate {
            region: name.to_string().into(),
            size_mb: *size_mb,
            is_open: true,
            created_ms: 0,
        };
        names.zip(sizes).map(region).collect()
    }

    fn shown(plans: &[Plan]) -> Vec<String> {
        let one = |plan: &Plan| match plan {
            Plan::Split { region, .. } => format!("split {region}"),
            Plan::Merge { regions, .. } => format!("merge {}", regions.concat()),
        };
        plans.iter().map(one).collect()
    }

    fn planned(rules: &Rules, sizes: &[i64]) -> Vec<String> {
        shown(&rules.plans(&regions(sizes), NOW_MS))
    }

    #[test]
    fn even_regions_stay_as_they_are() {
        assert!(planned(&rules(&[]), &[]).is_empty());
        assert!(planned(&rules(&[]), &[10]).is_empty());
        assert!(planned(&rules(&[]), &[10, 12, 8, 10]).is_empty());
    }

    #[test]
    fn what_is_more_than_twice_the_average_is_split() {
        assert_eq!(planned(&rules(&[]), &[8, 6, 10, 40]), ["split d", "merge ab"]);
        assert!(planned(&rules(&[]), &[20, 20]).is_empty(), "not more than twice");
        assert_eq!(planned(&rules(&[("NORMALIZER_TARGET_REGION_SIZE_MB", "5")]), &[11, 10]), ["split a"]);
        assert_eq!(planned(&rules(&[("NORMALIZER_TARGET_REGION_SIZE", "5")]), &[11, 10]), ["split a"]);
    }

    #[test]
    fn neighbours_that_fit_into_the_average_are_merged() {
        assert_eq!(planned(&rules(&[]), &[15, 5, 5, 15, 16]), ["merge bc"]);
        assert_eq!(planned(&rules(&[]), &[10, 1, 1, 1, 1, 20]), ["split f", "merge bcde"]);
        let few = rules(&[("NORMALIZER_TARGET_REGION_COUNT", "3")]);
        assert_eq!(planned(&few, &[20, 40, 60, 80]), ["merge ab"]);
        let many = rules(&[("NORMALIZER_TARGET_REGION_COUNT", "8")]);
        assert_eq!(planned(&many, &[20, 40, 60, 80]), ["split c", "split d"]);
    }

    #[test]
    fn an_empty_region_goes_with_its_neighbour() {
        assert_eq!(planned(&rules(&[]), &[0, 1, 10, 10, 9, 9, 0]), ["merge ab", "merge fg"]);
        assert_eq!(planned(&rules(&[]), &[0, 0, 0, 0]), ["merge abcd"]);
        let large = rules(&[("hbase.normalizer.merge.min_region_size.mb", "1")]);
        assert_eq!(planned(&large, &[0, 1, 1, 4, 4, 4, 0]), ["merge bc"]);
    }

    #[test]
    fn few_young_and_closed_regions_are_not_merged() {
        assert!(planned(&rules(&[]), &[1, 0]).is_empty(), "fewer than three");
        assert_eq!(planned(&rules(&[("hbase.normalizer.merge.min.region.count", "2")]), &[1, 0]), ["merge ab"]);
        assert_eq!(planned(&rules(&[("hbase.normalizer.min.region.count", "2")]), &[1, 0]), ["merge ab"]);
        let mut young = regions(&[0, 0, 0, 0, 0]);
        young[2].created_ms = NOW_MS - 2 * DAY_MS;
        assert_eq!(shown(&rules(&[]).plans(&young, NOW_MS)), ["merge ab", "merge de"]);
        let any_age = rules(&[("hbase.normalizer.merge.min_region_age.days", "0")]);
        assert_eq!(shown(&any_age.plans(&young, NOW_MS)), ["merge abcde"]);
        let mut closed = regions(&[0, 0, 0, 50]);
        closed[1].is_open = false;
        closed[3].is_open = false;
        assert!(rules(&[]).plans(&closed, NOW_MS).is_empty());
    }

    #[test]
    fn no_more_regions_are_merged_at_once_than_may_be() {
        let few = Rules { merge_most_regions: 2, ..rules(&[]) };
        assert_eq!(planned(&few, &[0, 0, 0, 0, 0]), ["merge ab", "merge cd"]);
    }

    #[test]
    fn the_table_and_the_switches_say_what_is_done() {
        let looked_at = |said: &[(&'static str, &str)], defaults: &Defaults, switches| {
            Rules::of(&table(said), defaults, switches).map(|rules| (rules.split, rules.merge))
        };
        let off = Defaults { enabled: false, ..defaults() };
        assert_eq!(looked_at(&[], &off, (true, true)), None);
        assert_eq!(looked_at(&[("NORMALIZATION_ENABLED", "true")], &off, (true, true)), Some((true, true)));
        assert_eq!(looked_at(&[("NORMALIZATION_ENABLED", "false")], &defaults(), (true, true)), None);
        assert_eq!(looked_at(&[], &defaults(), (false, true)), Some((false, true)));
        assert_eq!(looked_at(&[], &defaults(), (false, false)), None);
        let only_merge = [("hbase.normalizer.split.enabled", "false")];
        assert_eq!(looked_at(&only_merge, &defaults(), (true, true)), Some((false, true)));
        assert_eq!(looked_at(&only_merge, &defaults(), (true, false)), None);
    }

    #[test]
    fn plans_are_cut_off_at_a_size_without_starving_merges() {
        let split = |name: &str, size_mb| Plan::Split { region: name.into(), size_mb };
        let merge = |name: &str, size_mb| Plan::Merge { regions: vec![name.into()], size_mb };
        let plans = vec![split("a", 5), split("b", 5), merge("c", 3)];
        assert_eq!(shown(&truncate(plans.clone(), 8)), ["split a", "merge c"]);
        assert_eq!(shown(&truncate(plans, i64::MAX)), ["split a", "merge c", "split b"]);
    }
}
