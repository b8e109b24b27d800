//! CSV files whose columns have other separators than commas. Excel writes them where decimals have a comma.

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::utils::quote_identifier;
use datafusion::logical_expr::LogicalPlan;

/// Sets what separates columns, if commas do not.
const SEPARATORS: [(char, &str); 3] = [(';', "';'"), ('\t', "E'\\t'"), ('|', "'|'")];

/// Says that names of columns hold a separator, and how to declare the file. It was read as fewer columns than it has.
pub(super) fn separated(names: &[&str], plan: &LogicalPlan) -> Option<String> {
    let (_, separator) = SEPARATORS.iter().find(|(separator, _)| names.iter().any(|name| name.contains(*separator)))?;
    let mut file = None;
    let looked: Result<_> = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && scan.table_name.table().contains(['/', '.'])
        {
            file.get_or_insert_with(|| scan.table_name.table().to_owned());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    looked.ok()?;
    // A name of several columns ends in that of the last of them.
    let last = names.iter().filter_map(|name| name.rsplit(|c| SEPARATORS.iter().any(|(other, _)| *other == c)).next());
    let column = last.map(str::trim).find(|name| !name.is_empty()).map(quote_identifier);
    Some(declared(&file.unwrap_or_else(|| "people.csv".to_owned()), separator, column.as_deref()))
}

/// Returns the same of the first line of a file that cannot be read.
pub(super) fn separated_line(line: &str, file: &str) -> Option<String> {
    let count = |c: char| line.matches(c).count();
    let (_, separator) = SEPARATORS.iter().find(|(separator, _)| count(*separator) > count(','))?;
    Some(declared(file, separator, None))
}

/// Returns the declaration of a file. A `column` is an example; the first line of a file can be data, and gives none.
fn declared(file: &str, separator: &str, column: Option<&str>) -> String {
    let column = column.unwrap_or("c");
    format!(
        "the columns of the file are separated by {separator}, not by commas: CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{}' OPTIONS \
         ('format.has_header' 'true', 'format.delimiter' {separator}), and name t. Numbers with decimal commas are texts there: CAST(replace({column}, ',', '.') AS DOUBLE)",
        file.replace('\'', "''")
    )
}
