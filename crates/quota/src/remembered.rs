//! What each thread remembers of limiters that it looked up: by user and table, in a few places each, until quotas are refreshed.
//!
//! Always true: what is remembered of a version that has passed is never used. A thread shares nothing with others here, so that calls of
//! one user on several threads meet only where they take of the same limit.

use crate::throttles::Limiters;
use model::TableName;
use std::cell::RefCell;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pairs of user and table that a thread remembers at most; one takes the place of another with the same hash.
const PLACES: usize = 64;

/// A version of the limits of one server; no two in the process are ever the same.
#[derive(Debug)]
pub(crate) struct Version(AtomicU64);

static NEXT: AtomicU64 = AtomicU64::new(1);

struct Remembered {
    version: u64,
    user: Box<str>,
    table: TableName,
    limiters: Option<Arc<Limiters>>,
}

thread_local! {
    static PLACES_OF_THREAD: RefCell<[Option<Remembered>; PLACES]> = const { RefCell::new([const { None }; PLACES]) };
}

impl Version {
    pub fn new() -> Version {
        Version(AtomicU64::new(NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// What was remembered up to now is not valid any more. To be called after the change.
    pub fn advance(&self) {
        self.0.store(NEXT.fetch_add(1, Ordering::Relaxed), Ordering::Release);
    }

    /// What `look_up` said of the same user and table in this version, or says now.
    pub fn remembered(
        &self,
        user: &str,
        table: &TableName,
        look_up: impl FnOnce() -> Option<Arc<Limiters>>,
    ) -> Option<Arc<Limiters>> {
        // Before the look: what changes in between makes it one of a version that has passed.
        let version = self.0.load(Ordering::Acquire);
        let place = place(user, table);
        let known = PLACES_OF_THREAD.with_borrow(|places| {
            let known = places[place].as_ref()?;
            (known.version == version && *known.user == *user && known.table == *table).then(|| known.limiters.clone())
        });
        known.unwrap_or_else(|| {
            let limiters = look_up();
            let remembered =
                Remembered { version, user: user.into(), table: table.clone(), limiters: limiters.clone() };
            PLACES_OF_THREAD.with_borrow_mut(|places| places[place] = Some(remembered));
            limiters
        })
    }
}

fn place(user: &str, table: &TableName) -> usize {
    rustc_hash::FxBuildHasher.hash_one((user, table.as_str())) as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Option<Arc<Limiters>> {
        Some(Arc::default())
    }

    #[test]
    fn what_was_looked_up_is_remembered_until_the_next_version() {
        let (version, table) = (Version::new(), TableName::parse("t").expect("a legal name"));
        let first = version.remembered("bob", &table, some).expect("there are");
        let again = version.remembered("bob", &table, || None).expect("remembered");
        assert!(Arc::ptr_eq(&first, &again));
        assert!(version.remembered("eve", &table, || None).is_none(), "another user");
        assert!(version.remembered("eve", &table, some).is_none(), "that there is nothing is remembered, too");
        assert!(Version::new().remembered("bob", &table, || None).is_none(), "another server");
        version.advance();
        assert!(version.remembered("bob", &table, || None).is_none());
    }

    #[test]
    fn a_change_during_the_look_is_not_lost() {
        let (version, table) = (Version::new(), TableName::parse("t").expect("a legal name"));
        let stale = version.remembered("bob", &table, || {
            version.advance();
            some()
        });
        assert!(stale.is_some());
        assert!(version.remembered("bob", &table, || None).is_none(), "it is looked up again");
    }

    #[test]
    fn users_and_tables_that_share_a_place_are_told_apart() {
        let version = Version::new();
        let table = TableName::parse("t").expect("a legal name");
        for round in 0..2 {
            for user in 0..10 * PLACES {
                let found = version.remembered(&format!("u{user}"), &table, || (user % 2 == 0).then(Arc::default));
                assert_eq!(found.is_some(), user % 2 == 0, "user {user}, round {round}");
            }
        }
    }
}
