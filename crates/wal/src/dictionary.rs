//! The LRU dictionary of compressed logs. Follows `LRUDictionary`.

use bytes::Bytes;

const NONE: u16 = u16::MAX;

struct Node {
    word: Bytes,
    newer: u16,
    older: u16,
}

/// Words by index; when full, the word least recently used gives its index away.
pub(crate) struct Dictionary {
    nodes: Vec<Node>,
    capacity: usize,
    newest: u16,
    oldest: u16,
}

impl Dictionary {
    pub(crate) fn new(capacity: usize) -> Dictionary {
        assert!(capacity > 0 && capacity <= 32767, "indices are positive 16-bit numbers");
        Dictionary { nodes: Vec::new(), capacity, newest: NONE, oldest: NONE }
    }

    /// Adds a word; an empty one is never added.
    pub(crate) fn add(&mut self, word: Bytes) {
        if word.is_empty() {
            return;
        }
        let index = if self.nodes.len() < self.capacity {
            self.nodes.push(Node { word, newer: NONE, older: NONE });
            (self.nodes.len() - 1) as u16
        } else {
            let index = self.oldest;
            self.unlink(index);
            self.nodes[usize::from(index)].word = word;
            index
        };
        self.link_newest(index);
    }

    /// The word at `index`, which becomes the newest.
    pub(crate) fn get(&mut self, index: u16) -> Option<Bytes> {
        let word = self.nodes.get(usize::from(index))?.word.clone();
        self.unlink(index);
        self.link_newest(index);
        Some(word)
    }

    fn unlink(&mut self, index: u16) {
        let Node { newer, older, .. } = self.nodes[usize::from(index)];
        match self.nodes.get_mut(usize::from(newer)) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
        match self.nodes.get_mut(usize::from(older)) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn link_newest(&mut self, index: u16) {
        let before = self.newest;
        let node = &mut self.nodes[usize::from(index)];
        (node.newer, node.older) = (NONE, before);
        match self.nodes.get_mut(usize::from(before)) {
            Some(node) => node.newer = index,
            None => self.oldest = index,
        }
        self.newest = index;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_least_recently_used_gives_way() {
        let mut dictionary = Dictionary::new(3);
        for word in ["a", "b", "", "c"] {
            dictionary.add(Bytes::from(word));
        }
        assert_eq!(dictionary.get(0).as_deref(), Some(&b"a"[..]));
        dictionary.add(Bytes::from("d")); // b was the oldest
        assert_eq!(dictionary.get(1).as_deref(), Some(&b"d"[..]));
        dictionary.add(Bytes::from("e")); // then c
        assert_eq!(dictionary.get(2).as_deref(), Some(&b"e"[..]));
        assert_eq!(dictionary.get(3), None);
        let mut one = Dictionary::new(1);
        one.add(Bytes::from("x"));
        one.add(Bytes::from("y"));
        assert_eq!(one.get(0).as_deref(), Some(&b"y"[..]));
    }
}
