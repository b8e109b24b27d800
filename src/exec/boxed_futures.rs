//! Async methods of traits whose futures are proved `Send` once, not for each method.
//!
//! `async_trait` boxes a future in a method whose lifetimes have bounds (`'life0: 'async_trait`), and no proof that is found under bounds with
//! lifetimes is kept for another method. That `LogicalPlan` and `Expr` can be shared takes rustc 1.95 two seconds to prove, for they contain each
//! other, and it does so twice for each method that has one at hand. Where a function without such bounds boxes the future, all of them together
//! take no more than the first.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use futures::future::BoxFuture;

/// Names the future of a plan.
pub(crate) type PlanFuture<'a> = BoxFuture<'a, Result<Arc<dyn ExecutionPlan>>>;
/// Names the future of a table.
pub(crate) type TableFuture<'a> = BoxFuture<'a, Result<Arc<dyn TableProvider>>>;

/// A method of a trait of `async_trait`, with its references' lifetimes named: the body gives the future, boxed by another function.
macro_rules! boxed_method {
    (<$($life:lifetime),*> fn $name:ident(&$me:ident $(, $argument:ident: $type:ty)* $(,)?) -> $output:ty $body:block) => {
        fn $name<'me, $($life,)* 'call>(&'me $me $(, $argument: $type)*) -> futures::future::BoxFuture<'call, $output>
        where
            'me: 'call,
            $($life: 'call,)*
            Self: 'call,
        $body
    };
}

pub(crate) use boxed_method;
