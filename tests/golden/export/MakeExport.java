import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.io.ImmutableBytesWritable;
import org.apache.hadoop.hbase.mapreduce.ResultSerialization;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.serializer.WritableSerialization;

/** Writes a file as HBase's Export does, or prints one as HBase's Import reads it. */
public class MakeExport {
  public static void main(String[] args) throws Exception {
    Configuration conf = new Configuration();
    conf.setStrings("io.serializations", WritableSerialization.class.getName(), ResultSerialization.class.getName());
    Path path = new Path(args[1]);
    if (args[0].equals("write")) {
      try (SequenceFile.Writer w = SequenceFile.createWriter(conf, SequenceFile.Writer.file(path),
          SequenceFile.Writer.keyClass(ImmutableBytesWritable.class), SequenceFile.Writer.valueClass(Result.class),
          SequenceFile.Writer.compression(SequenceFile.CompressionType.NONE))) {
        for (int i = 0; i < 60; i++) {
          byte[] row = Bytes.toBytes(String.format("row-%05d", i));
          Cell[] cells = {
            CellBuilderFactory.create(CellBuilderType.DEEP_COPY).setRow(row).setFamily(Bytes.toBytes("f")).setQualifier(Bytes.toBytes("q"))
              .setTimestamp(1000 + i).setType(Cell.Type.Put).setValue(new byte[i * 100]).build(),
            CellBuilderFactory.create(CellBuilderType.DEEP_COPY).setRow(row).setFamily(Bytes.toBytes("f")).setQualifier(Bytes.toBytes("z"))
              .setTimestamp(5).setType(Cell.Type.DeleteColumn).build() };
          w.append(new ImmutableBytesWritable(row), Result.create(cells));
        }
      }
      return;
    }
    try (SequenceFile.Reader r = new SequenceFile.Reader(conf, SequenceFile.Reader.file(path))) {
      ImmutableBytesWritable key = new ImmutableBytesWritable();
      Object k; int rows = 0, cells = 0;
      while ((k = r.next((Object) key)) != null) {
        Result result = (Result) r.getCurrentValue((Object) null);
        rows++; cells += result.size();
        if (!Arrays.equals(((ImmutableBytesWritable) k).copyBytes(), result.getRow())) throw new RuntimeException("row differs");
        if (rows <= 2) System.out.println(Arrays.toString(result.rawCells()));
      }
      System.out.println("rows=" + rows + " cells=" + cells);
    }
  }
}
