// What HBase 2.6.4 writes seldom: an HFile with a meta block, the marker of a bulk load in a log, as a KeyValue in hexadecimal digits, and an
// HFile whose index is encoded. The last argument is what HBase's own reader says of that one.
//   java -cp "jars/*" MakeMore.java META.HFILE MARKER.HEX INDEX-PREFIX-TREE.HFILE INDEX-PREFIX-TREE.TXT
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.IndexBlockEncoding;
import org.apache.hadoop.hbase.io.hfile.*;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.Text;
import org.apache.hbase.thirdparty.com.google.protobuf.UnsafeByteOperations;

public class MakeMore {
  public static void main(String[] a) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    FileSystem fs = FileSystem.getLocal(conf).getRawFileSystem();
    HFileContext context = new HFileContextBuilder().withCompression(Compression.Algorithm.GZ).withBlockSize(1024)
        .withCreateTime(1700000000000L).withColumnFamily(Bytes.toBytes("f")).withCellComparator(CellComparator.getInstance()).build();
    HFile.Writer writer = HFile.getWriterFactoryNoCache(conf).withPath(fs, new Path(a[0])).withFileContext(context).create();
    writer.append(new KeyValue(Bytes.toBytes("r"), Bytes.toBytes("f"), Bytes.toBytes("q"), 1L, Bytes.toBytes("v")));
    writer.appendMetaBlock("second", new Text("what stands in a block of its own"));
    writer.appendMetaBlock("first", new Text("x".repeat(3000)));
    writer.close();
    Map<byte[], List<Path>> files = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    files.put(Bytes.toBytes("f"), Arrays.asList(new Path("0123456789abcdef0123456789abcdef_SeqId_7_"), new Path("fedcba9876543210fedcba9876543210_SeqId_7_")));
    files.put(Bytes.toBytes("g"), Arrays.asList(new Path("00000000000000000000000000000000_SeqId_7_")));
    RegionInfo region = RegionInfoBuilder.newBuilder(TableName.valueOf("ns", "t")).setStartKey(Bytes.toBytes("b")).setRegionId(1700000000000L).build();
    var descriptor = ProtobufUtil.toBulkLoadDescriptor(region.getTable(), UnsafeByteOperations.unsafeWrap(region.getEncodedNameAsBytes()),
        files, new TreeMap<String, Long>(), 7L, Arrays.asList("here"), true);
    Cell cell = WALEdit.createBulkLoadEvent(region, descriptor).getCells().get(0);
    byte[] bytes = KeyValueUtil.copyToNewByteArray(cell);
    Files.writeString(Paths.get(a[1]), Bytes.toHex(bytes) + "\n");
    Files.writeString(Paths.get(a[3]), encodedIndex(conf, fs, new Path(a[2])) + "\n");
  }

  /** Writes a file of several index blocks and reads it again: the causes of what comes of it, the last first. */
  private static String encodedIndex(Configuration conf, FileSystem fs, Path path) throws Exception {
    conf.setInt("hfile.index.block.max.size", 256);
    HFileContext context = new HFileContextBuilder().withBlockSize(128).withIndexBlockEncoding(IndexBlockEncoding.PREFIX_TREE)
        .withCreateTime(1700000000000L).withColumnFamily(Bytes.toBytes("f")).withCellComparator(CellComparator.getInstance()).build();
    try (HFile.Writer writer = HFile.getWriterFactoryNoCache(conf).withPath(fs, path).withFileContext(context).create()) {
      for (int i = 0; i < 60; i++) {
        writer.append(new KeyValue(Bytes.toBytes(String.format("r%04d", i)), Bytes.toBytes("f"), Bytes.toBytes("q"), 1L, Bytes.toBytes("v")));
      }
    }
    try (HFile.Reader reader = HFile.createReader(fs, path, new CacheConfig(conf), true, conf)) {
      return "it opens: " + reader.getEntries() + " cells";
    } catch (Exception e) {
      Throwable last = e;
      while (last.getCause() != null) {
        last = last.getCause();
      }
      return last.getClass().getName() + " at " + last.getStackTrace()[0].getMethodName();
    }
  }
}
