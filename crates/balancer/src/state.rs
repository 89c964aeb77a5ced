//! Where regions are while moves are tried. Follows: `BalancerClusterState`.

use crate::snapshot::{Move, Snapshot};
use std::collections::{BTreeMap, HashMap};

/// Servers that count as one place for read replicas: a server, a machine, a rack.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    /// The group of each server.
    pub of_server: Vec<usize>,
    /// The servers of each group.
    pub servers: Vec<Vec<usize>>,
    /// How many of a region and its read replicas each group has, by the primary's number.
    pub replicas: Vec<HashMap<Option<usize>, u32>>,
}

impl Groups {
    fn new<'a>(names: impl Iterator<Item = &'a str>) -> Groups {
        let (mut numbers, mut groups) = (BTreeMap::new(), Groups::default());
        for (server, name) in names.enumerate() {
            let next = groups.servers.len();
            let group = *numbers.entry(name).or_insert(next);
            if group == next {
                groups.servers.push(Vec::new());
            }
            groups.of_server.push(group);
            groups.servers[group].push(server);
        }
        groups.replicas = vec![HashMap::new(); groups.servers.len()];
        groups
    }

    fn each_server(count: usize) -> Groups {
        Groups {
            of_server: (0..count).collect(),
            servers: (0..count).map(|server| vec![server]).collect(),
            replicas: vec![HashMap::new(); count],
        }
    }

    pub fn count(&self) -> usize {
        self.servers.len()
    }

    fn add(&mut self, server: usize, primary: Option<usize>) {
        *self.replicas[self.of_server[server]].entry(primary).or_insert(0) += 1;
    }

    fn remove(&mut self, server: usize, primary: Option<usize>) {
        let counts = &mut self.replicas[self.of_server[server]];
        if let Some(count) = counts.get_mut(&primary) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&primary);
            }
        }
    }

    /// What it costs that read replicas share a group. Follows: `RegionReplicaGroupingCostFunction#costPerGroup`.
    pub fn sharing(counts: &HashMap<Option<usize>, u32>) -> u64 {
        counts.values().filter(|count| **count > 1).map(|count| u64::from(count - 1) * u64::from(count - 1)).sum()
    }
}

/// Where each region is now, and was in the snapshot. Moving one costs the same however many there are.
#[derive(Clone, Debug)]
pub struct State<'a> {
    pub(crate) snapshot: &'a Snapshot,
    /// The server of each region.
    pub(crate) server_of: Vec<usize>,
    /// The regions of each server, in no order.
    pub(crate) regions_of: Vec<Vec<usize>>,
    /// Where a region stands in `regions_of` its server.
    place: Vec<usize>,
    /// Regions that are not where they were.
    pub(crate) moved: usize,
    pub(crate) has_replicas: bool,
    pub(crate) max_replicas: usize,
    pub(crate) servers: Groups,
    pub(crate) hosts: Groups,
    pub(crate) racks: Groups,
    /// The locality of regions, where any is known.
    pub(crate) localities: Option<Localities>,
}

/// How much of each region lies where.
#[derive(Clone, Debug)]
pub(crate) struct Localities {
    /// By region and rack, in the mean over the rack's servers.
    racks: Vec<Vec<f32>>,
    /// The server that has most of each region; the first where none has any.
    pub best_server: Vec<usize>,
    pub best_rack: Vec<usize>,
}

impl<'a> State<'a> {
    /// As the snapshot has it.
    pub fn new(snapshot: &'a Snapshot) -> State<'a> {
        let count = snapshot.servers.len();
        let mut state = State {
            snapshot,
            server_of: snapshot.regions.iter().map(|region| region.server).collect(),
            regions_of: vec![Vec::new(); count],
            place: Vec::with_capacity(snapshot.regions.len()),
            moved: 0,
            has_replicas: snapshot.regions.iter().any(|region| region.replica_id > 0),
            max_replicas: snapshot.regions.iter().map(|region| region.replica_id as usize + 1).max().unwrap_or(1),
            servers: Groups::each_server(count),
            hosts: Groups::new(snapshot.servers.iter().map(|server| &*server.host)),
            racks: Groups::new(snapshot.servers.iter().map(|server| &*server.rack)),
            localities: None,
        };
        for (number, region) in snapshot.regions.iter().enumerate() {
            let regions = &mut state.regions_of[region.server];
            state.place.push(regions.len());
            regions.push(number);
            if state.has_replicas {
                state.add_replica(number, region.server);
            }
        }
        if snapshot.regions.iter().any(|region| !region.localities.is_empty()) {
            state.localities = Some(Localities::new(&state));
        }
        state
    }

    pub(crate) fn primary(&self, region: usize) -> Option<usize> {
        let entry = &self.snapshot.regions[region];
        if entry.replica_id > 0 { entry.primary } else { Some(region) }
    }

    pub(crate) fn is_primary(&self, region: usize) -> bool {
        self.primary(region) == Some(region)
    }

    fn add_replica(&mut self, region: usize, server: usize) {
        let primary = self.primary(region);
        [&mut self.servers, &mut self.hosts, &mut self.racks]
            .into_iter()
            .for_each(|groups| groups.add(server, primary));
    }

    fn remove_replica(&mut self, region: usize, server: usize) {
        let primary = self.primary(region);
        [&mut self.servers, &mut self.hosts, &mut self.racks]
            .into_iter()
            .for_each(|groups| groups.remove(server, primary));
    }

    /// A region goes to another server.
    pub(crate) fn apply(&mut self, step: Move) {
        let Move { region, from, to } = step;
        let place = self.place[region];
        self.regions_of[from].swap_remove(place);
        if let Some(other) = self.regions_of[from].get(place) {
            self.place[*other] = place;
        }
        self.place[region] = self.regions_of[to].len();
        self.regions_of[to].push(region);
        self.server_of[region] = to;
        let first = self.snapshot.regions[region].server;
        self.moved = self.moved + usize::from(from == first) - usize::from(to == first);
        if self.has_replicas {
            self.remove_replica(region, from);
            self.add_replica(region, to);
        }
    }

    /// Numbers of regions by server.
    pub(crate) fn count_on(&self, server: usize) -> usize {
        self.regions_of[server].len()
    }

    /// Which part of a region's files a server's machine has.
    pub(crate) fn locality(&self, region: usize, server: usize) -> f32 {
        let known = self.snapshot.regions[region].localities.iter();
        known.filter(|(at, _)| *at == server).map(|(_, part)| *part).next().unwrap_or(0.0)
    }

    /// Mebibytes of a region that lie on a server's machine.
    pub(crate) fn local_mb(&self, region: usize, server: usize) -> f64 {
        f64::from(self.snapshot.regions[region].costs.size_mb as f32 * self.locality(region, server))
    }

    /// The same of a rack, in the mean over its servers.
    pub(crate) fn rack_local_mb(&self, region: usize, rack: usize) -> f64 {
        let part = self.localities.as_ref().map_or(0.0, |localities| localities.racks[region][rack]);
        f64::from(self.snapshot.regions[region].costs.size_mb as f32 * part)
    }

    /// Every region that is not where it was.
    pub(crate) fn moves(&self) -> Vec<Move> {
        let places = self.snapshot.regions.iter().zip(&self.server_of).enumerate();
        places
            .map(|(region, (entry, to))| Move { region, from: entry.server, to: *to })
            .filter(|step| step.from != step.to)
            .collect()
    }
}

impl Localities {
    fn new(state: &State<'_>) -> Localities {
        let (servers, racks) = (state.snapshot.servers.len(), state.racks.count());
        let mut of_racks = Vec::with_capacity(state.snapshot.regions.len());
        let (mut best_server, mut best_rack) = (Vec::new(), Vec::new());
        for region in 0..state.snapshot.regions.len() {
            let mut by_rack = vec![0.0_f32; racks];
            let (mut best, mut most) = (0, 0.0);
            for server in 0..servers {
                let part = state.locality(region, server);
                let rack = state.racks.of_server[server];
                by_rack[rack] += part / state.racks.servers[rack].len() as f32;
                if part > most {
                    (best, most) = (server, part);
                }
            }
            best_server.push(best);
            let (mut best, mut most) = (0, 0.0);
            for (rack, part) in by_rack.iter().enumerate() {
                if *part > most {
                    (best, most) = (rack, *part);
                }
            }
            best_rack.push(best);
            of_racks.push(by_rack);
        }
        Localities { racks: of_racks, best_server, best_rack }
    }
}
