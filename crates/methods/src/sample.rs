//! Small tables for the tests of methods.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::{AnyMethod, Monitor, State, StateKind};
use crate::error::Result;
use crate::microdata::{HashKey, Layout, Microdata, MicrodataBuilder, Roles};
use crate::release::{Description, Published, Release, RowOrder, View, schema};

/// A table of whole numbers: quasi-identifiers `q0`, `q1`.., a sensitive attribute `s`, a column `w` to anonymize within.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    pub quasi: Vec<Vec<Option<i32>>>,
    /// Sensitive values, as texts if `categories`, else as numbers.
    pub sensitive: Option<Vec<i32>>,
    pub categories: bool,
    pub within: Option<Vec<i32>>,
    pub ids: bool,
    /// Attribute, leaf, levels.
    pub hierarchies: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn rows(&self) -> usize {
        self.quasi.first().map_or(0, Vec::len)
    }

    pub(super) fn roles(&self) -> Roles {
        let mut roles = Roles::default();
        roles.id = self.ids.then(|| "id".to_owned());
        roles.quasi = (0..self.quasi.len()).map(|j| format!("q{j}")).collect();
        roles.sensitive = self.sensitive.as_ref().map(|_| "s".to_owned());
        roles.within = self.within.as_ref().map(|_| "w".to_owned());
        roles
    }

    fn batch(&self) -> RecordBatch {
        let mut columns: Vec<(String, ArrayRef)> = Vec::new();
        if self.ids {
            columns.push(("id".into(), Arc::new((0..self.rows() as i64).collect::<Int64Array>())));
        }
        for (j, column) in self.quasi.iter().enumerate() {
            columns.push((format!("q{j}"), Arc::new(column.iter().copied().collect::<Int32Array>())));
        }
        if let Some(sensitive) = &self.sensitive {
            let column: ArrayRef = match self.categories {
                true => Arc::new(sensitive.iter().map(|value| Some(value.to_string())).collect::<StringArray>()),
                false => Arc::new(Int32Array::from(sensitive.clone())),
            };
            columns.push(("s".into(), column));
        }
        if let Some(within) = &self.within {
            columns.push(("w".into(), Arc::new(Int32Array::from(within.clone()))));
        }
        let fields: Vec<_> =
            columns.iter().map(|(name, column)| Field::new(name, column.data_type().clone(), true)).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.into_iter().map(|(_, column)| column).collect())
            .unwrap()
    }

    /// Returns the rows in another order of arrival; identifiers do not go with them.
    pub(super) fn permuted(&self, order: &[usize]) -> Self {
        let of = |column: &Vec<i32>| order.iter().map(|&row| column[row]).collect();
        Self {
            quasi: self.quasi.iter().map(|column| order.iter().map(|&row| column[row]).collect()).collect(),
            sensitive: self.sensitive.as_ref().map(of),
            within: self.within.as_ref().map(of),
            ..self.clone()
        }
    }

    pub(super) fn encode(&self, key: HashKey) -> Result<(Microdata, Layout)> {
        let batch = self.batch();
        let layout = Layout::try_new(&batch.schema(), &self.roles())?;
        let mut builder = MicrodataBuilder::try_new(layout.clone())?;
        builder.append(&batch)?;
        if let Some(first) = self.hierarchies.first() {
            let columns = (0..first.len()).map(|column| {
                let texts = self.hierarchies.iter().map(|row| row.get(column).map(String::as_str));
                (format!("c{column}"), Arc::new(texts.collect::<StringViewArray>()) as ArrayRef, true)
            });
            builder.append_hierarchies(&RecordBatch::try_from_iter_with_nullable(columns).unwrap())?;
        }
        Ok((builder.finish(key)?, layout))
    }

    pub(super) fn anonymize(&self, method: &AnyMethod, seed: u64) -> Result<(Release, Layout)> {
        let (microdata, layout) = self.encode([seed, 7])?;
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let state = State::before_the_first(method.state());
        let release = method.release(microdata, &state, &Monitor::default(), &mut rng)?;
        Ok((release, layout))
    }

    /// Returns the release as one batch.
    pub(super) fn publish(&self, method: &AnyMethod, view: View, seed: u64) -> Result<RecordBatch> {
        let (release, layout) = self.anonymize(method, seed)?;
        let description = Description::new("test", "{}".into(), "x".into(), None);
        let nodes = !self.hierarchies.is_empty();
        let shape = StateKind::shape(method.state(), view, method.form(), nodes);
        let schema = Arc::new(schema(&layout, shape, &description));
        let published = Published::new(release, schema, RowOrder::Random, &mut ChaCha20Rng::seed_from_u64(seed));
        published.batch(0, published.len())
    }
}

/// Returns the rows of a hierarchy over `0..leaves` for an attribute: bands of `width`, bands of `width` squared, all.
pub(super) fn bands(attribute: &str, leaves: i32, width: i32) -> Vec<Vec<String>> {
    let row = |leaf: i32| {
        let band = |width: i32| format!("{}+{width}", leaf / width * width);
        vec![attribute.to_owned(), leaf.to_string(), band(width), band(width * width), "*".to_owned()]
    };
    (0..leaves).map(row).collect()
}

/// The type of an interval's ends, where tests read them.
pub(super) const NUMBER: DataType = DataType::Int32;
