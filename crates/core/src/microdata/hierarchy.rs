//! A hierarchy over the codes of an attribute: nodes that hold neighbouring values, level by level.

/// A generalization hierarchy. Codes follow its leaves from left to right, so every node is an interval of codes.
#[derive(Debug)]
pub struct Hierarchy {
    /// Names of the leaves, by code; NULL has no name.
    leaves: Vec<Option<String>>,
    /// From the level above the leaves to the root.
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    /// Node of each code.
    node_of: Vec<u32>,
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    first: u32,
    last: u32,
    label: String,
}

impl Hierarchy {
    /// Returns a hierarchy from the leaves and the labels above each. Labels are given level by level, in the order of
    /// the codes. NULL, which is code 0 if there is one, is in neither: it is a leaf of its own beside the root, and
    /// the two together are one more node.
    pub(super) fn new(leaves: Vec<String>, labels: Vec<Vec<String>>, has_null: bool) -> Self {
        let null = has_null.then_some(None);
        let leaves: Vec<_> = null.into_iter().chain(leaves.into_iter().map(Some)).collect();
        let root = labels.last().and_then(|top| top.first()).map_or("*", String::as_str);
        let root_or_null = format!("{root} or NULL");
        let mut levels: Vec<Level> = labels
            .into_iter()
            .map(|labels| {
                let null = has_null.then(String::new);
                Level::new(null.into_iter().chain(labels).collect(), has_null)
            })
            .collect();
        if has_null {
            levels.push(Level::new(vec![root_or_null; leaves.len()], false));
        }
        Self { leaves, levels }
    }

    /// Returns the number of levels above the leaves.
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Returns the number of the node of a level that holds a code.
    #[inline]
    pub fn node(&self, level: usize, code: u32) -> u32 {
        self.levels[level].node_of[code as usize]
    }

    /// Returns the smallest node that holds the codes from `lo` to `hi`. It is given as its first and last code.
    #[inline]
    pub fn closure(&self, lo: u32, hi: u32) -> [u32; 2] {
        if lo == hi {
            return [lo, hi];
        }
        let node = self.levels.iter().find_map(|level| level.holding(lo, hi));
        match node {
            Some(node) => [node.first, node.last],
            None => [0, self.leaves.len().saturating_sub(1) as u32],
        }
    }

    /// Returns the levels between the leaves and the smallest node that holds two codes; 0 for a single one.
    #[inline]
    pub fn height(&self, a: u32, b: u32) -> usize {
        if a == b {
            return 0;
        }
        let (lo, hi) = (a.min(b), a.max(b));
        self.levels
            .iter()
            .position(|level| level.holding(lo, hi).is_some())
            .map_or(self.levels.len(), |level| level + 1)
    }

    /// Returns the children of the smallest node with `lo` to `hi`. Each is given as its first and last code.
    pub fn children(&self, lo: u32, hi: u32) -> Vec<[u32; 2]> {
        let Some(above) = self.levels.iter().position(|level| level.holding(lo, hi).is_some()) else {
            return Vec::new();
        };
        let [first, last] = self.closure(lo, hi);
        match above.checked_sub(1).map(|below| &self.levels[below]) {
            None => (first..=last).map(|code| [code, code]).collect(),
            Some(below) => {
                let nodes =
                    &below.nodes[below.node_of[first as usize] as usize..=below.node_of[last as usize] as usize];
                nodes.iter().map(|node| [node.first, node.last]).collect()
            }
        }
    }

    /// Returns the name of a node or a single value, as the hierarchy has it. `None` for NULL.
    pub fn label(&self, first: u32, last: u32) -> Option<&str> {
        if first == last {
            return self.leaves[first as usize].as_deref();
        }
        self.levels.iter().find_map(|level| level.holding(first, last)).map(|node| node.label.as_str())
    }
}

impl Level {
    fn new(labels: Vec<String>, null_alone: bool) -> Self {
        let mut level = Self { node_of: Vec::with_capacity(labels.len()), nodes: Vec::new() };
        for (code, label) in labels.into_iter().enumerate() {
            let code = code as u32;
            let after_null = null_alone && code == 1;
            match level.nodes.last_mut() {
                Some(node) if node.label == label && !after_null => node.last = code,
                _ => level.nodes.push(Node { first: code, last: code, label }),
            }
            level.node_of.push(level.nodes.len() as u32 - 1);
        }
        level
    }

    fn holding(&self, lo: u32, hi: u32) -> Option<&Node> {
        let node = self.node_of[lo as usize];
        (node == self.node_of[hi as usize]).then(|| &self.nodes[node as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(level: &[&str]) -> Vec<String> {
        level.iter().map(|&label| label.to_owned()).collect()
    }

    #[test]
    fn the_smallest_node_is_found() {
        let levels = vec![labels(&["a", "a", "b", "b", "c"]), labels(&["x", "x", "x", "x", "y"]), labels(&["*"; 5])];
        let leaves = labels(&["1", "2", "3", "4", "5"]);
        let hierarchy = Hierarchy::new(leaves.clone(), levels.clone(), false);
        assert_eq!(hierarchy.closure(1, 1), [1, 1]);
        assert_eq!(hierarchy.closure(0, 1), [0, 1]);
        assert_eq!(hierarchy.closure(1, 2), [0, 3]);
        assert_eq!(hierarchy.closure(3, 4), [0, 4]);
        assert_eq!(hierarchy.label(0, 3), Some("x"));
        assert_eq!(hierarchy.label(3, 3), Some("4"));
        assert_eq!([(1, 1), (1, 0), (1, 2), (4, 3)].map(|(a, b)| hierarchy.height(a, b)), [0, 1, 2, 3]);
        assert_eq!(hierarchy.node(0, 1), hierarchy.node(0, 0));
        assert_ne!(hierarchy.node(1, 3), hierarchy.node(1, 4));
        assert_eq!(hierarchy.children(1, 2), [[0, 1], [2, 3]]);
        assert_eq!(hierarchy.children(0, 1), [[0, 0], [1, 1]]);

        let with_null = Hierarchy::new(leaves, levels, true);
        assert_eq!(with_null.closure(1, 2), [1, 2]);
        assert_eq!(with_null.closure(1, 5), [1, 5]);
        assert_eq!(with_null.closure(0, 1), [0, 5]);
        assert_eq!(with_null.closure(0, 0), [0, 0]);
        assert_eq!(with_null.children(0, 3), [[0, 0], [1, 5]]);
        assert_eq!(with_null.label(0, 0), None);
        assert_eq!(with_null.label(0, 5), Some("* or NULL"));
        assert_eq!(with_null.label(2, 2), Some("2"));
    }
}
