//! Where regions go that are open nowhere. Follows: `BaseLoadBalancer#roundRobinAssignment`, `#retainAssignment`.

use model::ServerName;

/// Servers for regions that were never open, in turn, so that no server gets two more than another: the number of a server for each region.
/// `loads` has the number of regions of each server: those with the fewest have the first turns. Nothing without servers.
pub fn round_robin(regions: usize, loads: &[usize]) -> Vec<usize> {
    let mut turns: Vec<usize> = (0..loads.len()).collect();
    turns.sort_by_key(|server| loads[*server]);
    turns.iter().copied().cycle().take(if turns.is_empty() { 0 } else { regions }).collect()
}

/// The server that takes the place of the one that a region was on: itself, or the one at its address since that was started anew.
pub fn retained<'a>(
    before: &ServerName,
    online: impl Iterator<Item = &'a ServerName> + Clone,
) -> Option<&'a ServerName> {
    let same = online.clone().find(|name| *name == before);
    same.or_else(|| {
        online.clone().find(|name| name.port == before.port && name.host.eq_ignore_ascii_case(&before.host))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_with_the_fewest_regions_has_the_first_turn_and_none_gets_two_more() {
        assert_eq!(round_robin(5, &[7, 0, 7]), [1, 0, 2, 1, 0]);
        assert!(round_robin(5, &[]).is_empty());
        let mut counts = [0_i32; 7];
        round_robin(100, &[3; 7]).into_iter().for_each(|server| counts[server] += 1);
        assert!(counts.iter().all(|count| [14, 15].contains(count)), "{counts:?}");
    }

    #[test]
    fn a_region_stays_at_the_address_where_it_was() {
        let name = |host: &str, port, start| ServerName::new(host, port, start);
        let online = [name("a", 1, 9), name("b", 1, 9), name("b", 2, 9)];
        let at = |host, port| retained(&name(host, port, 5), online.iter());
        assert_eq!(at("A", 1), Some(&online[0]));
        assert_eq!(at("b", 2), Some(&online[2]));
        assert_eq!(at("b", 3), None);
        assert_eq!(retained(&online[1], online.iter()), Some(&online[1]));
    }
}
