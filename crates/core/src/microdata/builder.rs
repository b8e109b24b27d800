//! Record batches to [`Microdata`].

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::utils::quote_identifier;
use rayon::prelude::*;

use super::encoder::given_order;
use super::nulls::refuse_nulls;
use super::row_codes::put_together;
use super::{
    ColumnEncoder, Encoded, HashKey, Hashed, Hierarchies, IdentifierBuilder, Identifiers, Layout, Microdata, Order,
    RowCodes, Trees, UpdatesBuilder, order, parts_of,
};
use crate::error::{Error, Result, thousands};

/// Collects batches of microdata as codes.
pub struct MicrodataBuilder {
    layout: Layout,
    rows: usize,
    identifiers: Option<IdentifierBuilder>,
    quasi: Vec<ColumnEncoder>,
    sensitive: Option<ColumnEncoder>,
    within: Option<ColumnEncoder>,
    other: Vec<ColumnEncoder>,
    /// True if quasi-identifiers without any value are not there.
    leave_out_empty: bool,
    /// Columns that travel and are not there.
    left_out: Vec<String>,
    /// True if nobody asks who the rows are about once they are in order.
    nameless: bool,
    /// True if rows without a sensitive value may get one later.
    values_later: bool,
    hierarchies: Option<Hierarchies>,
    updates: Option<UpdatesBuilder>,
}

/// Values of a column in the rows of people who have left.
pub enum OfGhosts {
    /// No values: the column is left out.
    Nothing,
    /// These.
    Values(ArrayRef),
}

/// Encoded columns before their rows are put in order: what else is to be found in them has the same codes.
pub struct EncodedColumns<'a> {
    /// Key of the identifiers' hash.
    pub key: HashKey,
    /// Identifiers of the rows, in the order in which [`MicrodataBuilder::finish`] puts the rows.
    pub identifiers: Option<&'a Identifiers>,
    /// The quasi-identifiers.
    pub quasi: &'a [Encoded],
    /// The sensitive attribute.
    pub sensitive: Option<&'a Encoded>,
    /// Attributes that travel with it, or are kept as they are.
    pub other: &'a [Encoded],
}

impl MicrodataBuilder {
    /// Returns a builder for batches of the given layout.
    ///
    /// # Errors
    /// When a column's type cannot be grouped by.
    pub fn try_new(layout: Layout) -> Result<Self> {
        let encoder = |field: &FieldRef| ColumnEncoder::try_new(FieldRef::clone(field));
        let identifiers = layout.identifier.as_ref().map(|field| IdentifierBuilder::new(field.data_type().clone()));
        Ok(Self {
            rows: 0,
            identifiers,
            quasi: layout.quasi.iter().map(encoder).collect::<Result<_>>()?,
            sensitive: layout.sensitive.as_ref().map(encoder).transpose()?,
            within: layout.within.as_ref().map(encoder).transpose()?,
            other: layout.beside().map(encoder).collect::<Result<_>>()?,
            leave_out_empty: false,
            left_out: Vec::new(),
            nameless: false,
            values_later: false,
            hierarchies: None,
            updates: None,
            layout,
        })
    }

    /// Appends rows of microdata, columns in the order of the layout.
    ///
    /// # Errors
    /// When there are too many rows.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_columns() != self.layout.fields().count() {
            return Err(Error::internal("a batch with other columns than the layout"));
        }
        let mut columns = batch.columns().iter();
        if let (Some(identifiers), Some(column)) = (&mut self.identifiers, columns.as_slice().first()) {
            identifiers.append(column)?;
            columns.next();
        }
        let encoders = self.quasi.iter_mut().chain(&mut self.sensitive).chain(&mut self.within).chain(&mut self.other);
        for (encoder, column) in encoders.zip(columns) {
            encoder.append(column)?;
        }
        self.rows += batch.num_rows();
        Ok(())
    }

    /// Returns the encoders of the quasi-identifiers and the sensitive attribute, to encode other tables alike.
    pub fn encoders(&mut self) -> (&mut [ColumnEncoder], Option<&mut ColumnEncoder>) {
        (&mut self.quasi, self.sensitive.as_mut())
    }

    /// Appends rows of hierarchies: attribute, leaf and levels.
    ///
    /// # Errors
    /// When the columns are not texts, which is a bug.
    pub fn append_hierarchies(&mut self, batch: &RecordBatch) -> Result<()> {
        self.expect_hierarchies().append(batch)
    }

    /// Fingerprints of the hierarchies, when all rows of them are there.
    ///
    /// # Errors
    /// When they are malformed.
    pub fn trees(&mut self) -> Result<Trees> {
        self.hierarchies = self.hierarchies.take().map(Hierarchies::finish).transpose()?;
        Ok(self.hierarchies.as_ref().map(Hierarchies::fingerprints).unwrap_or_default())
    }

    /// Says that there are hierarchies, even if no row of them follows.
    pub fn expect_hierarchies(&mut self) -> &mut Hierarchies {
        let names = self.layout.quasi.iter().map(|field| field.name());
        self.hierarchies.get_or_insert_with(|| Hierarchies::new(names))
    }

    /// Returns the identifiers of the rows so far, as [`finish`](Self::finish) orders them under this key.
    ///
    /// # Errors
    /// NULL or repeated identifiers; without a column of identifiers, which is a bug.
    pub fn people(&self, key: HashKey) -> Result<Identifiers> {
        match (&self.identifiers, &self.layout.identifier) {
            (Some(identifiers), Some(_)) => ordered(identifiers.clone(), &self.layout, self.rows, key),
            _ => Err(Error::internal("rows of nobody")),
        }
    }

    /// Returns the columns that travel with the sensitive value, including it. Columns that are left out are not among them.
    pub fn travelling(&self) -> impl Iterator<Item = &FieldRef> {
        let columns = self.sensitive.iter().chain(&self.other).map(ColumnEncoder::field);
        columns.filter(|field| !self.left_out.contains(field.name()))
    }

    /// Returns the bytes that [`people`](Self::people) needs.
    pub fn people_size(&self) -> usize {
        self.identifiers.as_ref().map_or(0, IdentifierBuilder::size)
    }

    /// Returns the bytes of [`Commitments`](super::Commitments) to the values so far of columns that travel.
    pub fn sealing_size(&self) -> usize {
        let travelling = self.sensitive.iter().chain(&self.other);
        travelling.map(|column| column.values() * size_of::<u64>()).sum()
    }

    /// Appends rows of these people, with the quasi-identifiers of present rows at the given places. `value_of` has
    /// their values of the sensitive column and of those that go with it.
    ///
    /// # Errors
    /// When there are too many rows, and those of `value_of`.
    pub fn append_beside(
        &mut self,
        people: &ArrayRef,
        beside: &[u32],
        value_of: impl Fn(&FieldRef) -> Result<OfGhosts>,
    ) -> Result<()> {
        let Some(identifiers) = &mut self.identifiers else { return Err(Error::internal("rows of nobody")) };
        if self.within.is_some() {
            return Err(Error::internal("rows of people who are in no part"));
        }
        identifiers.append(people)?;
        self.quasi.iter_mut().for_each(|encoder| encoder.repeat(beside));
        for encoder in self.sensitive.iter_mut().chain(&mut self.other) {
            let field = FieldRef::clone(encoder.field());
            match value_of(&field)? {
                OfGhosts::Nothing => encoder.append(&new_null_array(field.data_type(), people.len()))?,
                OfGhosts::Values(values) => encoder.append(&values)?,
            }
        }
        self.rows += people.len();
        Ok(())
    }

    /// Says that quasi-identifiers without any value are not in the table.
    pub fn leave_out_empty(&mut self) {
        self.leave_out_empty = true;
    }

    /// Says that the table lacks these columns. They are left out if they are sensitive or travel with one that is.
    ///
    /// Not by their values: whether somebody has one who is there differs from world to world, where somebody has left.
    pub fn leave_out(&mut self, columns: &[String]) {
        self.left_out = columns.to_vec();
    }

    /// Returns the column of the identifier.
    pub fn identifier(&self) -> Option<&FieldRef> {
        self.layout.identifier.as_ref()
    }

    /// Forgets identifiers before the method begins, and leaves it their room. They are there to order rows and to find
    /// people in earlier releases; none is told.
    pub fn forget_names(&mut self) {
        self.nameless = true;
    }

    /// Accepts rows without a sensitive value, which [`Microdata::drop_null_value`] refuses where they did not get one.
    pub fn take_values_later(&mut self) {
        self.values_later = true;
    }

    /// Appends rows of the update relation: a value, what it can become, and the probability if that is known.
    ///
    /// # Errors
    /// NULL, and probabilities that are not positive numbers.
    pub fn append_updates(&mut self, batch: &RecordBatch) -> Result<()> {
        let Some(sensitive) = &mut self.sensitive else {
            return Err(Error::internal("updates of microdata without a sensitive attribute"));
        };
        let updates = self.updates.get_or_insert_default();
        updates.append(batch.column(0), batch.column(1), batch.columns().get(2), sensitive)
    }

    /// Returns the rows of microdata so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the bytes held, and bytes to order the rows in [`finish`](Self::finish), and for these.
    pub fn size(&self) -> usize {
        let encoders = self.quasi.iter().chain(&self.sensitive).chain(&self.within).chain(&self.other);
        let order = match &self.identifiers {
            Some(identifiers) => identifiers.size(),
            None => self.rows * (2 * size_of::<Hashed>() + size_of::<u32>()),
        };
        // In their order, codes of quasi-identifiers are as wide as the widest of them; a hierarchy has more values than the table.
        let width = match self.hierarchies {
            None => self.quasi.iter().map(ColumnEncoder::code_bytes).max().unwrap_or(0),
            Some(_) => size_of::<u32>(),
        };
        let columns = (encoders.clone().count() - self.quasi.len()) * size_of::<u32>() + self.quasi.len() * width;
        order
            + encoders.map(ColumnEncoder::size).sum::<usize>()
            + self.rows * columns
            + self.hierarchies.as_ref().map_or(0, Hierarchies::size)
            + self.updates.as_ref().map_or(0, UpdatesBuilder::size)
    }

    /// Sorts domains, orders the rows by keyed hash, and checks the needs of every method. The hash is of identifiers.
    ///
    /// # Errors
    /// NULL or repeated identifiers, NULL sensitive values, an incomplete order of categories, a malformed hierarchy, a
    /// contradictory update relation.
    pub fn finish(self, key: HashKey) -> Result<Microdata> {
        self.finish_with(key, |_| Ok(())).map(|(microdata, ())| microdata)
    }

    /// Finishes like [`finish`](Self::finish), and returns the result of `find` on the encoded columns.
    ///
    /// # Errors
    /// Those of [`finish`](Self::finish), and of `find`.
    pub fn finish_with<T>(
        self,
        key: HashKey,
        find: impl FnOnce(&EncodedColumns<'_>) -> Result<T>,
    ) -> Result<(Microdata, T)> {
        let Self { layout, rows, leave_out_empty, left_out, identifiers, quasi, sensitive, within, other, .. } = self;
        let Self { hierarchies, updates, nameless, values_later: later, .. } = self;
        let finish = |encoder: ColumnEncoder, field: &FieldRef, hierarchies: Option<&Hierarchies>| {
            encoder.finish(Order::of(field.name(), hierarchies, given_order(field)?.as_deref()))
        };
        let alone = |encoder: Option<ColumnEncoder>, field: &Option<FieldRef>| match (encoder, field) {
            (Some(encoder), Some(field)) => finish(encoder, field, None).map(Some),
            _ => Ok(None),
        };
        let is_empty =
            |column: &Encoded| column.attribute.domain.has_null() && column.codes.iter().all(|code| code == 0);
        let is_there = |column: &Encoded| !left_out.contains(column.attribute.field.name());
        let identified = || match (identifiers, &layout.identifier) {
            (Some(identifiers), Some(_)) => ordered(identifiers, &layout, rows, key).map(Some),
            _ => Ok(None),
        };
        let finished = || {
            let sensitive = alone(sensitive, &layout.sensitive)?.filter(is_there);
            let other = other.into_iter().zip(layout.beside()).map(|(encoder, field)| finish(encoder, field, None));
            let mut other = other.collect::<Result<Vec<_>>>()?;
            other.retain(is_there);
            let within = alone(within, &layout.within)?;
            let updates = match (updates, &sensitive) {
                (Some(updates), Some(sensitive)) => Some(Arc::new(updates.finish(&sensitive.ranks)?)),
                _ => None,
            };
            if let Some(sensitive) = sensitive.as_ref().filter(|column| !later && column.attribute.domain.has_null()) {
                let nulls = sensitive.codes.iter().filter(|code| *code == 0).count();
                refuse_nulls(&sensitive.attribute.field, nulls, rows)?;
            }
            let hierarchies = hierarchies.map(Hierarchies::finish).transpose()?;
            let mut quasi: Vec<Encoded> = quasi
                .into_par_iter()
                .zip(&layout.quasi)
                .map(|(encoder, field)| finish(encoder, field, hierarchies.as_ref()))
                .collect::<Result<_>>()?;
            quasi.retain(|column| !(leave_out_empty && is_empty(column)));
            Ok::<_, Error>((sensitive, other, within, updates, quasi))
        };
        // Identifiers are put in one piece first, which is work for one core.
        let (identifiers, finished) = rayon::join(identified, finished);
        let identifiers = identifiers?;
        let (sensitive, other, within, updates, quasi) = finished?;
        let columns = EncodedColumns {
            key,
            identifiers: identifiers.as_ref(),
            quasi: &quasi,
            sensitive: sensitive.as_ref(),
            other: &other,
        };
        let found = find(&columns)?;
        let people = identifiers.map(Identifiers::into_people);
        let by_codes;
        let arrival = match &people {
            Some(people) => &people.arrival,
            None => {
                let columns: Vec<&Encoded> = quasi.iter().chain(&sensitive).chain(&within).chain(&other).collect();
                by_codes = order::by_codes(&columns, rows, key)?;
                &by_codes
            }
        };
        let in_order = |column: &Encoded| arrival.par_iter().map(|&row| column.codes.at(row)).collect();
        let sensitive_codes = sensitive.as_ref().map(|column| column.codes.of_rows(arrival)).unwrap_or_default();
        let within =
            within.map(|encoded| (in_order(&encoded), encoded)).map(|(codes, encoded)| (encoded.attribute, codes));
        let quasi_codes = RowCodes::new(&quasi, arrival);
        let other_codes = put_together(&other, arrival);
        // What they are about is decided, and who they are about is not told.
        let people = people.filter(|_| !nameless);
        let other = other.into_iter().map(|encoded| encoded.attribute).collect();
        let quasi = quasi.into_iter().map(|encoded| encoded.attribute).collect();
        let sensitive = sensitive.map(|encoded| encoded.attribute);
        let microdata = Microdata {
            rows,
            people,
            quasi,
            quasi_codes,
            sensitive,
            sensitive_codes,
            within,
            other,
            other_codes,
            updates,
        };
        Ok((microdata, found))
    }
}

fn ordered(identifiers: IdentifierBuilder, layout: &Layout, rows: usize, key: HashKey) -> Result<Identifiers> {
    let identifiers = identifiers.finish(key)?;
    if identifiers.nulls() > 0 {
        return Err(null_identifiers(identifiers.nulls(), rows, layout));
    }
    let repeated = identifiers.repeated()?;
    if repeated > 0 {
        return Err(repeated_identifiers(repeated, rows, layout));
    }
    Ok(identifiers)
}

/// Returns the refusal of rows without an identifier.
pub fn null_identifiers(nulls: usize, rows: usize, layout: &Layout) -> Error {
    let name = layout.identifier.as_ref().map_or("", |field| field.name());
    Error::refused(format!(
        "{} of {} rows have a NULL in the identifier column {name}; every row needs an identifier: leave them out, WHERE {} IS NOT NULL",
        thousands(nulls),
        thousands(rows),
        quote_identifier(name)
    ))
}

/// Returns the query that keeps one row of each value of the first column.
pub fn one_row_each(columns: &[&str]) -> String {
    let names: Vec<_> = columns.iter().map(|name| quote_identifier(name)).collect();
    let (id, all) = (names.first().map_or("", |name| name), names.join(", "));
    format!("(SELECT DISTINCT ON ({id}) * FROM (SELECT {all} FROM t WHERE {id} IS NOT NULL) ORDER BY {all})")
}

/// Returns the refusal of rows about people whom another row is about.
pub fn repeated_identifiers(repeated: usize, rows: usize, layout: &Layout) -> Error {
    let columns = columns_of(layout);
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let name = columns.first().copied().unwrap_or_default();
    Error::refused(format!(
        "{} of {} rows repeat an identifier of column {name}; a release has one row per identifier: group by it, or keep one row of each, {}",
        thousands(repeated),
        thousands(rows),
        one_row_each(&columns)
    ))
}

/// Returns the names of the columns that a release is made of. The identifier's is first; each part of a composite value is a name by itself.
fn columns_of(layout: &Layout) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let beside = layout.within.iter().chain(&layout.sensitive).chain(&layout.other).chain(&layout.insensitive);
    for field in layout.identifier.iter().chain(&layout.quasi).chain(beside) {
        let parts = parts_of(field).unwrap_or_default();
        let parts = if parts.is_empty() { std::slice::from_ref(field) } else { &parts };
        let new: Vec<String> =
            parts.iter().map(|part| part.name().clone()).filter(|name| !names.contains(name)).collect();
        names.extend(new);
    }
    names
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int32Array, Int64Array};

    use super::*;
    use crate::microdata::Roles;

    /// Rows stand in the order of their identifiers, whether these are told or not.
    #[test]
    fn rows_of_forgotten_names_are_the_same() {
        let column = |step: i32| -> ArrayRef { Arc::new((0..5000).map(|row| row * step % 97).collect::<Int32Array>()) };
        let ids: ArrayRef = Arc::new((0..5000).collect::<Int64Array>());
        let columns = [("id", ids), ("a", column(3)), ("b", column(5)), ("s", column(7)), ("o", column(11))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let roles = Roles {
            id: Some("id".to_owned()),
            quasi: vec!["a".to_owned(), "b".to_owned()],
            sensitive: Some("s".to_owned()),
            other: vec!["o".to_owned()],
            ..Roles::default()
        };
        let made = |forget: bool| {
            let mut builder = MicrodataBuilder::try_new(Layout::try_new(&batch.schema(), &roles).unwrap()).unwrap();
            assert_eq!(builder.identifier().unwrap().name(), "id");
            builder.append(&batch).unwrap();
            if forget {
                builder.forget_names();
            }
            builder.finish([1, 2]).unwrap()
        };
        let (told, forgotten) = (made(false), made(true));
        let people = told.people.unwrap();
        assert!(forgotten.people.is_none());
        assert!(forgotten.quasi_codes.iter().eq(told.quasi_codes.iter()));
        assert!(forgotten.sensitive_codes.iter().eq(told.sensitive_codes.iter()));
        assert_eq!(forgotten.other_codes, told.other_codes);
        // All columns are those of one row each.
        for (row, &arrival) in (0..).zip(&people.arrival) {
            let place = arrival as i32;
            let expected = [3, 5, 7, 11].map(|step| (place * step % 97) as u32);
            assert!(told.quasi_codes.of(row).eq(expected[..2].iter().copied()));
            assert_eq!(told.sensitive_codes.at(row), expected[2]);
            assert_eq!(told.other_codes[row as usize], expected[3]);
        }
    }
}
