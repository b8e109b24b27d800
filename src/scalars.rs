//! Declarations of scalar functions, their arguments as columns of one length, and what they keep.
//!
//! DataFusion hands constants over as scalars: those of the query, and those that the statistics of a file prove, of a column with one value.
//! `ColumnarValue::values_to_arrays` makes arrays of one row where all arguments are constants, whatever the length of the batch. No function
//! of this crate uses it.

use std::fmt;
use std::hash::{Hash, Hasher};

use datafusion::arrow::array::ArrayRef;
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;
use parking_lot::RwLock;

/// Converts arguments into arrays with one value for each of a batch's `rows` rows.
pub(crate) fn columns(arguments: &[ColumnarValue], rows: usize) -> Result<Vec<ArrayRef>> {
    arguments.iter().map(|argument| argument.to_array(rows)).collect()
}

/// Cache of the value that a function made last. Its argument is most likely the same for all rows of a query. The cache is no part of the
/// function's identity.
pub(crate) struct Kept<T>(RwLock<Option<T>>);

impl<T: Clone> Kept<T> {
    /// Returns the last value if it fits, or makes another one. Others wait meanwhile.
    pub(crate) fn get_or_make(&self, fits: impl Fn(&T) -> bool, make: impl FnOnce() -> Result<T>) -> Result<T> {
        let fitting = |last: &Option<T>| last.as_ref().filter(|last| fits(last)).cloned();
        if let Some(kept) = fitting(&self.0.read()) {
            return Ok(kept);
        }
        let mut last = self.0.write();
        if let Some(kept) = fitting(&last) {
            return Ok(kept);
        }
        let made = make()?;
        *last = Some(made.clone());
        Ok(made)
    }
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(RwLock::new(None))
    }
}

/// Hides the kept value, which may hold values of the data.
impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

impl<T> PartialEq for Kept<T> {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl<T> Eq for Kept<T> {}

impl<T> Hash for Kept<T> {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

/// Implements name, signature and type of a scalar function. The signature is a field of it.
macro_rules! declared {
    ($this:ident: $name:expr => $type:expr) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn signature(&self) -> &datafusion::logical_expr::Signature {
            &self.signature
        }

        fn return_type(&$this, _types: &[DataType]) -> Result<DataType> {
            Ok($type)
        }
    };
    ($this:ident: $name:expr => $type:expr, never NULL) => {
        crate::scalars::declared!($this: $name => $type);

        fn return_field_from_args(
            &self,
            _args: datafusion::logical_expr::ReturnFieldArgs<'_>,
        ) -> Result<datafusion::arrow::datatypes::FieldRef> {
            Ok(std::sync::Arc::new(datafusion::arrow::datatypes::Field::new($name, $type, false)))
        }
    };
}
pub(crate) use declared;

#[cfg(test)]
pub(crate) mod check {
    use std::sync::Arc;

    use datafusion::arrow::array::{Array, ArrayRef};
    use datafusion::arrow::datatypes::{Field, FieldRef};
    use datafusion::common::ScalarValue;
    use datafusion::common::config::ConfigOptions;
    use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};

    /// Calls a function with these values as constants and as columns, in all combinations. Batches have no, one and
    /// three rows. Fails where the results differ. Arguments at the places `constants` are constants in all of them.
    pub(crate) fn constants_are_columns(function: &ScalarUDF, values: &[ScalarValue], constants: &[usize]) {
        let expected = result(function, values, |place| constants.contains(&place), 3);
        for rows in [0, 1, 3] {
            for mask in 0..1_u32 << values.len() {
                let is_constant = |place: usize| mask & (1 << place) != 0 || constants.contains(&place);
                let found = result(function, values, is_constant, rows);
                assert_eq!(&found, &expected.slice(0, rows), "{} of {rows} rows, {mask:b}", function.name());
            }
        }
    }

    fn result(
        function: &ScalarUDF,
        values: &[ScalarValue],
        is_constant: impl Fn(usize) -> bool,
        rows: usize,
    ) -> ArrayRef {
        let field = |(place, value): (usize, &ScalarValue)| -> FieldRef {
            Arc::new(Field::new(format!("c{place}"), value.data_type(), true))
        };
        let arg_fields: Vec<FieldRef> = values.iter().enumerate().map(field).collect();
        let scalars: Vec<Option<&ScalarValue>> =
            values.iter().enumerate().map(|(place, value)| is_constant(place).then_some(value)).collect();
        let return_field =
            function.return_field_from_args(ReturnFieldArgs { arg_fields: &arg_fields, scalar_arguments: &scalars });
        let argument = |(place, value): (usize, &ScalarValue)| match is_constant(place) {
            true => ColumnarValue::Scalar(value.clone()),
            false => ColumnarValue::Array(value.to_array_of_size(rows).unwrap()),
        };
        let args = ScalarFunctionArgs {
            args: values.iter().enumerate().map(argument).collect(),
            arg_fields,
            number_rows: rows,
            return_field: return_field.unwrap(),
            config_options: Arc::new(ConfigOptions::default()),
        };
        let data_type = args.return_field.data_type().clone();
        let array = function.invoke_with_args(args).unwrap().to_array(rows).unwrap();
        assert_eq!(array.data_type(), &data_type, "{}", function.name());
        assert_eq!(array.len(), rows, "{} of constants", function.name());
        array
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Lists each source file of the library, with its text.
    fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("scalars.rs") {
                found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }

    #[test]
    fn every_scalar_function_is_called_with_constants_and_with_columns() {
        let mut files = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
        let mut functions = 0;
        for (path, text) in files {
            let (here, checked) =
                (text.matches("impl ScalarUDFImpl for ").count(), text.matches("constants_are_columns(&").count());
            assert!(checked >= here, "{path}: call scalars::check::constants_are_columns for each function");
            assert!(!text.contains("values_to_arrays("), "{path}: take scalars::columns");
            functions += here;
        }
        assert!(functions >= 11, "only {functions} functions were found");
    }
}
