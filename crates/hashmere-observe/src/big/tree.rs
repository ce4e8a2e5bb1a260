//! Keys by prefix, as a tree of bounded size.
//!
//! What is listed of a prefix is exact. When there are too many prefixes, the smallest are given up, and a prefix that
//! has given one up takes no new ones: what belongs to those counts as *other*. A scan goes by the hashes of keys, so
//! that large prefixes are met early.

use super::count::Count;
use std::collections::BTreeMap;

/// Prefixes that are kept at most.
const NODES: usize = 20_000;
/// A part of a prefix that is longer is not kept.
const PART_MAX: usize = 64;

/// The tree.
#[derive(Debug)]
pub(crate) struct Tree {
    separators: Vec<u8>,
    depth: usize,
    nodes: usize,
    most: usize,
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    /// All below it, and itself.
    count: Count,
    parts: BTreeMap<Vec<u8>, Node>,
    /// It has given up some.
    is_closed: bool,
}

/// A line of the tree as it is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The whole prefix; `None`: what is not listed of the level.
    pub prefix: Option<Vec<u8>>,
    /// How deep it is, from 0.
    pub level: usize,
    /// What it has.
    pub count: Count,
}

impl Tree {
    /// A prefix ends with any of these bytes, and is distinguished up to this depth.
    pub(crate) fn new(separators: &[u8], depth: usize) -> Tree {
        Tree { separators: separators.to_vec(), depth, nodes: 0, most: NODES, root: Node::default() }
    }

    /// Counts a key.
    pub(crate) fn add(&mut self, key: &[u8], bytes: u64) {
        let mut node = &mut self.root;
        node.count.add(bytes);
        let mut rest = key;
        for _ in 0..self.depth {
            let Some(end) = rest.iter().position(|byte| self.separators.contains(byte)) else { break };
            let (part, behind) = rest.split_at(end + 1);
            let is_known = node.parts.contains_key(part);
            if !is_known && (node.is_closed || part.len() > PART_MAX) {
                break;
            }
            self.nodes += usize::from(!is_known);
            node = node.parts.entry(part.to_vec()).or_default();
            node.count.add(bytes);
            rest = behind;
        }
        if self.nodes > self.most {
            self.prune();
        }
    }

    /// Gives up the smaller half of the prefixes that have no others below them, until half of the room is left.
    fn prune(&mut self) {
        while self.nodes > self.most / 2 {
            let mut sizes = Vec::new();
            self.root.leaves(&mut sizes);
            sizes.sort_unstable();
            let bound = sizes[sizes.len() / 2];
            // Of many that are all alike all go.
            self.nodes -= self.root.drop_leaves(bound);
        }
    }

    /// The tree as lines, largest first, at most `top` on each level; what is left of a level comes last.
    pub(crate) fn lines(&self, top: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        self.root.lines(&mut Vec::new(), 0, top, &mut lines);
        lines
    }
}

impl Node {
    fn leaves(&self, sizes: &mut Vec<u64>) {
        for part in self.parts.values() {
            if part.parts.is_empty() {
                sizes.push(part.count.bytes);
            }
            part.leaves(sizes);
        }
    }

    /// Drops those without others below them that have at most `bound` bytes; how many that were.
    fn drop_leaves(&mut self, bound: u64) -> usize {
        let before = self.parts.len();
        self.parts.retain(|_, part| !part.parts.is_empty() || part.count.bytes > bound);
        let dropped = before - self.parts.len();
        self.is_closed |= dropped != 0;
        dropped + self.parts.values_mut().map(|part| part.drop_leaves(bound)).sum::<usize>()
    }

    fn lines(&self, prefix: &mut Vec<u8>, level: usize, top: usize, lines: &mut Vec<Line>) {
        let mut parts: Vec<_> = self.parts.iter().collect();
        parts.sort_by_key(|(_, part)| std::cmp::Reverse(part.count.bytes));
        let mut other = self.count;
        for (name, part) in parts.into_iter().take(top) {
            let length = prefix.len();
            prefix.extend_from_slice(name);
            lines.push(Line { prefix: Some(prefix.clone()), level, count: part.count });
            other = other.without(part.count);
            part.lines(prefix, level + 1, top, lines);
            prefix.truncate(length);
        }
        // Of a prefix without others below it there is nothing to be distinguished.
        if other.keys != 0 && (!self.parts.is_empty() || level == 0) {
            lines.push(Line { prefix: None, level, count: other });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(prefix: Option<&str>, level: usize, keys: u64, bytes: u64) -> Line {
        Line { prefix: prefix.map(|p| p.as_bytes().to_vec()), level, count: Count { keys, bytes } }
    }

    #[test]
    fn a_small_tree_is_exact() {
        let mut tree = Tree::new(b":/", 2);
        for key in ["user:1:name", "user:1:mail", "user:2:name", "user:x", "page/a/b/c", "alone"] {
            tree.add(key.as_bytes(), 10);
        }
        let wanted = [
            line(Some("user:"), 0, 4, 40),
            line(Some("user:1:"), 1, 2, 20),
            line(Some("user:2:"), 1, 1, 10),
            line(None, 1, 1, 10),
            line(Some("page/"), 0, 1, 10),
            line(Some("page/a/"), 1, 1, 10),
            line(None, 0, 1, 10),
        ];
        assert_eq!(tree.lines(10), wanted);
        assert_eq!(
            tree.lines(1),
            [
                line(Some("user:"), 0, 4, 40),
                line(Some("user:1:"), 1, 2, 20),
                line(None, 1, 2, 20),
                line(None, 0, 2, 20)
            ]
        );
    }

    #[test]
    fn a_tree_that_is_too_large_keeps_what_is_large_and_loses_nothing() {
        let mut tree = Tree::new(b":", 3);
        tree.most = 100;
        for i in 0..10_000u64 {
            tree.add(format!("p{}:{i}:x", i % 3).as_bytes(), 1);
            tree.add(b"large:x", 50);
            assert!(tree.nodes <= 100);
        }
        let lines = tree.lines(1000);
        assert_eq!(lines[0], line(Some("large:"), 0, 10_000, 500_000));
        let level0: Vec<_> = lines.iter().filter(|line| line.level == 0).collect();
        assert_eq!(level0.iter().map(|line| line.count.keys).sum::<u64>(), 20_000);
        // What is listed of `p0:` is exact: each of its parts has one key, or is the rest.
        assert!(lines.iter().filter(|line| line.level == 1 && line.prefix.is_some()).all(|line| line.count.keys == 1));
        // A long part is not kept.
        tree.add(&[[b'x'; 100].as_slice(), b":y"].concat(), 7);
        assert!(tree.lines(1000).iter().all(|line| line.prefix.as_ref().is_none_or(|prefix| prefix.len() < 70)));
    }
}
