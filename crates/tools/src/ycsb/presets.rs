//! YCSB's six core workloads, built in: `-P workloada` works without YCSB's files at hand.

/// The name that a path ends in, and the properties that YCSB's file of that name sets.
pub fn preset(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    PRESETS.iter().find(|(preset, _)| *preset == name).map(|(_, text)| *text)
}

const PRESETS: &[(&str, &str)] = &[
    // update heavy: sessions that record recent actions
    (
        "workloada",
        "recordcount=1000\noperationcount=1000\nreadallfields=true\nreadproportion=0.5\nupdateproportion=0.5\n\
         scanproportion=0\ninsertproportion=0\nrequestdistribution=zipfian",
    ),
    // read mostly: tags on photos
    (
        "workloadb",
        "recordcount=1000\noperationcount=1000\nreadallfields=true\nreadproportion=0.95\nupdateproportion=0.05\n\
         scanproportion=0\ninsertproportion=0\nrequestdistribution=zipfian",
    ),
    // read only: profiles made elsewhere
    (
        "workloadc",
        "recordcount=1000\noperationcount=1000\nreadallfields=true\nreadproportion=1\nupdateproportion=0\n\
         scanproportion=0\ninsertproportion=0\nrequestdistribution=zipfian",
    ),
    // read latest: status updates
    (
        "workloadd",
        "recordcount=1000\noperationcount=1000\nreadallfields=true\nreadproportion=0.95\nupdateproportion=0\n\
         scanproportion=0\ninsertproportion=0.05\nrequestdistribution=latest",
    ),
    // short ranges: conversations
    (
        "workloade",
        "recordcount=1000\noperationcount=1000\nreadallfields=true\nreadproportion=0\nupdateproportion=0\n\
         scanproportion=0.95\ninsertproportion=0.05\nrequestdistribution=zipfian\nmaxscanlength=100\n\
         scanlengthdistribution=uniform",
    ),
    // read, modify, write: users' records
    (
        "workloadf",
        "recordcount=1000\noperationcount=1000\nreadallfields=true\nreadproportion=0.5\nupdateproportion=0\n\
         scanproportion=0\ninsertproportion=0\nreadmodifywriteproportion=0.5\nrequestdistribution=zipfian",
    ),
];
