//! Sessions: what outlives a connection. Time is handed in.

use std::collections::HashMap;

/// Sessions held at most; a further client is turned away.
const MAX_SESSIONS: usize = 100_000;

/// One client's session.
#[derive(Debug)]
pub(crate) struct Session {
    pub password: [u8; 16],
    pub timeout_ms: u32,
    last_heard_us: u64,
    /// The connection that speaks for it now.
    pub connection: Option<u64>,
}

/// All sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    by_id: HashMap<i64, Session>,
    next_id: i64,
}

impl Sessions {
    /// Ids begin with the time of start, as ZooKeeper's do, so that a client of an earlier life is not mistaken.
    pub fn new(now_ms: i64) -> Sessions {
        Sessions { by_id: HashMap::new(), next_id: (now_ms << 16) & i64::MAX }
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// A new session, or `None` when there are too many.
    pub fn open(&mut self, password: [u8; 16], timeout_ms: u32, connection: u64, now_us: u64) -> Option<i64> {
        if self.by_id.len() >= MAX_SESSIONS {
            return None;
        }
        self.next_id += 1;
        let session = Session { password, timeout_ms, last_heard_us: now_us, connection: Some(connection) };
        self.by_id.insert(self.next_id, session);
        Some(self.next_id)
    }

    /// The session goes on over another connection; the password must fit. Returns the connection it had.
    pub fn resume(&mut self, id: i64, password: &[u8], connection: u64, now_us: u64) -> Option<(Option<u64>, u32)> {
        let session = self.by_id.get_mut(&id).filter(|session| session.password == password)?;
        session.last_heard_us = now_us;
        Some((session.connection.replace(connection), session.timeout_ms))
    }

    /// Whether the session lives; it was heard of now.
    pub fn touch(&mut self, id: i64, now_us: u64) -> bool {
        self.by_id.get_mut(&id).map(|session| session.last_heard_us = now_us).is_some()
    }

    pub fn password(&self, id: i64) -> Option<[u8; 16]> {
        self.by_id.get(&id).map(|session| session.password)
    }

    /// The connection broke; the session waits for its client to come back.
    pub fn detach(&mut self, id: i64, connection: u64) {
        if let Some(session) = self.by_id.get_mut(&id)
            && session.connection == Some(connection)
        {
            session.connection = None;
        }
    }

    pub fn remove(&mut self, id: i64) -> Option<Session> {
        self.by_id.remove(&id)
    }

    /// Sessions that were silent for longer than their timeout.
    pub fn silent(&self, now_us: u64) -> Vec<i64> {
        let silent = |s: &Session| now_us.saturating_sub(s.last_heard_us) > u64::from(s.timeout_ms) * 1000;
        self.by_id.iter().filter(|(_, session)| silent(session)).map(|(id, _)| *id).collect()
    }
}
