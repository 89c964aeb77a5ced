create table region (r_regionkey integer primary key, r_name text, r_comment text);
create table nation (n_nationkey integer primary key, n_name text, n_regionkey integer, n_comment text);
create table supplier (s_suppkey bigint primary key, s_name text, s_address text, s_nationkey integer, s_phone text, s_acctbal numeric(15,2), s_comment text);
create table customer (c_custkey bigint primary key, c_name text, c_address text, c_nationkey integer, c_phone text, c_acctbal numeric(15,2), c_mktsegment text, c_comment text);
create table part (p_partkey bigint primary key, p_name text, p_mfgr text, p_brand text, p_type text, p_size integer, p_container text, p_retailprice numeric(15,2), p_comment text);
create table partsupp (ps_partkey bigint, ps_suppkey bigint, ps_availqty integer, ps_supplycost numeric(15,2), ps_comment text, primary key (ps_partkey, ps_suppkey));
create table orders (o_orderkey bigint primary key, o_custkey bigint, o_orderstatus text, o_totalprice numeric(15,2), o_orderdate date, o_orderpriority text, o_clerk text, o_shippriority integer, o_comment text);
create table lineitem (l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber integer, l_quantity numeric(15,2), l_extendedprice numeric(15,2), l_discount numeric(15,2), l_tax numeric(15,2), l_returnflag text, l_linestatus text, l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct text, l_shipmode text, l_comment text, primary key (l_orderkey, l_linenumber));
