//! What one region server was ordered and has not reported yet.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;

/// Numbers of orders: above those of every master before, so that a server takes none for one that it has carried out already.
#[derive(Debug)]
pub(crate) struct OrderIds {
    first: u64,
    next: AtomicU64,
}

impl OrderIds {
    /// Those of a master that became active at that time.
    pub fn of_master(active_ms: u64) -> OrderIds {
        // A million orders in each millisecond, until the year 2248.
        let first = active_ms << 20;
        OrderIds { first, next: AtomicU64::new(first) }
    }

    pub fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether it is of this master.
    pub fn is_own(&self, id: u64) -> bool {
        id >= self.first
    }
}

/// What a server says of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reported {
    Opened { open_seq_id: u64 },
    FailedOpen,
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Open,
    Closed,
}

struct Waiting {
    id: u64,
    wanted: Wanted,
    answer: oneshot::Sender<Reported>,
}

/// The orders of one server, by region and by number.
#[derive(Default)]
pub(crate) struct Orders {
    regions: Mutex<HashMap<Arc<str>, Waiting>>,
    /// The last order for each region of which the server has not said what became of it. Given again, it is the same order: a server that
    /// carries it out takes no other of its kind, and its report is of that one.
    open: Mutex<HashMap<Arc<str>, (Wanted, u64)>>,
    procedures: Mutex<HashMap<u64, oneshot::Sender<Result<(), String>>>>,
}

impl Orders {
    /// An order is given, under this number; the next report that the region is open (or could not be opened), or is closed, comes out of the
    /// receiver.
    pub fn expect(&self, region: &str, ids: &OrderIds, wanted: Wanted) -> (u64, oneshot::Receiver<Reported>) {
        let region: Arc<str> = Arc::from(region);
        let id = match self.open.lock().entry(region.clone()) {
            Entry::Occupied(open) if open.get().0 == wanted => open.get().1,
            entry => {
                let id = ids.next();
                entry.insert_entry((wanted, id));
                id
            }
        };
        let (answer, reported) = oneshot::channel();
        self.regions.lock().insert(region, Waiting { id, wanted, answer });
        (id, reported)
    }

    /// It is known what became of an order, or the server knows nothing of it any more.
    pub fn settled(&self, region: &str, id: u64) {
        let mut open = self.open.lock();
        if open.get(region).is_some_and(|(_, last)| *last == id) {
            open.remove(region);
        }
    }

    /// Whether it is known already what became of the order `id` of this master's, or another was given since: a report of it was sent twice.
    pub fn is_over(&self, region: &str, id: u64, ids: &OrderIds) -> bool {
        ids.is_own(id) && self.open.lock().get(region).is_none_or(|(_, last)| *last != id)
    }

    /// Nobody waits for it any more.
    pub fn forget(&self, region: &str, id: u64) {
        let mut regions = self.regions.lock();
        if regions.get(region).is_some_and(|waiting| waiting.id == id) {
            regions.remove(region);
        }
    }

    /// A report came; whether somebody waited for it. One of an order of an earlier master counts, too: while a server carries that out, it
    /// takes no other of the same kind.
    pub fn reported(&self, region: &str, id: Option<u64>, ids: &OrderIds, reported: Reported) -> bool {
        let mut regions = self.regions.lock();
        let Some(waiting) = regions.get(region) else { return false };
        let is_wanted = match reported {
            Reported::Opened { .. } | Reported::FailedOpen => waiting.wanted == Wanted::Open,
            Reported::Closed => waiting.wanted == Wanted::Closed,
        };
        let is_meant = id.is_none_or(|id| id == waiting.id || !ids.is_own(id));
        if !is_wanted || !is_meant {
            return false;
        }
        self.open.lock().remove(region);
        regions.remove(region).is_some_and(|waiting| waiting.answer.send(reported).is_ok())
    }

    /// How the procedure of that number ended comes out of the receiver.
    pub fn expect_procedure(&self, id: u64) -> oneshot::Receiver<Result<(), String>> {
        let (answer, ended) = oneshot::channel();
        self.procedures.lock().insert(id, answer);
        ended
    }

    /// Nobody waits for it any more.
    pub fn forget_procedure(&self, id: u64) {
        self.procedures.lock().remove(&id);
    }

    /// A procedure has ended; whether somebody waited for it.
    pub fn procedure_ended(&self, id: u64, result: Result<(), String>) -> bool {
        let waiting = self.procedures.lock().remove(&id);
        waiting.is_some_and(|answer| answer.send(result).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_answers_the_order_that_it_is_of() {
        let (orders, ids, before) = (Orders::default(), OrderIds::of_master(2), OrderIds::of_master(1));
        let opened = || Reported::Opened { open_seq_id: 7 };
        let (first, mut waiting) = orders.expect("r", &ids, Wanted::Open);
        assert!(!orders.reported("r", Some(first), &ids, Reported::Closed), "it is to be opened");
        assert!(!orders.reported("r", Some(ids.next()), &ids, Reported::FailedOpen), "of another order");
        assert!(!orders.reported("other", Some(first), &ids, opened()));
        assert!(waiting.try_recv().is_err());
        assert!(orders.reported("r", Some(first), &ids, opened()));
        assert_eq!(waiting.try_recv(), Ok(opened()));
        assert!(!orders.reported("r", Some(first), &ids, opened()), "once");

        let (second, mut waiting) = orders.expect("r", &ids, Wanted::Closed);
        assert_ne!(first, second);
        assert!(orders.reported("r", Some(before.next()), &ids, Reported::Closed), "a master before has ordered it");
        assert_eq!(waiting.try_recv(), Ok(Reported::Closed));
    }

    #[test]
    fn who_waits_no_more_is_not_answered() {
        let (orders, ids) = (Orders::default(), OrderIds::of_master(1));
        let (first, waiting) = orders.expect("r", &ids, Wanted::Open);
        drop(waiting);
        assert!(!orders.reported("r", None, &ids, Reported::FailedOpen));
        let (_, _newer) = orders.expect("r", &ids, Wanted::Open);
        orders.forget("r", first + 10);
        assert!(orders.reported("r", None, &ids, Reported::FailedOpen), "that was another's");
        let mut ended = orders.expect_procedure(5);
        assert!(orders.procedure_ended(5, Err("no".into())) && !orders.procedure_ended(5, Ok(())));
        assert_eq!(ended.try_recv(), Ok(Err("no".into())));
    }

    #[test]
    fn an_order_of_which_nothing_is_known_is_the_same_when_it_is_given_again() {
        let (orders, ids) = (Orders::default(), OrderIds::of_master(1));
        let opened = || Reported::Opened { open_seq_id: 7 };
        let (first, _gave_up) = orders.expect("r", &ids, Wanted::Open);
        orders.forget("r", first);
        assert!(!orders.reported("r", Some(first), &ids, opened()), "nobody waits");
        let (again, mut waiting) = orders.expect("r", &ids, Wanted::Open);
        assert_eq!(again, first);
        assert!(orders.reported("r", Some(first), &ids, opened()), "the server's report is of the first");
        assert_eq!(waiting.try_recv(), Ok(opened()));
        assert!(orders.is_over("r", first, &ids));
        let (next, _waiting) = orders.expect("r", &ids, Wanted::Open);
        assert_ne!(next, first, "that one is done");
        assert!(orders.is_over("r", first, &ids) && !orders.is_over("r", next, &ids));
        orders.forget("r", next);
        assert!(!orders.is_over("r", next, &ids), "nobody waits for it, and its report has yet to come");
        assert!(!orders.is_over("r", 0, &ids), "of an earlier master's nothing is known");
        orders.settled("r", first);
        assert_eq!(orders.expect("r", &ids, Wanted::Open).0, next);
        orders.settled("r", next);
        assert_ne!(orders.expect("r", &ids, Wanted::Open).0, next);
        assert_ne!(orders.expect("r", &ids, Wanted::Closed).0, next);
    }
}
