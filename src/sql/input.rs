//! The relations of a call made ready for the operator: only the columns with roles, in the order of a layout, with types
//! that can be published. The casts are ordinary expressions, so the engine does that work.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, Result, TableReference, plan_err};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast};

use super::arguments::Arguments;
use super::options::AnonymizeOptions;
use super::signature::suggestion;
use super::syntax::split_names;
use super::table::AnonymizedTable;
use crate::microdata::{Layout, ORDER_KEY, Role, Roles, published_type};
use crate::release::{SIGNATURE, View, reserved_names};

/// Microdata and earlier releases, ready to be planned.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    pub microdata: LogicalPlan,
    pub previous: Option<LogicalPlan>,
    pub layout: Layout,
}

/// Finds the roles and builds the projections of a call.
pub(super) fn prepare(arguments: &mut Arguments, options: &AnonymizeOptions, view: View) -> Result<Prepared> {
    let function = arguments.function();
    let input = Input { function, argument: "the input", plan: arguments.relation("input")? };
    let roles = roles(arguments, options, &input)?;
    check_roles(function, &roles, view)?;

    let mut columns = vec![input.column(&roles.id)?];
    for quasi in &roles.quasi {
        columns.push(input.column(quasi)?);
    }
    columns.push(input.column(&roles.sensitive)?);
    for column in &mut columns {
        column.publish(function)?;
    }

    let mut previous = None;
    if let Some(plan) = arguments.relation_if_given("previous") {
        let earlier = Input { function, argument: "previous", plan };
        earlier.refuse_new_draws()?;
        previous = Some(earlier.ledger(&mut columns, &roles.id)?);
    }
    let sensitive = columns.len() - 1;
    let layout = Layout {
        identifier: columns[0].field.clone(),
        quasi: columns[1..sensitive].iter().map(|column| column.field.clone()).collect(),
        sensitive: columns[sensitive].field.clone(),
    };
    let microdata = input.project(columns)?;
    Ok(Prepared { microdata, previous, layout })
}

/// A relation of the call.
struct Input {
    function: &'static str,
    argument: &'static str,
    plan: LogicalPlan,
}

/// A column of it, with the type it will have.
struct InputColumn {
    column: Column,
    field: FieldRef,
}

impl Input {
    fn column(&self, name: &str) -> Result<InputColumn> {
        let schema = self.plan.schema();
        let matches: Vec<(Option<&TableReference>, &FieldRef)> =
            schema.iter().filter(|(_, field)| field.name() == name).collect();
        match matches.as_slice() {
            [(qualifier, field)] => {
                let column = Column::new(qualifier.cloned(), field.name());
                Ok(InputColumn { column, field: Arc::clone(field) })
            }
            [] => {
                let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
                let close = suggestion(name, names.iter().copied());
                plan_err!(
                    "{}: {} has no column {name}{close}; it has {}",
                    self.function,
                    self.argument,
                    names.join(", ")
                )
            }
            _ => plan_err!(
                "{}: {} has several columns named {name}; select the one that is meant in a query in parentheses",
                self.function,
                self.argument
            ),
        }
    }

    fn project(self, columns: Vec<InputColumn>) -> Result<LogicalPlan> {
        let schema = Arc::clone(self.plan.schema());
        let expressions = columns.into_iter().map(|InputColumn { column, field }| {
            let (name, expr) = (column.name.clone(), Expr::Column(column));
            Ok(match expr.get_type(schema.as_ref())? == *field.data_type() {
                true => expr.alias(name),
                false => cast(expr, field.data_type().clone()).alias(name),
            })
        });
        let expressions = expressions.collect::<Result<Vec<_>>>()?;
        LogicalPlanBuilder::from(self.plan).project(expressions)?.build()
    }

    /// A release that is drawn anew by every query was never published as this query will see it.
    fn refuse_new_draws(&self) -> Result<()> {
        let drawn = |node: &LogicalPlan| -> Result<bool> {
            let LogicalPlan::TableScan(scan) = node else { return Ok(false) };
            let provider = source_as_provider(&scan.source).ok();
            Ok(provider
                .is_some_and(|table| table.downcast_ref::<AnonymizedTable>().is_some_and(AnonymizedTable::draws_anew)))
        };
        if self.plan.exists(drawn)? {
            return plan_err!(
                "{}: previous is drawn anew by every query, so it is not the release that was published; store the private \
                 release (CREATE TABLE .. AS, or COPY) and pass what was stored",
                self.function
            );
        }
        Ok(())
    }

    /// Identifier and signature of everybody published. Where they have other types than the microdata, both
    /// sides get a type that holds them all: a cast that can fail would print the value it failed on.
    fn ledger(self, columns: &mut [InputColumn], id: &str) -> Result<LogicalPlan> {
        let function = self.function;
        let (Ok(mut identifier), Ok(mut signature)) = (self.column(id), self.column(SIGNATURE)) else {
            let names: Vec<&str> = self.plan.schema().fields().iter().map(|field| field.name().as_str()).collect();
            return plan_err!(
                "{function}: previous must have the identifier column {id} and the column {SIGNATURE} of earlier private \
                 releases (private => true); it has {}",
                names.join(", ")
            );
        };
        let item = match signature.field.data_type() {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => Arc::clone(item),
            other => {
                return plan_err!(
                    "{function}: column {SIGNATURE} of previous must be a list of sensitive values, as in a private \
                     release; it is {other}"
                );
            }
        };
        identifier.publish(function)?;
        let item = InputColumn { column: Column::from_name(SIGNATURE), field: item };
        let item_type = common_type(function, &mut columns[columns.len() - 1], &item)?;
        let id_type = common_type(function, &mut columns[0], &identifier)?;
        identifier.field = retyped(&identifier.field, id_type);
        let list = DataType::List(Arc::new(Field::new_list_field(item_type, true)));
        signature.field = retyped(&signature.field, list);
        let published = Expr::Column(identifier.column.clone()).is_not_null();
        let plan = LogicalPlanBuilder::from(self.plan.clone()).filter(published)?.build()?;
        Self { plan, ..self }.project(vec![identifier, signature])
    }
}

impl InputColumn {
    /// Gives the column the type it is published with.
    fn publish(&mut self, function: &str) -> Result<()> {
        let Some(data_type) = published_type(self.field.data_type()) else {
            return plan_err!(
                "{function}: column {} has type {}, which cannot be anonymized; cast it, or select its parts, in a query \
                 in parentheses",
                self.column.name,
                self.field.data_type()
            );
        };
        self.field = retyped(&self.field, data_type);
        Ok(())
    }
}

/// A type that holds the values of both, given to the first.
fn common_type(function: &str, now: &mut InputColumn, before: &InputColumn) -> Result<DataType> {
    let (a, b) = (now.field.data_type(), before.field.data_type());
    let Some(b) = published_type(b) else {
        return plan_err!("{function}: previous has {} of type {b}, which cannot be compared", before.column.name);
    };
    let common = match (a, &b) {
        _ if *a == b => a.clone(),
        _ if a.is_signed_integer() && b.is_signed_integer() => {
            if a.primitive_width() >= b.primitive_width() {
                a.clone()
            } else {
                b
            }
        }
        _ if a.is_string() && b.is_string() => a.clone(),
        _ if a.is_binary() && b.is_binary() => a.clone(),
        _ => {
            return plan_err!(
                "{function}: column {} is {a} in the input but {b} in previous (column {}); cast one of them",
                now.column.name,
                before.column.name
            );
        }
    };
    now.field = retyped(&now.field, common.clone());
    Ok(common)
}

fn retyped(field: &FieldRef, data_type: DataType) -> FieldRef {
    // Of the metadata only the order of categories says something to a reader of the release.
    let order = field.metadata().get(ORDER_KEY).map(|order| (ORDER_KEY.to_owned(), order.clone()));
    Arc::new(Field::new(field.name(), data_type, field.is_nullable()).with_metadata(order.into_iter().collect()))
}

/// Roles from the arguments, else from the columns' metadata, else from the session's settings.
fn roles(arguments: &Arguments, options: &AnonymizeOptions, input: &Input) -> Result<Roles> {
    let function = arguments.function();
    let declared = |role: Role| -> Vec<String> {
        let fields = input.plan.schema().fields().iter();
        let of_role =
            fields.filter(|field| field.metadata().get(Role::KEY).and_then(|text| Role::parse(text)) == Some(role));
        of_role.map(|field| field.name().clone()).collect()
    };
    let setting = |role: Role| match role {
        Role::Id => &options.id,
        Role::Quasi => &options.quasi,
        Role::Sensitive => &options.sensitive,
    };
    let find = |role: Role, what: &str, example: &str| -> Result<Vec<String>> {
        if let Some(columns) = arguments.columns(role.name()) {
            return Ok(columns.to_vec());
        }
        let columns = declared(role);
        if !columns.is_empty() {
            return Ok(columns);
        }
        let columns = setting(role).as_deref().map(split_names).unwrap_or_default();
        if !columns.is_empty() {
            return Ok(columns);
        }
        let name = role.name();
        plan_err!(
            "{function}: no {what}; name it with {name} => {example}, or SET anonymize.{name}, or give the column the \
             metadata {} = '{name}'",
            Role::KEY
        )
    };
    let single = |role: Role, what: &str, columns: Vec<String>| -> Result<String> {
        match <[String; 1]>::try_from(columns) {
            Ok([column]) => Ok(column),
            Err(columns) => plan_err!(
                "{function}: {} columns are declared as {what}, but there must be one; choose with {} => ..",
                columns.len(),
                role.name()
            ),
        }
    };
    Ok(Roles {
        id: single(Role::Id, "the identifier", find(Role::Id, "identifier column", "patient_id")?)?,
        quasi: find(Role::Quasi, "quasi-identifier columns", "(age, zip)")?,
        sensitive: single(
            Role::Sensitive,
            "the sensitive attribute",
            find(Role::Sensitive, "sensitive column", "disease")?,
        )?,
    })
}

fn check_roles(function: &str, roles: &Roles, view: View) -> Result<()> {
    let mut seen = HashSet::new();
    let all = std::iter::once(&roles.id).chain(&roles.quasi).chain(std::iter::once(&roles.sensitive));
    for column in all {
        if !seen.insert(column) {
            return plan_err!(
                "{function}: column {column} has two roles; each of id, quasi and sensitive needs columns of its own"
            );
        }
        if reserved_names(view).contains(&column.as_str()) {
            return plan_err!(
                "{function}: a release has a column {column} of its own; rename yours in a query in parentheses"
            );
        }
    }
    Ok(())
}
