//! Busy hours on a server whose disk is well: what is held for clients is given back, a stop is answered, late calls are not begun.

use basalt_sim::busy;
use basalt_sim::stage::Stage;
use basalt_sim::work::Desk;
use base::Rng;
use std::sync::Arc;

#[test]
fn nothing_is_held_for_clients_that_have_left_a_busy_server() {
    for seed in 0..40 {
        let mut stage = Stage::new(seed);
        let scene = async |desk: &Desk| {
            let desk = Desk { rng: Arc::new(Rng::seeded(seed)), ..desk.clone() };
            for hour in 0..3 {
                busy::hour(&desk).await.unwrap_or_else(|violation| panic!("seed {seed}, hour {hour}: {violation}"));
            }
        };
        stage.act(scene).expect("a start without faults");
        stage.kill();
        stage.check().unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
    }
}

#[test]
fn one_seed_gives_one_busy_hour() {
    let hash = |seed| {
        let mut stage = Stage::new(7);
        let scene = async |desk: &Desk| {
            let desk = Desk { rng: Arc::new(Rng::seeded(seed)), ..desk.clone() };
            busy::hour(&desk).await.expect("nothing is broken");
        };
        stage.act(scene).expect("a start without faults");
        stage.world.trace.hash()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2), "seeds matter");
}
