//! `basalt config list` and `basalt config explain KEY`.

use crate::settings::{TEXT_KEYS, rows};
use anyhow::{Result, bail};
use base::Config;
use base::setting::SettingText;

/// Every setting, a line each.
pub fn list() {
    for row in rows() {
        let SettingText { key, default, unit, .. } = row.describe();
        println!("{key} = {default}{}{unit}", if unit.is_empty() { "" } else { " " });
    }
    for (key, default, _) in TEXT_KEYS {
        println!("{key} = {default}");
    }
}

/// One setting: its value now, default, bounds and meaning.
///
/// # Errors
/// When nothing reads the key.
pub fn explain(key: &str, config: &Config) -> Result<()> {
    let given = config.text(key);
    if let Some(row) = rows().into_iter().find(|row| row.key() == key) {
        let SettingText { type_name, default, min, max, legal, unit, doc, .. } = row.describe();
        let legal = legal.map_or_else(|| format!("{type_name} from {min} to {max} {unit}"), str::to_owned);
        println!("{key}\n  now      {}\n  default  {default}", given.unwrap_or(&default));
        println!("  legal    {legal}\n\n{doc}");
        return Ok(());
    }
    if let Some((_, default, doc)) = TEXT_KEYS.iter().find(|(text_key, ..)| *text_key == key) {
        println!("{key}\n  now      {}\n  default  {default}\n\n{doc}", given.unwrap_or(default));
        return Ok(());
    }
    bail!("nothing in Basalt reads {key}; `basalt config list` shows what is read")
}
