//! Rounds: how often work is repeated, what is read off the clocks, what comes out.

use crate::machine;
use crate::scratch::Scratch;
use base::{Clock, SystemClock};
use std::path::PathBuf;

/// How much is done.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Rounds of each figure.
    pub rounds: usize,
    /// What a round should take.
    pub round_ms: u64,
    /// What a round against the server should take; its CPU time comes in steps of 10 ms.
    pub server_round_ms: u64,
    /// Rows of 1000 bytes in a table that is read, flushed or compacted.
    pub rows: u64,
    /// Operations of a round that writes, at most: what is written stays in memory.
    pub writes_max: u64,
}

impl Scale {
    /// For figures worth keeping: some minutes in all.
    pub const FULL: Scale =
        Scale { rounds: 5, round_ms: 300, server_round_ms: 1000, rows: 100_000, writes_max: 100_000 };
    /// For a look: under a minute in all.
    pub const QUICK: Scale = Scale { rounds: 3, round_ms: 20, server_round_ms: 100, rows: 10_000, writes_max: 5_000 };
    /// For the test that everything still runs.
    pub const TINY: Scale = Scale { rounds: 2, round_ms: 0, server_round_ms: 0, rows: 300, writes_max: 200 };
}

/// What a round has done.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Operations.
    pub ops: u64,
    /// Bytes of cells or files that went through, where that says something; else 0.
    pub bytes: u64,
}

/// Operations of a round.
#[derive(Clone, Copy, Debug)]
pub enum Size {
    /// As many as take the time of a round.
    Timed {
        /// At most.
        most: u64,
        /// The number is a multiple of this.
        step: u64,
    },
    /// Exactly so many.
    Fixed(u64),
}

/// Whose CPU time is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// This process's.
    Own,
    /// A server's, by its process id.
    Server(u32),
}

#[derive(Clone, Copy, Debug)]
struct Round {
    done: Done,
    wall_ns: u64,
    cpu_ns: u64,
    others_ns: u64,
}

/// Median, least and greatest of the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

/// What was measured under one name.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The name.
    pub name: String,
    /// Whether the CPU time is the server's.
    pub server_cpu: bool,
    rounds: Vec<Round>,
    /// The rounds of what it was measured in turns with, if it was.
    plain: Option<Vec<Round>>,
}

impl Figures {
    fn range(&self, of: impl Fn(&Round) -> f64) -> Range {
        range_of(self.rounds.iter().map(of).collect())
    }

    /// Operations per second.
    pub fn ops_per_s(&self) -> Range {
        self.range(|r| r.done.ops as f64 * 1e9 / r.wall_ns.max(1) as f64)
    }

    /// Nanoseconds on the wall for one operation: the round's time through its operations, however many ran at once.
    pub fn wall_ns_per_op(&self) -> Range {
        self.range(|r| r.wall_ns as f64 / r.done.ops.max(1) as f64)
    }

    /// CPU nanoseconds for one operation.
    pub fn cpu_ns_per_op(&self) -> Range {
        self.range(|r| r.cpu_ns as f64 / r.done.ops.max(1) as f64)
    }

    /// How much more CPU time an operation took than one of what it was measured in turns with, in percent: of each pair of rounds.
    pub fn more_cpu_percent(&self) -> Option<Range> {
        let cpu_ns_per_op = |round: &Round| round.cpu_ns as f64 / round.done.ops.max(1) as f64;
        let plain: Vec<f64> = self.plain.as_ref()?.iter().map(cpu_ns_per_op).collect();
        let pairs = self.rounds.iter().map(cpu_ns_per_op).zip(plain);
        Some(range_of(pairs.map(|(ns, plain_ns)| (ns / plain_ns.max(f64::MIN_POSITIVE) - 1.0) * 100.0).collect()))
    }

    fn has_bytes(&self) -> bool {
        self.rounds.iter().any(|r| r.done.bytes > 0)
    }

    /// Megabytes (10^6) per second on the wall; `None` where bytes say nothing.
    pub fn mb_per_s(&self) -> Option<Range> {
        self.has_bytes().then(|| self.range(|r| r.done.bytes as f64 * 1e3 / r.wall_ns.max(1) as f64))
    }

    /// Megabytes (10^6) per second of CPU time: what one core would do that did nothing else.
    pub fn mb_per_cpu_s(&self) -> Option<Range> {
        self.has_bytes().then(|| self.range(|r| r.done.bytes as f64 * 1e3 / r.cpu_ns.max(1) as f64))
    }

    /// Cores that others kept busy meanwhile, on average.
    pub fn others_cores(&self) -> f64 {
        let sum = |of: fn(&Round) -> u64| self.rounds.iter().map(of).sum::<u64>() as f64;
        sum(|r| r.others_ns) / sum(|r| r.wall_ns).max(1.0)
    }

    /// Number of rounds.
    pub fn round_count(&self) -> usize {
        self.rounds.len()
    }
}

fn range_of(mut values: Vec<f64>) -> Range {
    values.sort_by(f64::total_cmp);
    let at = |i: usize| values.get(i).copied().unwrap_or_default();
    let (middle, even) = (values.len() / 2, values.len().is_multiple_of(2));
    let median = if even && middle > 0 { f64::midpoint(at(middle - 1), at(middle)) } else { at(middle) };
    Range { median, min: at(0), max: at(values.len().saturating_sub(1)) }
}

/// One of several kinds of the same work, to be measured in turns with the others.
pub(crate) struct Turn<'a> {
    /// What it is measured as.
    pub name: &'static str,
    /// Whose CPU time it takes.
    pub whose: Whose,
    /// Does so many operations.
    pub work: Box<dyn FnMut(u64) -> anyhow::Result<Done> + 'a>,
}

/// Called with each name's figures as they come.
type Listener<'a> = Box<dyn FnMut(&Figures) + 'a>;

/// One run: what is wanted, where it may write, what came out.
pub struct Session<'a> {
    scale: Scale,
    dir: PathBuf,
    only: Option<String>,
    server: Option<PathBuf>,
    clock: SystemClock,
    listener: Listener<'a>,
    figures: Vec<Figures>,
}

impl<'a> Session<'a> {
    /// A run that writes below `dir`.
    pub fn new(scale: Scale, dir: PathBuf, listener: impl FnMut(&Figures) + 'a) -> Session<'a> {
        let listener: Listener<'a> = Box::new(listener);
        Session { scale, dir, only: None, server: None, clock: SystemClock::new(), listener, figures: Vec::new() }
    }

    /// Measures only the names that are `name` or begin with it and a dot.
    pub fn only(&mut self, name: impl Into<String>) {
        self.only = Some(name.into());
    }

    /// The server's binary.
    pub fn set_server(&mut self, binary: PathBuf) {
        self.server = Some(binary);
    }

    /// The server's binary, if there is one.
    pub fn server(&self) -> Option<&PathBuf> {
        self.server.as_ref()
    }

    /// How much is done.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// Whether `name` is to be measured.
    pub fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| {
            let rest = name.strip_prefix(only);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || only.ends_with('.'))
        })
    }

    /// What was measured so far.
    pub fn figures(&self) -> &[Figures] {
        &self.figures
    }

    /// Runs the groups that have something wanted.
    ///
    /// # Errors
    /// The first thing that failed.
    pub fn run(&mut self, groups: &[crate::Group]) -> anyhow::Result<()> {
        for group in groups {
            if group.names.iter().any(|name| self.wants(name)) {
                (group.run)(self)?;
            }
        }
        Ok(())
    }

    pub(crate) fn scratch(&self) -> anyhow::Result<Scratch> {
        Scratch::below(&self.dir)
    }

    /// Measures `work` under `name`, on what `prepare` makes for each round; both are told the number of operations.
    /// What `prepare` made is dropped when the clocks have been read.
    pub(crate) fn measure<T>(
        &mut self,
        name: &str,
        size: Size,
        prepare: impl FnMut(u64) -> anyhow::Result<T>,
        work: impl FnMut(&mut T, u64) -> anyhow::Result<Done>,
    ) -> anyhow::Result<()> {
        self.measure_cpu_of(Whose::Own, name, size, prepare, work)
    }

    /// As `measure`, counting the CPU time of `whose`.
    pub(crate) fn measure_cpu_of<T>(
        &mut self,
        whose: Whose,
        name: &str,
        size: Size,
        mut prepare: impl FnMut(u64) -> anyhow::Result<T>,
        mut work: impl FnMut(&mut T, u64) -> anyhow::Result<Done>,
    ) -> anyhow::Result<()> {
        if !self.wants(name) {
            return Ok(());
        }
        let target_ns = match whose {
            Whose::Own => self.scale.round_ms,
            Whose::Server(_) => self.scale.server_round_ms,
        } * 1_000_000;
        let mut round = |n: u64| -> anyhow::Result<Round> {
            let mut state = prepare(n)?;
            let before = Reading::take(&self.clock, whose)?;
            let done = work(&mut state, n)?;
            let after = Reading::take(&self.clock, whose)?;
            Ok(after.since(&before, done))
        };
        let ops = match size {
            Size::Fixed(ops) => ops,
            Size::Timed { most, step } => calibrate(most.max(step), step, target_ns, |n| Ok(round(n)?.wall_ns))?,
        };
        let rounds = (0..self.scale.rounds).map(|_| round(ops)).collect::<anyhow::Result<Vec<Round>>>()?;
        self.note(Figures { name: name.to_owned(), server_cpu: whose != Whose::Own, rounds, plain: None });
        Ok(())
    }

    fn note(&mut self, figures: Figures) {
        (self.listener)(&figures);
        self.figures.push(figures);
    }

    /// Measures kinds of the same work, a round of each and again: what else the machine does meets all alike, and small differences show. All
    /// are compared with the first. The number of operations is a multiple of `step`.
    pub(crate) fn measure_in_turns(&mut self, step: u64, mut turns: Vec<Turn<'_>>) -> anyhow::Result<()> {
        let clock = &self.clock;
        let round = |turn: &mut Turn<'_>, n: u64| -> anyhow::Result<Round> {
            let before = Reading::take(clock, turn.whose)?;
            let done = (turn.work)(n)?;
            let after = Reading::take(clock, turn.whose)?;
            Ok(after.since(&before, done))
        };
        let Some(first) = turns.first_mut() else { return Ok(()) };
        // Twice a round's time, for the steps of 10 ms.
        let target_ns = self.scale.server_round_ms * 2_000_000;
        let ops = calibrate(u64::MAX, step, target_ns, |n| Ok(round(first, n)?.wall_ns))?;
        // The others warm up, too.
        for turn in turns.iter_mut().skip(1) {
            round(turn, ops)?;
        }
        let mut rounds: Vec<Vec<Round>> = turns.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.scale.rounds * TURNS {
            for (turn, rounds) in turns.iter_mut().zip(&mut rounds) {
                rounds.push(round(turn, ops)?);
            }
        }
        let plain = rounds.first().cloned().unwrap_or_default();
        for (at, (turn, rounds)) in turns.iter().zip(rounds).enumerate() {
            let (name, server_cpu) = (turn.name.to_owned(), turn.whose != Whose::Own);
            self.note(Figures { name, server_cpu, rounds, plain: (at > 0).then(|| plain.clone()) });
        }
        Ok(())
    }
}

/// So many times more rounds are made of what is measured in turns.
const TURNS: usize = 2;

/// The number of operations that take `target_ns`; a multiple of `step`. What it runs warms up.
fn calibrate(
    most: u64,
    step: u64,
    target_ns: u64,
    mut wall_ns: impl FnMut(u64) -> anyhow::Result<u64>,
) -> anyhow::Result<u64> {
    let whole = |ops: u64| (ops / step * step).clamp(step, most / step * step);
    let mut ops = whole(step);
    loop {
        let took_ns = wall_ns(ops)?.max(1);
        let wanted = (u128::from(ops) * u128::from(target_ns) / u128::from(took_ns)).min(u128::from(most)) as u64;
        // Close enough to trust the proportion, or as much as is allowed.
        if took_ns * 2 >= target_ns || ops == whole(most) {
            return Ok(whole(wanted));
        }
        ops = whole(wanted.min(ops * 8));
    }
}

/// The clocks at one moment.
struct Reading {
    wall_us: u64,
    own_ns: u64,
    server_ns: Option<u64>,
    busy_ns: u64,
}

impl Reading {
    fn take(clock: &SystemClock, whose: Whose) -> anyhow::Result<Reading> {
        let server_ns = match whose {
            Whose::Own => None,
            Whose::Server(pid) => Some(machine::process_cpu_ns(pid)?),
        };
        let busy_ns = machine::busy_ns();
        Ok(Reading { wall_us: clock.monotonic_us(), own_ns: machine::own_cpu_ns(), server_ns, busy_ns })
    }

    fn since(&self, before: &Reading, done: Done) -> Round {
        let own_ns = self.own_ns - before.own_ns;
        let server_ns = self.server_ns.zip(before.server_ns).map(|(now, then)| now.saturating_sub(then));
        let ours_ns = own_ns + server_ns.unwrap_or_default();
        Round {
            done,
            wall_ns: (self.wall_us - before.wall_us) * 1000,
            cpu_ns: server_ns.unwrap_or(own_ns),
            others_ns: self.busy_ns.saturating_sub(before.busy_ns).saturating_sub(ours_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_least_and_greatest() {
        let round =
            |wall_ns| Round { done: Done { ops: 10, bytes: 1000 }, wall_ns, cpu_ns: wall_ns / 2, others_ns: wall_ns };
        let rounds = [4000, 1000, 2000].map(round).to_vec();
        let figures = Figures { name: "x".into(), server_cpu: false, rounds, plain: None };
        assert_eq!(figures.wall_ns_per_op(), Range { median: 200.0, min: 100.0, max: 400.0 });
        assert_eq!(figures.cpu_ns_per_op().median, 100.0);
        assert_eq!(figures.mb_per_s().expect("bytes").max, 1000.0);
        assert_eq!(figures.others_cores(), 1.0);
        let two = Figures { rounds: [4000, 1000].map(round).to_vec(), ..figures };
        assert_eq!(two.wall_ns_per_op().median, 250.0);
        assert_eq!(two.more_cpu_percent(), None);
        let plain = Figures { plain: Some([2000, 2000].map(round).to_vec()), ..two };
        assert_eq!(plain.more_cpu_percent(), Some(Range { median: 25.0, min: -50.0, max: 100.0 }));
    }

    #[test]
    fn what_is_measured_in_turns_is_compared_with_the_first() {
        let scale = Scale { rounds: 2, ..Scale::TINY };
        let mut session = Session::new(scale, PathBuf::new(), |_| {});
        let order = std::cell::RefCell::new(Vec::new());
        let played = &order;
        let turn = |name: &'static str| Turn {
            name,
            whose: Whose::Own,
            work: Box::new(move |n| {
                played.borrow_mut().push(name);
                Ok(Done { ops: n, bytes: 0 })
            }),
        };
        session.measure_in_turns(3, vec![turn("plain"), turn("more")]).expect("measured");
        let rounds = TURNS * 2;
        // The first one finds out how many operations make a round, the others warm up.
        assert_eq!(order.borrow()[..4], ["plain", "more", "plain", "more"]);
        assert_eq!(order.borrow().len(), 2 + 2 * rounds);
        let [plain, more] = session.figures() else { panic!("{:?}", session.figures()) };
        assert_eq!((plain.round_count(), more.round_count()), (rounds, rounds));
        assert!(plain.more_cpu_percent().is_none() && more.more_cpu_percent().is_some());
    }

    #[test]
    fn a_round_takes_its_time_and_no_more_than_is_allowed() {
        assert_eq!(calibrate(1_000_000, 1, 1_000_000, |n| Ok(n * 100)).expect("works"), 10_000);
        assert_eq!(calibrate(5_000, 100, 1_000_000, |n| Ok(n * 100)).expect("works"), 5_000);
        assert_eq!(calibrate(u64::MAX, 64, 0, |n| Ok(n * 100)).expect("works"), 64);
        assert_eq!(calibrate(1_000_000, 64, 1_000_000, |n| Ok(n * 1000)).expect("works") % 64, 0);
    }

    #[test]
    fn names_are_chosen_at_dots() {
        let mut session = Session::new(Scale::TINY, PathBuf::new(), |_| {});
        assert!(session.wants("get.memory"));
        session.only("get");
        assert!(session.wants("get.memory") && session.wants("get") && !session.wants("getter"));
        session.only("get.");
        assert!(session.wants("get.memory"));
    }

    #[test]
    fn the_kernel_answers() {
        let clock = SystemClock::new();
        let before = Reading::take(&clock, Whose::Server(std::process::id())).expect("our own entry in /proc");
        let mut sum = 0u64;
        while clock.monotonic_us() < 60_000 {
            sum = std::hint::black_box(sum + 1);
        }
        let after = Reading::take(&clock, Whose::Server(std::process::id())).expect("our own entry in /proc");
        let round = after.since(&before, Done { ops: 1, bytes: 0 });
        assert!(round.wall_ns >= 50_000_000 && after.own_ns > before.own_ns, "{round:?}");
    }
}
