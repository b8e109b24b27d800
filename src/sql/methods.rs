//! All methods, as SQL sees them.

use std::sync::Arc;

use super::anatomy::AnatomyFunction;
use super::dynamic::DynamicFunction;
use super::m_distinct::MDistinctFunction;
use super::m_invariant::MInvariantFunction;
use super::method::MethodFunction;
use super::mondrian::MondrianFunction;
use super::muco::MucoFunction;
use super::sequential::{
    NonSequentialFunction, SequentialFunction, SequentialReleaseFunction, SequentialWorldsFunction,
};

/// In the order of the reference.
pub(super) fn methods() -> Vec<Arc<dyn MethodFunction>> {
    vec![
        Arc::new(MInvariantFunction),
        Arc::new(MDistinctFunction),
        Arc::new(DynamicFunction),
        Arc::new(MondrianFunction),
        Arc::new(AnatomyFunction),
        Arc::new(MucoFunction),
        Arc::new(SequentialWorldsFunction),
        Arc::new(SequentialReleaseFunction),
        Arc::new(NonSequentialFunction),
        Arc::new(SequentialFunction),
    ]
}
