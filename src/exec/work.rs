//! Execution of a method: the parts that operators share which make releases.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, Gauge, MetricBuilder};
use futures::StreamExt;
use rand::Rng;
use rand_chacha::ChaCha20Rng;

use super::inputs::Streams;
use super::whole_input::spawn_compute;
use super::{Notices, Progress, Step};
use crate::error::{Asked, Error};
use crate::methods::{AnyMethod, Monitor, SnapshotBuilder, State, StateKind};
use crate::microdata::{Layout, Microdata, ORDER_KEY, TextOrder};
use crate::release::{Form, Release};

/// An execution of a method, charged to the memory pool.
pub(super) struct Work {
    pub method: AnyMethod,
    pub metrics: Metrics,
    quasi: usize,
    /// True if there are parts, which are copies.
    parts: bool,
    reservation: Arc<MemoryReservation>,
    /// Bytes that are charged even while less is held.
    floor: usize,
    progress: Progress,
    notices: Notices,
    /// True if it was said already which columns are in the order of texts: a release is made in cells, one after the other.
    told_of_texts: AtomicBool,
    asked: Asked,
}

/// A release, and what making it leaves behind.
pub(super) struct Made {
    pub release: Release,
    /// State of its rows by earlier releases.
    pub state: State,
    pub rng: ChaCha20Rng,
}

impl Work {
    pub(super) fn new(
        operator: &'static str,
        method: AnyMethod,
        layout: &Layout,
        metrics: &ExecutionPlanMetricsSet,
        context: &TaskContext,
    ) -> Self {
        Self {
            method,
            metrics: Metrics::new(metrics),
            quasi: layout.quasi.len(),
            parts: layout.within.is_some(),
            reservation: Arc::new(MemoryConsumer::new(operator).register(context.memory_pool())),
            floor: 0,
            progress: Progress::of(context),
            notices: Notices::of(context),
            told_of_texts: AtomicBool::new(false),
            asked: Asked::Call,
        }
    }

    /// Returns the same by an INSERT into a publication.
    pub(super) fn asked(mut self, asked: Asked) -> Self {
        self.asked = asked;
        self
    }

    /// Charges so many bytes from now on, whatever is held: before inputs are polled, because what they hold cannot be had back.
    /// Fails when the pool has not so many.
    pub(super) fn set_floor(&mut self, bytes: usize) -> Result<()> {
        self.floor = bytes;
        self.reserve(0)
    }

    /// Charges nothing but the floor again.
    ///
    /// # Errors
    /// Never, but that the pool is asked.
    pub(super) fn begin_again(&self) -> Result<()> {
        self.reserve(0)
    }

    /// Encodes all inputs as they arrive.
    pub(super) async fn collect(&self, mut inputs: Streams) -> Result<SnapshotBuilder> {
        let named = |error: Error| error.in_function(self.method.name());
        let mut builder = self.builder(&inputs.layout)?;
        while let Some(batch) = inputs.microdata.next().await {
            self.take_rows(&mut builder, &batch?)?;
        }
        if let Some((kind, mut previous)) = inputs.previous.take() {
            self.check_kind(kind)?;
            while let Some(batch) = previous.next().await {
                self.take_previous(&mut builder, &batch?)?;
            }
        }
        if let Some(mut hierarchies) = inputs.hierarchies.take() {
            builder.microdata.expect_hierarchies();
            while let Some(batch) = hierarchies.next().await {
                builder.microdata.append_hierarchies(&batch?).map_err(named)?;
                self.reserve(builder.size())?;
            }
        }
        if let Some(mut updates) = inputs.updates.take() {
            while let Some(batch) = updates.next().await {
                builder.microdata.append_updates(&batch?).map_err(named)?;
                self.reserve(builder.size())?;
            }
        }
        Ok(builder)
    }

    /// Returns a builder for a table of this layout, or for a part of one.
    /// Fails when a column's type cannot be grouped by.
    pub(super) fn builder(&self, layout: &Layout) -> Result<SnapshotBuilder> {
        let builder = SnapshotBuilder::try_new(layout.clone(), self.method.state());
        builder.map_err(|error| error.in_function(self.method.name()))
    }

    /// Encodes rows of microdata.
    /// Fails when they are too many, or there is not enough memory.
    pub(super) fn take_rows(&self, builder: &mut SnapshotBuilder, batch: &RecordBatch) -> Result<()> {
        let _timer = self.metrics.baseline.elapsed_compute().timer();
        builder.microdata.append(batch).map_err(|error| error.in_function(self.method.name()))?;
        self.metrics.input_rows.add(batch.num_rows());
        self.progress.tell(Step::Read { rows: self.metrics.input_rows.value() });
        self.reserve(builder.size())
    }

    /// Encodes entries of earlier releases.
    /// Fails when they are malformed, or there is not enough memory.
    pub(super) fn take_previous(&self, builder: &mut SnapshotBuilder, batch: &RecordBatch) -> Result<()> {
        let _timer = self.metrics.baseline.elapsed_compute().timer();
        builder.append_previous(batch).map_err(|error| error.in_function(self.method.name()))?;
        self.metrics.previous_rows.add(batch.num_rows());
        self.reserve(builder.size())
    }

    /// Fails when the method has state of another kind, which is a bug.
    pub(super) fn check_kind(&self, kind: StateKind) -> Result<()> {
        match self.method.state() == Some(kind) {
            true => Ok(()),
            false => Err(Error::internal("earlier releases of another method").in_function(self.method.name())),
        }
    }

    /// Runs `work` on a thread that may block. Dropping the future stops it at the next look at the monitor.
    pub(super) async fn off_thread<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&Self, &Monitor) -> crate::error::Result<T> + Send + 'static,
    ) -> Result<T> {
        let name = self.method.name();
        let reservation = Arc::clone(&self.reservation);
        let progress = self.progress.clone();
        let monitor = Monitor::with_budget(move |bytes| Ok(reservation.try_grow(bytes)?))
            .with_listener(move |phase| progress.tell(Step::Phase(phase)));
        let asked = self.asked;
        spawn_compute(name.to_owned(), monitor, move |monitor| work(&self, monitor).map_err(|error| error.said(asked)))
            .await
    }

    /// Makes the release. Computes, so call it [`off_thread`](Self::off_thread).
    pub(super) fn make(
        &self,
        builder: SnapshotBuilder,
        mut rng: ChaCha20Rng,
        monitor: &Monitor,
    ) -> crate::error::Result<Made> {
        let collected = builder.size();
        let mut working = self.method.as_method().working_bytes(builder.microdata.rows(), self.quasi);
        if self.parts {
            working += builder.microdata.rows() * (self.quasi + 3) * size_of::<u32>();
        }
        // Before the method starts, what is encoded is copied into order.
        self.reserve(collected + working.max(collected))?;
        let before = builder.microdata.rows();
        let (microdata, state) = monitor.phase("encoding", || builder.finish(rng.random()))?;
        self.tell_of_texts(&microdata);
        let rows = microdata.rows;
        // Of people who have left, some have rows for the sake of others.
        let more = self.method.as_method().working_bytes(rows - before.min(rows), self.quasi);
        self.reserve(collected + working + more)?;
        let release = self.method.release(microdata, &state, monitor, &mut rng)?;
        if !release.groups.are_whole() {
            return Err(Error::internal("members that are in no group; nothing was published"));
        }
        self.metrics.peak_memory.set_max(self.reservation.size());
        self.metrics.groups.add(release.groups.len());
        if let Some(perturbed) = release.body.perturbed().filter(|perturbed| !perturbed.codes.is_empty()) {
            let counts = [
                ("mixed_groups", perturbed.mixed),
                ("unchangeable_groups", perturbed.unchangeable),
                ("unchanged_rows", perturbed.unchanged),
            ];
            for (name, count) in counts {
                MetricBuilder::new(&self.metrics.set).counter(name, 0).add(count);
            }
        }
        self.metrics.counterfeits.add(release.counterfeits());
        self.metrics.withheld.add(release.withheld);
        if release.withheld > 0 {
            self.progress.tell(Step::Withheld { rows: release.withheld, of: rows });
        }
        Ok(Made { release, state, rng })
    }

    /// Says once which quasi-identifiers have texts in another order than their meaning. It does so if the method makes ranges of them.
    fn tell_of_texts(&self, microdata: &Microdata) {
        let makes_ranges = self.method.form() != Form::Anatomy;
        if !makes_ranges || !self.notices.are_heard() || self.told_of_texts.load(Ordering::Relaxed) {
            return;
        }
        for attribute in &microdata.quasi {
            if attribute.hierarchy.is_some() || attribute.field.metadata().contains_key(ORDER_KEY) {
                continue;
            }
            if let Some(order) = TextOrder::of(attribute.domain.values()) {
                self.told_of_texts.store(true, Ordering::Relaxed);
                self.notices.tell(&order.notice(self.method.name(), attribute.field.name()));
            }
        }
    }

    /// Puts the times of the phases so far, and what was counted, into the metrics.
    pub(super) fn note_phases(&self, monitor: &Monitor) {
        for (name, times) in monitor.counts() {
            MetricBuilder::new(&self.metrics.set).counter(name, 0).add(times);
        }
        for (phase, time) in monitor.phases() {
            MetricBuilder::new(&self.metrics.set).subset_time(format!("{phase}_time"), 0).add_duration(time);
        }
    }

    /// Tells that nothing more will be told.
    pub(super) fn done(&self) {
        self.progress.tell(Step::Done);
    }

    #[cfg(feature = "publication")]
    pub(super) fn charge(&self, bytes: usize) -> Result<()> {
        self.reservation.try_grow(bytes)?;
        self.metrics.peak_memory.set_max(self.reservation.size());
        Ok(())
    }

    /// Gives bytes back.
    #[cfg(feature = "publication")]
    pub(super) fn release(&self, bytes: usize) {
        self.reservation.shrink(bytes);
    }

    fn reserve(&self, bytes: usize) -> Result<()> {
        self.reservation.try_resize(bytes.max(self.floor))?;
        self.metrics.peak_memory.set_max(self.reservation.size());
        Ok(())
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.done();
    }
}

/// Metrics that EXPLAIN ANALYZE shows.
pub(super) struct Metrics {
    set: ExecutionPlanMetricsSet,
    pub baseline: BaselineMetrics,
    input_rows: Count,
    previous_rows: Count,
    groups: Count,
    counterfeits: Count,
    withheld: Count,
    peak_memory: Gauge,
}

impl Metrics {
    pub(super) fn new(set: &ExecutionPlanMetricsSet) -> Self {
        let counter = |name: &'static str| MetricBuilder::new(set).counter(name, 0);
        Self {
            baseline: BaselineMetrics::new(set, 0),
            input_rows: counter("input_rows"),
            previous_rows: counter("previous_rows"),
            groups: counter("groups"),
            counterfeits: counter("counterfeits"),
            withheld: counter("withheld_rows"),
            peak_memory: MetricBuilder::new(set).gauge("peak_mem_used", 0),
            set: set.clone(),
        }
    }
}
