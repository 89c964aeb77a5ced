//! `basalt config list`, `basalt config get KEY` and `basalt config explain KEY`.

use crate::settings::rows;
use anyhow::{Result, bail};
use base::Config;
use base::TextSetting;
use base::setting::SettingText;

/// Every setting, a line each.
pub fn list() {
    for row in rows() {
        let SettingText { key, default, unit, .. } = row.describe();
        println!("{key} = {default}{}{unit}", if unit.is_empty() { "" } else { " " });
    }
}

/// What a setting is, given or by default; `null` where it is neither. Follows: `HBaseConfTool`.
pub fn value(key: &str, config: &Config) -> String {
    let by_default = || rows().into_iter().find(|row| row.key() == key).map(|row| row.describe().default);
    config.text(key).map(str::to_owned).or_else(by_default).unwrap_or_else(|| "null".to_owned())
}

/// One setting: its value now, default, bounds and meaning.
///
/// # Errors
/// When nothing reads the key.
pub fn explain(key: &str, config: &Config) -> Result<()> {
    let given = config.text(key);
    if let Some(row) = rows().into_iter().find(|row| row.key() == key) {
        let SettingText { type_name, default, min, max, legal, unit, doc, .. } = row.describe();
        let legal = match legal {
            Some(legal) => legal.to_owned(),
            None if type_name == TextSetting::TYPE => "any text that can be used".to_owned(),
            None => format!("{type_name} from {min} to {max} {unit}"),
        };
        println!("{key}\n  now      {}\n  default  {default}", given.unwrap_or(&default));
        println!("  legal    {legal}\n\n{doc}");
        return Ok(());
    }
    if let Some(reason) = crate::unheeded::reason(key) {
        println!("{key}\n  now      {}\n\nIt has no effect: {reason}.", given.unwrap_or("not given"));
        return Ok(());
    }
    bail!("nothing in Basalt reads {key}; `basalt config list` shows what is read")
}
