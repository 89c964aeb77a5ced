//! Batches of which a part cannot be done.

use super::common::{make, own, texts};
use basalt_sim::calls;
use basalt_sim::stage::Stage;
use bytes::Bytes;
use cell::{CellBlock, CellSpec, CellType};
use convert::to_proto;
use model::{FamilyDescriptor, TableDescriptor};
use prost::Message;
use proto::methods::Method;
use proto::pb;
use rpc::CellCodec;

/// Cells lie beside a request, one action's after the other's: those of an action that is refused for its condition are nobody else's.
#[test]
fn a_condition_that_is_not_understood_takes_its_cells_with_it() {
    let mut stage = Stage::new(70);
    let name = own("batches");
    stage
        .act(async |desk| {
            make(desk, TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")])).await;
            let region = calls::region_of(&desk.life, &name, b"row").expect("there");
            let cell = |value: &'static str| CellSpec {
                row: b"row",
                family: b"f",
                qualifier: b"q",
                timestamp: 10,
                type_code: CellType::Put.code(),
                value: value.as_bytes(),
                tags: b"",
            };
            let put = pb::MutationProto {
                row: Some(Bytes::from("row")),
                mutate_type: Some(pb::mutation_proto::MutationType::Put as i32),
                associated_cell_count: Some(1),
                ..pb::MutationProto::default()
            };
            let strange = pb::Filter { name: "com.example.TheirFilter".to_owned(), serialized_filter: None };
            let condition = pb::Condition { row: Bytes::from("row"), filter: Some(strange), ..Default::default() };
            let action = |condition: Option<pb::Condition>| pb::RegionAction {
                region: to_proto::region_specifier(&region),
                action: vec![pb::Action { index: Some(0), mutation: Some(put.clone()), ..Default::default() }],
                condition,
                ..pb::RegionAction::default()
            };
            let request = pb::MultiRequest {
                region_action: vec![action(Some(condition)), action(None)],
                ..pb::MultiRequest::default()
            };
            let cells = CellBlock::from_specs([cell("of the refused"), cell("of the other")]);
            let life = desk.life.clone();
            let sent = tokio::spawn(async move {
                calls::send(&life, Some(CellCodec::KeyValue), Method::ClientMulti, &request, cells).await
            });
            for _ in 0..6 {
                desk.life.settle().await;
                desk.life.logs[0].sync_once().expect("synced");
            }
            let reply = sent.await.expect("no panic").expect("answered");
            let response = pb::MultiResponse::decode(reply.message).expect("a reply");
            let [refused, done] = &response.region_action_result[..] else { panic!("{response:?}") };
            assert!(refused.exception.is_some() && done.exception.is_none(), "{response:?}");
            assert!(done.result_or_exception.iter().all(|one| one.exception.is_none()), "{response:?}");
            let row = texts(&calls::get(&desk.life, &name, "row").await.expect("read"));
            assert_eq!(row, ["of the other"]);
        })
        .expect("starts");
}
