//! Functions that PostgreSQL's programs call at the beginning, and the catalog does not bring.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, StringArray, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::expr_fn::SimpleScalarUDF;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionImplementation, ScalarUDF, Signature, TypeSignature, Volatility,
};
use datafusion::prelude::SessionContext;

use super::settings::{Settings, VERSION};

/// Makes a function that says the same of everything, however many arguments it has.
fn always(name: &str, value: ScalarValue) -> ScalarUDF {
    let returned = value.data_type();
    function(name, returned, Arc::new(move |_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(value.clone()))))
}

fn function(name: &str, returned: DataType, says: ScalarFunctionImplementation) -> ScalarUDF {
    let any = Signature::one_of(vec![TypeSignature::Nullary, TypeSignature::VariadicAny], Volatility::Stable);
    ScalarUDF::from(SimpleScalarUDF::new_with_signature(name, any, returned, says))
}

/// Returns the values of settings by their names, of settings that are always the same.
fn settings_of(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let Some(names) = arguments.first() else { return Ok(new_null_array(&DataType::Utf8, 1)) };
    let (names, settings) = (cast(names, &DataType::Utf8)?, Settings::default());
    let value =
        |name: Option<&str>| name.and_then(|name| settings.get(&name.to_ascii_lowercase()).ok()).map(str::to_owned);
    Ok(Arc::new(names.as_string::<i32>().iter().map(value).collect::<StringArray>()))
}

/// Functions that say NULL, as a text.
#[rustfmt::skip]
const NO_TEXT: &[&str] = &[
    "col_description", "inet_client_addr", "inet_server_addr", "json_build_object", "obj_description",
    "pg_advisory_unlock_all", "pg_get_function_arguments", "pg_get_function_identity_arguments",
    "pg_get_function_result", "pg_get_functiondef", "pg_get_indexdef", "pg_get_ruledef", "pg_get_serial_sequence",
    "pg_get_triggerdef", "pg_get_viewdef", "pg_size_pretty", "pg_tablespace_location", "shobj_description",
];
/// Functions that say true.
#[rustfmt::skip]
const TRUE: &[&str] = &[
    "has_column_privilege", "has_function_privilege", "has_sequence_privilege", "pg_collation_is_visible",
    "pg_function_is_visible", "pg_has_role", "pg_type_is_visible",
];
/// Functions that say 0.
const ZERO: &[&str] = &["inet_server_port", "pg_my_temp_schema", "pg_table_size"];

/// Functions of the engine that readers may call: what they return follows from their arguments, and is not much longer. A list, because
/// versions of the engine bring others, such as one that tells the name of the file that a row is from.
#[rustfmt::skip]
const HARMLESS: [&str; 173] = [
    "abs", "acos", "acosh", "array_add", "array_any_value", "array_append", "array_avg", "array_compact",
    "array_concat", "array_dims", "array_distance", "array_distinct", "array_element", "array_except", "array_has",
    "array_has_all", "array_has_any", "array_intersect", "array_length", "array_lower", "array_max", "array_min",
    "array_ndims", "array_normalize", "array_pop_back", "array_pop_front", "array_position", "array_positions",
    "array_prepend", "array_product", "array_remove", "array_remove_all", "array_remove_n", "array_replace",
    "array_replace_all", "array_replace_n", "array_reverse", "array_scale", "array_slice", "array_sort",
    "array_subtract", "array_sum", "array_to_string", "array_union", "array_upper", "arrays_overlap", "arrays_zip",
    "arrow_typeof", "ascii", "asin", "asinh", "atan", "atan2", "atanh", "bit_length", "btrim", "cardinality", "cbrt",
    "ceil", "character_length", "chr", "coalesce", "composite", "composite_part", "concat", "concat_ws", "contains",
    "cos", "cosh", "cosine_distance", "cot", "current_date", "current_time", "date_bin", "date_part", "date_trunc",
    "decode", "degrees", "digest", "empty", "encode", "ends_with", "exp", "factorial", "find_in_set", "flatten",
    "floor", "format_type", "from_unixtime", "gcd", "get_field", "greatest", "initcap", "inner_product", "instr",
    "isnan", "iszero", "lcm", "least", "left", "length", "ln", "log", "log10", "log2", "lower",
    "ltrim", "make_array", "make_date", "make_time", "map", "map_entries", "map_extract", "map_keys", "map_values",
    "md5", "named_struct", "nanvl", "now", "nullif", "nvl", "nvl2", "octet_length", "parse_ident", "pi", "power",
    "quote_ident", "radians", "random", "regexp_count", "regexp_instr", "regexp_like", "regexp_match", "replace",
    "reverse", "right", "round", "rtrim", "sha224", "sha256", "sha384", "sha512", "signum", "sin", "sinh",
    "split_part", "sqrt", "starts_with", "string_to_array", "strpos", "struct", "substr", "substr_index", "tan",
    "tanh", "to_char", "to_date", "to_hex", "to_local_time", "to_time", "to_timestamp", "to_timestamp_micros",
    "to_timestamp_millis", "to_timestamp_nanos", "to_timestamp_seconds", "to_unixtime", "translate", "trunc",
    "union_extract", "union_tag", "upper", "uuid", "weight",
];

/// Takes all scalar functions from a session but those that readers may call.
pub(super) fn only_harmless(context: &SessionContext) {
    let state = context.state();
    for function in state.scalar_functions().values() {
        if !HARMLESS.contains(&function.name()) {
            context.deregister_udf(function.name());
        }
    }
}

/// Adds them to the session that all others are made of.
pub(super) fn register(context: &SessionContext) {
    let version = format!("PostgreSQL {VERSION} (datafusion-anonymize {})", env!("CARGO_PKG_VERSION"));
    let constants: [(&[&str], ScalarValue); 7] = [
        (TRUE, ScalarValue::from(true)),
        (ZERO, ScalarValue::from(0_i32)),
        (NO_TEXT, ScalarValue::Utf8(None)),
        (&["to_regclass", "to_regtype"], ScalarValue::Int32(None)),
        (&["txid_current"], ScalarValue::from(1_i32)),
        (&["pg_is_in_recovery"], ScalarValue::from(false)),
        (&["version"], ScalarValue::from(version)),
    ];
    for (names, value) in constants {
        names.iter().for_each(|name| context.register_udf(always(name, value.clone())));
    }
    let current = function("current_setting", DataType::Utf8, Arc::new(make_scalar_function(settings_of, Vec::new())));
    context.register_udf(current);
}

/// Registers the functions that say who asks.
pub(super) fn of_user(context: &SessionContext, user: &str) {
    for name in ["session_user", "current_user", "user"] {
        context.register_udf(always(name, ScalarValue::from(user)));
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::StringArray;
    use datafusion::arrow::record_batch::RecordBatch;

    use super::*;

    /// Functions say the same of constants, of columns and of constant columns, once per row.
    #[tokio::test]
    async fn constants_are_taken_as_columns() {
        let context = SessionContext::new();
        let before = context.state();
        register(&context);
        of_user(&context, "reader");
        let names: ArrayRef = Arc::new(StringArray::from(vec!["server_version", "server_version", "no such"]));
        context.register_batch("t", RecordBatch::try_from_iter([("x", names)]).unwrap()).unwrap();
        let state = context.state();
        let ours: Vec<&str> = state
            .scalar_functions()
            .values()
            .filter(|function| before.scalar_functions().get(function.name()).is_none_or(|was| was != *function))
            .map(|function| function.name())
            .collect();
        assert!(ours.len() > 30 && ours.contains(&"current_setting"));
        for name in ours {
            for (of, rows) in [("x", "t"), ("'server_version'", "t"), ("x", "(SELECT 'server_version' AS x FROM t)")] {
                let sql = format!("SELECT \"{name}\"({of}) AS said FROM {rows}");
                let found = context.sql(&sql).await.unwrap().collect().await.unwrap();
                assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 3, "{sql}");
                let shown = |row: usize| {
                    let said = found[0].column(0);
                    datafusion::arrow::util::display::array_value_to_string(said, row).unwrap()
                };
                assert_eq!(shown(0), shown(1), "{sql}");
            }
        }
    }

    #[test]
    fn only_what_is_listed() {
        let context = SessionContext::new();
        let before = context.state().scalar_functions().len();
        only_harmless(&context);
        let state = context.state();
        assert!(state.scalar_functions().len() < before);
        for name in ["input_file_name", "file_row_index", "repeat", "arrow_cast", "lpad", "generate_series", "range"] {
            assert!(!state.scalar_functions().contains_key(name), "{name}");
        }
        // Aliases stay with what they stand for.
        for name in ["substr", "substring", "pow", "char_length", "trim", "date_trunc"] {
            assert!(state.scalar_functions().contains_key(name), "{name}");
        }
    }
}
