//! Runs a statement in a process: asked, watched, and ended when it takes more than it may.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pgwire::messages::data::DataRow;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::errors::Failure;
use super::frames::{Described, Frame, Question, Shown, unpack};
use super::pool::Pool;
use super::process::{Process, Used};
use super::turns::{Lane, Turn, Turns};

/// Sets how often a process is looked at.
const TICK: Duration = Duration::from_millis(20);
/// Sets what a statement of the quick lane may compute.
const COMPUTED: Duration = Duration::from_millis(250);
/// Sets how long a reader may leave rows where they are while others wait.
const LEFT: Duration = Duration::from_secs(1);
/// Memory of a process that operators do not account for: batches on their way, threads, and what the allocator has not given back.
const UNCOUNTED: usize = 192 << 20;
/// Sets how long a statement may take to stop when nobody waits for it.
const TO_STOP: Duration = Duration::from_millis(100);
/// Frames that wait for the reader.
const WAITING: usize = 2;

#[derive(Debug)]
pub(super) enum Reply {
    Described(Described),
    Columns(Vec<Shown>),
    Rows(Vec<DataRow>),
    Failed(Failure),
}

#[derive(Debug)]
pub(super) struct Runner {
    turns: Arc<Turns>,
    pool: Arc<Pool>,
    memory: usize,
    /// Says how long a statement may take, until its last row is sent.
    time: Duration,
    /// Statements, also those that nobody waits for and that are being stopped.
    tasks: Mutex<JoinSet<()>>,
}

/// Says how an attempt to run a statement ended.
enum End {
    Over,
    /// The statement takes long, and has to wait for its turn in the long lane. Nothing was sent of it.
    Again,
}

impl Runner {
    pub(super) fn new(turns: Arc<Turns>, pool: Arc<Pool>, memory: usize, time: Duration) -> Self {
        Self { turns, pool, memory, time, tasks: Mutex::default() }
    }

    /// Starts a statement. It stops when the receiver is dropped.
    pub(super) fn start(self: &Arc<Self>, who: String, question: Question) -> mpsc::Receiver<Reply> {
        let (out, replies) = mpsc::channel(1);
        let runner = Arc::clone(self);
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move { runner.run(&who, question, out).await });
        replies
    }

    async fn run(&self, who: &str, question: Question, out: mpsc::Sender<Reply>) {
        let question = Frame::Ask(Box::new(question));
        let mut lane = Lane::Quick;
        loop {
            let begin = async {
                let turn = self.turns.take(who, lane).await?;
                let process = self.pool.take(turn.is_light()).await;
                Ok::<_, Failure>((turn, process))
            };
            let begun = tokio::select! {
                begun = begin => begun,
                () = out.closed() => return,
            };
            let (turn, mut process) = match begun {
                Ok(begun) => begun,
                Err(failure) => return drop(out.send(Reply::Failed(failure)).await),
            };
            if let Err(error) = process.send(&question).await {
                let failure = match error.kind() {
                    std::io::ErrorKind::FileTooLarge => {
                        Failure::new("54000", "the statement and its parameters are too large")
                    }
                    // It has ended while it waited, for whatever reason; others are being started.
                    _ => Failure::new("58000", "the process for the statement has ended").hint("Ask again"),
                };
                return drop(out.send(Reply::Failed(failure)).await);
            }
            if lane == Lane::Long {
                process.gives_way();
            }
            let watched = Watched {
                runner: self,
                computed: process.used().computed,
                began: Instant::now(),
                has_sent: false,
                is_heavy: false,
                taken: Instant::now(),
                has_ended: false,
                pending: VecDeque::new(),
                turn,
                process,
            };
            match watched.run(&out).await {
                End::Over => return,
                End::Again => lane = Lane::Long,
            }
        }
    }
}

struct Watched<'a> {
    runner: &'a Runner,
    turn: Turn,
    process: Process,
    /// Says what the process had computed before.
    computed: Duration,
    began: Instant,
    has_sent: bool,
    /// The process has said that the statement takes long.
    is_heavy: bool,
    /// Time when the reader has last taken something.
    taken: Instant,
    /// The process has ended, or has said what it must not.
    has_ended: bool,
    pending: VecDeque<Reply>,
}

impl Watched<'_> {
    async fn run(mut self, out: &mpsc::Sender<Reply>) -> End {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = out.closed() => {
                    self.stop().await;
                    return End::Over;
                }
                place = out.reserve(), if self.may_send() => {
                    if let (Ok(place), Some(reply)) = (place, self.pending.pop_front()) {
                        place.send(reply);
                        self.has_sent = true;
                        self.taken = Instant::now();
                    }
                }
                frame = self.process.next(), if self.pending.len() < WAITING => match self.takes(frame) {
                    ControlFlow::Continue(()) => {}
                    ControlFlow::Break(()) => return self.over(out).await,
                },
                _ = ticks.tick() => match self.looks() {
                    ControlFlow::Continue(()) => {}
                    ControlFlow::Break(None) => {
                        self.stop().await;
                        return End::Again;
                    }
                    ControlFlow::Break(Some(failure)) => {
                        // Rows that the reader has not taken are of no use without the others.
                        self.pending = VecDeque::from([Reply::Failed(failure)]);
                        let Self { pending, turn, process, .. } = self;
                        drop((process, turn));
                        return send_all(pending, out).await;
                    }
                },
            }
        }
    }

    /// Returns true if there is a reply to send. Columns wait for what follows: until then the statement can begin again.
    fn may_send(&self) -> bool {
        match self.pending.front() {
            Some(Reply::Columns(_)) => self.pending.len() > 1,
            first => first.is_some(),
        }
    }

    /// Takes a frame. The last one of a statement breaks.
    fn takes(&mut self, frame: Option<Frame>) -> ControlFlow<()> {
        if self.pending.is_empty() {
            self.taken = Instant::now();
        }
        match frame {
            Some(Frame::Described(described)) => self.pending.push_back(Reply::Described(described)),
            Some(Frame::Columns(columns)) => self.pending.push_back(Reply::Columns(columns)),
            Some(Frame::Rows(rows)) => self.pending.push_back(Reply::Rows(unpack(rows))),
            Some(Frame::Heavy) => self.is_heavy = true,
            Some(Frame::Done) => return ControlFlow::Break(()),
            Some(Frame::Failed(failure)) => {
                self.pending.push_back(Reply::Failed(failure));
                return ControlFlow::Break(());
            }
            // The operating system gave it no more memory, as a rule.
            _ => {
                self.has_ended = true;
                self.pending.push_back(Reply::Failed(Failure::memory()));
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// Gives back the process and the turn, and then sends what is left.
    async fn over(self, out: &mpsc::Sender<Reply>) -> End {
        let computed = self.computed();
        let Self { runner, mut turn, process, pending, has_ended, .. } = self;
        turn.has_computed(computed);
        // A process that has given way stays slow.
        if has_ended || turn.lane() == Lane::Long {
            drop(process);
        } else {
            runner.pool.give_back(process);
        }
        drop(turn);
        send_all(pending, out).await
    }

    /// Returns the time that the statement has computed, else the time it has run. The operating system may not say the former.
    fn computed(&self) -> Duration {
        match self.process.used() {
            Used { memory: 0, .. } => self.began.elapsed(),
            used => used.computed.saturating_sub(self.computed),
        }
    }

    /// Looks at what the process uses. Breaks when the statement must end or, without a failure, begin again.
    fn looks(&mut self) -> ControlFlow<Option<Failure>> {
        if self.process.grown() > self.runner.memory + UNCOUNTED {
            return ControlFlow::Break(Some(Failure::memory()));
        }
        if self.began.elapsed() > self.runner.time {
            return ControlFlow::Break(Some(Failure::timeout(self.runner.time, false)));
        }
        let busy = || {
            let failure = Failure::new("53000", "the server is busy, and this statement has taken long");
            ControlFlow::Break(Some(failure.hint("Ask for less, or again later")))
        };
        let computed = self.computed();
        self.turn.has_computed(computed);
        let is_left = self.pending.len() == WAITING && self.taken.elapsed() > LEFT;
        if self.turn.lane() == Lane::Long {
            return if is_left && self.turn.is_wanted() { busy() } else { ControlFlow::Continue(()) };
        }
        if !self.is_heavy && !is_left && computed < COMPUTED {
            return ControlFlow::Continue(());
        }
        if self.turn.goes_on() {
            self.process.gives_way();
            return ControlFlow::Continue(());
        }
        match self.turn.is_wanted() {
            false => ControlFlow::Continue(()),
            true if !self.has_sent => ControlFlow::Break(None),
            true => busy(),
        }
    }

    /// Stops an abandoned statement, and ends its process if it does not stop.
    async fn stop(self) {
        let Self { runner, turn, mut process, .. } = self;
        let stopped = async {
            process.send(&Frame::Cancel).await.ok()?;
            loop {
                if let Frame::Done | Frame::Failed(_) = process.next().await? {
                    return Some(());
                }
            }
        };
        let stopped = timeout(TO_STOP, stopped).await;
        if matches!(stopped, Ok(Some(()))) && turn.lane() == Lane::Quick {
            runner.pool.give_back_later(process);
        }
    }
}

async fn send_all(pending: VecDeque<Reply>, out: &mpsc::Sender<Reply>) -> End {
    for reply in pending {
        if out.send(reply).await.is_err() {
            break;
        }
    }
    End::Over
}
