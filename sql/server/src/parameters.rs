//! Parameters in parts of a statement that the planner does not read: they become columns after those of the plan's rows, so that a client is
//! told of their types and their values come with those of all others.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, ScalarValue};
use datafusion::logical_expr::expr::{Alias, Placeholder};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder};

use crate::error::SqlError;

/// What is known of a statement's parameters.
#[derive(Debug, Default)]
pub struct Parameters {
    /// Types of those that the planner found.
    known: HashMap<String, Option<DataType>>,
    /// Values, once the statement runs.
    values: Option<HashMap<String, ScalarValue>>,
    /// Types of those that were found in other parts.
    found: BTreeMap<String, DataType>,
}

impl Parameters {
    /// Those of the rows of a plan that writes.
    ///
    /// # Errors
    /// A parameter that is of two types.
    pub fn of(input: &LogicalPlan) -> Result<Parameters, DataFusionError> {
        Ok(Parameters { known: input.get_parameter_types()?, ..Parameters::default() })
    }

    /// The same, with the values that they have by now.
    ///
    /// # Errors
    /// As [`Parameters::of`].
    pub fn with_values(input: &LogicalPlan) -> Result<Parameters, DataFusionError> {
        let mut values = HashMap::new();
        if let LogicalPlan::Projection(projection) = input {
            for expr in &projection.expr {
                if let Expr::Alias(Alias { expr, name, .. }) = expr
                    && let Expr::Literal(value, _) = &**expr
                    && name.starts_with('$')
                {
                    values.insert(name.clone(), value.clone());
                }
            }
        }
        Ok(Parameters { values: Some(values), ..Parameters::of(input)? })
    }

    /// An expression with its parameters' values, or NULLs of their types where there are none yet. One that stands alone is of type `alone`.
    ///
    /// # Errors
    /// A parameter of no known type, or, once the statement runs, of no value.
    pub fn filled(&mut self, expr: Expr, schema: &DFSchema, alone: Option<&DataType>) -> Result<Expr, DataFusionError> {
        let (expr, _) = expr.infer_placeholder_types(schema)?;
        let alone = alone.filter(|_| matches!(expr, Expr::Placeholder(_)));
        let fill = |node: Expr| {
            // PostgreSQL takes a parameter that is cast to be of that type.
            let (placeholder, cast_to) = match &node {
                Expr::Placeholder(placeholder) => (placeholder, None),
                Expr::Cast(cast) => match &*cast.expr {
                    Expr::Placeholder(placeholder) => (placeholder, Some(cast.field.data_type())),
                    _ => return Ok(Transformed::no(node)),
                },
                _ => return Ok(Transformed::no(node)),
            };
            let known = self.known.get(&placeholder.id).cloned().flatten();
            let of = known
                .or_else(|| self.found.get(&placeholder.id).cloned())
                .or_else(|| cast_to.cloned())
                .or_else(|| placeholder.field.as_ref().map(|field| field.data_type().clone()))
                .or_else(|| alone.cloned());
            let Some(of) = of else {
                let message = format!("could not determine data type of parameter {}", placeholder.id);
                return Err(SqlError::new("42P18", message).into());
            };
            let value = match self.values.as_ref().map(|values| values.get(&placeholder.id)) {
                Some(Some(value)) => value.cast_to(&of)?,
                Some(None) => {
                    return Err(SqlError::new("42P02", format!("there is no parameter {}", placeholder.id)).into());
                }
                None => ScalarValue::try_new_null(&of)?,
            };
            self.found.insert(placeholder.id.clone(), of);
            let value = Expr::Literal(value, None);
            Ok(match cast_to {
                Some(to) => Transformed::yes(value.cast_to(to, schema)?),
                None => Transformed::yes(value),
            })
        };
        expr.transform_down(fill).data()
    }

    /// The rows of a plan, with the parameters that were found in other parts.
    ///
    /// # Errors
    /// None that is known.
    pub fn with_found(self, input: &Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>, DataFusionError> {
        if self.found.is_empty() {
            return Ok(Arc::clone(input));
        }
        let columns = input.schema().columns().into_iter().map(Expr::Column);
        let found = self.found.into_iter().map(|(id, of)| {
            let field = Some(Arc::new(Field::new(&id, of, true)));
            Expr::Placeholder(Placeholder { id: id.clone(), field }).alias(id)
        });
        let all: Vec<Expr> = columns.chain(found).collect();
        Ok(Arc::new(LogicalPlanBuilder::from(Arc::clone(input)).project(all)?.build()?))
    }
}
