//! `disclosure(releases, original => .., ..)`.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{Column, Result, TableReference};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::functions::core::expr_ext::FieldAccessor;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit};

use super::arguments::Arguments;
use super::choice::Choice;
use super::composite::COMPOSITE;
use super::computed::Computed;
use super::hierarchy_checks::MadeWith;
use super::information_loss::end_of;
use super::input::{Input, InputColumn, common_type};
use super::numbers::Number;
use super::options::{AnonymizeOptions, sensitive_names, split_names};
use super::perturbed;
use super::publication_terms::{Declared, RELEASE};
use super::release_description::released_columns;
use super::signature::{FunctionSignature, Kind, Parameter};
use crate::error::refusal;
use crate::exec::DisclosureComputation;
use crate::microdata::{Role, Several, name_of_parts};
use crate::release::{GROUP_ID, HI, LO};
use crate::risk::{AdversaryModel, BUDGET, BackgroundColumns, ReleaseColumns};

const RELEASES: &str = "releases";
const ORIGINAL: &str = "original";
const BACKGROUND: &str = "background";
const UPDATES: &str = "updates";
const HIERARCHIES: &str = "hierarchies";
const P_MATCH: &str = "p_match";
/// The chance that a quasi-identifier is looked at.
static MATCH: Number = Number::optional(P_MATCH, 0.0, "0.7").at_most(1.0);
const FACTS: &str = "facts";
const BUDGET_OF: &str = "budget";
/// Decisions of the solver.
const DECISIONS: Parameter = Parameter::optional(BUDGET_OF, Kind::Integer, "20000000").at_least(0).or(BUDGET as i64);

/// Sight of the reader.
static STRENGTH: Choice<AdversaryModel, 4> = Choice::new(
    "strength",
    [
        ("cover", AdversaryModel::Cover),
        ("group", AdversaryModel::Group),
        ("joint", AdversaryModel::Joint),
        ("joint_cover", AdversaryModel::JointCover),
    ],
    "'cover'",
);

pub(super) static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "disclosure",
    about: "what a reader of releases can infer about everybody",
    refused: &[],
    parameters: &[
        Parameter::required(RELEASES, Kind::Relations, "(release1, release2)")
            .says("a release, several as (r1, r2), or a publication"),
        Parameter::optional(ORIGINAL, Kind::Relation, "patients")
            .otherwise("background")
            .says("what the reader knows, and the true sensitive values"),
        Parameter::optional(BACKGROUND, Kind::Relation, "people")
            .otherwise("original")
            .says("what the reader knows: identifiers and quasi-identifiers"),
        Parameter::ID,
        Parameter::QUASI,
        Parameter::SENSITIVE,
        STRENGTH.parameter().says("what the reader knows of groups"),
        Parameter::UPDATES,
        Parameter::HIERARCHIES,
        MATCH
            .parameter()
            .otherwise("none")
            .says("for rows that look like rows: the chance that a quasi-identifier is looked at"),
        Parameter::optional(FACTS, Kind::Relation, "(SELECT patient_id, disease FROM patients WHERE patient_id = 7)")
            .otherwise("nothing")
            .says("what else the reader knows: identifier, sensitive value and perhaps release"),
        DECISIONS
            .says("decisions of the solver for each part of a joint inference; what is not found out is undecided"),
    ],
};

pub(super) fn table(mut arguments: Arguments, options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
    let function = SIGNATURE.name;
    let of_each = arguments.clone();
    let input = |argument, plan| Input { function, argument, plan };
    let (releases, declared) = expanded(arguments.relations(RELEASES))?;
    let mut releases: Vec<Input> = releases.into_iter().map(|plan| input(RELEASES, plan)).collect();
    let mut known = match (arguments.relation_if_given(ORIGINAL), arguments.relation_if_given(BACKGROUND)) {
        (Some(plan), None) => input(ORIGINAL, plan),
        (None, Some(plan)) => input(BACKGROUND, plan),
        (None, None) => {
            return Err(refusal!(
                function,
                argument "original",
                "argument original is missing; expected the table that was anonymized, or with background => .. \
                 what a reader knows of people: their identifiers and quasi-identifiers"
            ));
        }
        (Some(_), Some(_)) => return Err(refusal!(function, "either original or background, not both")),
    };
    let strength = STRENGTH.of(&arguments);
    let session = arguments.session().ok();
    let columns: Vec<Vec<FieldRef>> = releases.iter().map(|release| released_columns(release, session)).collect();
    let mut roles = Roles::find(&arguments, options, &known, &columns, &declared)?;
    let mut facts = arguments.relation_if_given(FACTS).map(|plan| input(FACTS, plan));
    if let Some((columns, several)) = roles.several.take() {
        let updates = arguments.word(UPDATES).is_some() || arguments.relation_if_given(UPDATES).is_some();
        if several == Several::Each && (updates || facts.is_some()) {
            return Err(refusal!(
                function,
                argument Role::Sensitive.name(),
                "updates and facts are of one column or of the combination, not of each column: write sensitive => {COMPOSITE}({}), or name one column",
                columns.join(", ")
            ));
        }
        if several == Several::Each {
            return each(&of_each, options, &columns);
        }
        if known.argument == ORIGINAL {
            known = known.composed(&columns, &roles.sensitive)?;
        }
        let composed = |release: Input| release.composed(&columns, &roles.sensitive);
        releases = releases.into_iter().map(composed).collect::<Result<_>>()?;
        facts = facts.map(|facts| facts.composed(&columns, &roles.sensitive)).transpose()?;
    }
    if arguments.number(P_MATCH).is_some() || columns.iter().any(|columns| perturbed::is_perturbed(columns)) {
        return perturbed_rows(&mut arguments, &roles, known, releases, facts.is_some());
    }
    let says = known.has(RELEASE);
    known = known.in_releases(&declared.presence, &roles.id, &roles.sensitive)?;
    let mut columns = Columns::find(&roles, &known, &releases)?;
    if known.argument == BACKGROUND {
        columns.true_value = None;
    }
    if strength.knows_groups() && columns.releases.iter().any(|release| release.id.is_none()) {
        let word = arguments.word("strength").unwrap_or_default();
        return Err(refusal!(
            function,
            "strength => '{word}' is for private views (private => true), which have the identifier column {}; a \
             release here has none",
            roles.id
        ));
    }
    // What is said here wins.
    let any_update = arguments.word(UPDATES).is_some();
    let given = arguments.relation_if_given(UPDATES);
    let is_given = given.is_some() || any_update;
    let any_update = any_update || !is_given && declared.any_update;
    let updates = match given.or_else(|| declared.updates.filter(|_| !is_given)) {
        Some(plan) => Some(columns.updates(input(UPDATES, plan))?),
        None => None,
    };
    let facts = facts.map(|facts| columns.facts(&roles, facts)).transpose()?;
    let budget = arguments.integer(&DECISIONS)?;
    if let (false, Some(name)) =
        (strength.is_joint(), facts.as_ref().map(|_| FACTS).or_else(|| budget.map(|_| BUDGET_OF)))
    {
        return Err(refusal!(
            function,
            argument name,
            "argument {name} is for readers who combine people; add strength => 'joint' or 'joint_cover'"
        ));
    }
    let hierarchies = match arguments.relation_if_given(HIERARCHIES).or(declared.hierarchies) {
        Some(plan) => Some(input(HIERARCHIES, plan).hierarchies()?),
        None => None,
    };
    let made_with = match (&hierarchies, arguments.session()) {
        (Some(plan), Ok(session)) => {
            let plans = releases.iter().map(|release| &release.plan);
            MadeWith::of(function, plan, plans, &roles.quasi, session)
        }
        _ => None,
    };
    let question = DisclosureComputation {
        any_update,
        closed: declared.closed && !is_given,
        times: declared.times,
        people: if says { Vec::new() } else { declared.people },
        facts: facts.is_some(),
        budget: arguments.integer_or_default(&DECISIONS)? as u64,
        ..columns.question(strength, updates.is_some())
    };
    let mut plans = columns.project(known, releases)?;
    plans.extend(updates.into_iter().chain(facts).chain(hierarchies));
    Ok(Computed::new(Arc::new(question), plans).made_with(made_with).table())
}

/// Returns what is inferred of each column by itself, in one table. A column of it names the sensitive column.
fn each(arguments: &Arguments, options: &AnonymizeOptions, columns: &[String]) -> Result<Arc<dyn TableProvider>> {
    let of_column = |column: &String| -> Result<LogicalPlanBuilder> {
        let mut arguments = arguments.clone();
        arguments.set_columns(Role::Sensitive.name(), vec![column.clone()]);
        let source = provider_as_source(table(arguments, options)?);
        let plan = LogicalPlanBuilder::scan(TableReference::bare(SIGNATURE.name), source, None)?;
        let inferred = plan.schema().iter().map(|(qualifier, field)| {
            let value = Expr::Column((qualifier, field).into());
            // Lists of values of several columns have one type.
            match field.data_type() {
                DataType::List(_) => {
                    let texts = Arc::new(Field::new_list_field(DataType::Utf8, true));
                    cast(value, DataType::List(texts)).alias(field.name())
                }
                _ => value,
            }
        });
        let named = lit(column.as_str()).alias(Role::Sensitive.name());
        let projected: Vec<Expr> = inferred.chain([named]).collect();
        plan.project(projected)
    };
    let mut all = columns.iter().map(of_column).collect::<Result<Vec<_>>>()?.into_iter();
    let Some(first) = all.next() else { return Err(refusal!(SIGNATURE.name, "no sensitive column")) };
    let union = all.try_fold(first, |union, next| union.union(next.build()?))?;
    Ok(Arc::new(ViewTable::new(union.build()?, None)))
}

/// Returns the releases whose rows look like rows: there are no groups and no intervals, but rows that may be somebody's.
fn perturbed_rows(
    arguments: &mut Arguments,
    roles: &Roles,
    known: Input,
    releases: Vec<Input>,
    facts: bool,
) -> Result<Arc<dyn TableProvider>> {
    let function = SIGNATURE.name;
    let Some(p_match) = MATCH.given(arguments)? else {
        return Err(refusal!(
            function,
            "rows of this release look like rows, so argument {P_MATCH} must say with which probability a \
             reader uses each quasi-identifier to find somebody, for example {P_MATCH} => 0.7"
        ));
    };
    let others = [(arguments.word("strength").is_some(), "strength"), (known.argument == BACKGROUND, BACKGROUND)];
    let relations = [UPDATES, HIERARCHIES]
        .map(|name| (arguments.word(name).is_some() || arguments.relation_if_given(name).is_some(), name));
    if let Some((_, name)) = others.into_iter().chain(relations).chain([(facts, FACTS)]).find(|(given, _)| *given) {
        return Err(refusal!(
            function,
            argument name,
            "argument {name} does not go with {P_MATCH}, which is about rows that look like rows; leave it out"
        ));
    }
    let Ok([release]) = <[Input; 1]>::try_from(releases) else {
        return Err(refusal!(
            function,
            "{P_MATCH} is about one release of rows that look like rows; pass them one at a time"
        ));
    };
    if end_of(&release.column(&roles.quasi[0])?.field, LO).is_some() {
        return Err(refusal!(
            function,
            "{P_MATCH} is about rows that look like rows, but this release has intervals; leave it out"
        ));
    }
    perturbed::table(p_match, known, release, (&roles.id, &roles.quasi, &roles.sensitive))
}

/// Replaces publications by their releases, and returns what the only one says of itself.
#[cfg(feature = "publication")]
fn expanded(relations: Vec<LogicalPlan>) -> Result<(Vec<LogicalPlan>, Declared)> {
    let is_alone = relations.len() == 1;
    let (mut all, mut found) = (Vec::new(), Declared::default());
    for relation in relations {
        match super::publication::evidence_of(&relation)? {
            Some((releases, declared)) => {
                all.extend(releases);
                found = if is_alone { declared } else { Declared::default() };
            }
            None => all.push(relation),
        }
    }
    Ok((all, found))
}

#[cfg(not(feature = "publication"))]
fn expanded(relations: Vec<LogicalPlan>) -> Result<(Vec<LogicalPlan>, Declared)> {
    Ok((relations, Declared::default()))
}

struct Roles {
    id: String,
    quasi: Vec<String>,
    sensitive: String,
    /// The columns of a sensitive attribute of several, and the subject of the bound.
    several: Option<(Vec<String>, Several)>,
}

impl Roles {
    /// Finds the roles: from the arguments, else as the publication has declared, else from the metadata of what is known or of the first release, else from
    /// the session.
    fn find(
        arguments: &Arguments,
        options: &AnonymizeOptions,
        known: &Input,
        releases: &[Vec<FieldRef>],
        declared: &Declared,
    ) -> Result<Self> {
        let find = |role: Role, setting: &Option<String>, example: &str| {
            if let Some(names) = arguments.columns(role.name()) {
                return Ok(names.to_vec());
            }
            let published = |name: &&String| releases.iter().flatten().any(|field| field.name() == *name);
            let said: Vec<String> = match role {
                Role::Id => declared.id.iter().cloned().collect(),
                Role::Quasi => declared.quasi.iter().filter(published).cloned().collect(),
                Role::Sensitive => declared.sensitive.iter().filter(published).cloned().collect(),
                _ => Vec::new(),
            };
            let first = releases.first().map_or(&[][..], Vec::as_slice);
            let columns: [&[FieldRef]; 2] = [known.plan.schema().fields(), first];
            let noted = columns.into_iter().map(|columns| {
                let with_role = columns
                    .iter()
                    .filter(|field| field.metadata().get(Role::KEY).and_then(|text| Role::parse(text)) == Some(role));
                with_role.map(|field| field.name().clone()).collect::<Vec<_>>()
            });
            let names: fn(&str) -> Vec<String> =
                if role == Role::Sensitive { |text: &str| sensitive_names(text).0 } else { split_names };
            let set = setting.as_deref().map(names).unwrap_or_default();
            match [said].into_iter().chain(noted).chain([set]).find(|names| !names.is_empty()) {
                Some(names) => Ok(names),
                None => Err(refusal!(
                    SIGNATURE.name,
                    "no column is the {}; name it with {} => {example}",
                    role.name(),
                    role.name()
                )),
            }
        };
        let one = |role: Role, setting: &Option<String>, example: &str| match find(role, setting, example)?.as_slice() {
            [name] => Ok(name.clone()),
            names => Err(refusal!(
                SIGNATURE.name,
                "{} columns have the role {}, but there must be one; choose with {} => {example}",
                names.len(),
                role.name(),
                role.name()
            )),
        };
        let id = one(Role::Id, &options.id, "patient_id")?;
        let quasi = find(Role::Quasi, &options.quasi, "(age, zip)")?;
        let sensitive = find(Role::Sensitive, &options.sensitive, "disease")?;
        let several = match arguments.columns(Role::Sensitive.name()) {
            Some(_) => arguments.several(Role::Sensitive.name()),
            None if !declared.sensitive.is_empty() => declared.several,
            // Each column decides, whatever the release was made for, unless the combination is asked for.
            None => options.sensitive.as_deref().map_or(Several::Each, |setting| sensitive_names(setting).1),
        };
        Ok(Self {
            id,
            quasi,
            sensitive: match sensitive.as_slice() {
                [name] => name.clone(),
                columns => name_of_parts(columns, several),
            },
            several: (sensitive.len() > 1).then_some((sensitive, several)),
        })
    }
}

/// A column with the type that it has in all relations.
struct Columns {
    id: InputColumn,
    quasi: Vec<InputColumn>,
    sensitive: FieldRef,
    true_value: Option<InputColumn>,
    /// Number of the release, in what is known.
    number: Option<InputColumn>,
    releases: Vec<ReleaseInputs>,
}

struct ReleaseInputs {
    /// `None` if the release lacks it.
    quasi: Vec<Option<InputColumn>>,
    sensitive: InputColumn,
    group: Option<InputColumn>,
    id: Option<InputColumn>,
}

impl ReleaseInputs {
    fn absent(&self) -> Vec<usize> {
        self.quasi.iter().enumerate().filter(|(_, column)| column.is_none()).map(|(j, _)| j).collect()
    }
}

impl Columns {
    fn find(roles: &Roles, known: &Input, releases: &[Input]) -> Result<Self> {
        let function = SIGNATURE.name;
        let if_there = |input: &Input, name: &str| input.has(name).then(|| input.column(name)).transpose();
        let publish = |mut column: InputColumn| column.publish(function).map(|()| column);
        let mut id = publish(known.column(&roles.id)?)?;
        let quasi = roles.quasi.iter().map(|name| publish(known.column(name)?));
        let mut quasi = quasi.collect::<Result<Vec<_>>>()?;
        let number = if_there(known, RELEASE)?.filter(|_| {
            let others = roles.quasi.iter().chain([&roles.id, &roles.sensitive]);
            others.into_iter().all(|name| name != RELEASE)
        });
        if let Some(number) = number.as_ref().filter(|number| !number.field.data_type().is_integer()) {
            return Err(refusal!(
                function,
                "column {RELEASE} of {} is the number of the release that a row is about, a whole number, but it is {}; cast \
                 it, or rename it in a query in parentheses",
                known.argument,
                number.field.data_type()
            ));
        }
        let mut true_value = match known.argument {
            ORIGINAL => Some(publish(known.column(&roles.sensitive)?)?),
            _ => None,
        };
        // Releases may lack columns, but one that none has is a mistake.
        if let (Some(release), Some(name)) =
            (releases.first(), roles.quasi.iter().find(|name| !releases.iter().any(|release| release.has(name))))
        {
            release.column(name)?;
        }
        let mut found = Vec::new();
        for release in releases {
            let inputs = ReleaseInputs {
                quasi: roles.quasi.iter().map(|name| if_there(release, name)).collect::<Result<_>>()?,
                sensitive: release.column(&roles.sensitive)?,
                group: if_there(release, GROUP_ID)?,
                id: if_there(release, &roles.id)?,
            };
            let there = quasi.iter_mut().zip(&inputs.quasi);
            for (column, interval) in there.filter_map(|(column, interval)| Some((column, interval.as_ref()?))) {
                let field = end_of(&interval.field, LO).unwrap_or_else(|| FieldRef::clone(&interval.field));
                common_type(function, column, &InputColumn { column: interval.column.clone(), field }, RELEASES)?;
            }
            if let Some(theirs) = &inputs.id {
                common_type(function, &mut id, theirs, RELEASES)?;
            }
            let theirs =
                InputColumn { column: inputs.sensitive.column.clone(), field: value_of(&inputs.sensitive.field) };
            match &mut true_value {
                Some(value) => common_type(function, value, &theirs, RELEASES)?,
                None => common_type(function, true_value.insert(theirs.clone()), &theirs, RELEASES)?,
            };
            found.push(inputs);
        }
        let Some(value) = true_value else { return Err(refusal!(function, "there are no releases")) };
        for theirs in found.iter().map(|release| &release.sensitive.field) {
            let item = value_of(theirs);
            let same = item.data_type() == value.field.data_type()
                || item.data_type().is_string() && value.field.data_type().is_string();
            if !same && matches!(theirs.data_type(), DataType::List(_)) {
                return Err(refusal!(
                    function,
                    "column {} is {} here but lists of {} in a release; cast one of them",
                    roles.sensitive,
                    value.field.data_type(),
                    item.data_type()
                ));
            }
        }
        Ok(Self { id, quasi, sensitive: Arc::clone(&value.field), true_value: Some(value), number, releases: found })
    }

    /// Returns the relation of changes: from, to and, if there is one, probability.
    fn updates(&self, updates: Input) -> Result<LogicalPlan> {
        let end = |column: InputColumn, name: &str| -> Result<Expr> {
            let mut typed = InputColumn { column: column.column.clone(), field: Arc::clone(&self.sensitive) };
            common_type(SIGNATURE.name, &mut typed, &column, UPDATES)?;
            Ok(cast(Expr::Column(column.column), self.sensitive.data_type().clone()).alias(name))
        };
        let [from, to] = updates.update_ends()?;
        let mut columns = vec![end(from, "from")?, end(to, "to")?];
        if updates.has("probability") {
            let probability = updates.column("probability")?;
            if !probability.field.data_type().is_numeric() {
                return Err(refusal!(
                    SIGNATURE.name,
                    "column probability of updates is {}; it must be a number",
                    probability.field.data_type()
                ));
            }
            columns.push(cast(Expr::Column(probability.column), DataType::Float64).alias("probability"));
        }
        LogicalPlanBuilder::from(updates.plan).project(columns)?.build()
    }

    /// Returns the relation of facts: identifier, sensitive value and, if there is one, the number of the release.
    fn facts(&self, roles: &Roles, facts: Input) -> Result<LogicalPlan> {
        let mut columns = Vec::new();
        for (name, field) in [(&roles.id, &self.id.field), (&roles.sensitive, &self.sensitive)] {
            let theirs = facts.column(name)?;
            let mut own = InputColumn { column: theirs.column.clone(), field: Arc::clone(field) };
            common_type(SIGNATURE.name, &mut own, &theirs, FACTS)?;
            columns.push(cast(Expr::Column(theirs.column), field.data_type().clone()).alias(name));
        }
        if let Ok(number) = facts.column(RELEASE)
            && number.field.data_type().is_integer()
        {
            columns.push(cast(Expr::Column(number.column), DataType::Int64).alias(RELEASE));
        }
        LogicalPlanBuilder::from(facts.plan).project(columns)?.build()
    }

    fn question(&self, strength: AdversaryModel, updates: bool) -> DisclosureComputation {
        let release =
            |release: &ReleaseInputs| ReleaseColumns { group: release.group.is_some(), id: release.id.is_some() };
        DisclosureComputation {
            strength,
            id: Arc::clone(&self.id.field),
            quasi: self.quasi.iter().map(|column| Arc::clone(&column.field)).collect(),
            sensitive: Arc::clone(&self.sensitive),
            known: BackgroundColumns { sensitive: self.true_value.is_some(), release: self.number.is_some() },
            releases: self.releases.iter().map(release).collect(),
            absent: self.releases.iter().map(ReleaseInputs::absent).collect(),
            updates,
            facts: false,
            budget: BUDGET,
            any_update: false,
            closed: false,
            times: Vec::new(),
            people: Vec::new(),
            wanted: None,
        }
    }

    /// Returns each relation with exactly the columns that the operator reads.
    fn project(self, known: Input, releases: Vec<Input>) -> Result<Vec<LogicalPlan>> {
        let typed = |column: &Column, field: &Field, name: &str| {
            cast(Expr::Column(column.clone()), field.data_type().clone()).alias(name)
        };
        let Self { id, quasi, sensitive, true_value, number, releases: columns } = self;
        let mut expressions = vec![typed(&id.column, &id.field, id.field.name())];
        expressions.extend(quasi.iter().map(|column| typed(&column.column, &column.field, column.field.name())));
        expressions.extend(true_value.iter().map(|value| typed(&value.column, &sensitive, sensitive.name())));
        expressions.extend(number.iter().map(|number| cast(Expr::Column(number.column.clone()), DataType::Int64)));
        let mut plans = vec![LogicalPlanBuilder::from(known.plan).project(expressions)?.build()?];
        for (release, columns) in releases.into_iter().zip(columns) {
            let mut expressions = Vec::new();
            let there = quasi.iter().zip(&columns.quasi);
            for (column, interval) in there.filter_map(|(column, interval)| Some((column, interval.as_ref()?))) {
                let expr = Expr::Column(interval.column.clone());
                for which in [LO, HI] {
                    let end =
                        if end_of(&interval.field, which).is_some() { expr.clone().field(which) } else { expr.clone() };
                    let name = format!("{}.{which}", column.field.name());
                    expressions.push(cast(end, column.field.data_type().clone()).alias(name));
                }
            }
            expressions.push(match columns.sensitive.field.data_type() {
                DataType::List(_) => Expr::Column(columns.sensitive.column).alias(sensitive.name()),
                _ => typed(&columns.sensitive.column, &sensitive, sensitive.name()),
            });
            expressions.extend(columns.group.map(|group| Expr::Column(group.column).alias("group")));
            expressions.extend(columns.id.map(|theirs| typed(&theirs.column, &id.field, "identifier")));
            plans.push(LogicalPlanBuilder::from(release.plan).project(expressions)?.build()?);
        }
        Ok(plans)
    }
}

/// Returns the sensitive attribute of a release, in lists or not.
fn value_of(field: &FieldRef) -> FieldRef {
    if let DataType::List(item) = field.data_type()
        && let DataType::Struct(fields) = item.data_type()
        && let [value, _count] = fields.iter().as_slice()
    {
        return Arc::new(value.as_ref().clone().with_name(field.name()));
    }
    Arc::clone(field)
}
