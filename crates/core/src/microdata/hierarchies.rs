//! Hierarchies as their users write them: one row per leaf, with the values it generalizes to from level to level.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

use datafusion::arrow::array::{Array, AsArray, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::FieldRef;
use siphasher::sip128::{Hasher128, SipHasher13};

use crate::error::{Error, Result, thousands};

/// Column that names the attribute.
pub const ATTRIBUTE: &str = "attribute";
/// Column of the values of the attribute.
pub const LEAF: &str = "leaf";
/// Columns of what they generalize to: `level1`, `level2` and so on.
pub const LEVEL: &str = "level";

/// Metadata key of a released column: the fingerprint of the hierarchy that it was generalized along. It tells trees apart, and
/// hides nothing: whoever guesses a whole tree can compare it, so hierarchies are public knowledge and must not be made from
/// the data.
pub const TREE_KEY: &str = "anonymize.hierarchy";

/// Fingerprints of hierarchies, by attribute.
pub type Trees = BTreeMap<String, String>;

/// Returns the hierarchies that columns of a release were made with; `None` if it does not say.
pub fn trees_of<'a>(columns: impl IntoIterator<Item = &'a FieldRef>) -> Option<Trees> {
    let tree = |field: &'a FieldRef| Some((field.name().clone(), field.metadata().get(TREE_KEY)?.clone()));
    Some(columns.into_iter().filter_map(tree).collect()).filter(|trees: &Trees| !trees.is_empty())
}

/// The hierarchies of some attributes.
#[derive(Debug, Default)]
pub struct Hierarchies {
    paths: BTreeMap<String, Paths>,
    bytes: usize,
}

/// From each leaf of one attribute to the root, as texts.
#[derive(Debug, Default)]
pub struct Paths {
    /// The leaves.
    pub leaves: Vec<String>,
    /// Values of each level, one per leaf. The first level is above the leaves, the last the root.
    pub levels: Vec<Vec<String>>,
    /// Number of malformed rows: another number of levels than the first row, gaps between levels, or no leaf.
    uneven: usize,
    gaps: usize,
    without_leaf: usize,
}

impl Hierarchies {
    /// Begins hierarchies of these attributes; rows of others will be ignored.
    pub fn new<'a>(attributes: impl Iterator<Item = &'a String>) -> Self {
        Self { paths: attributes.map(|name| (name.clone(), Paths::default())).collect(), bytes: 0 }
    }

    /// Appends rows: attribute, leaf and levels in order, as texts. NULL and the empty text mean that a level is not used.
    ///
    /// # Errors
    /// When the columns are not texts, which is a bug.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = batch.columns().iter().map(|column| column.as_string_view_opt());
        let columns = columns.collect::<Option<Vec<_>>>();
        let columns = columns.ok_or_else(|| Error::internal("a hierarchy that is not text"))?;
        let [attribute, leaf, levels @ ..] = columns.as_slice() else {
            return Err(Error::internal("a hierarchy without leaves"));
        };
        for row in 0..batch.num_rows() {
            let text = |column: &&StringViewArray| if column.is_null(row) { "" } else { column.value(row) }.to_owned();
            if attribute.is_valid(row)
                && let Some(paths) = self.paths.get_mut(attribute.value(row))
            {
                let leaf = leaf.is_valid(row).then(|| text(leaf));
                self.bytes += paths.append(leaf, levels.iter().map(text).collect());
            }
        }
        Ok(())
    }

    /// Returns the bytes held.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// Checks what was appended.
    ///
    /// # Errors
    /// When no attribute has a hierarchy at all, and when rows of one have no leaf, have gaps or different numbers of levels,
    /// or when levels do not nest.
    pub fn finish(mut self) -> Result<Self> {
        let names: Vec<_> = self.paths.keys().cloned().collect();
        self.paths.retain(|_, paths| !paths.is_empty());
        if self.paths.is_empty() {
            return Err(Error::refused(format!(
                "hierarchies has no rows for any quasi-identifier ({}); its column {ATTRIBUTE} must hold their names",
                names.join(", ")
            )));
        }
        for (attribute, paths) in &mut self.paths {
            paths.check(attribute)?;
        }
        Ok(self)
    }

    /// Returns the fingerprint of each hierarchy, which does not depend on the order of rows.
    pub fn fingerprints(&self) -> Trees {
        self.paths.iter().map(|(attribute, paths)| (attribute.clone(), paths.fingerprint())).collect()
    }

    /// Compares the hierarchies of some attributes with those that a release was made with.
    ///
    /// # Errors
    /// When one is another, is missing or too much: what lies below a node is then not known.
    pub fn check_made_with<'a>(
        &self,
        made_with: &Trees,
        attributes: impl IntoIterator<Item = &'a String>,
    ) -> Result<()> {
        let given = self.fingerprints();
        let other: Vec<&str> = attributes
            .into_iter()
            .filter(|attribute| given.get(*attribute) != made_with.get(*attribute))
            .map(String::as_str)
            .collect();
        if other.is_empty() {
            return Ok(());
        }
        let other = other.join(", ");
        Err(Error::refused(format!(
            "the hierarchies of {other} are not those that the release was made with (leaves or nodes differ, or one has none), so \
             what lies below its nodes is not known; pass hierarchies => .. as it was then: keep a copy beside each release"
        )))
    }

    /// Returns the hierarchy of an attribute.
    pub fn of(&self, attribute: &str) -> Option<&Paths> {
        self.paths.get(attribute)
    }
}

impl Paths {
    fn is_empty(&self) -> bool {
        self.leaves.is_empty() && self.without_leaf == 0
    }

    fn fingerprint(&self) -> String {
        let mut rows: Vec<usize> = (0..self.leaves.len()).collect();
        rows.sort_unstable_by_key(|&row| &self.leaves[row]);
        let mut hasher = SipHasher13::new_with_keys(self.levels.len() as u64, 0);
        for row in rows {
            for text in std::iter::once(&self.leaves).chain(&self.levels).map(|column| &column[row]) {
                hasher.write_u64(text.len() as u64);
                hasher.write(text.as_bytes());
            }
        }
        format!("{:032x}", hasher.finish128().as_u128())
    }

    /// Returns the bytes that were added.
    fn append(&mut self, leaf: Option<String>, mut levels: Vec<String>) -> usize {
        let Some(leaf) = leaf else {
            self.without_leaf += 1;
            return 0;
        };
        while levels.last().is_some_and(String::is_empty) {
            levels.pop();
        }
        if self.leaves.is_empty() {
            self.levels.resize(levels.len(), Vec::new());
        }
        self.gaps += usize::from(levels.iter().any(String::is_empty));
        self.uneven += usize::from(levels.len() != self.levels.len());
        let bytes =
            leaf.len() + levels.iter().map(String::len).sum::<usize>() + (levels.len() + 1) * size_of::<String>();
        self.leaves.push(leaf);
        for (level, value) in self.levels.iter_mut().zip(levels) {
            level.push(value);
        }
        bytes
    }

    fn check(&mut self, attribute: &str) -> Result<()> {
        let refuse = |what: String| Err(Error::refused(format!("the hierarchy of {attribute} {what}")));
        if self.without_leaf > 0 {
            return refuse(format!("has {} rows without a {LEAF}", thousands(self.without_leaf)));
        }
        if self.gaps > 0 {
            return refuse(format!(
                "skips a level in {} rows; repeat the value of the level below instead",
                thousands(self.gaps)
            ));
        }
        if self.uneven > 0 {
            return refuse(format!(
                "has different numbers of levels: {} of {} rows differ from the others; give all rows the same number, \
                 repeating values where levels are skipped",
                thousands(self.uneven),
                thousands(self.leaves.len())
            ));
        }
        for (number, pair) in self.levels.windows(2).enumerate() {
            let mut parents = BTreeMap::new();
            let children = pair[0].iter().zip(&pair[1]);
            let torn: BTreeSet<&String> = children
                .filter(|(child, parent)| *parents.entry(*child).or_insert(*parent) != *parent)
                .map(|pair| pair.0)
                .collect();
            if !torn.is_empty() {
                return refuse(format!(
                    "does not nest: {} values of {LEVEL}{} stand under several values of {LEVEL}{}; a value must always \
                     generalize to the same value",
                    torn.len(),
                    number + 1,
                    number + 2
                ));
            }
        }
        // Whatever the levels end in, everything together is a value too.
        let one_root = self.levels.last().is_some_and(|top| top.windows(2).all(|pair| pair[0] == pair[1]));
        if !one_root {
            self.levels.push(vec!["*".to_owned(); self.leaves.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::ArrayRef;

    use super::*;

    fn read(rows: &[[&str; 4]]) -> Hierarchies {
        let column = |place: usize| -> ArrayRef {
            Arc::new(rows.iter().map(|row| Some(row[place])).collect::<StringViewArray>())
        };
        let columns = [ATTRIBUTE, LEAF, "level1", "level2"].into_iter().enumerate();
        let batch = RecordBatch::try_from_iter(columns.map(|(place, name)| (name, column(place)))).unwrap();
        let mut hierarchies = Hierarchies::new(names().iter());
        hierarchies.append(&batch).unwrap();
        hierarchies.finish().unwrap()
    }

    fn names() -> [String; 2] {
        ["age".to_owned(), "zip".to_owned()]
    }

    #[test]
    fn fingerprints_tell_trees_apart_but_not_the_order_of_their_rows() {
        let young = ["age", "1", "young", "*"];
        let old = ["age", "2", "old", "*"];
        let tree = read(&[young, old]).fingerprints();
        assert_eq!(read(&[old, young]).fingerprints(), tree);
        // The root may be left out.
        assert_eq!(read(&[["age", "1", "young", ""], ["age", "2", "old", ""]]).fingerprints(), tree);
        for other in [
            [young, ["age", "3", "old", "*"]],
            [young, ["age", "2", "young", "*"]],
            [["age", "1", "old", "*"], ["age", "2", "young", "*"]],
            [["age", "1", "young", "all"], ["age", "2", "old", "all"]],
        ] {
            let other = read(&other);
            let text = other.check_made_with(&tree, &names()).unwrap_err().to_string();
            assert!(text.contains("hierarchies of age are not those"), "{text}");
            other.check_made_with(&other.fingerprints(), &names()).unwrap();
        }
        let more = read(&[young, old, ["zip", "1", "x", "*"]]);
        let text = more.check_made_with(&tree, &names()).unwrap_err().to_string();
        assert!(text.contains("of zip"), "one that was not there: {text}");
        assert!(read(&[young, old]).check_made_with(&more.fingerprints(), &names()).is_err(), "one that is missing");
        more.check_made_with(&tree, &names()[..1]).unwrap();
    }
}
