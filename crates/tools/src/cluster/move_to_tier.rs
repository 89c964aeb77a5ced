//! `basalt admin move-to-tier`: a table's files, or those of a family, come to another tier of `basalt.volumes` by a major compaction.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use base::Config;
use client::{CompactionState, Connection, RegionLocation};
use fs::tiered::parse_volumes;
use model::TableName;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Between two words about the progress.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// What is to be moved, and where to.
#[derive(Clone)]
pub(super) struct Move {
    pub table: TableName,
    /// All families without one.
    pub family: Option<String>,
    /// A tier, or a storage policy by its name.
    pub tier: String,
    /// Whether to return when all is there, and not when it was asked for.
    pub waits: bool,
}

impl Move {
    /// From the words behind the command: TABLE \[FAMILY\] TIER.
    ///
    /// # Errors
    /// There are too few or too many; a tier that the configuration does not have.
    pub(super) fn parse(config: &Config, words: &[String], waits: bool) -> anyhow::Result<Move> {
        let (table, family, tier) = match words {
            [table, tier] => (table, None, tier),
            [table, family, tier] => (table, Some(family.clone()), tier),
            _ => bail!("admin move-to-tier: TABLE [FAMILY] TIER; see basalt admin --help"),
        };
        // Where volumes are named here, they are the server's.
        if let Some(said) = config.text("basalt.volumes").filter(|said| !matches!(said.trim(), "" | "none")) {
            let volumes = parse_volumes(said).map_err(|what| anyhow::anyhow!("basalt.volumes: {what}"))?;
            let names: Vec<&str> = volumes.iter().map(|volume| volume.tier.name.as_str()).collect();
            if !names.contains(&tier.as_str()) && !is_policy(tier) {
                let names = names.join(", ");
                bail!(
                    "admin move-to-tier: basalt.volumes has no tier {tier} (it has: {names}), and it is no storage policy"
                );
            }
        }
        let table = crate::jobs::table_name(table)?;
        Ok(Move { table, family, tier: tier.clone(), waits })
    }

    /// Has the families belong to the tier, and every region rewrite its files. Begun again, it goes on with what is not done.
    ///
    /// # Errors
    /// There is no such table or family; what the master or a server refuses; a region whose files were not rewritten.
    pub(super) async fn run(&self, connection: &Connection) -> anyhow::Result<()> {
        let (admin, name) = (connection.admin(), &self.table);
        let table = admin.describe(name).await?.with_context(|| format!("there is no table {name}"))?;
        let wanted = |family: &[u8]| self.family.as_ref().is_none_or(|name| name.as_bytes() == family);
        let families: Vec<_> = table.families.values().filter(|family| wanted(&family.name)).collect();
        if families.is_empty() {
            let family = self.family.as_deref().unwrap_or_default();
            bail!("table {name} has no family {family}");
        }
        for family in &families {
            if family.storage_policy() != Some(&*self.tier) {
                admin.modify_family(name, &(*family).clone().with("STORAGE_POLICY", self.tier.as_str())).await?;
            }
        }
        let regions = connection.table(name).regions().await?;
        let mut left = Vec::with_capacity(regions.len());
        for location in regions {
            let before_ms = admin.last_major_compaction_of_region(location.region.encoded_name().as_bytes()).await?;
            self.ask(connection, &location).await?;
            left.push((location, before_ms));
        }
        let count = left.len();
        let what = self.family.as_ref().map_or_else(|| format!("{name}"), |family| format!("{name}, family {family},"));
        if !self.waits {
            println!("{count} regions of {what} were asked to move to {}; --wait waits for them", self.tier);
            return Ok(());
        }
        let (begun, mut said) = (Instant::now(), Instant::now());
        let mut empty = 0;
        while !left.is_empty() {
            let mut still = Vec::new();
            for (location, before_ms) in std::mem::take(&mut left) {
                match self.ended(connection, &location, before_ms).await? {
                    Ended::NotYet => still.push((location, before_ms)),
                    Ended::Moved => {}
                    Ended::Empty => empty += 1,
                }
            }
            left = still;
            if left.is_empty() {
                break;
            }
            if said.elapsed() >= SAY_EVERY {
                said = Instant::now();
                println!(
                    "{} of {count} regions are at {}, {} s",
                    count - left.len(),
                    self.tier,
                    begun.elapsed().as_secs()
                );
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        println!(
            "{count} regions of {what} are at {}, {empty} of them without files; {:.1} s",
            self.tier,
            begun.elapsed().as_secs_f64()
        );
        Ok(())
    }

    async fn ask(&self, connection: &Connection, location: &RegionLocation) -> anyhow::Result<()> {
        let region = location.region.encoded_name();
        let family = self.family.as_ref().map(String::as_bytes);
        let asked = connection.admin().compact_region(region.as_bytes(), family, true).await;
        asked.with_context(|| format!("region {region} at {} is not compacted", location.server))
    }

    async fn ended(&self, connection: &Connection, location: &RegionLocation, before_ms: i64) -> anyhow::Result<Ended> {
        let (admin, region) = (connection.admin(), location.region.encoded_name());
        if admin.region_compaction_state(region.as_bytes()).await? != CompactionState::None {
            return Ok(Ended::NotYet);
        }
        if files_of(connection, region).await? == Some(0) {
            return Ok(Ended::Empty);
        }
        if admin.last_major_compaction_of_region(region.as_bytes()).await? != before_ms {
            return Ok(Ended::Moved);
        }
        Ok(Ended::NotYet)
    }
}

enum Ended {
    NotYet,
    Moved,
    /// There was nothing to move.
    Empty,
}

/// Store files of a region, as its server reported last.
async fn files_of(connection: &Connection, region: &str) -> anyhow::Result<Option<u32>> {
    let status = connection.admin().cluster_status().await?;
    let loads = status.live_servers.iter().flat_map(|live| &live.server_load.region_loads);
    // The region's whole name ends with its encoded one.
    let ending = format!(".{region}.");
    let found = loads.into_iter().find(|load| load.region_specifier.value.ends_with(ending.as_bytes()));
    Ok(found.and_then(|load| load.storefiles))
}

fn is_policy(name: &str) -> bool {
    ["NONE", "HOT", "WARM", "PROVIDED", "ALL_SSD", "ONE_SSD", "COLD", "LAZY_PERSIST"]
        .iter()
        .any(|policy| policy.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_that_the_configuration_does_not_have_is_refused() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut config = Config::default();
        let parse = |config: &Config, text: &str| Move::parse(config, &words(text), true);
        assert!(parse(&config, "t anywhere").is_ok(), "nothing is known of the server's volumes here");
        config.set("basalt.volumes", "flash:ssd:/mnt/flash, cold:hdd:/data/1");
        let found = parse(&config, "t f cold").expect("legal");
        assert_eq!((found.family.as_deref(), found.tier.as_str()), (Some("f"), "cold"));
        assert!(parse(&config, "t HOT").is_ok());
        let refused = parse(&config, "t tepid").map(|_| ()).expect_err("no such tier").to_string();
        assert!(refused.contains("no tier tepid (it has: flash, cold)"), "{refused}");
        for text in ["t", "t f cold more"] {
            assert!(parse(&config, text).is_err(), "{text}");
        }
    }
}
