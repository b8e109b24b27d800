//! Arguments of a call, bound to parameters and checked.

use std::collections::HashMap;

use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_datafusion_err};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;

use super::categories::with_orders;
use super::input::{Input, WORLDS};
use super::lake::refuse_loose;
use super::options::{AnonymizeOptions, split_names};
use super::repeatable::{check_choices, check_volatile};
use super::signature::{FunctionSignature, Kind, Parameter, Preset, Style, suggestion};
use super::verbatim_columns::as_written;
use crate::error::{AnonymizeError, planning_without_values, refusal};
use crate::exec::Seed;
use crate::methods::{AnyMethod, Argument, Given, Registered};
use crate::microdata::{Role, Several};

/// The parameter that has the memory of a call.
const PREVIOUS: &str = Parameter::PREVIOUS.name;

/// Scope of a call. It reads raw arguments, which are SQL syntax in one scope and logical expressions in another.
pub(super) trait Scope {
    /// An argument as it was written.
    type Raw;

    /// Returns the relation that an argument names or contains.
    /// Fails when there is no such table, or the query is wrong.
    fn relation(&mut self, raw: &Self::Raw) -> Result<LogicalPlan>;

    /// Returns the items of an argument in parentheses or brackets, `None` if it has none.
    fn items(&self, _raw: &Self::Raw) -> Option<Vec<Self::Raw>> {
        None
    }

    /// Returns the column names of an argument, `None` if it has another form.
    fn columns(&self, raw: &Self::Raw) -> Option<Vec<String>>;

    /// Returns the columns of `composite(..)`, `None` if an argument has another form.
    fn together(&self, raw: &Self::Raw) -> Option<Vec<String>>;

    /// Returns the constant that an argument amounts to.
    /// Fails when it is not constant.
    fn constant(&mut self, raw: &Self::Raw) -> Result<ScalarValue>;

    fn options(&self) -> AnonymizeOptions;

    /// Returns the session that the call is planned in.
    /// Fails when the engine's session is of another kind than DataFusion's own.
    fn session(&self) -> Result<SessionState>;

    fn style(&self) -> Style {
        Style::Call
    }
}

#[derive(Debug, Clone)]
enum Value {
    Relation(Box<LogicalPlan>),
    Relations(Vec<LogicalPlan>),
    Integer(i64),
    Number(f64),
    Boolean(bool),
    Length(Length),
    Seed(Seed),
    Columns(Vec<String>),
    /// Columns whose combination is meant.
    Together(Vec<String>),
    Word(String),
}

/// Length in units or in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Number(i64),
    /// Time.
    Interval(IntervalMonthDayNano),
}

/// The arguments of one call, by parameter.
#[derive(Debug, Clone)]
pub(super) struct Arguments {
    function: &'static str,
    refused: &'static [(&'static str, &'static str)],
    style: Style,
    session: Option<Box<SessionState>>,
    values: HashMap<&'static str, Value>,
}

impl Arguments {
    /// Binds positional arguments in the order of the parameters, then named ones.
    /// Fails with too many, unknown, repeated or missing arguments; arguments of the wrong kind.
    pub(super) fn bind<S: Scope>(
        signature: &FunctionSignature<'_>,
        arguments: Vec<(Option<String>, S::Raw)>,
        scope: &mut S,
    ) -> Result<Self> {
        let name = signature.name;
        let style = scope.style();
        let noun = style.noun();
        let refused = signature.refused;
        let mut bound = Self { function: name, refused, style, session: None, values: HashMap::new() };
        let mut named_before = None;
        for (position, (argument, raw)) in arguments.into_iter().enumerate() {
            let parameter = match argument {
                None => {
                    if let Some(before) = named_before {
                        return Err(refusal!(
                            name,
                            "argument {} has no name but follows {before} => ..; name it too",
                            position + 1
                        ));
                    }
                    signature.parameters.get(position).ok_or_else(|| {
                        refusal!(
                            name,
                            "at most {} arguments, but there are more; usage: {}",
                            signature.parameters.len(),
                            signature.usage()
                        )
                    })?
                }
                Some(argument) => {
                    let parameter = find(signature, style, &argument)?;
                    named_before = Some(parameter.name);
                    parameter
                }
            };
            let value = read(name, parameter, &raw, scope)?;
            if bound.values.insert(parameter.name, value).is_some() {
                return Err(refusal!(name, argument parameter.name, "{noun} {} is given twice", parameter.name));
            }
        }
        for parameter in signature.parameters.iter().filter(|parameter| parameter.required) {
            if !bound.values.contains_key(parameter.name) {
                let example = match style {
                    Style::Call => signature.example(),
                    Style::Options => style.write(parameter.name, parameter.example),
                };
                return Err(refusal!(
                    name,
                    argument parameter.name,
                    "{noun} {} is missing; expected {}, for example {example}",
                    parameter.name,
                    style.expected(parameter)
                ));
            }
        }
        bound.check_choices(signature, &scope.options())?;
        let has = |kind: Kind| signature.parameters.iter().any(|parameter| parameter.kind == kind);
        if has(Kind::Release) {
            bound.session = Some(Box::new(scope.session()?));
        } else if has(Kind::Relations)
            || bound.values.contains_key(Parameter::HIERARCHIES.name)
            || bound.values.contains_key(WORLDS)
        {
            // Where the engine has none of ours, releases do not say which hierarchies they were made with, nor files which release they are.
            bound.session = scope.session().ok().map(Box::new);
        }
        Ok(bound)
    }

    /// Checks that the choice of rows is unique: nobody is in a table twice, so an order by identifiers suffices.
    fn check_choices(&self, signature: &FunctionSignature<'_>, options: &AnonymizeOptions) -> Result<()> {
        let unique = match self.columns("id") {
            Some(columns) => columns.to_vec(),
            None => options.id.as_deref().map(split_names).unwrap_or_default(),
        };
        for parameter in signature.parameters {
            if let (Kind::Relation | Kind::NumberOrRelation, Some(Value::Relation(plan))) =
                (parameter.kind, self.values.get(parameter.name))
            {
                check_choices(self.function, &format!("argument {}", parameter.name), plan, &unique)?;
            }
            if let (PREVIOUS, Some(Value::Relations(plans))) = (parameter.name, self.values.get(parameter.name)) {
                for plan in plans {
                    check_choices(self.function, "argument previous", plan, &unique)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the session of the call, for a [`Kind::Release`] and for hierarchies.
    /// Fails when there is no such parameter, which is a bug; for hierarchies, when the engine's session is of another kind.
    pub(super) fn session(&self) -> Result<&SessionState> {
        self.session.as_deref().ok_or_else(|| internal_datafusion_err!("{}: planned without a session", self.function))
    }

    pub(super) fn function(&self) -> &'static str {
        self.function
    }

    pub(super) fn style(&self) -> Style {
        self.style
    }

    /// Returns a required relation.
    /// Fails when the parameter is not declared as such, which is a bug.
    pub(super) fn relation(&mut self, name: &str) -> Result<LogicalPlan> {
        self.relation_if_given(name)
            .ok_or_else(|| refusal!(self.function(), argument name, "argument {name} is missing"))
    }

    /// Returns true if the function has a reason against a parameter that others take.
    pub(super) fn is_refused(&self, name: &str) -> bool {
        self.refused.iter().any(|(refused, _)| *refused == name)
    }

    /// Returns the method with the parameters that these arguments give it.
    /// Fails when arguments are out of range, or contradict each other.
    pub(super) fn method(&self, method: &Registered) -> Result<AnyMethod> {
        let given = |name: &str| {
            Some(match self.values.get(name)? {
                Value::Integer(number) => Argument::Integer(*number),
                Value::Number(number) => Argument::Number(*number),
                Value::Boolean(set) => Argument::Boolean(*set),
                Value::Word(word) => Argument::Word(word),
                Value::Relation(_) => Argument::Relation,
                Value::Relations(_) | Value::Length(_) | Value::Seed(_) => return None,
                Value::Columns(_) | Value::Together(_) => return None,
            })
        };
        (method.of)(&Given::try_new(method.signature, self.style, given)?)
    }

    pub(super) fn relation_if_given(&mut self, name: &str) -> Option<LogicalPlan> {
        let (name, value) = self.values.remove_entry(name)?;
        match value {
            Value::Relation(plan) => Some(*plan),
            other => {
                self.values.insert(name, other);
                None
            }
        }
    }

    /// Reads the hierarchies, if they are given: attribute, leaf and levels. Errors are of the `function`.
    /// Fails when they lack a column.
    pub(super) fn hierarchies(&mut self, function: &'static str) -> Result<Option<LogicalPlan>> {
        let plan = self.relation_if_given(Parameter::HIERARCHIES.name);
        plan.map(|plan| Input { function, argument: Parameter::HIERARCHIES.name, plan }.hierarchies()).transpose()
    }

    /// Takes the relations of an argument in the order they were written in.
    pub(super) fn relations(&mut self, name: &str) -> Vec<LogicalPlan> {
        match self.values.remove(name) {
            Some(Value::Relations(plans)) => plans,
            Some(Value::Relation(plan)) => vec![*plan],
            _ => Vec::new(),
        }
    }

    /// Returns a whole number, if it was given.
    /// Fails when it is out of range.
    pub(super) fn integer(&self, parameter: &Parameter) -> Result<Option<usize>> {
        let Some(Value::Integer(number)) = self.values.get(parameter.name) else { return Ok(None) };
        match parameter.out_of_range(self.style, *number) {
            Some(why) => Err(refusal!(self.function, argument parameter.name, "{why}")),
            None => Ok(Some(*number as usize)),
        }
    }

    /// Returns a whole number, or what holds if it was not given.
    /// Fails when it is out of range, or missing.
    pub(super) fn integer_or_default(&self, parameter: &Parameter) -> Result<usize> {
        match (self.integer(parameter)?, parameter.default) {
            (Some(number), _) => Ok(number),
            (None, Preset::Integer(number)) => Ok(number as usize),
            _ => Err(self.missing(parameter)),
        }
    }

    pub(super) fn missing(&self, parameter: &Parameter) -> DataFusionError {
        let (noun, name) = (self.style.noun(), parameter.name);
        refusal!(self.function, argument name, "{noun} {name} is missing")
    }

    pub(super) fn number(&self, name: &str) -> Option<f64> {
        match self.values.get(name) {
            Some(Value::Number(value)) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn length(&self, name: &str) -> Option<Length> {
        match self.values.get(name) {
            Some(Value::Length(length)) => Some(*length),
            _ => None,
        }
    }

    pub(super) fn seed(&self, name: &str) -> Option<Seed> {
        match self.values.get(name) {
            Some(Value::Seed(seed)) => Some(seed.clone()),
            _ => None,
        }
    }

    /// Returns a truth value, `false` if not given.
    pub(super) fn boolean(&self, name: &str) -> bool {
        matches!(self.values.get(name), Some(Value::Boolean(true)))
    }

    pub(super) fn columns(&self, name: &str) -> Option<&[String]> {
        match self.values.get(name) {
            Some(Value::Columns(columns) | Value::Together(columns)) => Some(columns),
            _ => None,
        }
    }

    /// Returns the subject of the bound of columns that were named.
    pub(super) fn several(&self, name: &str) -> Several {
        match self.values.get(name) {
            Some(Value::Together(_)) => Several::Together,
            _ => Several::Each,
        }
    }

    /// Sets other columns in the place of those that were named.
    pub(super) fn set_columns(&mut self, name: &'static str, columns: Vec<String>) {
        self.values.insert(name, Value::Columns(columns));
    }

    /// Returns a word out of the declared ones.
    pub(super) fn word(&self, name: &str) -> Option<&str> {
        match self.values.get(name) {
            Some(Value::Word(word)) => Some(word),
            _ => None,
        }
    }
}

fn find<'a>(signature: &FunctionSignature<'a>, style: Style, argument: &str) -> Result<&'a Parameter> {
    let names = signature.parameters.iter().map(|parameter| parameter.name);
    signature.parameters.iter().find(|parameter| parameter.name == argument).ok_or_else(|| {
        if let Some(why) = signature.why_not(argument) {
            let (function, noun) = (signature.name, style.noun());
            return match argument == Parameter::CELLS.name {
                true => refusal!(
                    function,
                    argument argument,
                    "its releases cannot be made in cells: {why}; leave {argument} out"
                ),
                false => refusal!(function, argument argument, "it takes no {noun} {argument}: {why}; leave it out"),
            };
        }
        let known: Vec<_> = names.clone().collect();
        refusal!(
            signature.name,
            argument argument,
            "unknown {} {argument}{}; it takes {}",
            style.noun(),
            suggestion(argument, names),
            known.join(", ")
        )
    })
}

fn read<S: Scope>(function: &str, parameter: &Parameter, raw: &S::Raw, scope: &mut S) -> Result<Value> {
    let name = parameter.name;
    let style = scope.style();
    let noun = style.noun();
    let wrong = |got: &str| {
        let (expected, example) = (style.expected(parameter), style.write(name, parameter.example));
        refusal!(function, argument name, "{noun} {name} must be {expected}, for example {example}; got {got}")
    };
    match parameter.kind {
        Kind::Relation | Kind::Release => Ok(Value::Relation(Box::new(relation(function, name, raw, scope)?))),
        Kind::Relations => match scope.items(raw) {
            Some(items) if items.is_empty() => Err(wrong("none")),
            Some(items) => {
                let plans = items.iter().map(|item| relation(function, name, item, scope));
                Ok(Value::Relations(plans.collect::<Result<_>>()?))
            }
            None => Ok(Value::Relations(vec![relation(function, name, raw, scope)?])),
        },
        Kind::Column => match scope.columns(raw).as_deref() {
            Some([column]) => Ok(Value::Columns(vec![column.clone()])),
            Some(columns) => Err(wrong(&format!("{} columns", columns.len()))),
            None => Err(wrong("something else")),
        },
        Kind::Columns => match scope.together(raw).or_else(|| scope.columns(raw)) {
            Some(columns) if scope.together(raw).is_some() => match (name == Role::Sensitive.name(), columns.len()) {
                (true, 2..) => Ok(Value::Together(columns)),
                (true, count) => Err(wrong(&format!("composite of {count} columns"))),
                (false, _) => Err(wrong("composite(..)")),
            },
            Some(columns) if !columns.is_empty() => Ok(Value::Columns(columns)),
            Some(_) => Err(wrong("none")),
            None => Err(wrong("something else")),
        },
        // A word may stand without quotes, where it reads like a column.
        Kind::Word(words)
            if scope
                .columns(raw)
                .is_some_and(|names| matches!(&names[..], [word] if words.contains(&word.as_str()))) =>
        {
            Ok(Value::Word(scope.columns(raw).unwrap_or_default().concat()))
        }
        // A seed is a secret, a wrong one may be nearly the right one: errors do not repeat it.
        Kind::Seed => {
            let seed = scope.constant(raw).ok().and_then(|constant| scalar(parameter, &constant));
            seed.ok_or_else(|| wrong("something else"))
        }
        Kind::NumberOrRelation => match scope.constant(raw) {
            Ok(constant) if constant.data_type().is_numeric() => {
                scalar(parameter, &constant).ok_or_else(|| wrong(&describe(&constant)))
            }
            _ => Ok(Value::Relation(Box::new(relation(function, name, raw, scope)?))),
        },
        Kind::WordOrRelation(word) => match scope.constant(raw) {
            Ok(constant) if constant.try_as_str().flatten().is_some_and(|text| text.eq_ignore_ascii_case(word)) => {
                Ok(Value::Word(word.to_owned()))
            }
            _ => Ok(Value::Relation(Box::new(relation(function, name, raw, scope)?))),
        },
        Kind::Integer
        | Kind::IntegerOrWord(_)
        | Kind::Number
        | Kind::NumberOrWord(_)
        | Kind::Length
        | Kind::Boolean
        | Kind::Word(_) => {
            let constant = scope.constant(raw).map_err(|error| {
                wrong(&format!("something that is not a constant ({})", error.find_root().message()))
            })?;
            scalar(parameter, &constant).ok_or_else(|| wrong(&describe(&constant)))
        }
    }
}

/// Returns an interval as a text, without SQL's word and quotes.
fn interval_text(constant: &ScalarValue) -> ScalarValue {
    let Some(text) = constant.try_as_str().flatten() else { return constant.clone() };
    let word = text.trim().get(..8).filter(|word| word.eq_ignore_ascii_case("interval"));
    match word {
        Some(word) => ScalarValue::from(text.trim()[word.len()..].trim().trim_matches('\'')),
        None => constant.clone(),
    }
}

fn relation<S: Scope>(function: &str, name: &str, raw: &S::Raw, scope: &mut S) -> Result<LogicalPlan> {
    let noun = scope.style().noun();
    let what = format!("{noun} {name}");
    let plan = scope.relation(raw).map_err(|error| match planning_without_values(error, function, &what) {
        DataFusionError::Plan(text) => refusal!(function, argument name, "{what}: {text}"),
        // It says itself what it is about.
        error if AnonymizeError::of(&error).is_some() => error,
        error => error.context(format!("{function}: {what}")),
    })?;
    check_relation(function, name, &plan)?;
    let plan = as_written(name, plan, || scope.session())?;
    let plan = with_orders(plan, || scope.session())?;
    if plan.schema().fields().is_empty() {
        return Err(refusal!(
            function,
            argument name,
            "{noun} {name} has no columns; if it is a file, then one of 0 bytes"
        ));
    }
    refuse_loose(function, name, &plan, || scope.session())?;
    Ok(plan)
}

fn scalar(parameter: &Parameter, constant: &ScalarValue) -> Option<Value> {
    match parameter.kind {
        Kind::Integer => whole(constant).map(Value::Integer),
        Kind::IntegerOrWord(word) => match constant.try_as_str().flatten() {
            Some(text) => text.eq_ignore_ascii_case(word).then(|| Value::Word(word.to_owned())),
            None => whole(constant).map(Value::Integer),
        },
        Kind::NumberOrWord(word) if !constant.data_type().is_numeric() => {
            let text = constant.try_as_str().flatten()?;
            text.eq_ignore_ascii_case(word).then(|| Value::Word(word.to_owned()))
        }
        Kind::Number | Kind::NumberOrRelation | Kind::NumberOrWord(_) if constant.data_type().is_numeric() => {
            match constant.cast_to(&DataType::Float64) {
                Ok(ScalarValue::Float64(Some(value))) if value.is_finite() => Some(Value::Number(value)),
                _ => None,
            }
        }
        Kind::Length if constant.data_type().is_numeric() => {
            whole(constant).map(|value| Value::Length(Length::Number(value)))
        }
        // Options are texts; who writes the interval as in a call means the same.
        Kind::Length => match interval_text(constant).cast_to(&DataType::Interval(IntervalUnit::MonthDayNano)) {
            Ok(ScalarValue::IntervalMonthDayNano(Some(value))) => Some(Value::Length(Length::Interval(value))),
            _ => None,
        },
        Kind::Seed => match constant.try_as_str().flatten() {
            Some(text) => Some(Value::Seed(Seed::from_text(text))),
            None if !constant.data_type().is_integer() => None,
            None => match constant.cast_to(&DataType::UInt64) {
                Ok(ScalarValue::UInt64(Some(number))) => Some(Value::Seed(Seed::from_number(number))),
                _ => None,
            },
        },
        Kind::Boolean => match constant {
            ScalarValue::Boolean(Some(value)) => Some(Value::Boolean(*value)),
            _ => None,
        },
        Kind::Word(words) => {
            let word = constant.try_as_str().flatten()?.to_ascii_lowercase();
            words.contains(&word.as_str()).then_some(Value::Word(word))
        }
        _ => None,
    }
}

/// Reads a whole number, however it is written: `1000`, `1e3`.
fn whole(constant: &ScalarValue) -> Option<i64> {
    if constant.is_null() || !constant.data_type().is_numeric() {
        return None;
    }
    if !constant.data_type().is_integer() {
        // Up to here such a number is exact.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let Ok(ScalarValue::Float64(Some(value))) = constant.cast_to(&DataType::Float64) else { return None };
        return (value.fract() == 0.0 && value.abs() < EXACT).then_some(value as i64);
    }
    match constant.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(value)) => value,
        _ => None,
    }
}

/// Returns a constant of the call itself, which is not microdata.
fn describe(constant: &ScalarValue) -> String {
    match constant.try_as_str().flatten() {
        Some(text) => format!("'{text}'"),
        None if constant.is_null() => "NULL".to_owned(),
        None => format!("{constant}"),
    }
}

/// Checks that a release is of one table, known when the call is planned.
fn check_relation(function: &str, name: &str, plan: &LogicalPlan) -> Result<()> {
    let parameters = plan.get_parameter_names()?;
    if !parameters.is_empty() {
        return Err(refusal!(
            function,
            argument name,
            "argument {name} contains query parameters, which are not supported inside a relation that is \
             anonymized; write the values themselves"
        ));
    }
    check_volatile(function, &format!("argument {name}"), plan)?;
    // Subqueries inside the relation may refer to the relation itself, so only its own nodes are looked at.
    if plan.exists(|node| Ok(node.contains_outer_reference()))? {
        return Err(refusal!(
            function,
            argument name,
            "argument {name} refers to columns of the outer query; a release cannot depend on the row it is \
             joined to: put the query in a CTE without such references"
        ));
    }
    Ok(())
}
