//! The factory of `CREATE EXTERNAL TABLE .. STORED AS PUBLICATION`. It writes nothing: the first release does.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::{Column, Constraint, DFSchema, Result};
use datafusion::logical_expr::{CreateExternalTable, LogicalPlan};

use super::options::{Options, refused};
use super::release_table::{ReleaseTable, as_table};
use super::table::{PublicationTable, Publisher};
use crate::error::refusal;
use crate::exec::{REPOSITION, TableFuture, boxed_method};
use crate::methods::state::ledger_schema;
use crate::methods::{AnyMethod, LeftOut};
use crate::microdata::{Layout, Role, Roles, Several, TREE_KEY, can_be_part, field_of_parts, name_of_parts};
use crate::publication::{
    MAX_MISSING, OpenPublication, PERIOD, Publication, PublicationSpec, Reader, Repositioned, check_apart,
    check_schema, locate, private_beside, stored_type, type_names,
};
use crate::release::{Description, Form, Shape, View, reserved_names, schema};
use crate::sql::arguments::Arguments;
use crate::sql::cells::WantedCells;
use crate::sql::composite::{check_hidden, way_out};
use crate::sql::input::{DOMAIN, Input, InputColumn, UPDATES};
use crate::sql::opaque::Relation;
use crate::sql::options::AnonymizeOptions;
use crate::sql::reposition::{LATE, clock, parameters};
use crate::sql::roles::{roles, sensitive_columns};
use crate::sql::signature::{Style, suggestion};

/// Name by which DataFusion looks it up.
pub(in crate::sql) const FILE_TYPE: &str = "PUBLICATION";

#[derive(Debug)]
pub(in crate::sql) struct PublicationFactory;

#[async_trait]
impl TableProviderFactory for PublicationFactory {
    boxed_method! {<'s, 'c> fn create(
        &self,
        session: &'s dyn Session,
        command: &'c CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        self.table(session, command)
    }}
}

impl PublicationFactory {
    fn table<'a>(&'a self, session: &'a dyn Session, command: &'a CreateExternalTable) -> TableFuture<'a> {
        Box::pin(async move {
            refuse_clauses(command)?;
            let [location] = command.locations.as_slice() else {
                return Err(refusal!("publication", "there must be one LOCATION"));
            };
            let public = locate(location)?;
            let mut options = Options::try_new(&command.options)?;
            let runtime = Arc::clone(session.runtime_env());
            if options.is_for_reading() && command.schema.fields().is_empty() {
                if Reader::open(&public, &runtime).await?.is_none() {
                    return Err(refusal!(
                        "publication",
                        "there is no publication at {public}; to begin one, declare its columns and OPTIONS such as \
                         'method' 'm_invariant'"
                    ));
                }
                return Ok(Arc::new(PublicationTable::for_reading(public, runtime).await?) as Arc<dyn TableProvider>);
            }
            if command.schema.fields().is_empty() {
                return Err(refusal!(
                    "publication",
                    "the columns of the table that is inserted into are missing, for example CREATE EXTERNAL TABLE \
                     {} (patient_id BIGINT, age INT, ..)",
                    command.name
                ));
            }
            let table = table_schema(&command.schema)?;
            let private = match &options.private {
                Some(location) => locate(location)?,
                None => private_beside(&public)?,
            };
            check_apart(&public, &private)?;
            let moved_from = options.moved_from.as_deref().map(locate).transpose()?;
            let (independent, repeated, period) = (options.independent, options.repeated, options.period);
            let (begin, max_missing) = (options.begin, options.max_missing);
            let stream = options.reposition(session)?;
            let (method, mut arguments) = options.bind(session, primary_key(command, &table)?)?;
            let method = arguments.method(method)?;
            let mut needs = method.as_method().needs();
            // People are remembered by their identifiers.
            needs.id |= method.state().is_some();
            if independent && method.state().is_some() {
                return Err(refusal!(
                    "publication",
                    argument "allow_independent_releases",
                    "option allow_independent_releases is for methods without a ledger; releases of {} know of each \
                     other",
                    method.name()
                ));
            }
            if max_missing.is_some() && (method.state().is_none() || stream.is_some()) {
                return Err(refusal!(
                    "publication",
                    argument MAX_MISSING,
                    "option {MAX_MISSING} is for methods that remember people by their identifiers, which {} does not; leave it out",
                    if stream.is_some() { REPOSITION } else { method.name() }
                ));
            }
            let settings = session.config_options().extensions.get::<AnonymizeOptions>().cloned().unwrap_or_default();
            let declared = DFSchema::try_from(Arc::clone(&table))?;
            let (sensitive, several) = sensitive_columns(&arguments, &settings, &declared)?;
            let parts = parts(&table, &sensitive, &method, stream.is_some())?;
            check_hidden((method.name(), Style::Options), method.as_method(), &sensitive, several)?;
            let whole = with_value(&table, &parts, several);
            if !parts.is_empty() {
                arguments.set_columns(Role::Sensitive.name(), vec![name_of_parts(&sensitive, several)]);
            }
            let columns = DFSchema::try_from(Arc::clone(&whole))?;
            let roles = roles(&arguments, &settings, &columns, View::Public, needs)?;
            if let Some(column) = roles.columns().find(|column| !parts.is_empty() && sensitive.contains(*column)) {
                return Err(refusal!(
                    "publication",
                    "column {column} has two roles; each of id, quasi and sensitive needs columns of its own"
                ));
            }
            let hierarchies = arguments.hierarchies(method.name())?;
            let layout = layout(&whole, &roles, method.name())?;
            if let Some((argument, why)) = method.as_method().not_published_again(&layout) {
                return Err(
                    refusal!("publication", argument argument, "no publication is made with these parameters of {}: {why}", method.name()),
                );
            }
            let mut updates = None;
            let changes = method.as_method().changes();
            for argument in [UPDATES, DOMAIN] {
                if let (Some(plan), Some(sensitive)) = (arguments.relation_if_given(argument), &layout.sensitive) {
                    if argument == DOMAIN && !parts.is_empty() {
                        return Err(refusal!(
                            "publication",
                            argument DOMAIN,
                            "option domain is for one sensitive column, and there are several; leave it out, or combine them in the INSERT"
                        ));
                    }
                    updates = Some(values(
                        Input { function: method.name(), argument, plan },
                        sensitive,
                        changes.are_lawful(),
                    )?);
                }
            }
            if period.is_some() && !changes.are_lawless() && (!changes.are_lawful() || updates.is_none()) {
                return Err(refusal!(
                    "publication",
                    argument PERIOD,
                    "option {PERIOD} is for publications whose values change (m_distinct, and dynamic with {UPDATES}): it says of which day, week, month or quarter \
                     a snapshot is; leave it out"
                ));
            }
            let repositioned = match &stream {
                Some(arguments) => Some(repositioned(arguments, &layout, &method)?),
                None => None,
            };
            check_schema(&released_schema(&method, hierarchies.is_some(), &layout)?)?;
            let cells = WantedCells::of(&arguments)?.of_publication(&method, &layout, repositioned.is_some())?;
            let (with_hierarchies, with_updates) = (hierarchies.is_some(), updates.is_some());
            let types = type_names(&layout)?;
            let spec = PublicationSpec {
                types,
                method,
                roles,
                hierarchies: with_hierarchies,
                updates: with_updates,
                repositioned,
                cells,
            };
            let ledger = ledger_schema(spec.remembers(), &layout);
            let ledger = ledger.map_err(|error| error.in_function(spec.method.name()))?;
            check_schema(&ledger)?;
            let finish = stream.as_ref().is_some_and(|arguments| arguments.boolean("finish"));
            let late = stream.as_ref().map(|arguments| LATE.of(arguments)).unwrap_or_default();
            let publication = Publication {
                public,
                private,
                moved_from,
                spec,
                independent,
                repeated,
                late,
                finish,
                period,
                begin,
                max_missing,
            };
            // Fails where an INSERT would, but earlier.
            let open = OpenPublication::open(publication.clone(), &runtime).await?;
            let published = open.published();
            let begun = open.decided().is_some_and(|decided| decided > 0);
            let released = released_schema(&open.publication().spec.method, with_hierarchies, &layout)?;
            let mut released = as_table(&released).await?;
            if published > 0 {
                let newest = ReleaseTable::open(&publication.public, &runtime, None).await?.schema();
                released = Arc::new(as_published(&released, &newest));
            }
            let publisher = Publisher { publication, schema: table, parts, several, hierarchies, updates };
            Ok(Arc::new(PublicationTable::for_publishing(publisher, begun, released, runtime)))
        })
    }
}

/// Returns the declared columns, as the newest release has them where it has them. None says of which release it is.
fn as_published(declared: &Schema, newest: &Schema) -> Schema {
    let published = |field: &FieldRef| newest.fields().find(field.name()).map(|(_, known)| known);
    // Which columns have hierarchies is known of all columns or of none.
    let all = declared.fields().iter().all(|field| published(field).is_some());
    let known = |field: &FieldRef| match published(field) {
        Some(known) => {
            let mut metadata = known.metadata().clone();
            metadata.extend(field.metadata().clone());
            metadata.retain(|key, _| key != Description::NUMBER && (all || key != TREE_KEY));
            Arc::new(known.as_ref().clone().with_metadata(metadata))
        }
        None => FieldRef::clone(field),
    };
    Schema::new(declared.fields().iter().map(known).collect::<Vec<_>>())
}

fn refuse_clauses(command: &CreateExternalTable) -> Result<()> {
    let clauses = [
        (!command.table_partition_cols.is_empty(), "PARTITIONED BY", "the rows of a release are in random order"),
        (!command.order_exprs.is_empty(), "WITH ORDER", "the rows of a release are in random order"),
        (command.unbounded, "UNBOUNDED", "a release is of a finite snapshot"),
        (!command.column_defaults.is_empty(), "DEFAULT", "write the values into the INSERT"),
    ];
    match clauses.into_iter().find(|(there, ..)| *there) {
        Some((_, clause, why)) => Err(refused(&format!("{clause} is not supported"), why)),
        None => Ok(()),
    }
}

/// Returns the declared columns, with types that the tables can keep.
fn table_schema(declared: &DFSchema) -> Result<SchemaRef> {
    let field = |field: &Arc<Field>| match stored_type(field.data_type()) {
        Some(stored) => {
            Ok(Field::new(field.name(), stored, field.is_nullable()).with_metadata(field.metadata().clone()))
        }
        None => Err(refusal!(
            "publication",
            "column {} has type {}, which Delta Lake cannot keep; declare it with another one, for example \
             VARCHAR, and cast in the INSERT",
            field.name(),
            field.data_type()
        )),
    };
    let fields = declared.fields().iter().map(field).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Schema::new(fields)))
}

fn primary_key(command: &CreateExternalTable, table: &SchemaRef) -> Result<Option<String>> {
    let mut keys = command.constraints.iter().filter_map(|constraint| match constraint {
        Constraint::PrimaryKey(columns) => Some(columns),
        Constraint::Unique(_) => None,
    });
    match keys.next().map(Vec::as_slice) {
        Some([column]) => Ok(Some(table.field(*column).name().clone())),
        Some(_) => Err(refusal!(
            "publication",
            "a primary key of several columns cannot be the identifier; make one column of them"
        )),
        None => Ok(None),
    }
}

/// Returns the columns with roles.
fn layout(table: &SchemaRef, roles: &Roles, function: &str) -> Result<Layout> {
    let field = |name: &String| match table.fields().find(name) {
        Some((_, field)) => Ok(Arc::clone(field)),
        None => {
            let names: Vec<&str> = table.fields().iter().map(|field| field.name().as_str()).collect();
            Err(refusal!(
                "publication",
                "the table has no column {name}{}; it has {}",
                suggestion(name, names.iter().copied()),
                names.join(", ")
            ))
        }
    };
    let columns = Schema::new(roles.columns().map(field).collect::<Result<Vec<_>>>()?);
    Layout::try_new(&columns, roles).map_err(|error| error.in_function(function))
}

/// Returns the columns that are one sensitive value; none if it is one column.
/// Fails when there is no such column, or releases could not have them as columns.
fn parts(table: &Schema, sensitive: &[String], method: &AnyMethod, stream: bool) -> Result<Vec<FieldRef>> {
    if sensitive.len() < 2 {
        return Ok(Vec::new());
    }
    let why = if stream {
        Some("the records of a stream have one sensitive column")
    } else if method.form() == Form::Anatomy {
        Some("several sensitive columns would be lists that do not say what belongs together")
    } else if method.as_method().leaves_out() == LeftOut::Anything {
        Some("where every INSERT has columns of its own, there is one sensitive column")
    } else {
        None
    };
    if let Some(why) = why {
        return Err(refusal!("publication", argument Role::Sensitive.name(), "{why}; {}", way_out(sensitive)));
    }
    let mut parts: Vec<FieldRef> = Vec::new();
    for name in sensitive {
        let Some((_, field)) = table.fields().find(name) else {
            let names: Vec<&str> = table.fields().iter().map(|field| field.name().as_str()).collect();
            let close = suggestion(name, names.iter().copied());
            return Err(refusal!("publication", "the table has no column {name}{close}; it has {}", names.join(", ")));
        };
        let wrong = if parts.iter().any(|part| part.name() == name) {
            "is named twice as sensitive; name it once"
        } else if reserved_names(View::Public).contains(&name.as_str()) {
            "has the name of a column of releases; rename it"
        } else if !can_be_part(field.data_type()) {
            "has values without a text; declare it with another type"
        } else {
            parts.push(Arc::clone(field));
            continue;
        };
        return Err(refusal!("publication", argument Role::Sensitive.name(), "column {name} {wrong}"));
    }
    Ok(parts)
}

/// Returns the table with the value of these columns as a further one.
fn with_value(table: &SchemaRef, parts: &[FieldRef], several: Several) -> SchemaRef {
    let value = (!parts.is_empty()).then(|| Arc::new(field_of_parts(parts, several)));
    Arc::new(Schema::new(table.fields().iter().cloned().chain(value).collect::<Vec<_>>()))
}

/// Reads the arguments of a stream that is repositioned. The time is the column that the method works within.
fn repositioned(arguments: &Arguments, layout: &Layout, method: &AnyMethod) -> Result<Repositioned> {
    let function = arguments.function();
    let Some(time) = &layout.within else { return Err(refusal!(function, argument "time", "option time is missing")) };
    if layout.sensitive.is_none() {
        return Err(refusal!(function, argument "sensitive", "option sensitive is missing"));
    }
    if let Some((argument, why)) = method.as_method().not_repositioned() {
        return Err(refusal!(function, argument argument, "{why}"));
    }
    let params = parameters(arguments)?;
    let asked = method.parameters().map_err(|error| error.in_function(method.name()))?;
    for name in ["m", "l", "k"] {
        let number = asked.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
        if number > params.l as u64 {
            return Err(refusal!(
                function,
                argument name,
                "{name} = {number} of {} is more than l = {}; snapshots are made for groups of l, so one of them could be \
                 refused, and none could be published after it: raise l to {number}",
                method.name(),
                params.l
            ));
        }
    }
    if asked.get("on_ineligible").and_then(serde_json::Value::as_str) == Some("refuse") {
        return Err(refusal!(
            function,
            argument "on_ineligible",
            "snapshots are made eligible as a whole, not the new people in them, so {} could refuse one, and none could be \
             published after it: say what becomes of those who are not, {} or 'counterfeit'",
            method.name(),
            arguments.style().write("on_ineligible", "'withhold'")
        ));
    }
    Ok(Repositioned { params, clock: clock(arguments, time.name(), time.data_type())? })
}

/// Returns the update relation (`weighted`: with probabilities) or the domain, with values of the declared type of the sensitive column.
fn values(relation: Input, sensitive: &FieldRef, weighted: bool) -> Result<LogicalPlan> {
    let (function, argument) = (relation.function, relation.argument);
    let mut column = InputColumn { column: Column::from_name(sensitive.name()), field: Arc::clone(sensitive) };
    let plan = match argument {
        DOMAIN => relation.domain(&mut column)?,
        _ => relation.updates(&mut column, weighted)?,
    };
    match column.field.data_type() == sensitive.data_type() {
        true => Ok(plan),
        false => Err(refusal!(
            function,
            argument argument,
            "{argument} has values of type {}, but column {} is declared as {}; declare it so that it holds them all",
            column.field.data_type(),
            sensitive.name(),
            sensitive.data_type()
        )),
    }
}

/// Returns the columns that releases can have.
/// Fails when the parameters cannot be shown, which is a bug.
fn released_schema(method: &AnyMethod, nodes: bool, layout: &Layout) -> Result<Schema> {
    let parameters = method.parameters_text().map_err(|error| error.in_function(method.name()))?;
    let description = Description::new(method.name(), parameters, String::new(), None);
    let shape = Shape {
        view: View::Public,
        form: method.form(),
        signatures: false,
        labels: false,
        rings: false,
        nodes,
        counted: method.state().is_some_and(|kind| kind.facts().counted),
    };
    Ok(schema(layout, shape, &description))
}
