# Common settings; sourced by every script here.  Every path has a default
# that can be overridden from the environment.
LAB=${LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/basalt-interop}   # scratch area
HB=${HB:-$LAB/hbase}                       # jars, data, logs live under here
SCRIPTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
MAVEN_REPO=${MAVEN_REPO:-}                 # private Maven local repository, optional
ZK=${ZK:-127.0.0.1:2181}                   # host:port the clients connect to
ZNODE=${ZNODE:-/hbase}                     # zookeeper.znode.parent
JAVA=${JAVA:-java}
CLIENT_HEAP=${CLIENT_HEAP:-1g}
CLIENT_CONF=${CLIENT_CONF:-$HB/conf-client-${ZK//[^A-Za-z0-9]/_}}
LOG_LEVEL=${LOG_LEVEL:-WARN}               # client log level

# What JDK 17 must be told before HBase 2.x runs on it
JDK_OPENS="--add-opens java.base/java.lang=ALL-UNNAMED
 --add-opens java.base/java.lang.reflect=ALL-UNNAMED
 --add-opens java.base/java.io=ALL-UNNAMED
 --add-opens java.base/java.net=ALL-UNNAMED
 --add-opens java.base/java.nio=ALL-UNNAMED
 --add-opens java.base/java.util=ALL-UNNAMED
 --add-opens java.base/java.util.concurrent=ALL-UNNAMED
 --add-opens java.base/java.security=ALL-UNNAMED
 --add-opens java.base/sun.nio.ch=ALL-UNNAMED
 --add-opens java.base/sun.nio.fs=ALL-UNNAMED
 --add-opens java.base/jdk.internal.ref=ALL-UNNAMED
 --add-opens java.base/jdk.internal.misc=ALL-UNNAMED
 --add-exports java.base/jdk.internal.misc=ALL-UNNAMED
 --add-exports java.security.jgss/sun.security.krb5=ALL-UNNAMED
 -Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true"

# write a log4j2 configuration: $1 = file, $2 = level
write_log4j() {
  cat > "$1" <<L4J
status = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %-5p [%t] %c{2}: %m%n
rootLogger.level = $2
rootLogger.appenderRef.console.ref = console
${3:-}
L4J
}

# client configuration directory: points at $ZK and nothing else
client_conf() {
  mkdir -p "$CLIENT_CONF"
  local host=${ZK%:*} port=${ZK##*:}
  cat > "$CLIENT_CONF/hbase-site.xml" <<XML
<configuration>
  <property><name>hbase.zookeeper.quorum</name><value>$host</value></property>
  <property><name>hbase.zookeeper.property.clientPort</name><value>$port</value></property>
  <property><name>zookeeper.znode.parent</name><value>$ZNODE</value></property>
  <property><name>hbase.cluster.distributed</name><value>true</value></property>
  <property><name>hbase.unsafe.stream.capability.enforce</name><value>false</value></property>
  ${CLIENT_XML:-}
</configuration>
XML
  # PerformanceEvaluation reports its per-thread results through its logger
  write_log4j "$CLIENT_CONF/log4j2.properties" "$LOG_LEVEL" "
logger.pe.name = org.apache.hadoop.hbase.PerformanceEvaluation
logger.pe.level = INFO
logger.ltt.name = org.apache.hadoop.hbase.util
logger.ltt.level = ${TOOL_LOG_LEVEL:-INFO}
logger.it.name = org.apache.hadoop.hbase.test
logger.it.level = INFO
logger.acid.name = org.apache.hadoop.hbase.AcidGuaranteesTestTool
logger.acid.level = INFO
logger.job.name = org.apache.hadoop.mapreduce.Job
logger.job.level = INFO"
}

# run a client main class against $ZK
client_java() {
  client_conf
  exec "$JAVA" -Xmx"$CLIENT_HEAP" $JDK_OPENS ${CLIENT_OPTS:-} \
    -cp "$CLIENT_CONF:${CLIENT_CP_EXTRA:+$CLIENT_CP_EXTRA:}$HB/jars/*:$HB/testjars/*" "$@"
}
