//! A hierarchy over the codes of an attribute: nodes that hold neighbouring values, level by level.

/// A generalization hierarchy. Codes follow its leaves from left to right, so every node is an interval of codes.
#[derive(Debug)]
pub struct Hierarchy {
    /// From the level above the leaves to the root.
    levels: Vec<Level>,
    leaves: usize,
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
    /// A hierarchy from the labels of each code, level by level. NULL, which is code 0 if there is one, has no labels and is a
    /// leaf of its own beside the root.
    pub(super) fn new(labels: Vec<Vec<String>>, has_null: bool) -> Self {
        let leaves = labels.first().map_or(0, Vec::len) + usize::from(has_null);
        let root = labels.last().and_then(|top| top.first()).cloned().unwrap_or_else(|| "*".to_owned());
        let mut levels: Vec<Level> = labels
            .into_iter()
            .map(|labels| {
                let null = has_null.then(String::new);
                Level::new(null.into_iter().chain(labels).collect(), has_null)
            })
            .collect();
        if has_null {
            levels.push(Level::new(vec![root; leaves], false));
        }
        Self { levels, leaves }
    }

    /// The smallest node that holds the codes from `lo` to `hi`, as its first and last code.
    #[inline]
    pub fn closure(&self, lo: u32, hi: u32) -> [u32; 2] {
        if lo == hi {
            return [lo, hi];
        }
        let node = self.levels.iter().find_map(|level| level.holding(lo, hi));
        match node {
            Some(node) => [node.first, node.last],
            None => [0, self.leaves.saturating_sub(1) as u32],
        }
    }

    /// First and last codes of the children of the smallest node that holds the codes from `lo` to `hi`.
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

    /// First and last codes of all nodes with more than one code, from the lowest level to the root.
    pub fn nodes(&self) -> impl Iterator<Item = [u32; 2]> {
        self.levels
            .iter()
            .flat_map(|level| &level.nodes)
            .filter(|node| node.first < node.last)
            .map(|node| [node.first, node.last])
    }

    /// What a node is called; `None` for a single code, which is called what its value is.
    pub fn label(&self, first: u32, last: u32) -> Option<&str> {
        if first == last {
            return None;
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
        let hierarchy = Hierarchy::new(levels.clone(), false);
        assert_eq!(hierarchy.closure(1, 1), [1, 1]);
        assert_eq!(hierarchy.closure(0, 1), [0, 1]);
        assert_eq!(hierarchy.closure(1, 2), [0, 3]);
        assert_eq!(hierarchy.closure(3, 4), [0, 4]);
        assert_eq!(hierarchy.label(0, 3), Some("x"));
        assert_eq!(hierarchy.children(1, 2), [[0, 1], [2, 3]]);
        assert_eq!(hierarchy.children(0, 1), [[0, 0], [1, 1]]);

        let with_null = Hierarchy::new(levels, true);
        assert_eq!(with_null.closure(1, 2), [1, 2]);
        assert_eq!(with_null.closure(1, 5), [1, 5]);
        assert_eq!(with_null.closure(0, 1), [0, 5]);
        assert_eq!(with_null.closure(0, 0), [0, 0]);
        assert_eq!(with_null.children(0, 3), [[0, 0], [1, 5]]);
    }
}
