// Writes an HFile whose blocks are packed with a Zstandard dictionary, by HBase 2.6.4's own writer and its bundled codec:
//   java -cp "jars/*" MakeZstd.java DICTIONARY FILE
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.hfile.*;
import org.apache.hadoop.hbase.util.Bytes;
import com.github.luben.zstd.ZstdDictTrainer;
import java.nio.file.Files;
import java.nio.file.Paths;

public class MakeZstd {
  static byte[] value(int i) {
    return Bytes.toBytes("{\"sensor\":\"" + (i % 7) + "\",\"place\":\"hall " + (i * 31 % 11) + "\",\"celsius\":" + (i * 37 % 400) / 10.0 + "}");
  }
  public static void main(String[] a) throws Exception {
    ZstdDictTrainer trainer = new ZstdDictTrainer(1 << 20, 2048);
    for (int i = 0; i < 4000; i++) trainer.addSample(value(i));
    Files.write(Paths.get(a[0]), trainer.trainSamples());
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.io.compress.zstd.codec", "org.apache.hadoop.hbase.io.compress.zstd.ZstdCodec");
    conf.set("hbase.io.compress.zstd.dictionary", "file://" + Paths.get(a[0]).toAbsolutePath());
    conf.set("hbase.io.compress.zstd.level", "5");
    FileSystem fs = FileSystem.getLocal(conf).getRawFileSystem();
    HFileContext context = new HFileContextBuilder().withCompression(Compression.Algorithm.ZSTD).withBlockSize(1024)
        .withIncludesMvcc(true).withCreateTime(1700000000000L).withColumnFamily(Bytes.toBytes("f"))
        .withCellComparator(CellComparator.getInstance()).build();
    HFile.Writer writer = HFile.getWriterFactoryNoCache(conf).withPath(fs, new Path(a[1])).withFileContext(context).create();
    for (int i = 0; i < 300; i++) {
      KeyValue kv = new KeyValue(Bytes.toBytes(String.format("r%04d", i)), Bytes.toBytes("f"), Bytes.toBytes("q"), 1000L + i, value(i));
      kv.setSequenceId(i + 1);
      writer.append(kv);
    }
    writer.appendFileInfo(Bytes.toBytes("MAX_SEQ_ID_KEY"), Bytes.toBytes(300L));
    writer.close();
    HFile.Reader reader = HFile.createReader(fs, new Path(a[1]), CacheConfig.DISABLED, true, conf);
    System.out.println(reader.getEntries() + " cells, " + reader.length() + " bytes");
    reader.close();
  }
}
