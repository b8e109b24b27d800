//! Cells by place: a tree of cuts between values of quasi-identifiers, which says in which cell a row is.
//!
//! Cuts were chosen by a sample, whose codes the rest of the table does not have. So they are kept as values, in the form in which rows
//! of Arrow compare, and as the whole order of those attributes whose order is not that of their values.

use datafusion::arrow::array::{ArrayRef, StringArray, UInt32Array};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::encoder::given_order;
use super::{Attribute, held, held_type};
use crate::error::{Error, Result};

/// A cut of a sampled table, or a cell of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceCut {
    /// Rows with codes up to `last` go to the node `below`, others to `above`.
    Cut {
        /// Place of the attribute among the quasi-identifiers.
        attribute: usize,
        /// Greatest code of the lower side.
        last: u32,
        /// Node of the lower side.
        below: usize,
        /// Node of the upper side.
        above: usize,
    },
    /// All rows of this node are in the cell.
    Cell(u32),
}

/// The tree. Its first node is the root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceTree {
    /// Of each attribute that is cut by a given order or that of a hierarchy: its values, in this order.
    orders: Vec<Option<Vec<Vec<u8>>>>,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Node {
    Below { attribute: usize, last: Vec<u8>, below: usize, above: usize },
    UpTo { attribute: usize, last: u32, below: usize, above: usize },
    Cell(u32),
}

fn converter(data_type: &DataType) -> Result<RowConverter> {
    Ok(RowConverter::new(vec![SortField::new(held_type(data_type))])?)
}

/// Returns the values in the form in which they compare, NULL first.
fn comparable(converter: &RowConverter, values: &ArrayRef) -> Result<Rows> {
    Ok(converter.convert_columns(&[held(values)?])?)
}

impl PlaceTree {
    /// Returns the tree of these cuts of a sample, whose first is the root.
    ///
    /// # Errors
    /// When values cannot be compared.
    pub fn try_new(cuts: &[PlaceCut], attributes: &[Attribute]) -> Result<Self> {
        let is_cut =
            |place: usize| cuts.iter().any(|cut| matches!(cut, PlaceCut::Cut { attribute, .. } if *attribute == place));
        let orders = attributes.iter().enumerate().map(|(place, attribute)| match is_cut(place) {
            true => order_of(attribute),
            false => Ok(None),
        });
        let orders = orders.collect::<Result<Vec<_>>>()?;
        let node = |cut: &PlaceCut| match *cut {
            PlaceCut::Cell(cell) => Ok(Node::Cell(cell)),
            PlaceCut::Cut { attribute, last, below, above } => {
                let values = &attributes[attribute];
                let converter = converter(values.field.data_type())?;
                let value =
                    comparable(&converter, &values.domain.values().slice(last as usize, 1))?.row(0).data().to_vec();
                let Some(order) = &orders[attribute] else {
                    return Ok(Node::Below { attribute, last: value, below, above });
                };
                let place = order.iter().position(|other| *other == value);
                let last = place.ok_or_else(|| Error::internal("a cut at a value that its order lacks"))? as u32;
                Ok(Node::UpTo { attribute, last, below, above })
            }
        };
        let nodes = cuts.iter().map(node).collect::<Result<_>>()?;
        Ok(Self { orders, nodes })
    }

    /// Writes the tree as bytes, to be sent along with rows.
    ///
    /// # Errors
    /// Never, but that it is serialized.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|_| Error::internal("a tree of places that cannot be written"))
    }

    /// Reads a tree from such bytes.
    ///
    /// # Errors
    /// When they are no tree, which is a bug.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let tree: Self =
            serde_json::from_slice(bytes).map_err(|_| Error::internal("a tree of places that cannot be read"))?;
        let nodes = tree.nodes.len();
        // Down the tree only, so that a walk ends.
        let descends = tree.nodes.iter().enumerate().all(|(place, node)| match *node {
            Node::Below { below, above, .. } | Node::UpTo { below, above, .. } => {
                below > place && above > place && below < nodes && above < nodes
            }
            Node::Cell(_) => true,
        });
        match descends && nodes > 0 {
            true => Ok(tree),
            false => Err(Error::internal("a tree of places that is none")),
        }
    }
}

/// Returns the values of an attribute whose order is not theirs; of a given order also those that a sample lacks.
fn order_of(attribute: &Attribute) -> Result<Option<Vec<Vec<u8>>>> {
    let data_type = attribute.field.data_type();
    let values = match (&attribute.hierarchy, given_order(&attribute.field)?) {
        (Some(_), _) => ArrayRef::clone(attribute.domain.values()),
        (None, Some(order)) => {
            let texts = std::iter::once(None).chain(order.iter().map(|text| Some(text.as_str())));
            let safe = CastOptions { safe: true, ..CastOptions::default() };
            cast_with_options(&texts.collect::<StringArray>(), data_type, &safe)?
        }
        (None, None) => return Ok(None),
    };
    let rows = comparable(&converter(data_type)?, &values)?;
    Ok(Some(rows.iter().map(|row| row.data().to_vec()).collect()))
}

/// Finds the cells of rows.
pub struct PlaceRouter {
    tree: PlaceTree,
    /// Of the attributes that are cut.
    converters: Vec<Option<RowConverter>>,
    /// The place of each value, where the order is not that of values.
    places: Vec<Option<FxHashMap<Vec<u8>, u32>>>,
}

impl PlaceRouter {
    /// Makes the places for quasi-identifiers of these columns.
    ///
    /// # Errors
    /// When values cannot be compared.
    pub fn try_new<'a>(tree: PlaceTree, columns: impl Iterator<Item = &'a Field>) -> Result<Self> {
        let is_cut = |place: usize| {
            tree.nodes.iter().any(|node| match node {
                Node::Below { attribute, .. } | Node::UpTo { attribute, .. } => *attribute == place,
                Node::Cell(_) => false,
            })
        };
        let converters = columns.enumerate().map(|(place, field)| match is_cut(place) {
            true => converter(field.data_type()).map(Some),
            false => Ok(None),
        });
        let converters = converters.collect::<Result<_>>()?;
        // The first place of a value counts: texts of a given order that are none are NULL, which comes first.
        let places = tree.orders.iter().map(|order| {
            let mut places = FxHashMap::default();
            for (place, value) in (0..).zip(order.as_ref()?) {
                places.entry(value.clone()).or_insert(place);
            }
            Some(places)
        });
        Ok(Self { places: places.collect(), converters, tree })
    }

    /// Returns the cell of each row. Values that an order lacks, which a method refuses, are anywhere.
    ///
    /// # Errors
    /// When the columns are others than those that the router was made for.
    pub fn cells(&self, columns: &[ArrayRef], rows: usize) -> Result<UInt32Array> {
        let values = columns.iter().zip(&self.converters).map(|(column, converter)| match converter {
            Some(converter) => comparable(converter, column).map(Some),
            None => Ok(None),
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let ranked = values.iter().zip(&self.places).map(|(values, places)| {
            let (values, places) = (values.as_ref()?, places.as_ref()?);
            Some(values.iter().map(|value| places.get(value.data()).copied().unwrap_or(0)).collect::<Vec<u32>>())
        });
        let ranked: Vec<Option<Vec<u32>>> = ranked.collect();
        let missing = || Error::internal("a tree of places over other columns");
        let cell = |row: usize| {
            let mut place = 0;
            loop {
                place = match &self.tree.nodes[place] {
                    Node::Cell(cell) => return Ok(*cell),
                    Node::Below { attribute, last, below, above } => {
                        let values = values.get(*attribute).and_then(Option::as_ref).ok_or_else(missing)?;
                        if values.row(row).data() <= last.as_slice() { *below } else { *above }
                    }
                    Node::UpTo { attribute, last, below, above } => {
                        let values = ranked.get(*attribute).and_then(Option::as_ref).ok_or_else(missing)?;
                        if values[row] <= *last { *below } else { *above }
                    }
                };
            }
        };
        (0..rows).map(cell).collect::<Result<Vec<u32>>>().map(UInt32Array::from)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use datafusion::arrow::array::{Float64Array, Int32Array, StringViewArray};

    use super::*;
    use crate::microdata::{ColumnEncoder, ORDER_KEY, Order};

    fn attribute(values: &ArrayRef, order: Option<&str>) -> Attribute {
        let metadata: HashMap<String, String> =
            order.map(|order| (ORDER_KEY.to_owned(), order.to_owned())).into_iter().collect();
        let field = Arc::new(Field::new("x", values.data_type().clone(), true).with_metadata(metadata));
        let mut encoder = ColumnEncoder::try_new(field.clone()).unwrap();
        encoder.append(values).unwrap();
        encoder.finish(Order::of("x", None, given_order(&field).unwrap().as_deref())).unwrap().attribute
    }

    fn routed(attribute: &Attribute, last: u32, rows: &ArrayRef) -> Vec<u32> {
        let cuts = [PlaceCut::Cut { attribute: 0, last, below: 1, above: 2 }, PlaceCut::Cell(0), PlaceCut::Cell(7)];
        let tree = PlaceTree::try_new(&cuts, std::slice::from_ref(attribute)).unwrap();
        let bytes = tree.to_bytes().unwrap();
        let read = PlaceTree::from_bytes(&bytes).unwrap();
        assert_eq!(read, tree);
        let router = PlaceRouter::try_new(read, std::iter::once(attribute.field.as_ref())).unwrap();
        router.cells(std::slice::from_ref(rows), rows.len()).unwrap().values().to_vec()
    }

    /// Rows that the sample has not seen go where their values lie; NULL lies below all.
    #[test]
    fn rows_go_where_their_values_lie() {
        let sample: ArrayRef = Arc::new(Int32Array::from(vec![Some(10), Some(20), Some(30)]));
        let rows: ArrayRef = Arc::new(Int32Array::from(vec![Some(-5), Some(20), Some(21), None, Some(99)]));
        assert_eq!(routed(&attribute(&sample, None), 1, &rows), [0, 0, 7, 0, 7]);
        let sample: ArrayRef = Arc::new(Float64Array::from(vec![-1.5, 0.0, 2.5]));
        let rows: ArrayRef = Arc::new(Float64Array::from(vec![-0.0, 0.0, -7.25, 0.1, f64::NAN]));
        assert_eq!(routed(&attribute(&sample, None), 1, &rows), [0, 0, 0, 7, 7]);
        let sample: ArrayRef = Arc::new(StringViewArray::from(vec!["beta", "delta"]));
        let rows: ArrayRef = Arc::new(StringViewArray::from(vec![Some("alpha"), Some("beta"), Some("betas"), None]));
        assert_eq!(routed(&attribute(&sample, None), 0, &rows), [0, 0, 7, 0]);
    }

    #[test]
    fn a_given_order_counts_also_for_values_that_the_sample_lacks() {
        let sample: ArrayRef = Arc::new(StringViewArray::from(vec!["low", "high"]));
        let of = attribute(&sample, Some(r#"["low", "mid", "high", "top"]"#));
        let rows: ArrayRef =
            Arc::new(StringViewArray::from(vec![Some("low"), Some("mid"), Some("high"), Some("top"), None]));
        assert_eq!(routed(&of, 0, &rows), [0, 7, 7, 7, 0]);
    }

    #[test]
    fn what_is_no_tree_is_an_error() {
        assert!(PlaceTree::from_bytes(b"{}").is_err());
        let circle = r#"{"orders":[],"nodes":[{"UpTo":{"attribute":0,"last":1,"below":0,"above":0}}]}"#;
        assert!(PlaceTree::from_bytes(circle.as_bytes()).is_err());
        let whole = PlaceTree::try_new(&[PlaceCut::Cell(0)], &[]).unwrap();
        assert_eq!(PlaceTree::from_bytes(&whole.to_bytes().unwrap()).unwrap(), whole);
    }
}
