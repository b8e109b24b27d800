//! The physical operators: collect the input as codes, run a method off the async threads, stream the release or publish it.

mod accuracy;
mod anonymize;
mod audits;
#[cfg(feature = "publication")]
mod beliefs;
mod boxed_futures;
mod buffered_rows;
mod casts;
mod cells;
mod computation;
mod disclosure;
mod files;
mod hidden;
mod inputs;
mod loss;
mod notices;
mod perturbed;
mod planner;
mod private_columns;
mod private_files;
mod profile;
mod progress;
#[cfg(feature = "publication")]
mod publish;
mod release_stream;
#[cfg(feature = "publication")]
mod release_writer;
mod reposition;
mod reposition_job;
mod repositioning;
mod seed;
#[cfg(feature = "distributed")]
mod shipped;
#[cfg(feature = "publication")]
mod snapshot;
#[cfg(feature = "publication")]
mod snapshot_check;
mod trees;
mod whole_files;
mod whole_input;
#[cfg(feature = "publication")]
mod window;
mod work;

pub(crate) use accuracy::QueryAccuracy;
pub use anonymize::{Anonymization, AnonymizeExec, AnonymizeJob};
pub use audits::FailedAudits;
#[cfg(feature = "publication")]
pub(crate) use audits::PublicationAudit;
pub(crate) use boxed_futures::{PlanFuture, TableFuture, boxed_method};
#[cfg(feature = "distributed")]
pub(crate) use cells::place_function;
pub use cells::{CellCount, Cells, CellsExec};
pub(crate) use cells::{bytes as bytes_of_release, cell_function, expected_rows};
pub(crate) use computation::{Computation, ComputationExec, Resources};
pub(crate) use disclosure::DisclosureComputation;
pub use files::KeepNan;
pub use hidden::HiddenExec;
#[cfg(feature = "distributed")]
pub(crate) use hidden::moves_rows;
pub(crate) use hidden::{Origin, hide};
pub use inputs::{Inputs, Survey};
pub(crate) use loss::InformationLoss;
pub use notices::Notices;
pub(crate) use perturbed::PerturbedComputation;
#[cfg(feature = "distributed")]
pub(crate) use planner::InputPlanner;
pub(crate) use planner::plan_input;
pub(crate) use profile::{Profile, ProfiledColumn, SEVERAL_ROWS, unpublishable};
pub(crate) use progress::Reporting;
pub use progress::{Progress, Step};
#[cfg(feature = "publication")]
pub use publish::{PublishExec, PublishJob};
pub use reposition::{RepositionExec, Repositioning};
pub use reposition_job::RepositionJob;
pub(crate) use reposition_job::{ORIGINAL_TIME, REPOSITION, STATUS, repositioned_schema};
pub use seed::Seed;
#[cfg(feature = "distributed")]
pub(crate) use shipped::{Shipped, as_operator, spread};
#[cfg(feature = "publication")]
pub(crate) use snapshot_check::SnapshotsCheck;
pub(crate) use trees::read_hierarchies;
pub use whole_files::WholeFiles;
pub use whole_input::{Job, WholeInputExec};
