//! The relations of a call of a method made ready for the operator: roles are found, and only the columns with roles stay, in the order
//! of a layout.

use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNode;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;

use super::anonymized_table::{AnonymizedTable, Prepared};
use super::arguments::Arguments;
use super::composite::{Composite, check_hidden};
use super::earlier_releases::{check_order, ledgers};
use super::followed::Followed;
use super::hierarchy_checks;
use super::input::{DOMAIN, Input, PREVIOUS, UPDATES, WORLDS};
use super::opaque::OpaqueTable;
use super::options::AnonymizeOptions;
use super::roles::{roles, sensitive_columns};
use crate::error::refusal;
use crate::methods::{Against, AnyMethod, Method, StateKind};
use crate::microdata::{Layout, Role};
use crate::release::{Description, Form, View};

/// Finds the roles and builds the projections of a call of a method.
pub(super) fn prepare(
    arguments: &mut Arguments,
    options: &AnonymizeOptions,
    view: View,
    method: &dyn Method,
) -> Result<Prepared> {
    let function = arguments.function();
    let input = Input { function, argument: "the input", plan: arguments.relation("input")? };
    let (sensitive, several) = sensitive_columns(arguments, options, input.plan.schema())?;
    let composite = match sensitive.len() {
        0 | 1 => None,
        _ => Some(Composite::try_new(&input, &sensitive, several, view)?),
    };
    if method.form() != Form::Anatomy {
        check_hidden((function, arguments.style()), method, &sensitive, several)?;
    }
    let input = match &composite {
        Some(composite) => {
            arguments.set_columns(Role::Sensitive.name(), vec![composite.name.clone()]);
            input.composed_of(composite)?
        }
        None => input,
    };
    let roles = roles(arguments, options, input.plan.schema(), view, method.needs())?;
    if let (Some(_), Some(column)) = (&composite, roles.columns().find(|column| sensitive.contains(*column))) {
        return Err(refusal!(
            function,
            "column {column} has two roles; each of id, quasi and sensitive needs columns of its own"
        ));
    }
    let mut columns = roles.columns().map(|name| input.column(name)).collect::<Result<Vec<_>>>()?;
    for column in &mut columns {
        column.publish(function)?;
    }

    let mut updates = None;
    if let Some(plan) = arguments.relation_if_given(UPDATES)
        && let Some(sensitive) = &roles.sensitive
        && let Some(column) = columns.iter_mut().find(|column| column.field.name() == sensitive)
    {
        updates = Some(Input { function, argument: UPDATES, plan }.updates(column, method.changes().are_lawful())?);
    }
    if let Some(plan) = arguments.relation_if_given(DOMAIN)
        && let Some(sensitive) = &roles.sensitive
        && let Some(column) = columns.iter_mut().find(|column| column.field.name() == sensitive)
    {
        if let Some(composite) = &composite {
            return Err(refusal!(
                function,
                argument DOMAIN,
                "domain has the values of one sensitive column, and there are several; {}",
                composite.way_out()
            ));
        }
        updates = Some(Input { function, argument: DOMAIN, plan }.domain(column)?);
    }
    let mut previous = None;
    let mut followed = Followed::default();
    let earlier = arguments.relations(PREVIOUS);
    if !earlier.is_empty() {
        let earlier: Vec<Input> =
            earlier.into_iter().map(|plan| Input { function, argument: PREVIOUS, plan }).collect();
        for one in &earlier {
            refuse_new_draws(one)?;
            refuse_other_reader(one, method)?;
            followed.add(Followed::by(&one.plan, roles.id.as_deref(), arguments.session().ok())?);
        }
        followed.check(function, PREVIOUS)?;
        let signatures = |kind: &StateKind| kind.facts().signatures;
        let Some(kind) = method.state().filter(signatures) else {
            return Err(refusal!(
                function,
                argument PREVIOUS,
                "groups of the whole table know of no earlier release: leave previous out and publish people who are in none, or write groups => 'close'"
            ));
        };
        check_order(&earlier, kind, |plan| Followed::by(plan, roles.id.as_deref(), arguments.session().ok()))?;
        previous = Some((kind, PREVIOUS, ledgers(earlier, &mut columns, &roles, kind)?));
    }
    if let Some(plan) = arguments.relation_if_given(WORLDS) {
        let earlier = Input { function, argument: WORLDS, plan };
        refuse_new_draws(&earlier)?;
        followed.add(Followed::by(&earlier.plan, roles.id.as_deref(), arguments.session().ok())?);
        followed.check(function, WORLDS)?;
        previous = Some((StateKind::Worlds, WORLDS, earlier.worlds(&mut columns, &roles)?));
    }
    let hierarchies = arguments.hierarchies(function)?;
    let schema = Schema::new(columns.iter().map(|column| FieldRef::clone(&column.field)).collect::<Vec<_>>());
    let mut layout = Layout::try_new(&schema, &roles).map_err(|error| error.in_function(function))?;
    if let (Some(plan), Ok(session)) = (&hierarchies, arguments.session()) {
        layout = layout.with_trees(&hierarchy_checks::read(function, plan, &roles.quasi, session)?.fingerprints());
    }
    let microdata = input.project(columns)?;
    Ok(Prepared { microdata, previous, followed, hierarchies, updates, layout, composite })
}

/// Refuses to go on for participants with people of releases that were made for strangers.
fn refuse_other_reader(relation: &Input, method: &dyn Method) -> Result<()> {
    let fields = relation.plan.schema().fields().iter();
    let mut made_by = fields.filter_map(|field| Description::from_metadata(field.metadata()));
    let before = made_by.next().and_then(|description| AnyMethod::described(&description));
    let is_for_strangers = before.is_some_and(|before| before.as_method().against() != Against::Participant);
    if is_for_strangers && method.against() == Against::Participant {
        return Err(refusal!(
            relation.function,
            argument "reader",
            "{} was made for readers who know nobody's value, so that no bound of its people holds for a participant: leave reader out, or begin \
             again without {0}, with people who are not in it",
            relation.argument
        ));
    }
    Ok(())
}

/// Refuses a release that every query draws anew: it was never published as this query will see it.
fn refuse_new_draws(relation: &Input) -> Result<()> {
    let drawn = |node: &LogicalPlan| -> Result<bool> {
        let LogicalPlan::TableScan(scan) = node else { return Ok(false) };
        let provider = source_as_provider(&scan.source).ok();
        Ok(provider.is_some_and(|table| OpaqueTable::relation(table.as_ref()).is_some_and(AnonymizedTable::draws_anew)))
    };
    if relation.plan.exists(drawn)? {
        return Err(refusal!(
            relation.function,
            "{} is drawn anew by every query, so it is not {}; store {} (CREATE TABLE .. AS, or COPY) and pass what was \
             stored",
            relation.argument,
            if relation.argument == WORLDS { "what other releases know" } else { "the release that was published" },
            if relation.argument == WORLDS { "the worlds" } else { "the private release" }
        ));
    }
    Ok(())
}
