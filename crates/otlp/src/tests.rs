use super::*;
use base::SystemClock;
use testkit::collector::Collector;

fn options(pairs: &[(&'static str, &str)], env: &[(&str, &str)]) -> Option<Options> {
    let mut config = Config::default();
    pairs.iter().for_each(|(key, value)| config.set(*key, *value));
    Options::read(&config, |name| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
}

#[test]
fn nothing_is_traced_unless_somebody_says_where_to() {
    assert_eq!(options(&[], &[]), None);
    assert_eq!(options(&[], &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:1"), ("OTEL_TRACES_EXPORTER", "none")]), None);
    let endpoint = |pairs: &[(&'static str, &str)], env: &[(&str, &str)]| options(pairs, env).map(|o| o.endpoint);
    let url = |text: &str| Some(text.to_owned());
    let key = settings::ENDPOINT.key;
    assert_eq!(endpoint(&[(key, "http://a:4318")], &[]), url("http://a:4318/v1/traces"));
    assert_eq!(endpoint(&[(key, "http://a:4318/")], &[]), url("http://a:4318/v1/traces"));
    assert_eq!(endpoint(&[(key, "http://a/here")], &[]), url("http://a/here"));
    let wanted = ("OTEL_TRACES_EXPORTER", "logging,otlp");
    assert_eq!(endpoint(&[], &[wanted]), url("http://localhost:4318/v1/traces"));
    assert_eq!(endpoint(&[], &[wanted, ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1/")]), url("http://c:1/v1/traces"));
    assert_eq!(endpoint(&[], &[wanted, ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:1/x")]), url("http://c:1/x"));
    let named = options(&[(key, "http://a:1")], &[("OTEL_SERVICE_NAME", "mine")]).expect("is traced");
    assert_eq!(named.service_name, "mine");
}

#[tokio::test]
async fn an_endpoint_that_is_none_is_refused_with_a_sentence() {
    let start = |endpoint: &str| {
        let options = Options { endpoint: endpoint.to_owned(), service_name: "s".to_owned(), sampled_part: 1.0 };
        Exporter::start(&options, "i", "1").map(|_| ()).expect_err("is no endpoint").to_string()
    };
    assert!(start("https://a:4318/v1/traces").contains("https is not spoken here"), "{}", start("https://a:4318"));
    assert!(start("collector").contains("http://host:4318"));
    assert!(start("ftp://a/").contains("http://host:4318"));
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_of_a_call_are_posted_to_the_collector_with_their_names_and_ids() {
    let collector = Collector::start().expect("a free port");
    let endpoint = format!("{}{TRACES_PATH}", collector.endpoint());
    let options = Options { endpoint, service_name: "my-hbase".to_owned(), sampled_part: 1.0 };
    let exporter = Exporter::start(&options, "h,1,2", "0.1").expect("starts");
    let tracer = exporter.tracer(&options, Arc::new(SystemClock::new()), Rng::seeded(3));
    let parent = trace::TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    let call = tracer.call(parent, "ClientService", "Get", 0).expect("is traced");
    {
        let _working = trace::enter(Some(&call));
        let mut span = trace::begin("Region.get").expect("is traced");
        span.set("db.hbase.regions", trace::Value::Texts(vec!["t,,1.e.".to_owned()]));
    }
    call.ended(0, Some(("org.apache.hadoop.hbase.NotServingRegionException", "t is not online")));
    let ending = exporter.clone();
    tokio::task::spawn_blocking(move || ending.shutdown(Duration::from_secs(10))).await.expect("ends");
    let posts = collector.posts(Duration::from_secs(10));
    let post = posts.first().expect("it was posted");
    assert!(post.head.starts_with("POST /v1/traces HTTP/1.1\r\n") && post.head.contains("application/x-protobuf"));
    let has = |needle: &[u8]| post.body.windows(needle.len()).any(|bytes| bytes == needle);
    for text in [
        "my-hbase",
        "h,1,2",
        "RpcServer.process",
        "hbase.pb.ClientService/Get",
        "rpc.system",
        "HBASE_RPC",
        "Region.get",
        "db.hbase.regions",
        "t,,1.e.",
        "exception.type",
        "org.apache.hadoop.hbase.NotServingRegionException",
    ] {
        assert!(has(text.as_bytes()), "{text}");
    }
    assert!(has(&0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes()));
    assert!(has(&0x00f0_67aa_0ba9_02b7_u64.to_be_bytes()));
}
