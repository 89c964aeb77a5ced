//! `basalt shell` against a server process: HBase's own session, compared with what HBase 2.6.4 printed; scripts, pipes, exit codes.
#![allow(clippy::disallowed_methods, reason = "times a real process")]

use crate::common::tools::text;
use crate::common::{Scratch, Server};
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn shell(zk_port: u16, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_basalt"))
        .env_remove("HBASE_CONF_DIR")
        .args(["-D", &format!("hbase.zookeeper.property.clientPort={zk_port}"), "shell"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("taken");
    child.wait_with_output().expect("it ends")
}

#[test]
fn hbases_own_session_prints_what_hbase_printed() {
    let scratch = Scratch::new("shell-session");
    let server = Server::start(&scratch.0, &[]);
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/interop/shell");
    let output = shell(server.zk_port, &["-n", &format!("{dir}/commands.rb")], "");
    let said = text(&output);
    let expected = include_str!("../../../tests/interop/shell/expected.txt");
    let expected = testkit::shell::commands(expected);
    let got = testkit::shell::commands(&testkit::shell::plain(&said));
    for (i, (command, answer)) in expected.iter().enumerate() {
        let (got_command, got_answer) = got.get(i).unwrap_or_else(|| panic!("{command} was not reached:\n{said}"));
        // HBase's shell goes on to standard input after a script, and shows one more prompt there.
        let (got_answer, answer) = (got_answer.trim_end_matches("hbase>\n"), answer.trim_end_matches("hbase>\n"));
        assert_eq!((got_command, got_answer), (command, answer), "\n{said}");
    }
    assert!(output.status.success(), "{said}");
}

#[test]
fn commands_pipes_and_exit_codes() {
    let scratch = Scratch::new("shell-modes");
    let server = Server::start(&scratch.0, &[]);
    let run = |arguments: &[&str], input: &str| shell(server.zk_port, arguments, input);

    let done = run(
        &["-e", "create 't', 'f'", "-e", "5.times { |i| put 't', \"r#{i}\", 'f:q', i.to_s }", "-e", "count 't'"],
        "",
    );
    assert!(done.status.success() && text(&done).contains("5 row(s)"), "{}", text(&done));
    let refused = run(&["-e", "drop 't'"], "");
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused).contains("ERROR ArgumentError: Table t is enabled. Disable it first."),
        "{}",
        text(&refused)
    );

    let piped = run(&["-n"], "t = get_table 't'\nt.put 'r9', 'f:q', \"\\x00\"\nt.get 'r9'\nexit 3\n");
    assert!(text(&piped).contains("value=\\x00"), "{}", text(&piped));
    assert_eq!(piped.status.code(), Some(3));
    // Without -n an error is told and passed over, as HBase does it.
    let went_on = run(&[], "put 't', 'r', 'nope:q', 'v'\nget 'none', 'r'\nget 't', 'r0'\n");
    let said = text(&went_on);
    assert!(said.contains("ERROR: Unknown column family! Valid column names: f:*"), "{said}");
    assert!(said.contains("ERROR: Unknown table none!") && said.contains("value=0"), "{said}");
    assert!(went_on.status.success());
    let wrong = run(&["-n"], "create 't2', {NAME => 'f'\nlist\n");
    assert!(text(&wrong).contains("line ") && text(&wrong).contains('^'), "{}", text(&wrong));
    assert_eq!(wrong.status.code(), Some(1));
}

#[test]
fn the_shell_starts_at_once_and_says_what_it_tried_where_no_cluster_is() {
    let start = Instant::now();
    let done = shell(1, &["-n", "-e", "puts 'up'"], "");
    let took = start.elapsed();
    assert_eq!(text(&done), "up\n");
    assert!(took < Duration::from_millis(500), "a debug build under other tests took {} ms", took.as_millis());
    let refused = shell(
        2181,
        &["-q", "127.0.0.1:1", "-D", "hbase.client.retries.number=1", "-D", "hbase.client.pause=10", "-e", "list"],
        "",
    );
    let said = text(&refused);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("ERROR ") && said.contains(":1"), "{said}");
}

#[test]
fn an_administrators_script_runs_to_its_end() {
    let scratch = Scratch::new("shell-admin");
    let server = Server::start(&scratch.0, &[]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/shell/administration.rb");
    let output = shell(server.zk_port, &["-n", script], "");
    let said = text(&output);
    assert!(output.status.success() && said.contains("\nall done\n"), "{said}");
    assert!(said.contains("active master:  ") && said.contains("Aggregate load: "), "{said}");
    assert!(said.contains("SNAPSHOT  TABLE + CREATION TIME\n adm_s adm ("), "{said}");
}

#[test]
fn an_operators_script_of_peers_quotas_and_logs_runs_to_its_end() {
    let scratch = Scratch::new("shell-operations");
    let server = Server::start(&scratch.0, &["hbase.quota.enabled=true"]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/shell/operations.rb");
    let output = shell(server.zk_port, &["-n", script], "");
    let said = text(&output);
    assert!(output.status.success() && said.contains("\nall done\n"), "{said}");
    for expected in [
        "OWNER  QUOTAS\n",
        "USER => bob TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_SIZE, LIMIT => 10.00M/sec, SCOPE => MACHINE\n",
        "USER => alice GLOBAL_BYPASS => true\n",
        "HBase is rooted at /hbase\n",
        "{ENCODED => 1588230740, NAME => 'hbase:meta,,1', STARTKEY => '', ENDKEY => ''}\n",
        "Retrieved SlowLog Responses from RegionServers\n",
        "Cleared Slowlog responses from ",
    ] {
        assert!(said.contains(expected), "{expected} in\n{said}");
    }
}

#[test]
fn a_maintenance_script_asks_and_prints_as_hbases_does() {
    let scratch = Scratch::new("shell-maintenance");
    let server = Server::start(&scratch.0, &["hbase.quota.enabled=true"]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/shell/maintenance.rb");
    // Disable, enable, not disable, delete twice, change, disable, drop.
    let output = shell(server.zk_port, &["-n", script], "y\ny\nn\ny\ny\ny\ny\ny\n");
    let said = text(&output);
    assert!(said.contains("\nall done\n"), "{said}");
    assert_eq!(output.status.code(), Some(3), "exit has its number: {said}");
    for expected in [
        "mnt_a\nmnt_b\n\nDisable the above 2 tables (y/n)?\n2 tables successfully disabled\n",
        "\nEnable the above 2 tables (y/n)?\n2 tables successfully enabled\n",
        "mnt_b\n\nDisable the above 1 tables (y/n)?\nTook ",
        "No tables matched the regex none_.*\n",
        "\nDelete the above 1 snapshots (y/n)?\nSuccessfully deleted snapshot: snap_1\n\n",
        "\nDelete the above 2 snapshots (y/n)?\n2 snapshots successfully deleted.\n",
        "TABLE:COLUMNFAMILY               ReplicationType",
        "The replication of table 'mnt_b' successfully enabled\n",
        "Replication of table 'mnt_b' successfully disabled.\n",
        "Previous rpc throttle state : true\n",
        "\nDrop the above 2 tables (y/n)?\n2 tables successfully dropped\n",
    ] {
        assert!(squeezed(&said).contains(&squeezed(expected)), "{expected:?} in\n{said}");
    }
}

/// A word that the shell prints behind `before`.
fn printed(server: &Server, command: &str, before: &str) -> String {
    let said = text(&shell(server.zk_port, &["-e", command], ""));
    let rest = said.split(before).nth(1).unwrap_or_else(|| panic!("{before} in {said}"));
    rest.split([',', '\n', '\'']).next().unwrap_or_default().trim().to_owned()
}

/// The name of the server.
fn server_name(server: &Server) -> String {
    let said = text(&shell(server.zk_port, &["--json", "-e", "list_liveservers"], ""));
    said.split("\"SERVERNAME\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a server").to_owned()
}

/// Runs a script of `tests/shell` with lines before it.
fn script_with(server: &Server, scratch: &Scratch, name: &str, before: &str) -> Output {
    let script = std::fs::read_to_string(format!("{}/../../tests/shell/{name}", env!("CARGO_MANIFEST_DIR")));
    let path = scratch.join(name);
    std::fs::write(&path, format!("{before}{}", script.expect("readable"))).expect("written");
    shell(server.zk_port, &["-n", path.to_str().expect("UTF-8")], "")
}

#[test]
fn regions_and_servers_are_managed_by_their_names() {
    let scratch = Scratch::new("shell-regions");
    let server = Server::start(&scratch.join("data"), &[]);
    let fill = "%w[a z].each { |row| put 'reg', row, 'f:q', 'v'; put 'reg2', row, 'f:q', 'v' }";
    let made = shell(
        server.zk_port,
        &["-e", "create 'reg', 'f', SPLITS => ['m']", "-e", "create 'reg2', 'f'", "-e", fill],
        "",
    );
    assert!(made.status.success(), "{}", text(&made));
    let (first, second) = (
        printed(&server, "locate_region 'reg', 'a'", "ENCODED => "),
        printed(&server, "locate_region 'reg', 'z'", "ENCODED => "),
    );
    let located = text(&shell(server.zk_port, &["-e", "locate_region 'reg2', 'a'"], ""));
    let other = located.split("NAME => '").nth(1).and_then(|rest| rest.split('\'').next()).expect("a name").to_owned();
    let names =
        format!("first = '{first}'\nsecond = '{second}'\nother = '{other}'\nserver = '{}'\n", server_name(&server));
    let output = script_with(&server, &scratch, "regions.rb", &names);
    let said = text(&output);
    assert!(output.status.success() && said.contains("\nall done\n"), "{said}");
    for expected in
        ["PID Name State Submitted Last_Update Parameters\n", "DECOMMISSIONED REGION SERVERS\n", "0 row(s)\n"]
    {
        assert!(squeezed(&said).contains(expected), "{expected:?} in\n{said}");
    }
}

#[test]
fn a_shell_stops_the_server_by_either_of_its_names() {
    for script in ["stop_master.rb", "stop_regionserver.rb"] {
        let scratch = Scratch::new("shell-stop");
        let mut server = Server::start(&scratch.join("data"), &[]);
        let name = format!("server = '{}'\n", server_name(&server));
        let stopped = script_with(&server, &scratch, script, &name);
        assert!(stopped.status.success(), "{script}: {}", text(&stopped));
        // One process is both.
        assert!(server.child.wait().expect("it ends").success(), "{script}");
    }
}

/// With one blank for each run of them: columns are as wide as what stands in them.
fn squeezed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !(c == ' ' && (out.ends_with([' ', '\n']) || out.is_empty())) {
            out.push(c);
        }
    }
    out
}

#[test]
fn programs_read_rows_as_json() {
    let scratch = Scratch::new("shell-json");
    let server = Server::start(&scratch.0, &[]);
    let made = shell(server.zk_port, &["-e", "create 't', 'f'", "-e", "put 't', 'r\"', 'f:q', \"\\x00v\", 7"], "");
    assert!(made.status.success(), "{}", text(&made));
    let read = shell(server.zk_port, &["--json", "-e", "scan 't'", "-e", "list"], "");
    let column = "column=f:q, timestamp=1970-01-01T00:00:00.007, value=\\\\x00v";
    let expected = format!("{{\"ROW\":\"r\\\"\",\"COLUMN+CELL\":\"{column}\"}}\n{{\"TABLE\":\"t\"}}\n");
    assert_eq!(text(&read), expected);
    let refused = shell(server.zk_port, &["--json", "-e", "scan 'none'"], "");
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).starts_with("{\"error\":\""), "{}", text(&refused));
}

/// What a session of several commands said to each, without times and empty lines. Names of tables begin as prompts do.
fn answers(said: &str) -> Vec<(&str, String)> {
    let mut answers: Vec<(&str, String)> = Vec::new();
    for line in said.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with("Took ")) {
        match line.split_once(":0> ") {
            Some((prompt, command)) if prompt.starts_with("hbase:") => answers.push((command, String::new())),
            _ => {
                if let Some((_, answer)) = answers.last_mut() {
                    answer.push_str(line);
                    answer.push('\n');
                }
            }
        }
    }
    answers.retain(|(command, _)| !command.starts_with('#'));
    answers
}

#[test]
fn groups_of_region_servers_are_shown_and_changed_as_by_hbases_shell() {
    let scratch = Scratch::new("shell-groups");
    let endpoint = "org.apache.hadoop.hbase.rsgroup.RSGroupAdminEndpoint";
    let server = Server::start(&scratch.0.join("on"), &[&format!("hbase.coprocessor.master.classes={endpoint}")]);
    let listed = text(&shell(server.zk_port, &["-n", "-e", "list_rsgroups"], ""));
    let address = listed.split_once("default server ").and_then(|(_, rest)| rest.lines().next());
    let address = address.unwrap_or_else(|| panic!("no server: {listed}")).trim().to_owned();
    assert!(address.ends_with(&format!(":{}", server.region_port)), "{listed}");
    let script = include_str!("../../../tests/shell/groups.rb").replace("SERVER", &address);
    let commands: Vec<&str> = script.lines().filter(|line| !line.starts_with('#')).collect();
    let said = text(&shell(server.zk_port, &[], &script));
    let answers = answers(&said);
    let expect = |number: usize, expected: &str| {
        let Some((command, answer)) = answers.get(number) else {
            panic!("{} was not reached:\n{said}", commands[number])
        };
        assert_eq!(*command, commands[number], "\n{said}");
        assert!(answer.starts_with(expected), "{command} said\n{answer}and not\n{expected}");
    };
    let system = "  table hbase:meta\n  table hbase:namespace\n  table hbase:rsgroup\n  table ns:t\n";
    expect(3, &format!("NAME  SERVER / TABLE\n default server {address}\n{system} g\n2 row(s)\n"));
    expect(4, "NAME  SERVER / TABLE\n g\n1 row(s)\n");
    let tables = "TABLES\nhbase:meta\nhbase:namespace\nhbase:rsgroup\nns:t\n4 row(s)\n";
    expect(5, &format!("SERVERS\n{address}\n1 row(s)\n{tables}"));
    for (number, group) in [(6, "default"), (7, "default"), (10, "g"), (20, "default")] {
        expect(number, &format!("{group}\n1 row(s)\n"));
    }
    expect(8, "1 row(s)\n");
    let constraint = "ERROR: org.apache.hadoop.hbase.constraint.ConstraintException: ";
    expect(11, "ERROR: org.apache.hadoop.hbase.DoNotRetryIOException: Group already exists: g\n");
    expect(12, &format!("{constraint}RSGroup g is referenced by namespace: ns\n"));
    expect(13, "ERROR: Group does not exist: no\n");
    expect(14, "ERROR: Table has no group: no\n");
    expect(15, "ERROR: Server has no group: no:1\n");
    expect(16, &format!("{constraint}should keep at least one server in 'default' RSGroup.\n"));
    expect(17, &format!("{constraint}Target RSGroup must have at least one server.\n"));
    let without = "Cannot leave a RSGroup default that contains tables without servers to host them.\n";
    expect(18, &format!("{constraint}{without}"));
    expect(21, "ERROR: Can't find a namespace: none\n");
    expect(22, &format!("{constraint}{without}"));
    expect(23, "Couldn't run the balancer.\n=> false\n");
    expect(25, "'KEY'  'VALUE'\n a 1\n1 row(s)\n");
    expect(26, "ERROR: Unknown method put\n");
    expect(27, &format!("{constraint}configuration of default can't be stored persistently\n"));
    expect(29, "ERROR: java.lang.IllegalArgumentException: RSGroup does not exist: no\n");
    expect(30, &format!("{constraint}Server {address} is an online server, not allowed to remove.\n"));
    for number in [0, 2, 9, 19, 24, 28, 31, 32] {
        assert_eq!(answers[number], (commands[number], String::new()), "\n{said}");
    }
    let compacted = Command::new(env!("CARGO_BIN_EXE_basalt"))
        .env_remove("HBASE_CONF_DIR")
        .args(["-D", &format!("hbase.zookeeper.property.clientPort={}", server.zk_port)])
        .args(["majorcompactor", "--ttl", "--rs_group", "default", "--dryRun"])
        .output()
        .expect("the binary runs");
    assert!(text(&compacted).contains("No family of ns:t has a TTL: it is passed over"), "{}", text(&compacted));
    expect(33, "NAME  SERVER / TABLE\n0 row(s)\n");

    let off = Server::start(&scratch.0.join("off"), &[]);
    let refused = text(&shell(off.zk_port, &["-n", "-e", "list_rsgroups"], ""));
    let message = "No registered Master Coprocessor Endpoint found for RSGroupAdminService. Has it been enabled?";
    assert!(refused.contains(message), "{refused}");
}
