//! Relations of a call: projections with only the columns that an operator reads, with types that can be published. The casts are
//! ordinary expressions, so the engine does that work.

use std::sync::Arc;

use datafusion::arrow::compute::can_cast_types;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::utils::quote_identifier;
use datafusion::common::{Column, Result, TableReference, internal_err};
use datafusion::functions_nested::expr_fn::array_element;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast};

use super::csv_separators::separated;
use super::signature::{Parameter, suggested_column};
use super::verbatim_columns::is_as_written;
use crate::error::refusal;
use crate::exec::unpublishable;
use crate::methods::state::RELEASE;
use crate::methods::{Numbers, StateKind};
use crate::microdata::{ATTRIBUTE, LEAF, LEVEL, ORDER_KEY, PARTS_KEY, Roles, parts_of, published_type};
use crate::release::{COMMITMENTS, Description, LABEL, PARTNERS, RING, SIGNATURE, commitments_type, signature_type};

/// The update relation's parameter.
pub(super) const UPDATES: &str = Parameter::UPDATES.name;
/// The parameter of all values that can come.
pub(super) const DOMAIN: &str = Parameter::DOMAIN.name;
/// Name of the domain's column, if it is not called like the sensitive one.
const VALUE: &str = "value";
/// The value that people were published with, as it is read: no column of a table has such a name by chance.
pub(super) const OWN_VALUE: &str = "(own value)";
/// The update relation's optional column.
const PROBABILITY: &str = "probability";
pub(super) const PREVIOUS: &str = Parameter::PREVIOUS.name;
/// Function whose sequential releases are read.
pub(super) const WORLDS: &str = "worlds";

/// A relation of the call.
#[derive(Clone)]
pub(super) struct Input {
    pub function: &'static str,
    pub argument: &'static str,
    pub plan: LogicalPlan,
}

/// A column of it, with the type it will have.
#[derive(Clone)]
pub(super) struct InputColumn {
    pub column: Column,
    pub field: FieldRef,
}

impl Input {
    pub(super) fn names(&self) -> Vec<&str> {
        self.plan.schema().fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// Returns true if there is a column of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names().contains(&name)
    }

    pub(super) fn column(&self, name: &str) -> Result<InputColumn> {
        let schema = self.plan.schema();
        let matches: Vec<(Option<&TableReference>, &FieldRef)> =
            schema.iter().filter(|(_, field)| field.name() == name).collect();
        match matches.as_slice() {
            [(qualifier, field)] => {
                let column = Column::new(qualifier.cloned(), field.name());
                Ok(InputColumn { column, field: Arc::clone(field) })
            }
            [] => {
                let names = self.names();
                if let Some(separated) = separated(&names, &self.plan) {
                    return Err(refusal!(self.function, "{} has no column {name}: {separated}", self.argument));
                }
                let close = suggested_column(name, &names);
                let quoted: Vec<_> = names.iter().map(|name| quote_identifier(name)).collect();
                Err(refusal!(
                    self.function,
                    "{} has no column {name}{close}; it has {}",
                    self.argument,
                    quoted.join(", ")
                ))
            }
            _ => Err(refusal!(
                self.function,
                "{} has several columns named {name}; select the one that is meant in a query in parentheses",
                self.argument
            )),
        }
    }

    pub(super) fn project(self, columns: Vec<InputColumn>) -> Result<LogicalPlan> {
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

    /// Reads the ledger: identifier and signature of everybody published. Where values must stay, it has everybody's own value; where signatures
    /// change, the label and, if there is a column of it, the number of the release; where the first release counts, that number. Where they have
    /// other types than the microdata, both sides get a type that holds them all: a cast that can fail would print the value it failed on.
    pub(super) fn ledger(mut self, columns: &mut [InputColumn], roles: &Roles, kind: StateKind) -> Result<LogicalPlan> {
        let function = self.function;
        let (latest, numbers) = (kind.facts().labels, kind.facts().numbers);
        let first = !latest && numbers == Numbers::Required;
        let (Some(id), Some(sensitive)) = (&roles.id, &roles.sensitive) else {
            return internal_err!("{function}: previous without identifier or sensitive attribute");
        };
        let place = |name: &String| columns.iter().position(|column| column.field.name() == name).unwrap_or_default();
        let (id_place, sensitive_place) = (place(id), place(sensitive));
        let (Ok(mut identifier), Ok(mut signature)) = (self.column(id), self.column(SIGNATURE)) else {
            return Err(refusal!(
                function,
                "previous must have the identifier column {id} and the column {SIGNATURE} of earlier private \
                 releases (private => true); it has {}",
                self.names().join(", ")
            ));
        };
        let Some(item) = item_of(&signature.field) else {
            return Err(refusal!(
                function,
                "column {SIGNATURE} of previous must be a list of sensitive values, as in a private \
                 release; it is {}",
                signature.field.data_type()
            ));
        };
        identifier.publish(function)?;
        let own = if latest { None } else { Some(self.own_value(&columns[sensitive_place].field, id, kind)?) };
        if let Some(own) = &own {
            common_type(function, &mut columns[sensitive_place], own, self.argument)?;
        }
        let item = InputColumn { column: Column::from_name(SIGNATURE), field: item };
        let item_type = common_type(function, &mut columns[sensitive_place], &item, self.argument)?;
        let id_type = common_type(function, &mut columns[id_place], &identifier, self.argument)?;
        identifier.field = retyped(&identifier.field, id_type);
        let list = DataType::List(Arc::new(Field::new_list_field(item_type.clone(), true)));
        signature.field = retyped(&signature.field, list);
        let published = Expr::Column(identifier.column.clone()).is_not_null();
        let plan = LogicalPlanBuilder::from(self.plan.clone()).filter(published)?.build()?;
        let said = |field: &FieldRef| field.metadata().get(Description::METHOD).cloned();
        let made_by = self.plan.schema().fields().iter().find_map(said);
        let mut wanted = vec![identifier, signature];
        wanted.extend(own.map(|own| InputColumn { field: retyped(&own.field, item_type.clone()), ..own }));
        if latest {
            let Ok(label) = self.column(LABEL) else {
                if let Some(method) = made_by.filter(|method| method != function) {
                    return Err(refusal!(
                        function,
                        "previous is a release of {method}, which {function} cannot continue: go on with {method}(..), or begin again \
                         without previous, with people who are not in that release"
                    ));
                }
                return Err(refusal!(
                    function,
                    "previous has no column {LABEL}, the place of everybody's own value in {SIGNATURE}; pass the private \
                     releases (private => true) with all three columns, {id}, {SIGNATURE} and {LABEL}. Those of another method, \
                     such as m_invariant, have none, and {function} cannot continue them; begin again without previous, \
                     with people who are not in them"
                ));
            };
            if !label.field.data_type().is_integer() {
                return Err(refusal!(
                    function,
                    "column {LABEL} of previous must be a whole number, as in a private release; it is {}",
                    label.field.data_type()
                ));
            }
            wanted.push(label.of_type(DataType::Int64));
        }
        wanted.extend(self.ring(kind, id)?);
        let is_numbered = self.plan.schema().fields().iter().any(|field| field.name() == RELEASE);
        if first && !is_numbered {
            return Err(refusal!(
                function,
                argument self.argument,
                "previous has no column {RELEASE}: with assignment => 'drawn' new rows draw by the shares of the first release, so previous \
                 must say which rows are of it. Number the private releases in their order: previous => (SELECT *, 1 AS {RELEASE} FROM first UNION ALL \
                 SELECT *, 2 FROM second)"
            ));
        }
        if (latest || first) && is_numbered {
            let release = self.column(RELEASE)?;
            if !release.field.data_type().is_integer() {
                return Err(refusal!(
                    function,
                    "column {RELEASE} of previous must be a whole number, the least for the first release and the greatest for the latest; it is \
                     {}",
                    release.field.data_type()
                ));
            }
            wanted.push(release.of_type(DataType::Int64));
        } else if latest && numbers == Numbers::Required {
            return Err(refusal!(
                function,
                "previous has no column {RELEASE}: it must be known how many releases ago everybody was published, which says how often values could \
                 change, so number the releases one after the other, for example (SELECT 1 AS {RELEASE}, * FROM first UNION ALL SELECT 2, * FROM second)"
            ));
        }
        Self { plan, ..self }.project(wanted)
    }

    /// Returns the number of everybody's ring, where people stay together.
    /// Fails when there is none, or people stay together that this release would part.
    fn ring(&self, kind: StateKind, id: &str) -> Result<Option<InputColumn>> {
        let is_there = self.plan.schema().fields().iter().any(|field| field.name() == RING);
        match (kind.facts().rings, is_there) {
            (false, false) => Ok(None),
            (false, true) => Err(refusal!(
                self.function,
                argument self.argument,
                "previous has the column {RING} of releases whose groups are close, and these people stay together: leave groups, balance and \
                 assignment out, as in the first release"
            )),
            (true, false) => Err(refusal!(
                self.function,
                argument self.argument,
                "previous has no column {RING}, which says who stays together: pass the private releases (private => true) as they are, with \
                 {id}, {SIGNATURE} and {RING}; releases that were made with groups => 'cohort' have none, and go on with groups => 'cohort'"
            )),
            (true, true) => {
                let mut ring = self.column(RING)?;
                if !ring.field.data_type().is_integer() {
                    return Err(refusal!(
                        self.function,
                        argument self.argument,
                        "column {RING} of previous must be a whole number, as in a private release; it is {}",
                        ring.field.data_type()
                    ));
                }
                ring.field = retyped(&ring.field, DataType::Int64);
                Ok(Some(ring))
            }
        }
    }

    /// Returns the value that everybody was published with, composed if it is of several columns. Where values must stay, private releases are read with it.
    fn own_value(&mut self, sensitive: &FieldRef, id: &str, kind: StateKind) -> Result<InputColumn> {
        let parts = parts_of(sensitive).map_err(|error| error.in_function(self.function))?;
        let names: Vec<String> = match parts.is_empty() {
            true => vec![sensitive.name().clone()],
            false => parts.iter().map(|part| part.name().clone()).collect(),
        };
        if let Some(name) = names.iter().find(|name| !self.has(name)) {
            return Err(refusal!(
                self.function,
                argument self.argument,
                "previous has no column {name}, the value that everybody was published with: one that has changed is refused. Pass the private \
                 releases as they are, or previous => (SELECT {id}, {SIGNATURE}, {}{} FROM ..)",
                if kind.facts().rings { "ring, " } else { "" },
                names.join(", ")
            ));
        }
        if let (true, Ok(listed)) = (parts.is_empty(), self.column(sensitive.name()))
            && item_of(&listed.field).is_some()
        {
            return self.labelled_value(sensitive.name(), id);
        }
        let plan = self.plan.clone();
        let composed = match parts.is_empty() {
            true => Self { plan, ..*self },
            false => Self { plan, ..*self }.composed(&names, sensitive.name())?,
        };
        let value = Expr::Column(composed.column(sensitive.name())?.column).alias(OWN_VALUE);
        self.plan = with_column(composed.plan, value)?;
        self.column(OWN_VALUE)
    }

    /// Returns the value that everybody was published with in a list of values: the one at their label.
    fn labelled_value(&mut self, sensitive: &str, id: &str) -> Result<InputColumn> {
        let Ok(label) = self.column(LABEL) else {
            return Err(refusal!(
                self.function,
                argument self.argument,
                "previous has lists of values in column {sensitive}, and no column {LABEL}, which says whose value is which: one that has changed is \
                 refused. Pass the private releases as they are, or previous => (SELECT {id}, {sensitive}, {SIGNATURE}, {LABEL}, ring FROM ..)"
            ));
        };
        if !label.field.data_type().is_integer() {
            return Err(refusal!(
                self.function,
                argument self.argument,
                "column {LABEL} of previous must be a whole number, as in a private release; it is {}",
                label.field.data_type()
            ));
        }
        let signature = self.column(SIGNATURE)?;
        let place = cast(Expr::Column(label.column), DataType::Int64);
        let value = array_element(Expr::Column(signature.column), place).alias(OWN_VALUE);
        self.plan = with_column(self.plan.clone(), value)?;
        self.column(OWN_VALUE)
    }

    /// Reads identifier, partners and seals of everybody with worlds. Where identifiers have another type than in the
    /// microdata, both sides get a type that holds them all.
    pub(super) fn worlds(self, columns: &mut [InputColumn], roles: &Roles) -> Result<LogicalPlan> {
        let function = self.function;
        let Some(id) = &roles.id else { return internal_err!("{function}: worlds without identifiers") };
        let Some(now) = columns.iter_mut().find(|column| column.field.name() == id) else {
            return internal_err!("{function}: an identifier that is no column");
        };
        let wanted = [id.as_str(), PARTNERS, COMMITMENTS];
        let found: Vec<InputColumn> = wanted.iter().filter_map(|name| self.column(name).ok()).collect();
        let Ok([mut identifier, mut partners, mut seals]) = <[InputColumn; 3]>::try_from(found) else {
            return Err(refusal!(
                function,
                "{WORLDS} must have the columns {}, as sequential_worlds returns them; it has {}",
                wanted.join(", "),
                self.names().join(", ")
            ));
        };
        let (Some(partner), Some(seal)) = (item_of(&partners.field), item_of(&seals.field)) else {
            return Err(refusal!(
                function,
                "columns {PARTNERS} and {COMMITMENTS} of {WORLDS} must be lists, as sequential_worlds returns them"
            ));
        };
        if !seal.data_type().is_integer() {
            return Err(refusal!(
                function,
                "column {COMMITMENTS} of {WORLDS} must be of BIGINTs, as sequential_worlds returns it"
            ));
        }
        identifier.publish(function)?;
        let partner = InputColumn { column: Column::from_name(PARTNERS), field: partner };
        common_type(function, now, &partner, self.argument)?;
        let id_type = common_type(function, now, &identifier, self.argument)?;
        identifier.field = retyped(&identifier.field, id_type.clone());
        partners.field = retyped(&partners.field, signature_type(&id_type));
        seals.field = retyped(&seals.field, commitments_type());
        self.project(vec![identifier, partners, seals])
    }

    /// Returns the columns of an update relation: a value, and what it can become.
    pub(super) fn update_ends(&self) -> Result<[InputColumn; 2]> {
        let first = |wanted: [&str; 2]| wanted.into_iter().find_map(|name| self.column(name).ok());
        if let (Some(from), Some(to)) = (first(["from_value", "from"]), first(["to_value", "to"])) {
            return Ok([from, to]);
        }
        Err(refusal!(
            self.function,
            "{} must have the columns from_value and to_value, and may have probability: which values can become which; it has {}",
            self.argument,
            self.names().join(", ")
        ))
    }

    /// Returns columns of a value, its successor, and the probability if there is one. Values get the type of the
    /// sensitive column, or both one that holds them all.
    /// Fails when there are no such columns, or no probabilities and these are needed.
    pub(super) fn updates(self, sensitive: &mut InputColumn, weighted: bool) -> Result<LogicalPlan> {
        let function = self.function;
        let [mut from, mut to] = self.update_ends()?;
        // The type of both: what the second adds, the first must hold as well.
        for _ in 0..2 {
            for column in [&mut from, &mut to] {
                let common = common_type(function, sensitive, column, self.argument)?;
                column.field = retyped(&column.field, common);
            }
        }
        let mut wanted = vec![from, to];
        if self.has(PROBABILITY) {
            let probability = self.column(PROBABILITY)?;
            if !probability.field.data_type().is_numeric() {
                return Err(refusal!(
                    function,
                    "column {PROBABILITY} of {} must be a number; it is {}",
                    self.argument,
                    probability.field.data_type()
                ));
            }
            wanted.push(probability.of_type(DataType::Float64));
        } else if weighted {
            return Err(refusal!(
                function,
                argument self.argument,
                "{} has no column {PROBABILITY}: the law of changes must be known, so give every row the probability \
                 that the value becomes the other one until the next release (the row for staying as it is may be left out); it has {}",
                self.argument,
                self.names().join(", ")
            ));
        }
        self.project(wanted)
    }
}

impl Input {
    /// Returns all possible values of the sensitive column as updates to themselves. It is what an update relation
    /// says, and says no more. Values get the type of the sensitive column, or both one that holds them all.
    /// Fails when it is not clear which column has them, or they are of another type.
    pub(super) fn domain(self, sensitive: &mut InputColumn) -> Result<LogicalPlan> {
        let function = self.function;
        let names = self.names();
        let own = sensitive.field.name().as_str();
        let name = match names.as_slice() {
            [only] => *only,
            _ if names.contains(&own) => own,
            _ if names.contains(&VALUE) => VALUE,
            _ => {
                return Err(refusal!(
                    function,
                    argument self.argument,
                    "domain must have one column, or one that is called {own} or {VALUE}: all values that {own} can ever have; it has {}",
                    names.join(", ")
                ));
            }
        };
        let value = self.column(name)?;
        let common = common_type(function, sensitive, &value, self.argument)?;
        let there = Expr::Column(value.column.clone()).is_not_null();
        let plan = LogicalPlanBuilder::from(self.plan.clone()).filter(there)?.build()?;
        let schema = Arc::clone(plan.schema());
        let values = Expr::Column(value.column);
        let values = match values.get_type(schema.as_ref())? == common {
            true => values,
            false => cast(values, common),
        };
        LogicalPlanBuilder::from(plan).project([values.clone().alias("from_value"), values.alias("to_value")])?.build()
    }

    /// Reads attribute and value as texts, and share as a number.
    /// Fails when it has no such columns.
    pub(super) fn prior(self) -> Result<LogicalPlan> {
        const COLUMNS: [(&str, DataType); 3] =
            [("attribute", DataType::Utf8View), ("value", DataType::Utf8View), ("share", DataType::Float64)];
        let names = self.names();
        if COLUMNS.iter().any(|(name, _)| !names.contains(name)) {
            return Err(refusal!(
                self.function,
                argument self.argument,
                "argument {} must have the columns attribute, value and share: for each value of a quasi-identifier the share (or the \
                 number) of the people who have it; it has {}",
                self.argument,
                names.join(", ")
            ));
        }
        let columns = COLUMNS.into_iter().map(|(name, data_type)| Ok(self.column(name)?.of_type(data_type)));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        self.project(columns)
    }

    /// Reads attribute, leaf and the levels in order, as texts.
    pub(super) fn hierarchies(self) -> Result<LogicalPlan> {
        let names = self.names();
        let level = |number: usize| format!("{LEVEL}{number}");
        let levels = (1..).take_while(|&number| names.contains(&level(number).as_str())).count();
        let wanted = [ATTRIBUTE.to_owned(), LEAF.to_owned()].into_iter();
        let wanted: Vec<String> = wanted.chain((1..=levels).map(level)).collect();
        let is_level = |name: &&&str| {
            name.strip_prefix(LEVEL)
                .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
        };
        // A level that is there but cannot be reached would be lost without a word.
        let all_reached = names.iter().filter(is_level).count() == levels;
        if levels == 0 || !all_reached || wanted.iter().any(|name| !names.contains(&name.as_str())) {
            return Err(refusal!(
                self.function,
                "hierarchies must have the columns {ATTRIBUTE}, {LEAF}, {LEVEL}1, {LEVEL}2 and so on: for each value of a \
                 quasi-identifier, what it generalizes to from level to level; it has {}",
                names.join(", ")
            ));
        }
        let columns = wanted.iter().map(|name| Ok(self.column(name)?.of_type(DataType::Utf8View)));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        self.project(columns)
    }
}

impl InputColumn {
    fn of_type(self, data_type: DataType) -> Self {
        Self { field: retyped(&self.field, data_type), ..self }
    }

    /// Gives the column the type it is published with.
    pub(super) fn publish(&mut self, function: &str) -> Result<()> {
        if self.field.data_type() == &DataType::Null {
            return Err(refusal!(
                function,
                "column {} has type Null: it has no value in the rows that types are read from (of a CSV or JSON file, \
                 the first 1,000), and values in later ones would be lost; declare the type: CREATE EXTERNAL TABLE .. (.., {} VARCHAR) \
                 STORED AS CSV LOCATION '..'",
                self.column.name,
                self.column.name
            ));
        }
        let Some(data_type) = published_type(self.field.data_type()) else {
            return Err(refusal!(
                function,
                "column {} has type {}: {}, in a query in parentheses",
                self.column.name,
                self.field.data_type(),
                unpublishable(&self.field)
            ));
        };
        self.field = retyped(&self.field, data_type);
        Ok(())
    }
}

/// Returns a type that holds the values of both, given to the first.
pub(super) fn common_type(
    function: &str,
    now: &mut InputColumn,
    before: &InputColumn,
    argument: &str,
) -> Result<DataType> {
    let (a, b) = (now.field.data_type(), before.field.data_type());
    let Some(b) = published_type(b) else {
        return Err(refusal!(function, "{argument} has {} of type {b}, which cannot be compared", before.column.name));
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
        // What is written is read as a value of the table.
        _ if is_as_written(&before.field) && !a.is_binary() && can_cast_types(&b, a) => a.clone(),
        _ => {
            return Err(refusal!(
                function,
                "column {} is {a} in the input but {b} in {argument} (column {}); cast one of them",
                now.column.name,
                before.column.name
            ));
        }
    };
    now.field = retyped(&now.field, common.clone());
    Ok(common)
}

/// Adds a column to a relation.
/// Fails when the expression is not one over its columns.
pub(super) fn with_column(plan: LogicalPlan, column: Expr) -> Result<LogicalPlan> {
    let columns = plan.schema().iter().map(|field| Expr::Column(Column::from(field)));
    let columns: Vec<Expr> = columns.chain([column]).collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

fn item_of(field: &FieldRef) -> Option<FieldRef> {
    match field.data_type() {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(Arc::clone(item)),
        _ => None,
    }
}

fn retyped(field: &FieldRef, data_type: DataType) -> FieldRef {
    // Of the metadata only the order of categories, and of what a value was made, say something to a reader of the release.
    let kept =
        [ORDER_KEY, PARTS_KEY].into_iter().filter_map(|key| Some((key.to_owned(), field.metadata().get(key)?.clone())));
    Arc::new(Field::new(field.name(), data_type, field.is_nullable()).with_metadata(kept.collect()))
}
