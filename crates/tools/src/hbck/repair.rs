//! Repairs, by the master. Follows: `HBCK2`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use bytes::Bytes;
use model::ServerName;
use proto::pb;

use crate::arguments::Parsed;
use crate::jobs::{on_cluster, table_name};

const COMMANDS: &[&str] = &[
    "assigns",
    "unassigns",
    "bypass",
    "setTableState",
    "setRegionState",
    "scheduleRecoveries",
    "recoverUnknown",
    "fixMeta",
    "runHbckChore",
];

pub(super) fn is_command(word: &str) -> bool {
    COMMANDS.contains(&word)
}

/// Runs a repair. Procedures that it starts are printed by their numbers, as hbck2 does.
pub(super) fn run(config: &Config, command: &str, words: &[String], parsed: &Parsed) -> anyhow::Result<ExitCode> {
    let needs = |count: usize| match words.len() {
        given if count == given || (count == usize::MAX && given > 0) => Ok(()),
        given => bail!("hbck {command}: {given} arguments; basalt hbck --help says what it takes"),
    };
    let (other_owner, recursive) = (parsed.has("override"), parsed.has("recursive"));
    let wait_ms = parsed.number::<u64>("lockWait")?.unwrap_or(1).saturating_mul(1000);
    let regions = || words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect::<Vec<_>>();
    let done = match command {
        "assigns" => {
            needs(usize::MAX)?;
            let regions = regions();
            on_cluster(config, |c| async move { Ok(numbers(&c.admin().hbck().assigns(&regions, other_owner).await?)) })
        }
        "unassigns" => {
            needs(usize::MAX)?;
            let regions = regions();
            on_cluster(
                config,
                |c| async move { Ok(numbers(&c.admin().hbck().unassigns(&regions, other_owner).await?)) },
            )
        }
        "bypass" => {
            needs(usize::MAX)?;
            let parse = |word: &String| word.parse().ok().with_context(|| format!("hbck bypass {word}: no procedure"));
            let procedures: Vec<u64> = words.iter().map(parse).collect::<anyhow::Result<_>>()?;
            on_cluster(config, |c| async move {
                let hbck = c.admin().hbck();
                let bypassed = hbck.bypass_procedures(&procedures, wait_ms, other_owner, recursive).await?;
                Ok(format!("{bypassed:?}"))
            })
        }
        "setTableState" => {
            needs(2)?;
            let (table, state) = (table_name(&words[0])?, words[1].to_uppercase());
            let state = pb::table_state::State::from_str_name(&state)
                .with_context(|| format!("{state} is no state of a table: ENABLED, DISABLED, ENABLING, DISABLING"))?;
            on_cluster(config, |c| async move {
                let was = c.admin().hbck().set_table_state_in_meta(&table, state).await?;
                Ok(format!("Previous state: {}", was.as_str_name()))
            })
        }
        "setRegionState" => {
            needs(2)?;
            let (region, state) = (Bytes::copy_from_slice(words[0].as_bytes()), words[1].to_uppercase());
            let state = pb::region_state::State::from_str_name(&state)
                .with_context(|| format!("{state} is no state of a region, such as OPEN or CLOSED"))?;
            on_cluster(config, |c| async move {
                let was = c.admin().hbck().set_region_states_in_meta(&[(region, state)]).await?;
                let shown = |(region, state): &(Bytes, pb::region_state::State)| {
                    format!("{}: {}", String::from_utf8_lossy(region), state.as_str_name())
                };
                Ok(format!("Previous state: {}", was.iter().map(shown).collect::<Vec<_>>().join(", ")))
            })
        }
        "scheduleRecoveries" => {
            needs(usize::MAX)?;
            let parse = |word: &String| {
                word.parse::<ServerName>().ok().with_context(|| format!("{word} is no server: host,port,startcode"))
            };
            let servers: Vec<ServerName> = words.iter().map(parse).collect::<anyhow::Result<_>>()?;
            on_cluster(config, |c| async move {
                Ok(numbers(&c.admin().hbck().schedule_server_crash_procedures(&servers).await?))
            })
        }
        "recoverUnknown" => {
            needs(0)?;
            on_cluster(
                config,
                |c| async move { Ok(numbers(&c.admin().hbck().schedule_scps_for_unknown_servers().await?)) },
            )
        }
        "fixMeta" => {
            needs(0)?;
            on_cluster(config, |c| async move {
                c.admin().hbck().fix_meta().await?;
                Ok("hbase:meta was looked at, and mended where it could be".to_owned())
            })
        }
        _ => {
            needs(0)?;
            on_cluster(config, |c| async move {
                let ran = c.admin().hbck().run_hbck_chore().await?;
                Ok(if ran {
                    "The chore ran".to_owned()
                } else {
                    "The chore did not run: another run is under way".to_owned()
                })
            })
        }
    }?;
    println!("{done}");
    Ok(ExitCode::SUCCESS)
}

fn numbers(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("[{}]", numbers.join(", "))
}
