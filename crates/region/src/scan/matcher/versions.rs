//! Which columns and versions a read or a rewriting takes, and where it goes when it has enough of one.

use super::{Code, Matcher, NO_TYPE};
use cell::key::same_bytes;
use cell::{CellRef, CellType, KeyRef};

impl Matcher {
    /// Follows: `ExplicitColumnTracker#checkColumn`, `#checkVersions`.
    pub(super) fn check_asked(&mut self, key: KeyRef<'_>, timestamp: i64) -> Code {
        match self.advance_to_column(key.qualifier()) {
            Found::Before => return Code::NextCol,
            Found::NoneLeft => return Code::NextRow,
            Found::Here => {}
        }
        if timestamp == self.last_timestamp {
            return Code::Skip;
        }
        self.count += 1;
        if self.count >= self.max_versions || (self.count >= self.min_versions && timestamp < self.oldest_unexpired) {
            self.column_index += 1;
            self.count = 0;
            self.reset_last();
            return if self.columns_done() { Code::IncludeNextRow } else { Code::IncludeNextCol };
        }
        self.last_timestamp = timestamp;
        Code::Include
    }

    /// Follows: `NewVersionBehaviorTracker#checkColumn`, `#checkVersions`.
    pub(super) fn check_by_arrival(&mut self, key: KeyRef<'_>, timestamp: i64) -> Code {
        if self.columns.is_some() {
            match self.advance_to_column(key.qualifier()) {
                Found::Before => return Code::NextCol,
                Found::NoneLeft => return Code::NextRow,
                Found::Here => {}
            }
        }
        let expired = timestamp < self.oldest_unexpired;
        let min_versions = self.min_versions;
        self.version_behavior.as_mut().map_or(Code::Include, |tracker| tracker.check_version(expired, min_versions))
    }

    fn advance_to_column(&mut self, qualifier: &[u8]) -> Found {
        let Some(columns) = &self.columns else { return Found::Here };
        while let Some(column) = columns.get(self.column_index) {
            match qualifier.cmp(&column[..]) {
                std::cmp::Ordering::Equal => return Found::Here,
                std::cmp::Ordering::Less => {
                    self.last_timestamp = i64::MAX;
                    return Found::Before;
                }
                std::cmp::Ordering::Greater => {
                    self.last_timestamp = i64::MAX;
                    self.column_index += 1;
                    self.count = 0;
                }
            }
        }
        Found::NoneLeft
    }

    /// Follows: `ScanWildcardColumnTracker#checkVersions`.
    #[inline]
    pub(super) fn check_versions_all(&mut self, cell: CellRef<'_>, timestamp: i64, ignore_count: bool) -> Code {
        let type_code = cell.type_code();
        if let Some(tracker) = &mut self.version_behavior {
            if ignore_count {
                return Code::Include;
            }
            let expired = timestamp < self.oldest_unexpired;
            return tracker.check_version(expired, self.min_versions);
        }
        let qualifier = cell.key().qualifier();
        if !self.has_column || !same_bytes(&self.column, qualifier) {
            self.has_column = true;
            self.column.clear();
            self.column.extend_from_slice(qualifier);
            self.count = 0;
            self.reset_last();
            if ignore_count {
                return Code::Include;
            }
        } else {
            if ignore_count {
                return Code::Include;
            }
            if timestamp == self.last_timestamp && type_code == self.last_type {
                return Code::Skip;
            }
        }
        if !CellType::is_delete(type_code) {
            self.count += 1;
        }
        if self.count > self.max_versions {
            return Code::NextCol;
        }
        if self.count <= self.min_versions || timestamp >= self.oldest_unexpired {
            self.last_timestamp = timestamp;
            self.last_type = type_code;
            Code::Include
        } else {
            Code::NextCol
        }
    }

    #[inline]
    pub(super) fn reset_last(&mut self) {
        self.last_timestamp = i64::MAX;
        self.last_type = NO_TYPE;
    }

    /// Nothing more of this column is wanted. Follows: `ColumnTracker#getNextRowOrNextColumn`.
    pub(super) fn pass_column(&mut self, key: KeyRef<'_>) -> Code {
        self.done_with_column(key.qualifier());
        if self.columns_done() { Code::NextRow } else { Code::NextCol }
    }

    pub(super) fn done_with_column(&mut self, qualifier: &[u8]) {
        if self.version_behavior.is_some() {
            return;
        }
        let Some(columns) = &self.columns else { return };
        while columns.get(self.column_index).is_some_and(|column| qualifier >= &column[..]) {
            self.column_index += 1;
            self.count = 0;
        }
        self.last_timestamp = i64::MAX;
    }
}

enum Found {
    Here,
    Before,
    NoneLeft,
}
