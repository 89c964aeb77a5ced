#!/usr/bin/env bash
# One of HBase's MapReduce jobs, or another main class of its jars, by a job runner in the client's own JVM:
#   ZK=host:port real-hbase/job.sh org.apache.hadoop.hbase.mapreduce.HashTable TABLE file:///hashes
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
CLIENT_XML='<property><name>mapreduce.framework.name</name><value>local</value></property>
  <property><name>fs.defaultFS</name><value>file:///</value></property>'
client_java "$@"
