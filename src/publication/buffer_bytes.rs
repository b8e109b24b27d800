//! Bytes of record batches that share buffers: each buffer counts once.

use std::collections::HashSet;

use datafusion::arrow::array::{Array, ArrayData, RecordBatch};

/// Buffers that were counted.
#[derive(Debug, Default)]
pub(crate) struct Buffers(HashSet<usize>);

impl Buffers {
    /// Counts the buffers of a batch, and returns the bytes of the new ones.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> usize {
        batch.columns().iter().map(|column| self.add_data(&column.to_data())).sum()
    }

    fn add_data(&mut self, data: &ArrayData) -> usize {
        let nulls = data.nulls().map(|nulls| nulls.buffer());
        let buffers = data.buffers().iter().chain(nulls);
        let new = buffers.filter(|buffer| self.0.insert(buffer.data_ptr().as_ptr() as usize));
        let own: usize = new.map(|buffer| buffer.capacity()).sum();
        own + data.child_data().iter().map(|child| self.add_data(child)).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, StringViewArray};

    use super::*;

    /// A text that all rows share counts once, in one batch and in slices.
    #[test]
    fn what_is_shared_counts_once() {
        let text = "x".repeat(100_000);
        let one = StringViewArray::from(vec![text.as_str()]);
        let views = vec![one.views()[0]; 1000];
        let many = StringViewArray::new(views.into(), one.data_buffers().to_vec(), None);
        let columns: [(&str, ArrayRef); 2] =
            [("text", Arc::new(many)), ("number", Arc::new(Int64Array::from_iter_values(0..1000)))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut buffers = Buffers::default();
        let bytes = buffers.add(&batch);
        assert!((100_000 + 24_000..140_000).contains(&bytes), "{bytes}");
        assert_eq!(buffers.add(&batch.slice(10, 100)), 0);
        assert_eq!(Buffers::default().add(&batch), bytes);
    }
}
