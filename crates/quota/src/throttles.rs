//! Which limiters bound a call, by its user and table: what hbase:quota says, as rate limiters. Refreshed as a whole; what was used stays
//! used. Follows: `QuotaCache`, `QuotaState`, `UserQuotaState`, `RegionServerRpcQuotaManager#getQuota`.

use crate::limiter::{Limited, Limiter};
use crate::rate::RateLimiterKind;
use crate::remembered;
use crate::rows::{ALL_REGION_SERVERS, Subject};
use crate::settings::ThrottleSettings;
use arc_swap::ArcSwap;
use model::TableName;
use parking_lot::Mutex;
use proto::pb;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Limiters of users without quotas that are kept at most: when there are more they begin anew, as at a refresh.
const MOST_DEFAULT_USERS: usize = 10_000;

type ByName = FxHashMap<String, Arc<Limiter>>;

/// Which part of a limit for the whole cluster is this server's.
#[derive(Clone, Debug)]
pub struct Factors {
    /// Of limits of users, namespaces: one of so many servers.
    pub machine: f64,
    /// Of limits of tables: its share of the table's open regions. 1 for tables that are not listed.
    pub tables: FxHashMap<String, f64>,
}

impl Default for Factors {
    fn default() -> Factors {
        Factors { machine: 1.0, tables: FxHashMap::default() }
    }
}

/// What hbase:quota says.
#[derive(Clone, Debug, Default)]
pub struct Refresh {
    /// The quotas in it.
    pub quotas: Vec<(Subject, pb::Quotas)>,
    /// Whether calls may exceed them while the region server's own last.
    pub exceed: bool,
    /// Shares of what is meant for the whole cluster.
    pub factors: Factors,
}

/// The limiters that bound a call.
#[derive(Debug, Default)]
pub struct Limiters {
    /// Each has to have enough.
    pub all: Vec<Arc<Limiter>>,
    /// If this one has enough the others need not.
    pub exceed: Option<Arc<Limiter>>,
    limited: Limited,
}

impl Limiters {
    /// Those of `all`, or `exceed` alone.
    pub fn new(all: Vec<Arc<Limiter>>, exceed: Option<Arc<Limiter>>) -> Limiters {
        let limited = all.iter().chain(&exceed).fold(Limited::default(), |sum, limiter| sum.or(limiter.limited()));
        Limiters { all, exceed, limited }
    }

    /// The types of which any has a limit, as they were when these were looked up.
    pub fn limited(&self) -> Limited {
        self.limited
    }
}

#[derive(Debug, Default)]
struct UserState {
    bypass_globals: bool,
    own: Option<Arc<Limiter>>,
    tables: ByName,
    namespaces: ByName,
}

impl UserState {
    fn limiter(&self, table: &TableName) -> Option<&Arc<Limiter>> {
        let here = self.tables.get(table.as_str());
        here.or_else(|| self.namespaces.get(table.namespace())).or(self.own.as_ref())
    }
}

#[derive(Debug, Default)]
struct State {
    users: FxHashMap<String, Arc<UserState>>,
    tables: ByName,
    namespaces: ByName,
    region_server: Option<Arc<Limiter>>,
    exceed: bool,
}

impl State {
    fn bounds_nobody(&self) -> bool {
        self.users.is_empty() && self.tables.is_empty() && self.namespaces.is_empty() && self.region_server.is_none()
    }
}

/// All limiters of a server.
#[derive(Debug)]
pub struct Throttles {
    settings: ArcSwap<ThrottleSettings>,
    state: ArcSwap<State>,
    defaults: Mutex<FxHashMap<String, Arc<UserState>>>,
    refreshing: Mutex<()>,
    /// Whose limiters threads remember, and since when.
    version: remembered::Version,
}

impl Throttles {
    /// Without limiters.
    pub fn new(settings: ThrottleSettings) -> Throttles {
        Throttles {
            settings: ArcSwap::from_pointee(settings),
            state: ArcSwap::default(),
            defaults: Mutex::default(),
            refreshing: Mutex::default(),
            version: remembered::Version::new(),
        }
    }

    /// The settings of now.
    pub fn settings(&self) -> arc_swap::Guard<Arc<ThrottleSettings>> {
        self.settings.load()
    }

    /// Other settings from now on. Users without quotas begin anew with what they may do by default; limits that there are keep their kind.
    pub fn set_settings(&self, settings: ThrottleSettings) {
        self.settings.store(Arc::new(settings));
        self.defaults.lock().clear();
        self.version.advance();
    }

    /// From now on the limits are these.
    pub fn refresh(&self, refresh: &Refresh) {
        let _one_at_a_time = self.refreshing.lock();
        let (old, kind) = (self.state.load_full(), self.settings.load().kind);
        let mut state = State { exceed: refresh.exceed, ..State::default() };
        let mut users: FxHashMap<String, UserState> = FxHashMap::default();
        let machine = refresh.factors.machine;
        let none = UserState::default();
        for (subject, quotas) in &refresh.quotas {
            let old_user = |user: &String| old.users.get(user).map_or(&none, |state| state);
            match subject {
                Subject::User(user) => {
                    let own = limiter(quotas, machine, kind, old_user(user).own.as_ref());
                    let state = users.entry(user.clone()).or_default();
                    (state.own, state.bypass_globals) = (own, quotas.bypass_globals());
                }
                Subject::UserTable(user, table) => {
                    let factor = refresh.factors.tables.get(table.as_str()).copied().unwrap_or(1.0);
                    let kept = old_user(user).tables.get(table.as_str());
                    let tables = &mut users.entry(user.clone()).or_default().tables;
                    put(tables, table.as_str(), limiter(quotas, factor, kind, kept));
                }
                Subject::UserNamespace(user, namespace) => {
                    let kept = old_user(user).namespaces.get(namespace);
                    let namespaces = &mut users.entry(user.clone()).or_default().namespaces;
                    put(namespaces, namespace, limiter(quotas, machine, kind, kept));
                }
                Subject::Table(table) => {
                    let factor = refresh.factors.tables.get(table.as_str()).copied().unwrap_or(1.0);
                    let kept = old.tables.get(table.as_str());
                    put(&mut state.tables, table.as_str(), limiter(quotas, factor, kind, kept));
                }
                Subject::Namespace(name) => {
                    let kept = old.namespaces.get(name);
                    put(&mut state.namespaces, name, limiter(quotas, machine, kind, kept));
                }
                Subject::RegionServer(name) if name == ALL_REGION_SERVERS => {
                    state.region_server = limiter(quotas, 1.0, kind, old.region_server.as_ref());
                }
                Subject::RegionServer(_) => {}
            }
        }
        state.users = users.into_iter().map(|(user, state)| (user, Arc::new(state))).collect();
        self.state.store(Arc::new(state));
        self.defaults.lock().clear();
        self.version.advance();
    }

    /// What bounds a call of `user` to `table`; `None` when nothing does. Cost: a comparison of names, where this thread asked before.
    pub fn limiters(&self, user: &str, table: &TableName) -> Option<Arc<Limiters>> {
        self.version.remembered(user, table, || self.look_up(user, table).map(Arc::new))
    }

    fn look_up(&self, user: &str, table: &TableName) -> Option<Limiters> {
        let state = self.state.load();
        let settings = self.settings.load();
        if (state.bounds_nobody() && settings.defaults.is_none()) || table.is_system() {
            return None;
        }
        let user_state = match state.users.get(user) {
            Some(user) => Some(user.clone()),
            None => settings.defaults.as_ref().map(|defaults| self.default_user(user, defaults, settings.kind)),
        };
        let of_user = user_state.as_ref().and_then(|user| user.limiter(table)).cloned();
        if user_state.is_some_and(|user| user.bypass_globals) {
            return of_user.map(|limiter| Limiters::new(vec![limiter], None));
        }
        let of_table = state.tables.get(table.as_str()).cloned();
        let of_namespace = state.namespaces.get(table.namespace()).cloned();
        let mut all: Vec<_> = [of_user, of_table, of_namespace].into_iter().flatten().collect();
        let exceed = state.region_server.clone().filter(|_| state.exceed);
        if !state.exceed {
            all.extend(state.region_server.clone());
        }
        (!all.is_empty() || exceed.is_some()).then(|| Limiters::new(all, exceed))
    }

    fn default_user(&self, user: &str, throttle: &pb::Throttle, kind: RateLimiterKind) -> Arc<UserState> {
        let mut defaults = self.defaults.lock();
        if let Some(state) = defaults.get(user) {
            return state.clone();
        }
        if defaults.len() >= MOST_DEFAULT_USERS {
            defaults.clear();
            self.version.advance();
        }
        let own = Limiter::new(throttle, kind).map(Arc::new);
        let state = Arc::new(UserState { own, ..UserState::default() });
        defaults.insert(user.to_owned(), state.clone());
        state
    }
}

fn put(limiters: &mut ByName, name: &str, limiter: Option<Arc<Limiter>>) {
    if let Some(limiter) = limiter {
        limiters.insert(name.to_owned(), limiter);
    }
}

/// The limiter for the throttle in `quotas`; the one that there was goes on.
fn limiter(
    quotas: &pb::Quotas,
    factor: f64,
    kind: RateLimiterKind,
    kept: Option<&Arc<Limiter>>,
) -> Option<Arc<Limiter>> {
    let limiter = Limiter::new(&of_this_server(quotas.throttle?, factor), kind)?;
    Some(match kept {
        Some(kept) => {
            kept.update(limiter);
            kept.clone()
        }
        None => Arc::new(limiter),
    })
}

/// The share of this server where a limit is meant for the cluster. HBase divides the first nine types only.
fn of_this_server(mut throttle: pb::Throttle, factor: f64) -> pb::Throttle {
    let shared = [
        &mut throttle.req_num,
        &mut throttle.req_size,
        &mut throttle.read_num,
        &mut throttle.read_size,
        &mut throttle.write_num,
        &mut throttle.write_size,
        &mut throttle.req_capacity_unit,
        &mut throttle.read_capacity_unit,
        &mut throttle.write_capacity_unit,
    ];
    for quota in shared.into_iter().flatten().filter(|quota| quota.scope() == pb::QuotaScope::Cluster) {
        let share = (quota.soft_limit() as f64 * factor) as u64;
        (quota.soft_limit, quota.scope) = (Some(share.max(1)), Some(pb::QuotaScope::Machine as i32));
    }
    throttle
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::Demand;
    use base::Config;

    const ONE_WRITE: Demand = Demand {
        writes: 1,
        write_bytes: 100,
        write_units: 1,
        reads: 0,
        read_bytes: 0,
        read_units: 0,
        is_atomic: false,
        handler_ms: 0,
    };

    fn writes(limit: u64, scope: pb::QuotaScope) -> pb::Quotas {
        let timed = pb::TimedQuota {
            time_unit: pb::TimeUnit::Hours as i32,
            soft_limit: Some(limit),
            share: None,
            scope: Some(scope as i32),
        };
        let throttle = pb::Throttle { write_num: Some(timed), ..pb::Throttle::default() };
        pb::Quotas { throttle: Some(throttle), ..pb::Quotas::default() }
    }

    fn machine(limit: u64) -> pb::Quotas {
        writes(limit, pb::QuotaScope::Machine)
    }

    fn throttles() -> Throttles {
        Throttles::new(ThrottleSettings::from_config(&Config::default(), 30))
    }

    fn refresh(quotas: impl IntoIterator<Item = (Subject, pb::Quotas)>) -> Refresh {
        Refresh { quotas: quotas.into_iter().collect(), ..Refresh::default() }
    }

    fn table(name: &str) -> TableName {
        TableName::parse(name).expect("a legal name")
    }

    /// How many writes pass.
    fn passing(throttles: &Throttles, user: &str, name: &str) -> usize {
        let Some(limiters) = throttles.limiters(user, &table(name)) else { return usize::MAX };
        let mut passed = 0;
        while passed < 100 && limiters.all.iter().all(|limiter| limiter.check(&ONE_WRITE, 0).is_ok()) {
            limiters.all.iter().for_each(|limiter| limiter.grab(&ONE_WRITE));
            passed += 1;
        }
        passed
    }

    #[test]
    fn a_users_quota_for_a_table_comes_before_that_for_the_namespace_and_the_global_one() {
        let throttles = throttles();
        let user = || "bob".to_owned();
        throttles.refresh(&refresh([
            (Subject::User(user()), machine(3)),
            (Subject::UserNamespace(user(), "ns".into()), machine(5)),
            (Subject::UserTable(user(), table("ns:t")), machine(7)),
        ]));
        assert_eq!(passing(&throttles, "bob", "ns:t"), 7);
        assert_eq!(passing(&throttles, "bob", "ns:u"), 5);
        assert_eq!(passing(&throttles, "bob", "t"), 3);
        assert_eq!(passing(&throttles, "eve", "t"), usize::MAX);
        assert_eq!(passing(&throttles, "bob", "hbase:meta"), usize::MAX);
    }

    #[test]
    fn all_of_user_table_namespace_and_region_server_bound_a_call() {
        let subjects = [
            Subject::User("bob".into()),
            Subject::Table(table("ns:t")),
            Subject::Namespace("ns".into()),
            Subject::RegionServer("all".into()),
        ];
        for least in 0..subjects.len() {
            let throttles = throttles();
            let quotas = subjects.iter().cloned().enumerate();
            throttles
                .refresh(&refresh(quotas.map(|(at, subject)| (subject, machine(if at == least { 2 } else { 9 })))));
            assert_eq!(passing(&throttles, "bob", "ns:t"), 2, "{:?}", subjects[least]);
        }
    }

    #[test]
    fn who_bypasses_globals_is_bound_by_its_own_quota_only() {
        let throttles = throttles();
        let mut own = machine(4);
        own.bypass_globals = Some(true);
        let free = pb::Quotas { bypass_globals: Some(true), ..pb::Quotas::default() };
        throttles.refresh(&refresh([
            (Subject::User("bob".into()), own),
            (Subject::User("root".into()), free),
            (Subject::Table(table("t")), machine(1)),
        ]));
        assert_eq!(passing(&throttles, "bob", "t"), 4);
        assert_eq!(passing(&throttles, "root", "t"), usize::MAX);
        assert_eq!(passing(&throttles, "eve", "t"), 1);
    }

    #[test]
    fn a_refresh_keeps_what_was_used_and_removes_what_is_gone() {
        let throttles = throttles();
        let subject = Subject::Table(table("t"));
        throttles.refresh(&refresh([(subject.clone(), machine(5))]));
        assert_eq!(passing(&throttles, "bob", "t"), 5);
        throttles.refresh(&refresh([(subject.clone(), machine(5))]));
        assert_eq!(passing(&throttles, "bob", "t"), 0);
        throttles.refresh(&refresh([(subject, machine(8))]));
        assert_eq!(passing(&throttles, "bob", "t"), 3);
        throttles.refresh(&refresh([]));
        assert_eq!(passing(&throttles, "bob", "t"), usize::MAX);
    }

    #[test]
    fn limits_of_the_cluster_are_divided_among_its_servers() {
        let throttles = throttles();
        let mut refresh = refresh([
            (Subject::User("bob".into()), writes(9, pb::QuotaScope::Cluster)),
            (Subject::Table(table("t")), writes(8, pb::QuotaScope::Cluster)),
            (Subject::Namespace("ns".into()), writes(1, pb::QuotaScope::Cluster)),
        ]);
        refresh.factors = Factors { machine: 1.0 / 3.0, tables: [("t".to_owned(), 0.25)].into_iter().collect() };
        throttles.refresh(&refresh);
        assert_eq!(passing(&throttles, "bob", "u"), 3);
        assert_eq!(passing(&throttles, "eve", "t"), 2);
        assert_eq!(passing(&throttles, "eve", "ns:t"), 1, "never less than one");
    }

    #[test]
    fn users_without_quotas_have_the_default_each_for_itself() {
        let mut config = Config::default();
        config.set(crate::settings::DEFAULT_WRITE_NUM.key, "2");
        let throttles = Throttles::new(ThrottleSettings::from_config(&config, 30));
        throttles.refresh(&refresh([(Subject::User("bob".into()), machine(4))]));
        assert_eq!(passing(&throttles, "eve", "t"), 2);
        assert_eq!(passing(&throttles, "eve", "t"), 0);
        assert_eq!(passing(&throttles, "mallory", "t"), 2);
        assert_eq!(passing(&throttles, "bob", "t"), 4);
        config.set(crate::settings::DEFAULT_WRITE_NUM.key, "3");
        throttles.set_settings(ThrottleSettings::from_config(&config, 30));
        assert_eq!(passing(&throttles, "eve", "t"), 3, "another default counts at once");
    }

    #[test]
    fn the_region_servers_quota_may_stand_in_for_others_when_it_is_switched_so() {
        let throttles = throttles();
        let mut refresh =
            refresh([(Subject::Table(table("t")), machine(1)), (Subject::RegionServer("all".into()), machine(9))]);
        refresh.exceed = true;
        throttles.refresh(&refresh);
        let limiters = throttles.limiters("bob", &table("t")).expect("bound");
        assert_eq!((limiters.all.len(), limiters.exceed.is_some()), (1, true));
        refresh.quotas.truncate(1);
        throttles.refresh(&refresh);
        let limiters = throttles.limiters("bob", &table("t")).expect("bound");
        assert_eq!((limiters.all.len(), limiters.exceed.is_some()), (1, false), "there is none to stand in");
    }
}
