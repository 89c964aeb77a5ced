//! What a server is busy with, for who looks at it: a list of tasks that run, and for a minute those that ended.
//!
//! Always true: the list has a bound; of more tasks the oldest is forgotten. Follows: `TaskMonitor`, `MonitoredTaskImpl`.

use crate::{Clock, TimestampMs};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// `hbase.taskmonitor.max.tasks`.
const MOST: usize = 1000;
/// `hbase.taskmonitor.expiration.time`: how long a task is shown that has ended.
const SHOWN_MS: i64 = 60_000;

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// It goes on.
    Running,
    /// It was done.
    Complete,
    /// It failed, or was given up.
    Aborted,
}

/// A task at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// What is to be done.
    pub description: String,
    /// What is being done of it, or what came of it.
    pub status: String,
    /// How it stands.
    pub state: TaskState,
    /// When it began.
    pub started: TimestampMs,
    /// When it ended; `None` while it runs.
    pub ended: Option<TimestampMs>,
}

/// The tasks of a process. Cheap to clone.
#[derive(Clone)]
pub struct Tasks {
    clock: Arc<dyn Clock>,
    list: Arc<Mutex<VecDeque<Arc<Mutex<Task>>>>>,
}

impl Tasks {
    /// None yet.
    pub fn new(clock: Arc<dyn Clock>) -> Tasks {
        Tasks { clock, list: Arc::default() }
    }

    /// A task begins. It ends with what is returned.
    pub fn begin(&self, description: String, status: impl Into<String>) -> RunningTask {
        let (status, started) = (status.into(), self.clock.now_ms());
        let task = Task { description, status, state: TaskState::Running, started, ended: None };
        let task = Arc::new(Mutex::new(task));
        let mut list = self.list.lock();
        if list.len() >= MOST {
            forget_old(&mut list, started);
        }
        if list.len() >= MOST {
            list.pop_front();
        }
        list.push_back(Arc::clone(&task));
        RunningTask { clock: Arc::clone(&self.clock), task }
    }

    /// Those that run or have ended within the last minute, in the order of their beginnings.
    pub fn list(&self) -> Vec<Task> {
        let mut list = self.list.lock();
        forget_old(&mut list, self.clock.now_ms());
        list.iter().map(|task| task.lock().clone()).collect()
    }
}

fn forget_old(list: &mut VecDeque<Arc<Mutex<Task>>>, now: TimestampMs) {
    list.retain(|task| task.lock().ended.is_none_or(|ended| now.0.saturating_sub(ended.0) <= SHOWN_MS));
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tasks").field("list", &self.list).finish_non_exhaustive()
    }
}

/// A task that runs. Dropped before it is said how it ended, it has been aborted.
pub struct RunningTask {
    clock: Arc<dyn Clock>,
    task: Arc<Mutex<Task>>,
}

impl RunningTask {
    /// What is being done now.
    pub fn set_status(&self, status: impl Into<String>) {
        self.task.lock().status = status.into();
    }

    /// It is done.
    pub fn complete(self, status: impl Into<String>) {
        self.end(TaskState::Complete, Some(status.into()));
    }

    /// It failed, or is given up.
    pub fn abort(self, status: impl Into<String>) {
        self.end(TaskState::Aborted, Some(status.into()));
    }

    fn end(&self, state: TaskState, status: Option<String>) {
        let now = self.clock.now_ms();
        let mut task = self.task.lock();
        if task.ended.is_none() {
            (task.state, task.ended) = (state, Some(now));
            if let Some(status) = status {
                task.status = status;
            }
        }
    }
}

impl std::fmt::Debug for RunningTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningTask").field("task", &self.task).finish_non_exhaustive()
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.end(TaskState::Aborted, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;

    #[test]
    fn a_task_that_ended_is_shown_for_a_minute_and_one_that_runs_for_ever() {
        let clock = Arc::new(ManualClock::new(1_000));
        let tasks = Tasks::new(clock.clone());
        let runs = tasks.begin("Flushing a".into(), "begun");
        tasks.begin("Flushing b".into(), "begun").complete("Flush successful");
        drop(tasks.begin("Flushing c".into(), "begun"));
        let list = tasks.list();
        let states: Vec<TaskState> = list.iter().map(|task| task.state).collect();
        assert_eq!(states, [TaskState::Running, TaskState::Complete, TaskState::Aborted]);
        assert_eq!((list[1].status.as_str(), list[1].ended), ("Flush successful", Some(TimestampMs(1_000))));
        clock.advance_ms(60_000);
        assert_eq!(tasks.list().len(), 3);
        clock.advance_ms(1);
        runs.set_status("half done");
        let list = tasks.list();
        assert_eq!((list.len(), list[0].status.as_str()), (1, "half done"));
    }

    #[test]
    fn of_too_many_tasks_the_oldest_are_forgotten() {
        let tasks = Tasks::new(Arc::new(ManualClock::new(0)));
        let running: Vec<RunningTask> = (0..MOST + 2).map(|n| tasks.begin(n.to_string(), "")).collect();
        let list = tasks.list();
        assert_eq!((list.len(), list[0].description.as_str()), (MOST, "2"));
        drop(running);
    }
}
