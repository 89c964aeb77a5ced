//! What an operator says of volumes: `fast:ram:/dev/shm/b, ssd:ssd:/mnt/nvme0:200g, cold:hdd:/data/1, cold:hdd:/data/2:drain`.

use super::change::tiers_of;
use super::rules::shadowed;
use std::fmt;
use std::str::FromStr;

/// What a volume is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Memory: gone with the machine's power.
    Ram,
    /// Flash.
    Ssd,
    /// A spinning disk, or whatever is slow and large.
    Hdd,
}

impl Class {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Class::Ram => "ram",
            Class::Ssd => "ssd",
            Class::Hdd => "hdd",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A tier: volumes of one class under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierSpec {
    /// Its name.
    pub name: String,
    /// What its volumes are made of.
    pub class: Class,
}

/// A volume as it is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSpec {
    /// The tier that it is of.
    pub tier: TierSpec,
    /// The directory: an absolute path.
    pub place: String,
    /// No more files are put there when it holds this much.
    pub limit_bytes: Option<u64>,
    /// It gets no more files, and those on it may be moved elsewhere: it is to be removed.
    pub drains: bool,
}

impl VolumeSpec {
    /// As people call it.
    pub fn name(&self) -> String {
        format!("the volume {} (tier {})", self.place, self.tier.name)
    }
}

/// What a volume's words end with that is to be emptied.
const DRAIN: &str = ":drain";

fn bytes(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok().filter(|n| *n > 0)?.checked_mul(1 << shift)
}

impl FromStr for VolumeSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<VolumeSpec, String> {
        let wrong = |what: &str| {
            Err(format!("\"{text}\": {what}; a volume is written as name:ram|ssd|hdd:/directory[:limit][:drain]"))
        };
        let (text, drains) = match text.trim().strip_suffix(DRAIN) {
            Some(rest) => (rest, true),
            None => (text.trim(), false),
        };
        let mut words = text.splitn(3, ':');
        let (Some(name), Some(class), Some(rest)) = (words.next(), words.next(), words.next()) else {
            return wrong("parts are missing");
        };
        let ok = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || !name.chars().all(ok) {
            return wrong("a name has letters, digits, - and _");
        }
        let class = match class.to_ascii_lowercase().as_str() {
            "ram" => Class::Ram,
            "ssd" => Class::Ssd,
            "hdd" => Class::Hdd,
            other => return wrong(&format!("{other} is no class")),
        };
        let (place, limit_bytes) = match rest.rsplit_once(':') {
            None => (rest, None),
            Some((place, limit)) => match bytes(limit) {
                Some(limit) => (place, Some(limit)),
                None => return wrong(&format!("{limit} is no limit (a number with k, m, g or t)")),
            },
        };
        if !place.starts_with('/') || place.contains(['\n', '\r']) {
            return wrong("its directory must be an absolute path");
        }
        let place = if place.len() > 1 { place.trim_end_matches('/') } else { place };
        Ok(VolumeSpec { tier: TierSpec { name: name.to_owned(), class }, place: place.to_owned(), limit_bytes, drains })
    }
}

/// All volumes of a setting.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn parse_volumes(text: &str) -> Result<Vec<VolumeSpec>, String> {
    let mut volumes: Vec<VolumeSpec> = Vec::new();
    for part in text.split(',').filter(|part| !part.trim().is_empty()) {
        let volume: VolumeSpec = part.parse()?;
        if let Some(other) = volumes.iter().find(|other| other.place == volume.place) {
            return Err(format!("{} is named twice ({} and {})", volume.place, other.tier.name, volume.tier.name));
        }
        if let Some(other) =
            volumes.iter().find(|o| o.tier.name == volume.tier.name && o.tier.class != volume.tier.class)
        {
            let (name, one, two) = (&volume.tier.name, other.tier.class, volume.tier.class);
            return Err(format!("the tier {name} has volumes of two classes ({one} and {two})"));
        }
        volumes.push(volume);
    }
    shadowed(&tiers_of(volumes.iter())).map_or(Ok(volumes), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_said_in_a_line() {
        let volumes = parse_volumes("fast:ram:/dev/shm/b:8g, ssd:SSD:/mnt/nvme0/ ,cold:hdd:/data/1,cold:hdd:/data/2,")
            .expect("legal");
        let said: Vec<(&str, Class, &str, Option<u64>)> =
            volumes.iter().map(|v| (v.tier.name.as_str(), v.tier.class, v.place.as_str(), v.limit_bytes)).collect();
        assert_eq!(
            said,
            [
                ("fast", Class::Ram, "/dev/shm/b", Some(8 << 30)),
                ("ssd", Class::Ssd, "/mnt/nvme0", None),
                ("cold", Class::Hdd, "/data/1", None),
                ("cold", Class::Hdd, "/data/2", None)
            ]
        );
        let drains = |text: &str| text.parse::<VolumeSpec>().map(|v| (v.place, v.limit_bytes, v.drains));
        assert_eq!(drains("c:hdd:/data/1:drain"), Ok(("/data/1".to_owned(), None, true)));
        assert_eq!(drains("c:hdd:/data/1:1k:drain"), Ok(("/data/1".to_owned(), Some(1024), true)));
        assert_eq!(drains("c:hdd:/drain"), Ok(("/drain".to_owned(), None, false)));
        for (text, why) in [
            ("ssd", "parts are missing"),
            ("ssd:tape:/x", "tape is no class"),
            ("s d:ssd:/x", "a name has letters"),
            ("ssd:ssd:x", "absolute path"),
            ("ssd:ssd:/x:many", "many is no limit"),
            ("ssd:ssd:/x:0", "no limit"),
            ("a:ssd:/x,b:ssd:/x/", "named twice"),
            ("a:ssd:/x,a:hdd:/y", "two classes"),
        ] {
            assert!(parse_volumes(text).expect_err(text).contains(why), "{text}");
        }
    }

    #[test]
    fn a_tier_that_has_the_name_of_a_policy_which_leads_elsewhere_is_refused() {
        for (text, why) in [
            (
                "warm:hdd:/x",
                "the tier warm has the name of HDFS's storage policy WARM, which leaves files on the root directory's disk",
            ),
            ("Hot:ssd:/x", "policy HOT"),
            ("cold:ssd:/x", "first tier of class hdd, and there is none"),
            ("slow:hdd:/x,cold:hdd:/y", "first tier of class hdd, which is slow"),
            ("ssd:ssd:/x,all_ssd:ssd:/y", "first tier of class ssd, which is ssd"),
            ("none:ssd:/x", "no policy at all"),
            ("provided:hdd:/x", "PROVIDED"),
        ] {
            assert!(parse_volumes(text).expect_err(text).contains(why), "{text}");
        }
        for text in ["cold:hdd:/x,slow:hdd:/y", "cold:hdd:/x,cold:hdd:/y", "lazy_persist:ram:/x", "warmer:hdd:/x"] {
            assert!(parse_volumes(text).is_ok(), "{text}");
        }
    }
}
