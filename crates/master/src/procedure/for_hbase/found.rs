//! What HBase's master is to find, and how it changes: each change answers the rows to be written.

use super::rows::{
    CLOSE, CRASH, OPEN, OnItsWay, Ordered, Row, STEPS, TRANSIT, bytes_of, ended, over, read_order, read_transit,
    state_machine, with_user,
};
use super::{OWNER, Order};
use crate::MasterError;
use crate::procedure::engine::Step;
use bytes::Bytes;
use model::{RegionInfo, ServerName};
use proto::pb::region_state_transition::TransitionCode;
use proto::pb::{self, ProcedureState, RegionTransitionType as Transition};
use proto::{Any, Message};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What is found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Of the next procedure that is HBase's alone.
    next_id: u64,
    regions: HashMap<Arc<str>, OnItsWay>,
    /// Changes: their rows, and rows of HBase's below them that are not of regions.
    changes: BTreeMap<u64, pb::Procedure>,
}

/// How many steps a row says.
fn steps_len(row: &pb::Procedure) -> usize {
    let first = row.state_message.first().filter(|data| data.type_url.ends_with(STEPS));
    let read = first.and_then(|data| pb::StateMachineProcedureData::decode(data.value.clone()).ok());
    read.map_or(0, |data| data.state.len())
}

fn rows_of(way: &OnItsWay) -> Vec<Row> {
    std::iter::once(way.row()).chain(way.order_row()).map(|row| bytes_of(&row)).collect()
}

impl Found {
    /// From the rows of masters before. Those of crashed servers, and below them, are left out. Answers the rows that go.
    pub fn of(rows: &BTreeMap<u64, Bytes>, next_id: u64) -> (Found, Vec<Row>) {
        let read = |bytes: &Bytes| pb::Procedure::decode(bytes.clone()).ok();
        let mut rows: BTreeMap<u64, Option<pb::Procedure>> =
            rows.iter().map(|(id, bytes)| (*id, read(bytes))).collect();
        let mut gone = Vec::new();
        // A child may have a smaller id than its parent: so until nothing more goes.
        loop {
            let goes = |row: &Option<pb::Procedure>| {
                let Some(row) = row else { return true };
                row.class_name == CRASH || row.parent_id.is_some_and(|parent| !rows.contains_key(&parent))
            };
            let ids: Vec<u64> = rows.iter().filter(|(_, row)| goes(row)).map(|(id, _)| *id).collect();
            if ids.is_empty() {
                break;
            }
            for id in ids {
                rows.remove(&id);
                gone.push(over(id));
            }
        }
        let mut found = Found { next_id, ..Found::default() };
        let mut orders = Vec::new();
        for row in rows.into_values().flatten() {
            match row.class_name.as_str() {
                OPEN | CLOSE => orders.push(row),
                TRANSIT => match read_transit(&row) {
                    Some(way) => drop(found.regions.insert(Arc::clone(way.info.encoded_name()), way)),
                    None => gone.push(over(row.proc_id)),
                },
                _ => drop(found.changes.insert(row.proc_id, row)),
            }
        }
        for row in orders {
            let way = found.regions.values_mut().find(|way| Some(way.id) == row.parent_id);
            match (way, read_order(&row)) {
                (Some(way), Some(ordered)) => way.ordered = Some(ordered),
                _ => gone.push(over(row.proc_id)),
            }
        }
        (found, gone)
    }

    /// Where the region stands, to be changed; begun, as one of a master before, if it is not on its way.
    fn way(&mut self, info: &RegionInfo, transition: Transition) -> &mut OnItsWay {
        let next_id = &mut self.next_id;
        self.regions.entry(Arc::clone(info.encoded_name())).or_insert_with(|| {
            *next_id += 1;
            OnItsWay {
                id: *next_id,
                parent: None,
                record: None,
                info: info.clone(),
                transition,
                candidate: None,
                to_open: transition == Transition::Assign,
                ordered: None,
                is_old: true,
            }
        })
    }

    /// A change goes on with the last of these steps, after these regions, if there are any. Nothing where it is further already.
    pub fn change(&mut self, record: &pb::Procedure, states: &[Step], data: Option<Vec<Any>>, waits: bool) -> Vec<Row> {
        let id = record.proc_id;
        if self.changes.get(&id).is_some_and(|former| steps_len(former) > states.len()) {
            return Vec::new();
        }
        let state = if waits { ProcedureState::Waiting } else { ProcedureState::Runnable };
        let own = data.unwrap_or_else(|| record.state_message.iter().skip(1).cloned().collect());
        let user = record.owner.as_deref().filter(|owner| !owner.is_empty()).unwrap_or(OWNER);
        let own = own.into_iter().map(|data| with_user(data, user));
        let class = record.class_name.rsplit('.').next().unwrap_or_default();
        // What these have done may be rolled back: each step that was done has its place on the stack.
        let is_undone = matches!(class, "SplitTableRegionProcedure" | "MergeTableRegionsProcedure");
        let done = u32::try_from(states.len().saturating_sub(1)).unwrap_or(0);
        let row = pb::Procedure {
            state: state as i32,
            // One whose parent is not to be found is found by itself.
            parent_id: None,
            exception: None,
            result: None,
            executed: Some(done > 0),
            stack_id: if is_undone { (0..done).collect() } else { Vec::new() },
            state_message: std::iter::once(state_machine(states)).chain(own).collect(),
            ..record.clone()
        };
        let mut rows = self.drop_below(id);
        rows.push(bytes_of(&row));
        self.changes.insert(id, row);
        rows
    }

    /// A change is begun anew with the last of these steps. Nothing where it is no further.
    pub fn begin_anew(&mut self, record: &pb::Procedure, states: &[Step]) -> Vec<Row> {
        let is_further = |former: &pb::Procedure| steps_len(former) > states.len();
        if !self.changes.get(&record.proc_id).is_some_and(is_further) {
            return Vec::new();
        }
        self.changes.remove(&record.proc_id);
        self.change(record, states, None, false)
    }

    /// These regions are the change's to be brought where they are to be.
    pub fn add_regions(&mut self, parent: u64, regions: &[RegionInfo], transition: Transition) -> Vec<Row> {
        let mut rows = Vec::new();
        for info in regions.iter().filter(|info| !(info.table.is_meta() && info.is_replica())) {
            let way = self.way(info, transition);
            if !way.is_old {
                continue;
            }
            (way.parent, way.is_old) = (Some(parent), false);
            if way.ordered.is_none() {
                (way.transition, way.to_open) = (transition, transition == Transition::Assign);
            }
            rows.push(bytes_of(&way.row()));
        }
        rows
    }

    /// Takes the rows below a change away. Those of regions are the change's own then.
    fn drop_below(&mut self, id: u64) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut parents = vec![id];
        while let Some(parent) = parents.pop() {
            let is_below = |row: &pb::Procedure| row.parent_id == Some(parent);
            let below: Vec<u64> = self.changes.iter().filter(|(_, row)| is_below(row)).map(|(id, _)| *id).collect();
            for child in below {
                self.changes.remove(&child);
                rows.push(over(child));
                rows.extend(self.move_regions(child, Some(id)));
                parents.push(child);
            }
        }
        rows
    }

    fn move_regions(&mut self, from: u64, to: Option<u64>) -> Vec<Row> {
        let ways = self.regions.values_mut().filter(|way| way.parent == Some(from));
        ways.map(|way| {
            way.parent = to;
            bytes_of(&way.row())
        })
        .collect()
    }

    /// A change has failed, and these regions are opened again.
    pub fn roll_back(&mut self, record: &pb::Procedure, regions: &[RegionInfo]) -> Vec<Row> {
        let mut rows = self.drop_below(record.proc_id);
        self.changes.remove(&record.proc_id);
        rows.extend(self.move_regions(record.proc_id, None));
        let error = MasterError::from_foreign(record.exception.as_ref());
        rows.push(bytes_of(&ended(record, ProcedureState::Rolledback, Some(&error))));
        for info in regions {
            let way = self.way(info, Transition::Assign);
            way.is_old = false;
            if way.ordered.is_none() {
                (way.transition, way.to_open) = (Transition::Assign, true);
            }
            rows.extend(rows_of(way));
        }
        rows
    }

    /// A procedure has ended. Regions that are below it are on their way by themselves.
    pub fn end_change(&mut self, record: &pb::Procedure, error: Option<&MasterError>) -> Vec<Row> {
        let id = record.proc_id;
        let mut rows = self.drop_below(id);
        rows.extend(self.move_regions(id, None));
        let was_found = self.changes.remove(&id).is_some();
        self.regions.retain(|_, way| way.id != id);
        let state = if error.is_some() { ProcedureState::Rolledback } else { ProcedureState::Success };
        if record.parent_id.is_none() {
            rows.push(bytes_of(&ended(record, state, error)));
        } else if was_found || record.class_name == TRANSIT {
            rows.push(over(id));
        }
        rows
    }

    /// Procedures are forgotten.
    pub fn forget(&mut self, ids: &[u64]) -> Vec<Row> {
        ids.iter().for_each(|id| drop(self.changes.remove(id)));
        ids.iter().map(|id| over(*id)).collect()
    }

    /// A region has a procedure of its own.
    pub fn own(
        &mut self,
        record: Arc<pb::Procedure>,
        info: &RegionInfo,
        transition: Transition,
        candidate: Option<ServerName>,
    ) -> Vec<Row> {
        let id = record.proc_id;
        let former = self.regions.get(info.encoded_name()).map(|way| (way.id, way.record.is_some()));
        if former == Some((id, true)) {
            return Vec::new();
        }
        let way = self.way(info, transition);
        (way.id, way.parent, way.is_old, way.candidate, way.record) = (id, None, false, candidate, Some(record));
        if way.ordered.is_none() && former.is_none_or(|(former, _)| former != id) {
            (way.transition, way.to_open) = (transition, transition == Transition::Assign);
        }
        let rows = rows_of(way);
        former.filter(|(former, _)| *former != id).map(|(former, _)| over(former)).into_iter().chain(rows).collect()
    }

    /// A region is to be written to hbase:meta as OPENING or CLOSING.
    pub fn set_out(&mut self, info: &RegionInfo, order: Order) -> Vec<Row> {
        let opens = order == Order::Open;
        let is_new = !self.regions.contains_key(info.encoded_name());
        let way = self.way(info, if opens { Transition::Assign } else { Transition::Unassign });
        way.is_old = false;
        let is_same = way.to_open == opens && way.ordered.as_ref().is_none_or(|ordered| ordered.order == order);
        if is_same && !is_new {
            return Vec::new();
        }
        let last = way.ordered.take();
        way.to_open = opens;
        match way.transition {
            Transition::Unassign if opens => way.transition = Transition::Assign,
            Transition::Assign if !opens => way.transition = Transition::Unassign,
            _ => {}
        }
        last.map(|ordered| over(ordered.id)).into_iter().chain(rows_of(way)).collect()
    }

    /// A server is to be ordered something.
    pub fn order(&mut self, encoded_name: &str, id: u64, order: Order, server: ServerName) -> Vec<Row> {
        let Some(way) = self.regions.get_mut(encoded_name) else { return Vec::new() };
        if way.ordered.as_ref().is_some_and(|ordered| ordered.id == id) {
            return Vec::new();
        }
        let last = way.ordered.replace(Ordered { id, order, server, reported: None });
        way.to_open = order == Order::Open;
        last.map(|ordered| over(ordered.id)).into_iter().chain(rows_of(way)).collect()
    }

    pub fn is_of_order(&self, encoded_name: &str, id: u64) -> bool {
        let ordered = self.regions.get(encoded_name).and_then(|way| way.ordered.as_ref());
        ordered.is_some_and(|ordered| ordered.id == id)
    }

    /// A server has reported what became of an order.
    pub fn report(&mut self, encoded_name: &str, id: u64, code: TransitionCode, seq_id: i64) -> Vec<Row> {
        let Some(way) = self.regions.get_mut(encoded_name) else { return Vec::new() };
        let Some(ordered) = way.ordered.as_mut().filter(|ordered| ordered.id == id) else { return Vec::new() };
        ordered.reported = Some((code, seq_id));
        way.order_row().iter().map(bytes_of).collect()
    }

    /// hbase:meta says that a region is where it is to be.
    pub fn arrive(&mut self, encoded_name: &str) -> Vec<Row> {
        let Some(way) = self.regions.remove(encoded_name) else { return Vec::new() };
        // The row of a procedure of its own goes with that.
        let own = way.record.is_none().then(|| over(way.id));
        way.ordered.map(|ordered| over(ordered.id)).into_iter().chain(own).collect()
    }

    /// hbase:meta says that a region is closed: it has arrived, unless it is to be opened again.
    pub fn close(&mut self, encoded_name: &str) -> Vec<Row> {
        let Some(way) = self.regions.get_mut(encoded_name) else { return Vec::new() };
        if way.transition == Transition::Unassign {
            return self.arrive(encoded_name);
        }
        let last = way.ordered.take();
        way.to_open = true;
        last.map(|ordered| over(ordered.id)).into_iter().chain(rows_of(way)).collect()
    }

    /// What masters before have left of regions is done.
    pub fn all_arrive(&mut self) -> Vec<Row> {
        let old = self.regions.iter().filter(|(_, way)| way.is_old).map(|(name, _)| Arc::clone(name));
        let old: Vec<Arc<str>> = old.collect();
        old.iter().flat_map(|name| self.arrive(name)).collect()
    }
}
