//! How verdicts merge: first, second, result, as HBase 2.6.4's own `mergeReturnCode` answered for every pair.

use super::{both, either};
use crate::Verdict;

const BOTH: &str = "III ICC Iss Icc Irr Ihh IRR CIC CCC Csc Ccc Crr Chh CRR sIs sCc sss scc srr shh sRr \
    cIc cCc csc ccc crr chh cRr rIr rCr rsr rcr rrr rhh rRr hIh hCh hsh hch hrh hhh hRh RIR RCR Rsr Rcr Rrr Rhh RRR";
const EITHER: &str = "III ICI IsI IcI IrI IhI IRI CII CCC CsI CcC CrC ChI CRC sII sCI sss scs srs shs sRI \
    cII cCC css ccc crc chs cRC rII rCC rss rcc rrr rhs rRR hII hCI hss hcs hrs hhh hRI RII RCC RsI RcC RrR RhI RRR";

fn verdict(letter: u8) -> Verdict {
    match letter {
        b'I' => Verdict::Include,
        b'C' => Verdict::IncludeAndNextCol,
        b'R' => Verdict::IncludeAndSeekNextRow,
        b's' => Verdict::Skip,
        b'c' => Verdict::NextCol,
        b'r' => Verdict::NextRow,
        b'h' => Verdict::SeekNextUsingHint,
        other => panic!("{other}"),
    }
}

#[test]
fn verdicts_merge_as_in_hbase() {
    for (table, merge) in [(BOTH, both as fn(Verdict, Verdict) -> Verdict), (EITHER, either)] {
        let rows: Vec<&[u8]> = table.split_whitespace().map(str::as_bytes).collect();
        assert_eq!(rows.len(), 49);
        for row in rows {
            let [a, b, result] = [0, 1, 2].map(|i| verdict(row[i]));
            assert_eq!(merge(a, b), result, "{a:?} {b:?}");
        }
    }
}
