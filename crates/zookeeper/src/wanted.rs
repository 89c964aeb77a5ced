//! What nodes are to be like, and which of them may not be so yet.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::watch;

/// What a node is to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// It is there, with any value.
    Exists,
    /// It has this value.
    Has { value: Bytes, ephemeral: bool },
    /// It is not there.
    Gone,
}

/// The newest wish for each path; a path that is wished for again before its turn has one turn. Parents come before children.
#[derive(Debug)]
pub(crate) struct Wanted {
    state: Mutex<State>,
    /// Paths that wait for their turn.
    waiting: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct State {
    wishes: BTreeMap<String, Wish>,
    due: BTreeSet<String>,
}

impl Wanted {
    pub fn new() -> Wanted {
        Wanted { state: Mutex::default(), waiting: watch::Sender::new(0) }
    }

    pub fn want(&self, path: &str, wish: Wish) {
        let mut state = self.state.lock();
        state.wishes.insert(path.to_owned(), wish);
        state.due.insert(path.to_owned());
        self.waiting.send_replace(state.due.len());
    }

    /// The next whose turn it is. It stays due until [`Wanted::done`].
    pub fn next(&self) -> Option<(String, Wish)> {
        let state = self.state.lock();
        let path = state.due.first()?;
        Some((path.clone(), state.wishes.get(path)?.clone()))
    }

    /// The node at `path` is as `wish` had it.
    pub fn done(&self, path: &str, wish: &Wish) {
        let mut state = self.state.lock();
        if state.wishes.get(path) != Some(wish) {
            // Another came meanwhile.
            return;
        }
        if *wish == Wish::Gone {
            state.wishes.remove(path);
        }
        state.due.remove(path);
        self.waiting.send_replace(state.due.len());
    }

    /// All is to be written again.
    pub fn all_due(&self) {
        let mut state = self.state.lock();
        state.due = state.wishes.keys().cloned().collect();
        self.waiting.send_replace(state.due.len());
    }

    /// How many wait, as it changes.
    pub fn waiting(&self) -> watch::Receiver<usize> {
        self.waiting.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(value: &'static str) -> Wish {
        Wish::Has { value: Bytes::from_static(value.as_bytes()), ephemeral: false }
    }

    #[test]
    fn the_newest_wish_counts_and_parents_come_first() {
        let wanted = Wanted::new();
        wanted.want("/a/b", has("1"));
        wanted.want("/a", Wish::Exists);
        assert_eq!(*wanted.waiting().borrow(), 2);
        assert_eq!(wanted.next(), Some(("/a".to_owned(), Wish::Exists)));
        wanted.done("/a", &Wish::Exists);
        let (path, first) = wanted.next().expect("one waits");
        wanted.want("/a/b", has("2"));
        wanted.done(&path, &first);
        assert_eq!(wanted.next(), Some((path.clone(), has("2"))), "the newer one is still to be written");
        wanted.done(&path, &has("2"));
        assert_eq!(wanted.next(), None);
        wanted.all_due();
        assert_eq!(*wanted.waiting().borrow(), 2);
    }

    #[test]
    fn what_is_gone_is_not_written_again() {
        let wanted = Wanted::new();
        wanted.want("/a", Wish::Gone);
        wanted.done("/a", &Wish::Gone);
        wanted.all_due();
        assert_eq!(wanted.next(), None);
    }
}
